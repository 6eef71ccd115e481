//! Recorded output of real agents, shortened: one allowed call of `get-sum`, and an answer.

use proctor_record::model::Usage;

use super::*;

/// Plays the lines that an agent wrote after its prompt.
fn play(
    preset: &'static str,
    allowed: AllowedTools,
    lines: &[&str],
) -> (AgentReport, Vec<String>, Vec<Value>) {
    let mut assignment = assignment(vec![server("ev", allowed)]);
    assignment.access.model = Some("m".to_owned());
    let mut talk = AcpDialogue::opened(known(preset), &assignment);
    let before = talk.sent.len();
    for line in lines {
        let update = line.starts_with(r#"{"sessionUpdate""#);
        match update {
            true => talk.update(&serde_json::from_str(line).expect("an update")),
            false if line.starts_with(r#"{"stopReason""#) => {
                talk.hear(&serde_json::from_str(line).expect("a result"));
            }
            false => talk.line(line),
        }
    }
    let sent = talk.sent.split_off(before);
    let (report, claims) = talk.end();
    (report, shown(&claims), sent)
}

fn counted(usage: Option<Usage>) -> Option<(u64, u64)> {
    usage.and_then(|usage| Some((usage.input?, usage.output?)))
}

fn chosen(sent: &[Value]) -> Vec<&str> {
    let outcome = |sent: &'_ Value| {
        sent["result"]["outcome"]["optionId"]
            .as_str()
            .map(str::to_owned)
    };
    sent.iter()
        .filter_map(|sent| {
            outcome(sent)?;
            sent["result"]["outcome"]["optionId"].as_str()
        })
        .collect()
}

const CLAUDE: [&str; 7] = [
    r#"{"sessionUpdate":"tool_call","_meta":{"claudeCode":{"toolName":"mcp__ev__get-sum"}},"toolCallId":"tu1","name":"mcp__ev__get-sum","rawInput":{},"status":"pending","title":"mcp__ev__get-sum","kind":"other","content":[]}"#,
    r#"{"sessionUpdate":"tool_call_update","_meta":{"claudeCode":{"toolName":"mcp__ev__get-sum"}},"toolCallId":"tu1","rawInput":{"a":20,"b":22}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"tu1","name":"mcp__ev__get-sum","status":"pending","rawInput":{"a":20,"b":22},"title":"mcp__ev__get-sum","kind":"other","content":[],"_meta":{"claudeCode":{"toolName":"mcp__ev__get-sum","mcpServer":{"name":"ev","source":"dynamic"}}}},"options":[{"optionId":"allow-once","name":"Yes","kind":"allow_once"},{"optionId":"allow-with-updates","name":"Yes, and don't ask again for Get-Sum commands","kind":"allow_always"},{"optionId":"reject","name":"No","kind":"reject_once"}],"sessionId":"s"}}"#,
    r#"{"sessionUpdate":"tool_call_update","_meta":{"claudeCode":{"toolResponse":[{"type":"text","text":"The sum of 20 and 22 is 42."}],"toolName":"mcp__ev__get-sum"}},"toolCallId":"tu1"}"#,
    r#"{"sessionUpdate":"tool_call_update","_meta":{"claudeCode":{"toolName":"mcp__ev__get-sum"}},"toolCallId":"tu1","status":"completed","rawOutput":[{"type":"text","text":"The sum of 20 and 22 is 42."}],"content":[{"type":"content","content":{"type":"text","text":"The sum of 20 and 22 is 42."}}]}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The answer is 42."},"messageId":"m"}"#,
    r#"{"stopReason":"end_turn","usage":{"inputTokens":2468,"outputTokens":112,"cachedReadTokens":0,"cachedWriteTokens":0,"totalTokens":2580},"_meta":{"quota":{"token_count":{"totalTokens":2580},"model_usage":[{"model":"m","token_count":{"totalTokens":3870}}]}}}"#,
];

