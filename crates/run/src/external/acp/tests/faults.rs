//! Faults of agents, and how they are reported.

use super::*;

const ANY: Acp<'static> = Acp::Program {
    cmd: "x",
    args: &[],
};

/// A session with an agent that is at work on one server.
pub(super) fn ready(acp: Acp<'static>) -> AcpDialogue {
    let mut assignment = assignment(vec![server("ev", AllowedTools::All)]);
    assignment.access.model = Some("m".to_owned());
    AcpDialogue::opened(acp, &assignment)
}

#[test]
fn a_failed_turn_has_no_answer() {
    let check = |reason: Value, error: Option<&str>, out_of_turns: bool| {
        let mut talk = ready(ANY);
        talk.says("Half an");
        talk.hear(&json!({"stopReason": reason}));
        let (report, _) = talk.end();
        assert_eq!(
            (report.error.as_deref(), report.out_of_turns),
            (error, out_of_turns)
        );
        assert_eq!(report.answer.is_some(), error.is_none() && !out_of_turns);
    };
    check(json!("end_turn"), None, false);
    check(json!("max_turn_requests"), None, true);
    check(
        json!("max_tokens"),
        Some("its model's answer was cut off: Half an"),
        false,
    );
    check(
        json!("refusal"),
        Some("its model refused to continue: Half an"),
        false,
    );
    check(
        json!("cancelled"),
        Some("it reported that it was cancelled: Half an"),
        false,
    );
    check(
        json!("bored"),
        Some("unknown stop reason `bored`: Half an"),
        false,
    );
    check(Value::Null, Some("it gave no stop reason: Half an"), false);
}

#[test]
fn a_reached_turn_limit_is_detected() {
    let mut goose = ready(known("goose"));
    goose.says("I've reached the maximum number of actions I can do without user input. Would you like me to continue?");
    goose.hear(&json!({"stopReason": "end_turn", "usage": {"totalTokens": 1290}}));
    let mut claude = ready(known("claude-acp"));
    claude.hear_error(
        &json!({"code": -32603, "message": "Internal error: Reached maximum number of turns (1)"}),
    );
    for talk in [goose, claude] {
        let (report, _) = talk.end();
        assert_eq!(
            (report.answer, report.error, report.out_of_turns),
            (None, None, true)
        );
    }
}

/// The note that is added to errors of agents that Proctor does not know.
const NOTE: &str = "; its environment variables: `PATH`; add more with `env:` in the agent file or `--pass-env NAME`";

