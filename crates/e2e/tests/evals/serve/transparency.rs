//! Direct and served sessions exchange the same messages, byte for byte, but for the capability.

use std::path::Path;

use mcp_evals::{Capability, splice};
use proctor_e2e::log_lines;
use serde_json::{Value, json};

use super::spoken::{SpokenSession, strip};
use super::{Shelf, everything, fixture_with, git, memory};

const INITIALIZE: &str = r#"{"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"x-unknown": [1.50, 12345678901234567890], "protocolVersion": "2025-11-25", "capabilities": {"sampling": {}, "roots": {}}, "clientInfo": {"name": "t", "version": "1"}}}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{},"x":1e2}"#;

/// Says all lines, each after the answer to the one before; gives what was answered.
fn session(command: &[String], lines: &[String], memory: &Path) -> Vec<Vec<u8>> {
    let env = [("MEMORY_FILE_PATH", memory.to_str().unwrap())];
    let mut spoken = SpokenSession::start_with(command, &env);
    let mut heard = Vec::new();
    for line in lines {
        spoken.send(format!("{line}\n").as_bytes());
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        if let (Some(id), Some(_)) = (message.get("id"), message.get("method")) {
            heard.extend(spoken.until(id));
        }
    }
    // Not all servers end when their input does.
    heard.push(spoken.terminate().rest);
    heard
}

/// The line that answers the handshake, with the capability.
fn declared(line: &[u8]) -> Vec<u8> {
    let message = strip(line);
    let is_ours = serde_json::from_slice::<Value>(message).is_ok_and(|m| m["id"] == 0);
    if !is_ours {
        return line.to_vec();
    }
    let capability = Capability::with_list_changed();
    let spliced = splice::declare(message, &capability).unwrap();
    assert_ne!(spliced, message);
    [&line[..line.len() - message.len()], &spliced].concat()
}

fn assert_same(direct: &[Vec<u8>], served: &[Vec<u8>], what: &str) {
    let expected: Vec<Vec<u8>> = direct.iter().map(|line| declared(line)).collect();
    assert_ne!(expected, direct, "{what}: nothing was declared");
    // What a fixture says around its last message may be lost when it ends.
    let (expected, served) = (expected.concat(), served.concat());
    let (expected, served) = (expected.trim_ascii_end(), served.trim_ascii_end());
    let differs = expected.iter().zip(served).position(|(e, s)| e != s);
    let at = differs.unwrap_or(expected.len().min(served.len()));
    let around = |all: &[u8]| {
        let part = &all[at.saturating_sub(200)..(at + 200).min(all.len())];
        String::from_utf8_lossy(part).into_owned()
    };
    assert!(
        expected == served,
        "{what}, at byte {at}: {}\n instead of {}",
        around(served),
        around(expected)
    );
}

fn check(command: &[String], lines: &[String]) {
    let shelf = Shelf::of("a");
    let memory = |name: &str| Path::new(&shelf.path(name)).to_owned();
    let direct = session(command, lines, &memory("direct"));
    let served = session(&shelf.serving(command), lines, &memory("served"));
    assert_same(&direct, &served, &command.join(" "));
}

/// What a client of the older era says.
fn handshake(more: &[&str]) -> Vec<String> {
    let first = [
        INITIALIZE,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    ];
    let common = [
        r#" {"id" : "ü\u00e9" , "jsonrpc":"2.0","method":"tools/list", "params":{"_meta":{"x":[1E+2]}}} "#,
        r#"{"jsonrpc":"2.0","id":2,"method":"no/such/method","params":{"n":12345678901234567890.10}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/unknown","params":{"z":1.50,"a":null}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
    ];
    let all = first.iter().chain(&common).chain(more);
    all.map(ToString::to_string).collect()
}

