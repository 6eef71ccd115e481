//! Permissions, for each agent's way of naming tools.

use super::*;

/// Requests permission for a call after announcing it, and returns whether it is allowed and which
/// tools of servers are denied.
fn ask(
    acp: Acp<'_>,
    servers: &[AgentServer],
    update: &Value,
    request: &Value,
) -> (bool, Vec<String>) {
    let mut assignment = assignment(servers.to_vec());
    assignment.access.model = Some("m".to_owned());
    let mut talk = AcpDialogue::opened(acp, &assignment);
    if !update.is_null() {
        talk.update(update);
    }
    let params = json!({"sessionId": "s", "toolCall": request, "options": [
        {"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]});
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
        "params": params});
    talk.line(&request.to_string());
    let answer = talk.last()["result"]["outcome"]["optionId"].clone();
    let (report, claims) = talk.end();
    let is_allowed = answer == "y";
    assert_eq!(
        !is_allowed,
        shown(&claims).iter().any(|claim| claim.ends_with("Denied"))
    );
    (is_allowed, report.denied)
}

/// `ev` has one allowed tool; all tools of `my files` are allowed.
fn check(acp: Acp<'_>, update: &Value, request: &Value, allowed: bool, denied: &[&str]) {
    let servers = [
        server("ev", only(&["get-sum"])),
        server("my files", AllowedTools::All),
    ];
    let found = ask(acp, &servers, update, request);
    let denied: Vec<String> = denied.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(found, (allowed, denied), "{acp:?} {update} {request}");
}

#[test]
fn claude_may_use_what_is_allowed_and_nothing_else() {
    let claude = |name: &str, allowed: bool, denied: &[&str]| {
        let call = json!({"toolCallId": "1", "title": "mcp__ev__get-sum", "kind": "other",
            "_meta": {"claudeCode": {"toolName": name}}});
        check(known("claude-acp"), &Value::Null, &call, allowed, denied);
    };
    claude("mcp__ev__get-sum", true, &[]);
    claude("mcp__ev__echo", false, &["mcp__ev__echo"]);
    claude("mcp__my_files__read", true, &[]);
    claude("mcp__other__get-sum", false, &[]);
    claude("Bash", false, &[]);
    claude("mcp__ev__", false, &[]);
}

#[test]
fn codex_may_use_what_is_allowed_and_nothing_else() {
    let codex = |server: &str, tool: &str, title: &str, allowed: bool, denied: &[&str]| {
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": "1", "kind": "execute",
            "title": title, "rawInput": {"server": server, "tool": tool, "arguments": {}}});
        let request = json!({"toolCallId": "1", "kind": "execute"});
        check(known("codex-acp"), &update, &request, allowed, denied);
    };
    codex("ev", "get-sum", "mcp.ev.get-sum", true, &[]);
    codex("ev", "echo", "mcp.ev.echo", false, &["mcp.ev.echo"]);
    codex("my_files", "read", "mcp.my_files.read", true, &[]);
    // A command whose title the model writes.
    codex("x", "y", "mcp.ev.get-sum", false, &[]);
}

#[test]
fn goose_may_use_what_is_allowed_and_nothing_else() {
    let goose = |update: Value, title: &str, allowed: bool, denied: &[&str]| {
        let request = json!({"toolCallId": "1", "kind": "other", "title": title});
        check(known("goose"), &update, &request, allowed, denied);
    };
    let named = |name: &str| {
        json!({"sessionUpdate": "tool_call", "toolCallId": "1",
        "_meta": {"goose": {"toolCall": {"toolName": name}}}})
    };
    goose(named("ev__get-sum"), "ev: get-sum", true, &[]);
    goose(named("ev__echo"), "ev: echo", false, &["ev__echo"]);
    goose(named("my_files__read"), "my_files: read", true, &[]);
    // A command whose title the model writes.
    goose(named("shell"), "ev: get-sum", false, &[]);
    goose(Value::Null, "ev: get-sum", true, &[]);
}

