//! A script behind `proctor model serve`: the vendors' own packages and our own adapters get the same
//! from it in every format, and faults are what they stand for.

mod adapters;
mod besides;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::sdk::{folder, run};

pub const SCRIPT: &str = "
kind: Script
rules:
  - when: {results: 0, prompt: 'add (\\d+) and (\\d+)'}
    reply:
      thinking: Both at once.
      text: 'I call two tools. é😀'
      calls:
        - {tool: add, arguments: {a: '{match.1}', list: [1, {deep: true}]}}
        - {tool: get-sum, arguments: {}}
      usage: {input: 1234, output: 56, cached: 34, reasoning: 6}
  - when: {results: 2}
    reply: {text: \"They gave {results.1} and {result}, on line one\\nand two.\", usage: {input: 2000, output: 20}}
";

/// Runs the same conversation through every package, and prints what each made of it.
pub const CLIENTS: &str = include_str!("served/clients.mjs");

/// `proctor model serve`, as a user runs it.
pub struct RunningModelServer {
    child: Child,
    pub address: String,
    _folder: tempfile::TempDir,
}

impl RunningModelServer {
    pub fn start(script: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("model.yaml"), script).unwrap();
        let mut child = Command::new(proctor_e2e::proctor())
            .args(["model", "serve", "model.yaml", "--verbose", "-o", "json"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.ends_with("\n}\n") {
            assert!(out.read_line(&mut said).unwrap() > 0, "{said}");
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        let address = said["address"].as_str().unwrap().to_owned();
        assert_eq!(
            said["environment"]["OPENAI_BASE_URL"],
            format!("{address}/v1")
        );
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// Ends it with Ctrl-C; gives what it said on stderr.
    pub fn end(mut self) -> String {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let stderr = self.child.stderr.take().unwrap();
        let said = std::io::read_to_string(stderr).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for RunningModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn one_script_is_the_same_transcript_in_every_vendors_package() {
    let serving = RunningModelServer::start(SCRIPT);
    let folder = folder(&[("clients.mjs", CLIENTS.to_owned())]);
    let env = [("MODEL", serving.address.as_str())];
    let (passed, said) = run(folder.path(), Path::new("node"), &["clients.mjs"], &env);
    let told = serving.end();
    assert!(passed, "{said}\n{told}");
    let lines: Vec<(&str, &str)> = said.lines().filter_map(|l| l.split_once('\t')).collect();
    assert_eq!(lines.len(), 8, "{said}");
    let first: Value = serde_json::from_str(lines[0].1).unwrap();
    for (name, transcript) in &lines {
        assert_eq!(*transcript, lines[0].1, "{name}");
    }
    assert_eq!(first[0]["text"], "I call two tools. é😀");
    assert_eq!(first[0]["thinking"], "Both at once.");
    assert_eq!(first[0]["usage"], json!([1234, 56, 34, 6]));
    let add = json!(["mcp__calc__add", {"a": "1", "list": [1, {"deep": true}]}, "call_1_1"]);
    assert_eq!(first[0]["calls"][0].to_string(), add.to_string());
    let last = r#"They gave add of {"a":"1","list":[1,{"deep":true}]} and get-sum of {}, on line one
and two."#;
    assert_eq!(first[1]["text"], last);
    assert_eq!(first[1]["stop"], "done");
    let totals = "16 requests, 0 of them side requests, 0 unanswered; 25872 tokens in, 608 out\n";
    assert!(told.ends_with(totals), "{told}");
    assert!(
        told.contains("messages /v1/messages: 2 results: replies They gave add of"),
        "{told}"
    );
}

#[test]
fn a_script_that_is_wrong_is_not_served() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("model.yaml"),
        "kind: Script\nrules: []\n",
    )
    .unwrap();
    let output = Command::new(proctor_e2e::proctor())
        .args(["model", "serve", "model.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("model.yaml:2"));
}

#[test]
fn a_port_that_is_taken_is_said() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("model.yaml"), SCRIPT).unwrap();
    let output = Command::new(proctor_e2e::proctor())
        .args(["model", "serve", "model.yaml", "--port", &port])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = format!("error: can't listen on port {port}: ");
    assert!(
        said.starts_with(&expected) && said.lines().count() == 1,
        "{said}"
    );
}
