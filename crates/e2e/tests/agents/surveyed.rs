//! `proctor agents`, with real programs and with files.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::cli::path_with;

/// `proctor agents` with this PATH, and no key but these.
fn agents(words: &[&str], path: &str, keys: &[(&str, &str)]) -> Output {
    let mut command = Command::new(proctor_e2e::proctor());
    command.arg("agents").args(words).env_clear();
    command.env("PATH", path).envs(keys.iter().copied());
    command.output().expect("it starts")
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn named<'a>(document: &'a Value, name: &str) -> &'a Value {
    let agents = document["agents"].as_array().expect("there is a list");
    let found = agents.iter().find(|agent| agent["name"] == name);
    found.expect("it is among them")
}

/// A program that prints this.
fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("it can be written");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("it can be made executable");
}

#[test]
fn claude_code_is_found_with_its_version_and_its_key_is_not_shown() {
    let path = path_with("claude-code");
    let keys = [("ANTHROPIC_API_KEY", "sk-very-secret")];
    let output = agents(&["-o", "json"], &path, &keys);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains("sk-very-secret"), "{text}");
    let document = document(&output);
    let claude = named(&document, "claude-code");
    assert_eq!(claude["usable"], true, "{claude}");
    assert_eq!(claude["key"]["found"], "ANTHROPIC_API_KEY");
    let version = claude["program"]["version"].as_str().unwrap_or_default();
    assert!(version.contains("Claude Code"), "{version}");
    let codex = named(&document, "codex");
    assert_eq!(codex["usable"], false, "{codex}");
    assert_eq!(codex["program"]["install"], "npm install -g @openai/codex");
    assert_eq!(
        codex["key"]["wanted"],
        json!(["CODEX_API_KEY", "OPENAI_API_KEY"])
    );
}

#[test]
fn one_agent_can_be_asked_for_by_a_script() {
    let key = [("ANTHROPIC_API_KEY", "k")];
    let code = |agent: &str, keys: &[(&str, &str)]| {
        let words = ["--no-versions", "--agent", agent];
        agents(&words, "/usr/bin:/bin", keys).status.code()
    };
    assert_eq!(code("llm-agent=anthropic:claude-x", &key), Some(0));
    assert_eq!(code("llm-agent=anthropic:claude-x", &[]), Some(1));
    assert_eq!(code("codex", &key), Some(1));
    assert_eq!(code("builtin.claud-code", &key), Some(2));
}

#[test]
fn an_agent_file_is_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "claude", "echo; echo 9.8.7; echo more");
    let write = |name: &str, text: Value| {
        let path = folder.path().join(name);
        std::fs::write(&path, text.to_string()).unwrap();
        path.display().to_string()
    };
    let mine = write(
        "a=b.yaml",
        json!({"kind": "Agent", "metadata": {"name": "mine"},
            "builtin": {"type": "claude-code", "apiKey": "MY_KEY"}}),
    );
    let any = write(
        "any.yaml",
        json!({"kind": "Agent", "metadata": {"name": "any"}, "commands": {"runPrompt": "x {{ .Prompt }}", "getVersion": "echo 1.2"}}),
    );
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = agents(&[&mine, &any, "-o", "json"], &path, &[]);
    assert_eq!(output.status.code(), Some(0));
    let document = document(&output);
    let found = named(&document, "mine");
    assert_eq!(found["program"]["version"], "9.8.7", "{found}");
    assert_eq!(found["key"]["wanted"], json!(["MY_KEY"]));
    assert_eq!(
        (&found["usable"], &found["dryRuns"]),
        (&json!(false), &json!(true))
    );
    let command = named(&document, "any");
    assert_eq!(
        (&command["usable"], &command["modelTap"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(command["program"]["version"], "1.2");
    let shown = agents(&[&mine, &any], &path, &[("MY_KEY", "k")]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        text.contains("ready  mine   claude 9.8.7  MY_KEY"),
        "{text}"
    );
    assert!(text.contains("don't work with `any`"), "{text}");
    let wrong = write("wrong.yaml", json!({"kind": "Eval"}));
    assert_eq!(agents(&[&wrong], &path, &[]).status.code(), Some(2));
}

#[test]
fn a_program_that_says_no_version_holds_nothing_up_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    program(folder.path(), "claude", "exit 1");
    let temporary = tempfile::tempdir().unwrap();
    let keys = [("TMPDIR", temporary.path().to_str().unwrap())];
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let output = agents(&["-o", "json"], &path, &keys);
    let document = document(&output);
    let claude = named(&document, "claude-code");
    assert_eq!(claude["program"]["version"], Value::Null);
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 0);
}