fn stateless(more: &[&str]) -> Vec<String> {
    let ask = |id: usize, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0", "id":{id},"method":"{method}","params":{{{META}{params}}}}}"#)
    };
    let mut lines = vec![
        ask(0, "server/discover", ""),
        ask(1, "tools/list", ""),
        ask(2, "no/such/method", r#","n":12345678901234567890"#),
    ];
    for (at, params) in more.iter().enumerate() {
        lines.push(ask(3 + at, "tools/call", params));
    }
    lines
}

#[test]
fn e35_a_fixture_can_not_tell_that_evals_are_served() {
    let calls = [
        r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"add","arguments":{"a":12345678901234567890,"b":1e-7}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ask","arguments":{"kind":"sampling","rounds":2}}}"#,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"progress","arguments":{"steps":3,"ms":1},"_meta":{"progressToken":"p"}}}"#,
        r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"big","arguments":{"bytes":9000000}}}"#,
    ];
    let odd = [
        "",
        "this is no JSON",
        "{\"jsonrpc\":\"2.0\",\"method\":",
        "[]",
    ];
    let mut said = handshake(&calls);
    said.extend(odd.iter().map(ToString::to_string));
    said.push(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#.to_owned());
    let new = stateless(&[
        r#","name":"add","arguments":{"a":12345678901234567890,"b":1e-7}"#,
        r#","name":"ask","arguments":{"kind":"elicitation"}"#,
    ]);
    let modes: &[&[&str]] = &[
        &[],
        &["--mode", "strange-envelope", "--on", "*"],
        &["--mode", "log-noise"],
        &["--mode", "blank-lines"],
        &["--mode", "crlf"],
        &["--mode", "bom"],
        &["--mode", "banner"],
        &["--mode", "split-write", "--on", "*"],
        &["--mode", "invalid-utf8"],
    ];
    for mode in modes {
        for (era, lines) in [("handshake", &said), ("stateless", &new)] {
            let shelf = Shelf::of("a");
            let run = |name: &str, serves: bool| {
                let log = shelf.path(name);
                let mut words = vec!["--era", era, "--log", &log];
                words.extend(*mode);
                let command = fixture_with(&words);
                let served = if serves {
                    shelf.serving(&command)
                } else {
                    command
                };
                let heard = session(&served, lines, Path::new("/dev/null"));
                (heard, log_lines(Path::new(&log)))
            };
            let (direct, direct_log) = run("direct", false);
            let (served, served_log) = run("served", true);
            assert_same(&direct, &served, &format!("{mode:?} {era}"));
            assert!(direct_log.len() > 8, "{direct_log:?}");
            assert_eq!(texts(&served_log), texts(&direct_log), "{mode:?} {era}");
        }
    }
}

fn texts(log: &[Value]) -> Vec<String> {
    let entry = |line: &Value| json!([line["dir"], line["text"], line["base64"]]).to_string();
    log.iter().map(entry).collect()
}

#[test]
fn e35_server_everything_says_the_same() {
    check(
        &everything(),
        &handshake(&[
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"message":"grüße \u0001"}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"get-sum","arguments":{"a":0.1,"b":-12345678901}}}"#,
            r#"{"jsonrpc":"2.0","id":5,"method":"prompts/get","params":{"name":"args-prompt","arguments":{"city":"Bonn"}}}"#,
            r#"{"jsonrpc":"2.0","id":6,"method":"resources/templates/list"}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
        ]),
    );
}

#[test]
fn e35_memory_says_the_same() {
    check(
        &memory(),
        &handshake(&[
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"create_entities","arguments":{"entities":[{"name":"n","entityType":"t","observations":["o"]}]}}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read_graph","arguments":{}}}"#,
        ]),
    );
}

#[test]
fn e35_mcp_server_git_says_the_same_in_both_eras() {
    let call = r#","name":"git_status","arguments":{"repo_path":"/"}"#;
    check(&git(), &stateless(&[call]));
    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"git_status","arguments":{"repo_path":"/"}}}"#;
    check(&git(), &handshake(&[call]));
}