#[test]
fn gemini_may_use_what_is_allowed_and_nothing_else() {
    let gemini = |id: &str, title: &str, allowed: bool, denied: &[&str]| {
        let request = json!({"toolCallId": id, "kind": "other", "title": title});
        check(known("gemini"), &Value::Null, &request, allowed, denied);
    };
    gemini(
        "mcp_ev_get-sum__mcp_ev_get-sum_17_0",
        "get-sum (ev MCP Server)",
        true,
        &[],
    );
    gemini(
        "mcp_ev_echo__mcp_ev_echo_17_0",
        "echo (ev MCP Server)",
        false,
        &["mcp_ev_echo"],
    );
    gemini(
        "mcp_my_files_read__mcp_my_files_read_17_0",
        "read (my_files MCP Server)",
        true,
        &[],
    );
    // Here the model names its calls.
    gemini(
        "mcp_ev_get-sum__call_1_1",
        "get-sum (ev MCP Server)",
        true,
        &[],
    );
    gemini(
        "mcp_ev_echo__call_1_1",
        "echo (ev MCP Server)",
        false,
        &["mcp_ev_echo"],
    );
    gemini(
        "run_shell_command__mcp_1",
        "get-sum (ev MCP Server)",
        false,
        &[],
    );
    gemini(
        "run_shell_command__run_shell_command_17_0",
        "get-sum (ev MCP Server)",
        false,
        &[],
    );
}

#[test]
fn opencode_may_use_what_is_allowed_and_nothing_else() {
    let opencode = |title: &str, kind: &str, allowed: bool, denied: &[&str]| {
        let request = json!({"toolCallId": "1", "kind": kind, "title": title});
        check(known("opencode"), &Value::Null, &request, allowed, denied);
    };
    opencode("ev_get-sum", "other", true, &[]);
    opencode("ev_echo", "other", false, &["ev_echo"]);
    opencode("my_files_read", "other", true, &[]);
    opencode("ev_get-sum", "execute", false, &[]);
    opencode("bash", "execute", false, &[]);
}

#[test]
fn an_unknown_agent_may_name_tools_in_any_of_the_usual_ways() {
    let acp = Acp::Program {
        cmd: "x",
        args: &[],
    };
    let servers = [
        server("ev", only(&["get-sum"])),
        server("fs", AllowedTools::All),
    ];
    let check = |title: &str, kind: &str, allowed: bool| {
        let request = json!({"toolCallId": "1", "kind": kind, "title": title});
        assert_eq!(
            ask(acp, &servers, &Value::Null, &request).0,
            allowed,
            "{title}"
        );
    };
    let good = [
        "mcp__ev__get-sum",
        "ev__get-sum",
        "ev_get_sum",
        "ev.get-sum",
        "ev/get-sum",
        "ev: get-sum",
        "mcp.ev.get-sum",
        "get-sum (ev MCP Server)",
        "get-sum",
        "fs/anything",
    ];
    for title in good {
        check(title, "other", true);
    }
    check("ev.echo", "other", false);
    check("anything", "other", false);
    check("other/get-sum", "other", false);
    check("ev/get-sum", "execute", false);
    check("fs/anything", "edit", false);
}

#[test]
fn a_request_without_an_allow_option_is_cancelled_and_denied() {
    let assignment = assignment(vec![server("ev", AllowedTools::All)]);
    let check = |options: Value, expected: &str| {
        let mut talk = AcpDialogue::opened(known("claude-acp"), &assignment);
        let call =
            json!({"toolCallId": "1", "_meta": {"claudeCode": {"toolName": "mcp__ev__echo"}}});
        let params = json!({"toolCall": call, "options": options});
        let request = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
            "params": params});
        talk.line(&request.to_string());
        assert_eq!(talk.last()["result"].to_string(), expected);
    };
    let cancelled = r#"{"outcome":{"outcome":"cancelled"}}"#;
    check(json!([]), cancelled);
    check(Value::Null, cancelled);
    check(
        json!([{"optionId": "n", "kind": "reject_always"}]),
        r#"{"outcome":{"outcome":"selected","optionId":"n"}}"#,
    );
    check(
        json!([{"optionId": "a", "kind": "allow_always"}, {"optionId": "n", "kind": "reject_once"}]),
        r#"{"outcome":{"outcome":"selected","optionId":"a"}}"#,
    );
}

#[test]
fn the_skill_tool_is_allowed_only_with_skills() {
    let acp = known("claude-acp");
    let request = json!({"toolCallId": "1", "_meta": {"claudeCode": {"toolName": "Skill"}}});
    for skills in [None, Some(".claude/skills".to_owned())] {
        let mut assignment = assignment(Vec::new());
        assignment.skills.clone_from(&skills);
        let mut talk = AcpDialogue::opened(acp, &assignment);
        let params =
            json!({"toolCall": request, "options": [{"optionId": "y", "kind": "allow_once"}]});
        let request = json!({"jsonrpc": "2.0", "id": 9, "method": "session/request_permission",
            "params": params});
        talk.line(&request.to_string());
        let is_allowed = talk.last()["result"]["outcome"]["optionId"] == "y";
        assert_eq!(is_allowed, skills.is_some());
    }
}