#[test]
fn claudes_session_is_parsed() {
    let (report, claims, sent) = play("claude-acp", only(&["get-sum"]), &CLAUDE);
    assert_eq!(report.answer.as_deref(), Some("The answer is 42."));
    assert_eq!((report.error, report.denied.len()), (None, 0));
    assert_eq!(counted(report.usage), Some((2468, 112)));
    assert_eq!(claims, [r#"mcp__ev__get-sum {"a":20,"b":22} Completed"#]);
    assert_eq!(chosen(&sent), ["allow-once"]);
}

#[test]
fn a_tool_that_is_not_allowed_is_denied_once_and_named() {
    let mut lines = CLAUDE.to_vec();
    lines[3] = r#"{"sessionUpdate":"tool_call_update","_meta":{"claudeCode":{"toolName":"mcp__ev__get-sum","nonExecutionKind":"permission-rule"}},"toolCallId":"tu1","status":"failed","rawOutput":"User refused permission to run tool"}"#;
    let (report, claims, sent) = play("claude-acp", only(&["echo"]), &lines);
    assert_eq!(claims, [r#"mcp__ev__get-sum {"a":20,"b":22} Denied"#]);
    assert_eq!(report.denied, ["mcp__ev__get-sum"]);
    assert_eq!(chosen(&sent), ["reject"]);
}

#[test]
fn codexs_session_is_parsed_and_its_note_is_not_the_answer() {
    let lines = [
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Warning: Model metadata for `m` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.\n\n"}}"#,
        r#"{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"active","activeFlags":[]}}}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_1","kind":"execute","title":"mcp.ev.get-sum","status":"in_progress","rawInput":{"server":"ev","tool":"get-sum","arguments":{"a":20,"b":22}},"_meta":{"is_mcp_tool_call":true}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"call_1","kind":"execute","status":"pending"},"_meta":{"is_mcp_tool_approval":true},"options":[{"optionId":"allow_once","name":"Allow","kind":"allow_once"},{"optionId":"cancel","name":"Cancel","kind":"reject_once"}]}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","rawOutput":{"result":{"content":[{"type":"text","text":"The sum of 20 and 22 is 42."}],"structuredContent":null,"_meta":null},"error":null}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"msg1","content":{"type":"text","text":"The answer is 42."}}"#,
        r#"{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"idle"}}}}"#,
        r#"{"stopReason":"end_turn","usage":{"totalTokens":2580,"inputTokens":2468,"cachedReadTokens":100,"cachedWriteTokens":0,"outputTokens":112,"thoughtTokens":12}}"#,
    ];
    let (report, claims, sent) = play("codex-acp", only(&["get-sum"]), &lines);
    assert_eq!(report.answer.as_deref(), Some("The answer is 42."));
    assert_eq!(report.error, None);
    // These include cached and thinking tokens.
    assert_eq!(counted(report.usage), Some((2468, 112)));
    assert_eq!(report.usage.and_then(|usage| usage.reasoning), Some(12));
    assert_eq!(claims, [r#"mcp.ev.get-sum {"a":20,"b":22} Completed"#]);
    assert_eq!(chosen(&sent), ["allow_once"]);
}

#[test]
fn geminis_session_is_parsed() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_always_server","name":"Allow all server tools for this session","kind":"allow_always"},{"optionId":"proceed_once","name":"Allow","kind":"allow_once"},{"optionId":"cancel","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"mcp_ev_get-sum__mcp_ev_get-sum_1794739400199_0","status":"pending","title":"get-sum (ev MCP Server)","content":[{"type":"content","content":{"type":"text","text":"{\"a\":20,\"b\":22}"}}],"locations":[],"kind":"other"}}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"mcp_ev_get-sum__mcp_ev_get-sum_1794739400199_0","status":"completed","title":"get-sum (ev MCP Server)","content":[{"type":"content","content":{"type":"text","text":"The sum of 20 and 22 is 42."}}],"locations":[],"kind":"other"}"#,
        r#"{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Hm."}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The answer is 42."}}"#,
        r#"{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":2468,"output_tokens":112},"model_usage":[]}}}"#,
    ];
    let (report, claims, sent) = play("gemini", AllowedTools::All, &lines);
    assert_eq!(report.answer.as_deref(), Some("The answer is 42."));
    assert_eq!(counted(report.usage), Some((2468, 112)));
    assert_eq!(claims, ["mcp_ev_get-sum - Completed"]);
    assert_eq!(chosen(&sent), ["proceed_once"]);
}

#[test]
fn opencodes_session_is_parsed_without_its_partial_usage() {
    let lines = [
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"ev_get-sum","kind":"other","status":"pending","locations":[],"rawInput":{}}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"call_1","title":"ev_get-sum","kind":"other","status":"pending","locations":[],"rawInput":{}},"options":[{"optionId":"once","kind":"allow_once","name":"Allow once"},{"optionId":"always","kind":"allow_always","name":"Always allow"},{"optionId":"reject","kind":"reject_once","name":"Reject"}]}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"in_progress","kind":"other","title":"ev_get-sum","locations":[],"rawInput":{"a":20,"b":22}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","content":[],"rawOutput":{"output":"The sum of 20 and 22 is 42."}}"#,
        r#"{"sessionUpdate":"agent_message_chunk","messageId":"msg_1","content":{"type":"text","text":"The answer is 42."}}"#,
        r#"{"stopReason":"end_turn","usage":{"inputTokens":1234,"outputTokens":56,"totalTokens":1290},"_meta":{}}"#,
    ];
    let (report, claims, sent) = play("opencode", only(&["get-sum"]), &lines);
    assert_eq!(report.answer.as_deref(), Some("The answer is 42."));
    assert_eq!(report.usage, None);
    assert_eq!(claims, [r#"ev_get-sum {"a":20,"b":22} Completed"#]);
    assert_eq!(chosen(&sent), ["once"]);
}

#[test]
fn gooses_session_is_parsed_without_its_partial_usage() {
    let lines = [
        r#"{"sessionUpdate":"tool_call","toolCallId":"call_1","title":"ev: get-sum","rawInput":{"a":20,"b":22},"_meta":{"goose":{"toolCall":{"toolName":"ev__get-sum","extensionName":"ev"},"created":1794739374,"messageId":"c"}}}"#,
        r#"{"jsonrpc":"2.0","id":"5e818844","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"call_1","kind":"other","status":"pending","title":"ev: get-sum","rawInput":{"a":20,"b":22}},"options":[{"optionId":"allow_always","name":"allow_always","kind":"allow_always"},{"optionId":"allow_once","name":"allow_once","kind":"allow_once"},{"optionId":"reject_once","name":"reject_once","kind":"reject_once"}]}}"#,
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call_1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"The sum of 20 and 22 is 42."}}]}"#,
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"The answer is 42."},"messageId":"c"}"#,
        r#"{"stopReason":"end_turn","usage":{"totalTokens":1290,"inputTokens":1234,"outputTokens":56}}"#,
    ];
    let (report, claims, sent) = play("goose", only(&["get-sum"]), &lines);
    assert_eq!(report.answer.as_deref(), Some("The answer is 42."));
    assert_eq!((report.usage, report.error), (None, None));
    assert_eq!(claims, [r#"ev__get-sum {"a":20,"b":22} Completed"#]);
    assert_eq!(chosen(&sent), ["allow_once"]);
    assert_eq!(sent[0]["id"], "5e818844");
}
