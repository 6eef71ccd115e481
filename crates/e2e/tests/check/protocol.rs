//! `protocol` in the MCP config, and `--protocol`: one version or era, and no other.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Direction, EventKind};
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(args: &[&str], protocol: &Value) -> SuiteFixture {
    let server = json!({
        "command": proctor_e2e::fixture(), "args": args, "protocol": protocol,
    });
    let suite = SuiteFixture::on(RULES, &json!({"fixture": server}));
    suite.eval(&json!({}), &json!({"assertions": {"minToolCalls": 1}}));
    suite.task("echo", &json!({}));
    suite
}

/// The first message to the server.
fn first(seen: &SessionOutcome) -> Value {
    let sent = seen.events.iter().find_map(|event| match &event.event {
        EventKind::Frame(frame) if frame.direction == Direction::ToServer => match &frame.body {
            proctor_record::event::Body::Text(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    });
    let sent = sent.unwrap_or_else(|| panic!("nothing was sent\n{}", seen.stderr));
    serde_json::from_str(&sent).unwrap()
}

#[test]
fn a_pinned_protocol_is_the_only_one_that_is_tried() {
    for (pin, method, version) in [
        ("handshake", "initialize", "2025-11-25"),
        ("2025-06-18", "initialize", "2025-06-18"),
        ("2024-11-05", "initialize", "2024-11-05"),
        ("stateless", "server/discover", ""),
        ("2026-07-28", "server/discover", ""),
    ] {
        // In the MCP config, and as a flag that wins over it.
        for (written, flags) in [
            (json!(pin), vec![]),
            (json!("2025-03-26"), vec!["--protocol", pin]),
        ] {
            let seen = suite(&[], &written).check(&flags).run();
            assert_eq!(seen.code, Some(0), "{pin}: {}", seen.stderr);
            let first = first(&seen);
            assert_eq!(first["method"], method, "{pin}");
            let asked = first["params"]["protocolVersion"].as_str();
            assert_eq!(asked.unwrap_or_default(), version);
        }
    }
}

#[test]
fn a_server_that_refuses_the_pinned_version_is_named_with_what_it_offers() {
    for (args, pin, part) in [
        (
            &["--mode", "speaks-version=2024-11-05"][..],
            "2025-06-18",
            "it offers protocol version `2024-11-05`; the suite or `--protocol` requires `2025-06-18`",
        ),
        (
            &["--era", "stateless"],
            "2025-06-18",
            "it supports [\"2026-07-28\"]; the suite or `--protocol` requires `2025-06-18`",
        ),
        (
            &["--era", "handshake"],
            "stateless",
            "`server/discover` with error -32601",
        ),
    ] {
        let suite = suite(args, &json!(pin));
        let output = suite.proctor(&["check", "eval.yaml"]);
        let stderr = String::from_utf8_lossy(&output.stderr).replace("\n  ", " ");
        assert_eq!(output.status.code(), Some(3), "{stderr}");
        assert!(
            stderr.contains("the server `fixture` failed to start"),
            "{stderr}"
        );
        assert!(stderr.contains(part), "{stderr}");
    }
}

#[test]
fn an_unknown_version_is_a_mistake_with_a_suggestion() {
    let output = suite(&[], &json!("2025-06-19")).proctor(&["check", "eval.yaml"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("unknown protocol `2025-06-19`"), "{stderr}");
    assert!(stderr.contains("did you mean `2025-06-18`?"), "{stderr}");
    assert!(stderr.contains("mcp.json:1"), "{stderr}");
    let output =
        suite(&[], &Value::Null).proctor(&["check", "eval.yaml", "--protocol", "stateles"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("did you mean `stateless`?"), "{stderr}");
}

#[test]
fn tools_and_call_use_the_pinned_protocol() {
    let suite = suite(&[], &json!("handshake"));
    for (words, part) in [
        (&["tools"][..], "2025-11-25 (handshake)"),
        (
            &["tools", "--protocol", "stateless"],
            "2026-07-28 (stateless)",
        ),
        (
            &["tools", "--protocol", "2025-03-26"],
            "2025-03-26 (handshake)",
        ),
    ] {
        let output = suite.proctor(&[words, &["--config", "mcp.json"]].concat());
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{stdout}");
        assert!(stdout.contains(part), "{stdout}");
    }
    let call = [
        "call",
        "echo",
        "text=hi",
        "--config",
        "mcp.json",
        "--protocol",
        "2025-03-26",
    ];
    assert_eq!(suite.proctor(&call).status.code(), Some(0));
}
