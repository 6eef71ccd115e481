//! What each agent says when its model can't be reached: an outage, and not an answer.

use super::faults::ready;
use super::*;

/// Checks that what the agent reports is an outage of its model, with this text in the error.
#[track_caller]
fn check(preset: &str, report: impl FnOnce(&mut AcpDialogue), expected: &str) {
    let mut talk = ready(known(preset));
    report(&mut talk);
    let (report, _) = talk.end();
    assert_eq!(report.answer, None, "{preset}");
    let error = report.error.unwrap_or_default();
    assert!(error.contains(expected), "{preset}: {error}");
    assert!(report.model_lost, "{preset}");
}

/// Checks an agent that ends its turn with an error.
#[track_caller]
fn check_error(preset: &str, code: i64, message: &str, expected: &str) {
    let error = json!({"code": code, "message": message});
    check(preset, |talk| talk.hear_error(&error), expected);
}

/// Checks an agent that says what happened, and ends its turn as if that were its answer.
#[track_caller]
fn check_answer(preset: &str, text: &str, end: &Value, expected: &str) {
    let report = |talk: &mut AcpDialogue| {
        talk.says(text);
        talk.hear(end);
    };
    check(preset, report, expected);
}

#[test]
fn an_outage_of_goose_is_not_an_answer() {
    let network = "Network error: Could not connect to 127.0.0.1:9";
    let end = json!({"stopReason": "end_turn"});
    check_answer("goose", network, &end, network);
    check_answer(
        "goose",
        "Something new that is no answer either.",
        &json!({"stopReason": "end_turn", "usage": {"totalTokens": 0}}),
        "Something new",
    );
    // After a few successful requests.
    check_answer(
        "goose",
        "Ran into this error: Server error: 500",
        &json!({"stopReason": "end_turn", "usage": {"totalTokens": 1290}}),
        "Server error: 500",
    );
}

#[test]
fn an_outage_of_claude_acp_is_not_an_answer() {
    check(
        "claude-acp",
        |talk| {
            talk.says("API Error: Connection refused");
            talk.hear_error(
                &json!({"code": -32603, "message": "Internal error: API Error: Connection refused"}),
            );
        },
        "API Error: Connection refused",
    );
    let login = "Authentication required";
    check_error("claude-acp", -32000, login, login);
}

#[test]
fn an_outage_of_gemini_is_not_an_answer() {
    check_error(
        "gemini",
        500,
        "exception TypeError: fetch failed sending request",
        "fetch failed",
    );
    // Its messages for a provider that answers with 401, and with a page instead of JSON.
    check_error(
        "gemini",
        401,
        "{\"error\":{\"code\":401,\"message\":\"invalid key\",\"status\":\"UNAUTHENTICATED\"}}",
        "invalid key",
    );
    check_error(
        "gemini",
        500,
        "Incomplete JSON segment at the end",
        "Incomplete JSON",
    );
}

#[test]
fn an_outage_of_opencode_is_not_an_answer() {
    check_error(
        "opencode",
        -32603,
        "Internal error: invalid key",
        "invalid key",
    );
    check_error(
        "opencode",
        -32603,
        "Internal error: Cannot connect to API: Unable to connect.",
        "Cannot connect to API",
    );
}

#[test]
fn an_outage_of_codex_acp_is_not_an_answer() {
    let broken = json!({"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": {
        "message": "Reconnecting... 1/1", "additionalDetails": "high demand", "willRetry": true}}}});
    let dead = json!({"sessionUpdate": "session_info_update",
        "_meta": {"codex": {"threadStatus": {"type": "systemError"}}}});
    check(
        "codex-acp",
        |talk| {
            talk.update(&broken);
            talk.update(&dead);
            talk.says("We’re currently experiencing high demand.");
            talk.hear(&json!({"stopReason": "end_turn", "usage": null}));
        },
        "high demand",
    );
}

#[test]
fn codex_does_not_wait_for_the_network_forever() {
    let waiting = json!({"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": {
        "message": "Reconnecting... waiting for network",
        "additionalDetails": "Connection failed: error sending request", "willRetry": true}}}});
    let mut talk = ready(known("codex-acp"));
    talk.update(&waiting);
    assert!(!talk.client.is_done());
    talk.update(&waiting);
    assert!(talk.client.is_done());
    assert_eq!(talk.last()["method"], "session/cancel");
    let (report, _) = talk.end();
    assert!(report.model_lost);
    assert_eq!(
        report.error.as_deref(),
        Some("Reconnecting... waiting for network: Connection failed: error sending request")
    );
}
