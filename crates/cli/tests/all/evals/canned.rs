//! A server that answers from files, and writes down what it was asked.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::proctor::{Output, Proctor, proctor};

/// Answers each request with the file of its method, in which `@ID@` stands for the request's id and
/// `@NOW@` for the time.
const SERVER: &str = r#"#!/bin/sh
cd "$(dirname "$0")" || exit 1
while IFS= read -r line; do
    printf '%s\n' "$line" >> asked
    id=${line#*\"id\":}
    id=${id%%[,\}]*}
    case "$line" in
        *'"method":"initialize"'*) answer=initialize ;;
        *'"method":"tools/list"'*) answer=tools-list ;;
        *'"method":"evals/list"'*) answer=evals-list ;;
        *'"method":"tools/call"'*) answer=tools-call ;;
        *'"method":"notifications/'*) continue ;;
        *) answer=unknown ;;
    esac
    sed -e "s/@ID@/$id/g" -e "s/@NOW@/$(date +%s%N)/g" "$answer"
done
"#;

/// The server and its folder.
pub struct CannedServer {
    folder: tempfile::TempDir,
}

impl CannedServer {
    /// A server with these capabilities, tools and evals.
    pub fn new(capabilities: &Value, tools: &Value, evals: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let canned = Self { folder };
        fs::write(canned.path("server.sh"), SERVER).expect("the server can be written");
        canned.answers(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25",
                "capabilities": capabilities,
                "serverInfo": {"name": "canned", "version": "1"},
            }),
        );
        canned.answers("tools-list", &json!({"tools": tools}));
        canned.answers("evals-list", &json!({"evals": evals}));
        let error = json!({"code": -32601, "message": "no such method"});
        canned.write(
            "unknown",
            &json!({"jsonrpc": "2.0", "id": "@ID@", "error": error}),
        );
        canned
    }

    /// A server that ships evals, and has tools.
    pub fn shipping(tools: &Value, evals: &Value) -> Self {
        Self::new(&json!({"evals": {}, "tools": {}}), tools, evals)
    }

    /// Answers a method with this result from now on.
    pub fn answers(&self, method: &str, result: &Value) {
        self.write(
            method,
            &json!({"jsonrpc": "2.0", "id": "@ID@", "result": result}),
        );
    }

    fn write(&self, method: &str, message: &Value) {
        let text = message.to_string().replace("\"@ID@\"", "@ID@");
        fs::write(self.path(method), format!("{text}\n")).expect("the answer can be written");
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The requests of a method that reached the server.
    pub fn asked(&self, method: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path("asked")).unwrap_or_default();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a message"));
        lines
            .filter(|message: &Value| message["method"] == method)
            .collect()
    }

    /// The binary with these words, which then get the server.
    pub fn command(&self, words: &[&str]) -> Proctor {
        let words = words.iter().copied().chain(["--", "sh", "server.sh"]);
        proctor(words).current_dir(self.folder())
    }

    pub fn run(&self, words: &[&str]) -> Output {
        self.command(words).output()
    }
}

/// An execution eval that expects nothing.
pub fn execution(id: &str, tool: &str) -> Value {
    json!({
        "id": id, "name": "An eval", "gradingType": "exact-match",
        "input": {"type": "execution", "toolName": tool, "arguments": {}},
        "expected": {"type": "exact-match", "content": []},
    })
}

/// A tool that says that it only reads.
pub fn reader(name: &str) -> Value {
    json!({
        "name": name, "description": "Reads.", "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": true},
    })
}
