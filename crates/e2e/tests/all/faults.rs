//! The modes that spoil messages, on stdio.

use std::io::{BufRead, Read};

use serde_json::{Value, json};

use crate::wire::{META, said, start, start_mode};

/// What `echo` is answered with in this mode: one line.
fn line_in(mode: &str) -> String {
    let mut server = start_mode(mode);
    server.echo(1);
    String::from_utf8_lossy(&server.line()).into_owned()
}

fn message_in(mode: &str) -> Value {
    serde_json::from_str(&line_in(mode)).unwrap()
}

#[test]
fn never_answer_is_silent_and_serves_the_rest() {
    let mut server = start_mode("never-answer");
    server.echo(1);
    server.request(2, "ping", "{}");
    assert_eq!(server.message()["id"], 2);
    let mut server = start_mode("never-answer=ping");
    server.request(1, "ping", "{}");
    server.echo(2);
    assert_eq!(server.message()["id"], 2);
}

#[test]
fn answer_late_lets_others_pass() {
    let mut server = start(&["--mode", "answer-late=2000", "--times", "1"]);
    server.echo(1);
    server.echo(2);
    assert_eq!(server.message()["id"], 2);
    assert_eq!(server.message()["id"], 1);
}

#[test]
fn answer_after_cancel_waits_for_the_cancel() {
    let mut server = start(&["--mode", "answer-after-cancel", "--times", "1"]);
    server.echo(1);
    server.echo(2);
    assert_eq!(server.message()["id"], 2);
    server.cancel(1);
    assert_eq!(server.message()["id"], 1);
}

#[test]
fn ignore_cancel_answers_all_the_same() {
    let mut server = start_mode("ignore-cancel");
    server.call(1, "sleep", r#"{"ms":100}"#);
    server.cancel(1);
    assert_eq!(server.message()["id"], 1);
}

#[test]
fn floods_come_before_the_answer_or_without_one() {
    let mut server = start_mode("flood-notifications=500");
    server.echo(1);
    let count = (0..500)
        .filter(|_| server.message()["method"] == "notifications/message")
        .count();
    assert_eq!(count, 500);
    assert_eq!(server.message()["id"], 1);

    let mut server = start_mode("flood-progress");
    server.request(
        1,
        "tools/call",
        r#"{"name":"echo","_meta":{"progressToken":9}}"#,
    );
    for number in 0..500 {
        assert_eq!(server.message()["params"]["progress"], number);
    }
    server.cancel(1);
    server.request(2, "ping", "{}");
    while server.message()["id"] != 2 {}
}

#[test]
fn noise_surrounds_the_messages() {
    let mut server = start_mode("banner");
    assert_eq!(server.text(), "Fixture server ready on stdio\n");
    assert!(line_in("log-noise").starts_with("[INFO] "));
    assert!(line_in("bom").starts_with("\u{feff}{"));
    assert!(line_in("crlf").ends_with("}\r\n"));
    assert!(line_in("half-line").starts_with("loading 50% {"));
    let mut server = start_mode("blank-lines");
    server.echo(1);
    assert_eq!([server.text(), server.text()], ["\n", "  \n"]);
    assert_eq!(server.message()["id"], 1);
    assert_eq!(server.text(), "\n");
}

#[test]
fn split_write_is_whole_in_the_end() {
    assert_eq!(said(&message_in("split-write")), "hi");
}

#[test]
fn torn_line_ends_in_the_middle() {
    let mut server = start_mode("torn-line=4");
    server.echo(1);
    let (status, rest, _) = server.end();
    assert_eq!(status.code(), Some(4));
    assert!(rest.starts_with(b"{\"result\"") && !rest.ends_with(b"\n"));
}

#[test]
fn answers_break_the_rules_of_json_rpc() {
    assert!(serde_json::from_str::<Value>(&line_in("invalid-json")).is_err());
    assert_eq!(message_in("wrong-shape")["result"], "done");
    assert!(message_in("wrong-shape=content")["result"]["content"].is_object());
    assert_eq!(message_in("wrong-shape=message"), 42);
    assert!(message_in("wrong-shape=version")["jsonrpc"].is_null());
    let both = message_in("result-and-error");
    assert!(both["result"].is_object() && both["error"].is_object());
    assert_eq!(message_in("other-id-type")["id"], "1");
    assert!(message_in("strange-envelope")["x-unknown"].is_object());
    assert_eq!(message_in("unknown-id")["id"], "nobody-asked-7");
}

#[test]
fn other_id_type_turns_strings_into_numbers() {
    let mut server = start_mode("other-id-type");
    server.write(r#"{"jsonrpc":"2.0","id":"12","method":"tools/call","params":{"name":"fail"}}"#);
    assert_eq!(server.message()["id"], 12);
}

#[test]
fn duplicate_answers_differ() {
    let mut server = start_mode("duplicate-answer");
    server.echo(1);
    assert_eq!(said(&server.message()), "hi");
    let second = server.message();
    assert_eq!(
        (&second["id"], &second["error"]["message"]),
        (&json!(1), &json!("second response"))
    );
}

#[test]
fn notifications_are_answered_if_asked() {
    let mut server = start_mode("answer-notification");
    server.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(server.message()["id"].is_null());
}

#[test]
fn results_can_be_of_any_size_and_depth() {
    assert_eq!(said(&message_in("big-result=200001")).len(), 200_001);
    let blocks = message_in("many-blocks=3000");
    assert_eq!(blocks["result"]["content"].as_array().unwrap().len(), 3000);
    assert_eq!(
        message_in("deep-nesting=2")["result"]["structuredContent"]["deep"],
        json!([[]])
    );
    let deep = line_in("deep-nesting=100000");
    assert!(deep.contains(&"[".repeat(100_000)) && deep.contains(&"]".repeat(100_000)));
}

#[test]
fn an_endless_line_has_no_end() {
    let mut server = start_mode("endless-line");
    server.echo(1);
    let mut bytes = vec![0; 1 << 20];
    server.stdout.read_exact(&mut bytes).unwrap();
    assert!(!bytes.contains(&b'\n'));
}

#[test]
fn results_hold_what_is_not_text() {
    let mut server = start_mode("invalid-utf8");
    server.echo(1);
    assert!(std::str::from_utf8(&server.line()).is_err());
    assert!(line_in("lone-surrogate").contains(r"a\ud800b"));
    assert!(line_in("nul").contains(r"a\u0000b"));
    assert!(line_in("nul=raw").contains("a\0b"));
}

#[test]
fn slow_loris_writes_byte_by_byte() {
    let mut server = start_mode("slow-loris=100");
    server.echo(1);
    // A busy machine may let a second byte through, but not the answer.
    assert!(server.stdout.fill_buf().unwrap().len() < 20);
}

#[test]
fn on_and_times_choose_what_is_spoilt() {
    let mut server = start(&[
        "--mode",
        "wrong-shape",
        "--on",
        "tools/list",
        "--times",
        "1",
    ]);
    server.echo(1);
    assert_eq!(said(&server.message()), "hi");
    server.request(2, "tools/list", "{}");
    assert_eq!(server.message()["result"], "done");
    server.request(3, "tools/list", "{}");
    assert!(server.message()["result"]["tools"].is_array());
    let mut server = start(&["--mode", "wrong-shape", "--on", "*"]);
    server.request(1, "server/discover", &format!("{{{META}}}"));
    assert_eq!(server.message()["result"], "done");
}
