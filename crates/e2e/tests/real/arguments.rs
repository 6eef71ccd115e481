//! The arguments of `proctor call` as people type them, on a real server and on the fixture.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use proctor_e2e::session::Session;
use proctor_record::event::Direction;
use serde_json::{Value, json};

use crate::servers;

/// The arguments that reach the fixture.
fn sent(words: &[&str]) -> Value {
    let seen = Session::new(words)
        .on(proctor_e2e::fixture().display().to_string(), &[])
        .run();
    assert_eq!(seen.code, Some(0), "{words:?}: {}", seen.stderr);
    let messages = seen.messages(Direction::ToServer).into_iter();
    let messages = messages.filter_map(|text| serde_json::from_slice::<Value>(&text).ok());
    let mut calls = messages.filter(|message| message["method"] == "tools/call");
    calls.next().unwrap()["params"]["arguments"].clone()
}

/// What `proctor call` on the fixture says, with this on stdin.
fn call(words: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(proctor_e2e::program("proctor"))
        .arg("call")
        .args(words)
        .arg("--")
        .arg(proctor_e2e::fixture())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(stdin.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn refused(words: &[&str], expected: &str) {
    let output = call(words, "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(said.contains(expected), "{words:?}: {said}");
}

#[test]
fn a_real_tool_is_called_with_typed_arguments() {
    let real = servers::everything();
    let args: Vec<&str> = real.command[1..].iter().map(String::as_str).collect();
    let seen = Session::new(&["call", "get-sum", "a=2", "b=40"])
        .on(&real.command[0], &args)
        .run();
    assert_eq!((seen.code, seen.stdout.as_str()), (Some(0), real.answer));
}

#[test]
fn values_are_what_the_schema_asks_for() {
    assert_eq!(
        sent(&["call", "add", "a=2", "b=-3.5"]),
        json!({"a": 2, "b": -3.5})
    );
    assert_eq!(sent(&["call", "echo", "text=2"]), json!({"text": "2"}));
    assert_eq!(sent(&["call", "echo", "text=-"]), json!({"text": "-"}));
    assert_eq!(
        sent(&["call", "echo", "text=a=b c"]),
        json!({"text": "a=b c"})
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("draft");
    std::fs::write(&file, "{\"text\": \"of a file\"}\n").unwrap();
    let file = file.display();
    assert_eq!(
        sent(&["call", "echo", &format!("text=@{file}")]),
        json!({"text": "{\"text\": \"of a file\"}\n"})
    );
    let whole = json!({"text": "of a file"});
    assert_eq!(sent(&["call", "echo", &format!("@{file}")]), whole);
    assert_eq!(
        sent(&["call", "echo", "--args", &format!("@{file}")]),
        whole
    );
    assert_eq!(
        sent(&["call", "echo", "--args", r#"{"text": "hi"}"#]),
        json!({"text": "hi"})
    );
}

#[test]
fn stdin_is_read_where_it_is_named() {
    for (words, stdin) in [
        (&["echo", "-"][..], r#"{"text": "from stdin"}"#),
        (&["echo", "--args", "-"], r#"{"text": "from stdin"}"#),
        (&["echo", "text=@-"], "from stdin"),
    ] {
        let output = call(words, stdin);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.starts_with("from stdin"), "{words:?}: {output:?}");
    }
}

#[test]
fn mistakes_are_told_before_the_tool_is_called() {
    refused(
        &["echo", "txet=hi"],
        "error: the tool has no argument `txet`; did you mean `text`?\n",
    );
    refused(&["add", "a=1"], "error: missing `b` (number)\n");
    refused(&["add", "a=1", "a=2"], "error: duplicate argument `a`");
    refused(
        &["add", "a=1", "--args", r#"{"b": 2}"#],
        "error: pass either `NAME=VALUE` or all arguments as JSON, not both\n",
    );
    refused(
        &["echo", "hi"],
        "write arguments as NAME=VALUE, and `--` before the server's command",
    );
    refused(
        &["echo", "text=@no-such-file"],
        "can't read the file `no-such-file`",
    );
    refused(&["echo", "text=@"], "name a file after `@`");
    refused(&["echo", "-"], "stdin: EOF while parsing");
    refused(
        &["echo", "--args", "[1]"],
        "write the arguments as a JSON object",
    );
    refused(&["add", "a=@-", "b=@-"], "stdin can be read only once");
}

#[test]
fn a_tool_that_was_called_without_arguments_says_which_it_requires() {
    let output = call(&["add"], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let hint = "`add` requires `a` (number), `b` (number); write them as NAME=VALUE\n";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn a_value_that_fits_neither_way_is_sent_as_text_with_a_warning() {
    let output = call(&["add", "a=two", "b=3"], "");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("warning: sent as text, but the tool's schema expects another type: `a`: "),
        "{said}"
    );
}