#[test]
fn an_early_exit_is_reported_with_its_stage() {
    let mut talk = AcpDialogue::new(ANY, &assignment(Vec::new()));
    let (report, _) = talk.client.end(ProcessExit::Exited(3), "");
    assert_eq!(
        report.error.as_deref(),
        Some(&*format!(
            "it exited with code 3 before it accepted the task{NOTE}"
        ))
    );
    let mut talk = ready(ANY);
    talk.says("42");
    talk.update(&json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ev/echo"}));
    let (report, rest) = talk.client.end(ProcessExit::Signalled(9), "");
    assert_eq!(
        report.error.as_deref(),
        Some(&*format!(
            "it was killed by signal 9 (SIGKILL) during its work{NOTE}"
        ))
    );
    assert_eq!(report.answer, None);
    assert_eq!(shown(&rest), ["ev/echo - Unknown"]);
}

#[test]
fn an_unsupported_transport_is_reported() {
    let check = |way: ServerRoute, capabilities: Value, expected: Option<&str>| {
        let mut offered = server("ev", AllowedTools::All);
        offered.way = way;
        let mut talk = AcpDialogue::new(ANY, &assignment(vec![offered]));
        talk.hear(
            &json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": capabilities}}),
        );
        assert_eq!(talk.client.is_done(), expected.is_some());
        assert_eq!(
            talk.end().0.error.as_deref().filter(|_| expected.is_some()),
            expected
        );
    };
    let url = || "http://127.0.0.1:1/mcp".to_owned();
    let http = || ServerRoute::Http {
        url: url(),
        headers: Vec::new(),
    };
    let sse = || ServerRoute::Sse {
        url: url(),
        headers: Vec::new(),
    };
    let no_http = "it can't use the server `ev`: it does not support servers over HTTP";
    let no_sse = "it can't use the server `ev`: it does not support servers over HTTP+SSE";
    check(http(), json!({"http": true}), None);
    check(http(), json!({"sse": true}), Some(no_http));
    check(http(), Value::Null, Some(no_http));
    check(sse(), json!({"http": true, "sse": false}), Some(no_sse));
    check(sse(), json!({"sse": true}), None);
}

#[test]
fn another_protocol_version_is_refused() {
    for (version, shown) in [
        (json!(2), "2"),
        (json!("1"), "\"1\""),
        (Value::Null, "null"),
    ] {
        let mut talk = AcpDialogue::new(ANY, &assignment(Vec::new()));
        talk.hear(&json!({"protocolVersion": version}));
        let expected = format!("it speaks version {shown} of ACP, but Proctor speaks version 1");
        assert_eq!(talk.end().0.error, Some(expected));
    }
}

#[test]
fn an_agent_logs_in_by_key_only() {
    let required = json!({"code": -32000, "message": "Authentication required"});
    let greeting = json!({"protocolVersion": 1,
        "authMethods": [{"id": "chat-gpt"}, {"id": "api-key"}]});
    let mut talk = AcpDialogue::new(known("codex-acp"), &assignment(Vec::new()));
    talk.hear(&greeting);
    talk.hear_error(&required);
    assert_eq!(talk.last()["method"], "authenticate");
    assert_eq!(talk.last()["params"]["methodId"], "api-key");
    talk.hear(&json!({}));
    assert_eq!(talk.last()["method"], "session/new");
    talk.hear_error(&required);
    let (report, _) = talk.end();
    let no_key = "it requires a login, and has no key: Authentication required";
    assert_eq!(
        (report.error.as_deref(), report.model_lost),
        (Some(no_key), true)
    );

    let mut talk = AcpDialogue::new(ANY, &assignment(Vec::new()));
    talk.hear(&greeting);
    talk.hear_error(&required);
    assert_eq!(talk.end().0.error, Some(format!("{no_key}{NOTE}")));
}

#[test]
fn files_and_terminals_are_refused_and_unknown_methods_too() {
    let mut talk = ready(ANY);
    for method in ["fs/read_text_file", "terminal/create", "elicitation/create"] {
        let request = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": {}});
        talk.line(&request.to_string());
        assert_eq!(talk.last()["id"], "a");
        assert_eq!(
            talk.last()["error"]["code"].as_i64(),
            Some(-32601),
            "{method}"
        );
    }
}

#[test]
fn noise_is_ignored() {
    let mut talk = ready(ANY);
    let before = talk.sent.len();
    let noise = [
        "",
        "Loading…",
        "[INFO] started",
        "{",
        "null",
        "[1,2]",
        r#"{"jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","id":"3","result":{"stopReason":"end_turn"}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update"}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":7}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"tool_call"}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":[]}}}"#,
        r#"{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}"#,
    ];
    for line in noise {
        talk.line(line);
    }
    talk.client.line(b"\xff\xfe\x00garbage");
    assert_eq!(talk.sent.len(), before);
    talk.says("42");
    talk.hear(&json!({"stopReason": "end_turn"}));
    let (report, claims) = talk.end();
    assert_eq!((report.answer.as_deref(), report.error), (Some("42"), None));
    assert!(claims.is_empty());
}

#[test]
fn an_echo_is_not_an_agent() {
    let mut talk = AcpDialogue::new(ANY, &assignment(Vec::new()));
    for _ in 0..3 {
        let last = talk.last().to_string();
        talk.line(&last);
    }
    assert!(talk.client.is_done());
    assert!(talk.end().0.error.is_some());
}

#[test]
fn only_an_agent_at_work_is_told_to_stop() {
    let mut talk = AcpDialogue::new(ANY, &assignment(Vec::new()));
    assert_eq!(talk.client.cancel(), None);
    talk.hear(&json!({"protocolVersion": 1}));
    talk.hear(&json!({"sessionId": "s"}));
    let cancel = talk.client.cancel().expect("it is at work");
    assert_eq!(read(&cancel)["method"], "session/cancel");
    assert_eq!(read(&cancel)["params"]["sessionId"], "s");
    talk.hear(&json!({"stopReason": "end_turn"}));
    assert_eq!(talk.client.cancel(), None);
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_written_breaks_the_client(lines in proptest::collection::vec(
        proptest::prop_oneof![
            ".*",
            "\\{\"jsonrpc\":\"2.0\",\"id\":[0-3],\"(result|error|params)\":(\\{\\}|null|\"x\"|\\[\\])\\}",
            "\\{\"method\":\"session/(update|request_permission)\",\"id\":1,\"params\":\\{\"(update|toolCall)\":(\\{\"toolCallId\":\"__\"\\}|null|3)\\}\\}",
        ], 0..20)) {
        let mut talk = AcpDialogue::new(known("gemini"), &assignment(Vec::new()));
        for line in &lines {
            talk.line(line);
        }
        let (report, _) = talk.end();
        proptest::prop_assert!(report.answer.is_none());
    }
}
