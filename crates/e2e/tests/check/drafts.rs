//! `proctor init --from`: suites from recorded sessions. Real servers and clients are in `proxies::drafted`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

const SECRET: &str = "hunter2-hunter2-hunter2";

/// Records a session with the fixture server: these calls, one after another. The last one may stay unanswered.
fn recorded(calls: &[Value], server: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(proctor_e2e::proctor())
        .args(["record", "--out", "recordings", "--name", "shop", "--"])
        .arg(proctor_e2e::fixture())
        .args(server)
        .current_dir(folder.path())
        .env("SHOP_API_KEY", SECRET)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let begin = [("initialize", initialize), ("tools/list", json!({}))];
    let calls = calls.iter().map(|call| match call["method"].as_str() {
        Some(method) => (method.to_owned(), call["params"].clone()),
        None => ("tools/call".to_owned(), call.clone()),
    });
    let begin = begin.map(|(method, params)| (method.to_owned(), params));
    for (id, (method, params)) in begin.into_iter().chain(calls).enumerate() {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{message}").unwrap();
        if params["name"] == "sleep" {
            break;
        }
        let is_response = |line: &str| {
            let message: Value = serde_json::from_str(line).unwrap();
            message["id"] == id
        };
        let mut line = String::new();
        while line.is_empty() || !is_response(&line) {
            line.clear();
            assert!(stdout.read_line(&mut line).unwrap() > 0, "no response");
        }
        if id == 0 {
            writeln!(
                stdin,
                r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#
            )
            .unwrap();
        }
    }
    drop(stdin);
    child.wait().unwrap();
    folder
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

fn proctor(folder: &TempDir, words: &[&str]) -> Output {
    Command::new(proctor_e2e::proctor())
        .args(words)
        .current_dir(folder.path())
        .output()
        .unwrap()
}

#[track_caller]
fn told(folder: &TempDir, words: &[&str], code: i32) -> String {
    let output = proctor(folder, words);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// Writes a suite from the only recording, and gives what was printed.
#[track_caller]
fn draft(folder: &TempDir) -> String {
    let found = fs::read_dir(folder.path().join("recordings")).unwrap();
    let record = found.map(|entry| entry.unwrap().path()).next().unwrap();
    told(
        folder,
        &["init", "suite", "--from", record.to_str().unwrap()],
        0,
    )
}

fn file(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join("suite").join(name)).unwrap()
}

#[test]
fn a_draft_makes_the_recorded_calls_and_fails_when_an_answer_differs() {
    let calls = [
        call(
            "echo",
            &json!({"text": "order 6fa459ea-ee8a-3ca4-894e-db77e160355e"}),
        ),
        call("echo", &json!({"text": "stable"})),
        json!({"method": "resources/read", "params": {"uri": "fixture://text"}}),
    ];
    let folder = recorded(&calls, &[]);
    let text = draft(&folder);
    assert!(text.contains("the script makes 3 recorded calls"), "{text}");
    told(&folder, &["validate", "--strict", "suite/eval.yaml"], 0);
    let eval = file(&folder, "eval.yaml");
    for part in [
        "text: stable",
        "$match: \"^order [0-9a-fA-F-]{36}$\"",
        "# arguments.text was \"order 6fa459ea",
        "resourcesRead:",
        "It says nothing about agents",
    ] {
        assert!(eval.contains(part), "`{part}` is not in\n{eval}");
    }
    told(&folder, &["check", "suite/eval.yaml"], 0);
    // The script and the checks are independent: another call fails, another volatile value does not.
    let model = file(&folder, "model.yaml");
    let path = folder.path().join("suite/model.yaml");
    let other = model.replace("6fa459ea-ee8a", "7fa459ea-ee8a");
    assert_ne!(other, model);
    fs::write(&path, other).unwrap();
    told(&folder, &["check", "suite/eval.yaml"], 0);
    fs::write(&path, model.replace("text: stable", "text: other")).unwrap();
    let text = told(&folder, &["check", "suite/eval.yaml"], 1);
    assert!(text.contains("calls"), "{text}");
    fs::write(&path, model.replace("read_resource", "list_resources")).unwrap();
    told(&folder, &["check", "suite/eval.yaml"], 1);
    // Files of a suite are never overwritten.
    let text = told(&folder, &["init", "suite", "--from", "latest"], 2);
    assert!(
        text.contains("latest") || text.contains("already has"),
        "{text}"
    );
}

#[test]
fn a_redacted_argument_is_said_and_never_replayed() {
    let calls = [
        call("echo", &json!({"text": "hello"})),
        call("echo", &json!({"text": format!("key {SECRET}")})),
        call("echo", &json!({"text": "bye"})),
    ];
    let folder = recorded(&calls, &[]);
    let text = draft(&folder);
    let note = "`echo` is left out: its arguments have a redacted value";
    assert!(text.contains(note), "{text}");
    assert!(text.contains("the script makes 2 recorded calls"), "{text}");
    assert!(file(&folder, "eval.yaml").contains(note));
    for name in [
        "eval.yaml",
        "model.yaml",
        "mcp-config.yaml",
        "tasks/session.yaml",
    ] {
        let text = file(&folder, name);
        assert!(
            !text.contains("[redacted") && !text.contains(SECRET),
            "{text}"
        );
    }
    told(&folder, &["check", "suite/eval.yaml"], 0);
}

#[test]
fn a_secret_of_the_command_becomes_a_variable() {
    let folder = recorded(
        &[call("echo", &json!({"text": "a"}))],
        &["--mode", &format!("stderr={SECRET}")],
    );
    let text = draft(&folder);
    assert!(text.contains("set the variable `SHOP_API_KEY`"), "{text}");
    let config = file(&folder, "mcp-config.yaml");
    assert!(
        config.contains("${SHOP_API_KEY}") && !config.contains(SECRET),
        "{config}"
    );
}

#[test]
fn a_call_that_can_not_be_made_again_is_left_out() {
    let calls = [
        call("echo", &json!({"text": "hello"})),
        call("echo", &json!({"text": "a {prompt} b"})),
        call("fail", &json!({})),
        call("sleep", &json!({"ms": 600_000})),
    ];
    let folder = recorded(&calls, &[]);
    let text = draft(&folder);
    assert!(
        text.contains("a script can't send the text `{prompt}`"),
        "{text}"
    );
    assert!(text.contains("it has no response in the record"), "{text}");
    assert!(file(&folder, "eval.yaml").contains("isError: true"));
}

#[test]
fn a_record_without_calls_or_of_a_suite_makes_no_suite() {
    let folder = recorded(&[], &[]);
    let found = fs::read_dir(folder.path().join("recordings")).unwrap();
    let record = found.map(|entry| entry.unwrap().path()).next().unwrap();
    let record = record.to_str().unwrap();
    let text = told(&folder, &["init", "suite", "--from", record], 2);
    assert!(
        text.contains("no call of a tool, resource or prompt"),
        "{text}"
    );
    assert!(!folder.path().join("suite").exists());
    told(&folder, &["init", "demo"], 0);
    told(&folder, &["check", "demo/eval.yaml", "--record", "run"], 0);
    let text = told(&folder, &["init", "suite", "--from", "run"], 2);
    assert!(text.contains("not a recording"), "{text}");
    told(
        &folder,
        &["init", "suite", "--from", record, "--selection"],
        2,
    );
}
