//! The parsing of each agent's output. The lines are from the real programs (claude 2.1.325, codex
//! 0.166.0, copilot 1.0.102), shortened.

use proctor_record::event::Claim;
use proctor_record::model::Usage;

use super::*;

/// The report that a reader makes of these lines, and the claims on the way.
fn read(
    cli: Cli,
    lines: &str,
    ended: ProcessExit,
    stderr: &str,
) -> (AgentReport, Vec<(String, Claim)>) {
    let mut reader = cli.reader(&usual());
    let mut claims = Vec::new();
    for line in lines.lines() {
        claims.extend(reader.line(line.as_bytes()));
    }
    let claims = claims.into_iter().map(|claim| (claim.tool, claim.status));
    (reader.end(ended, stderr), claims.collect())
}

const INIT: &str = r#"

{"type":"system","subtype":"ui_invalidate"}
{"type":"system","subtype":"init","tools":["mcp__ev__echo"],"mcp_servers":[{"name":"ev","status":"connected"},{"name":"gone","status":"failed"}]}
{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"mcp__ev__echo","input":{"message":"hi"}}],"usage":{"input_tokens":1234,"output_tokens":1}}}
"#;

const DENIED: &str = r#"{"type":"system","subtype":"permission_denied","tool_name":"mcp__ev__echo","tool_use_id":"t1"}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"Permission to use mcp__ev__echo has been denied"}]}}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"I may not","usage":{"input_tokens":1,"output_tokens":2},"permission_denials":[{"tool_name":"mcp__ev__echo"},{"tool_name":"Bash"}]}
"#;

const ANSWERED: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"Echo: hi"}]}]}}
{"type":"assistant","message":{"content":[{"type":"text","text":"done"}]}}
{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":" done\n","usage":{"input_tokens":2468,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":112,"output_tokens_details":{"thinking_tokens":3}},"permission_denials":[]}
"#;

#[test]
fn claude_codes_answer_usage_and_calls_are_read() {
    let lines = format!("{INIT}{ANSWERED}");
    let (report, claims) = read(Cli::ClaudeCode, &lines, ProcessExit::Exited(0), "");
    let usage = Usage {
        input: Some(2498),
        output: Some(112),
        cached: Some(20),
        cache_written: Some(10),
        reasoning: Some(3),
    };
    let expected = AgentReport {
        answer: Some("done".to_owned()),
        usage: Some(usage),
        turns: Some(2),
        unreached: vec!["gone".to_owned()],
        ..AgentReport::default()
    };
    assert_eq!(report, expected);
    assert_eq!(claims, [("mcp__ev__echo".to_owned(), Claim::Completed)]);
    let lines = format!("{INIT}{DENIED}");
    let (report, claims) = read(Cli::ClaudeCode, &lines, ProcessExit::Exited(0), "");
    assert_eq!(report.denied, ["mcp__ev__echo"]);
    assert_eq!(claims, [("mcp__ev__echo".to_owned(), Claim::Denied)]);
}

#[test]
fn claude_codes_failures_are_not_answers() {
    // An outage has the subtype `success`.
    let own = r#"{"type":"result","subtype":"success","is_error":false,"num_turns":0,"result":"Unknown command: /x","usage":{"input_tokens":0,"output_tokens":0}}"#;
    let (report, _) = read(Cli::ClaudeCode, own, ProcessExit::Exited(0), "");
    let error = report.error.unwrap_or_default();
    assert!(error.contains("never called its model"), "{error}");
    let lost = r#"{"type":"result","subtype":"success","is_error":true,"terminal_reason":"api_error","num_turns":1,"result":"API Error: Connection refused","usage":{"input_tokens":0,"output_tokens":0},"permission_denials":[]}"#;
    let (report, _) = read(Cli::ClaudeCode, lost, ProcessExit::Exited(1), "");
    assert_eq!(
        report.error.as_deref(),
        Some("API Error: Connection refused")
    );
    assert!(report.model_lost && report.answer.is_none());
    let tired = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":2,"errors":["Reached maximum number of turns (1)"],"usage":{"input_tokens":1,"output_tokens":1}}"#;
    let (report, claims) = read(
        Cli::ClaudeCode,
        &format!("{INIT}{tired}"),
        ProcessExit::Exited(1),
        "",
    );
    assert!(report.out_of_turns && report.error.is_none());
    assert_eq!(claims, [("mcp__ev__echo".to_owned(), Claim::Unknown)]);
    let (report, _) = read(Cli::ClaudeCode, INIT, ProcessExit::Exited(0), "");
    assert_eq!(report.error.as_deref(), Some("it exited without a result"));
    let (report, _) = read(
        Cli::ClaudeCode,
        "",
        ProcessExit::Exited(2),
        "error: unknown option\n",
    );
    let expected = "it exited with code 2; the end of its stderr:\nerror: unknown option";
    assert_eq!(report.error.as_deref(), Some(expected));
}

const THREAD: &str = r#"{"type":"thread.started","thread_id":"1"}
{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `scripted-1` not found."}}
{"type":"turn.started"}
"#;

#[test]
fn codexs_answer_usage_and_calls_are_read() {
    let rest = r#"{"type":"item.started","item":{"id":"item_1","type":"mcp_tool_call","server":"ev","tool":"echo","arguments":{"message":"hi"},"result":null,"error":null,"status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"ev","tool":"echo","arguments":{"message":"hi"},"result":{"content":[]},"error":null,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"ev","tool":"write","arguments":{},"result":null,"error":{"message":"MCP tool call requires approval, but approval policy is never"},"status":"failed"}}
{"type":"error","message":"Reconnecting... 1/5"}
{"type":"item.completed","item":{"id":"item_3","type":"agent_message","text":"half"}}
{"type":"item.completed","item":{"id":"item_4","type":"agent_message","text":"done"}}
{"type":"turn.completed","usage":{"input_tokens":2468,"cached_input_tokens":5,"cache_write_input_tokens":0,"output_tokens":112,"reasoning_output_tokens":7}}
"#;
    let (report, claims) = read(
        Cli::Codex,
        &format!("{THREAD}{rest}"),
        ProcessExit::Exited(0),
        "",
    );
    let usage = Usage {
        input: Some(2468),
        output: Some(112),
        cached: Some(5),
        cache_written: Some(0),
        reasoning: Some(7),
    };
    let expected = AgentReport {
        answer: Some("done".to_owned()),
        usage: Some(usage),
        denied: vec!["ev.write".to_owned()],
        ..AgentReport::default()
    };
    assert_eq!(report, expected);
    let expected = [
        ("ev.echo".to_owned(), Claim::Completed),
        ("ev.write".to_owned(), Claim::Denied),
    ];
    assert_eq!(claims, expected);
}

#[test]
fn codex_is_ended_if_it_waits_for_the_network() {
    let waits =
        r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed)"}"#;
    let mut reader = Cli::Codex.reader(&usual());
    reader.line(waits.as_bytes());
    assert_eq!(reader.hopeless(), None, "it may come back");
    reader.line(waits.as_bytes());
    assert!(
        reader
            .hopeless()
            .is_some_and(|why| why.contains("waiting for network"))
    );
    let report = reader.end(ProcessExit::Signalled(15), "");
    assert!(report.model_lost && report.error.is_some());
    let failed = r#"{"type":"turn.failed","error":{"message":"unexpected status 401"}}"#;
    let (report, _) = read(
        Cli::Codex,
        &format!("{THREAD}{failed}"),
        ProcessExit::Exited(1),
        "",
    );
    assert_eq!(report.error.as_deref(), Some("unexpected status 401"));
    let stderr = "Error: required MCP servers failed to initialize: ev";
    let (report, _) = read(Cli::Codex, "", ProcessExit::Exited(1), stderr);
    assert!(report.error.unwrap().contains(stderr));
}

#[test]
fn copilots_answer_and_calls_are_read() {
    let lines = r#"{"type":"session.mcp_server_status_changed","data":{"serverName":"ev","status":"connected"}}
{"type":"session.mcp_server_status_changed","data":{"serverName":"gone","status":"failed","error":"exited"}}
{"type":"model.call_final_result","data":{"result":"success"}}
{"type":"assistant.message","data":{"content":"","toolRequests":[{"toolCallId":"c1","name":"ev-echo"}]}}
{"type":"tool.execution_start","data":{"toolCallId":"c1","toolName":"ev-echo","arguments":{"message":"hi"},"mcpServerName":"ev","mcpToolName":"echo"}}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"Echo: hi"}}}
{"type":"tool.execution_start","data":{"toolCallId":"c2","toolName":"ev-write","arguments":{},"mcpServerName":"ev","mcpToolName":"write"}}
{"type":"tool.execution_complete","data":{"toolCallId":"c2","success":false,"error":{"message":"Permission to run this tool was denied","code":"denied"}}}
{"type":"model.call_final_result","data":{"result":"success"}}
{"type":"assistant.message","data":{"content":"done","toolRequests":[]}}
{"type":"result","exitCode":0}"#;
    let (report, claims) = read(Cli::Copilot, lines, ProcessExit::Exited(0), "");
    let expected = AgentReport {
        answer: Some("done".to_owned()),
        turns: Some(2),
        denied: vec!["ev-write".to_owned()],
        unreached: vec!["gone".to_owned()],
        ..AgentReport::default()
    };
    assert_eq!(report, expected, "its usage is in a file that is not there");
    let expected = [
        ("ev-echo".to_owned(), Claim::Completed),
        ("ev-write".to_owned(), Claim::Denied),
    ];
    assert_eq!(claims, expected);
}

#[test]
fn copilots_failures_are_not_answers() {
    let lines = r#"{"type":"session.error","data":{"errorType":"query","message":"Could not connect to local model provider"}}
{"type":"model.call_final_result","data":{"result":"transport_error"}}
{"type":"result","exitCode":1}"#;
    let (report, _) = read(Cli::Copilot, lines, ProcessExit::Exited(1), "");
    assert_eq!(
        report.error.as_deref(),
        Some("Could not connect to local model provider")
    );
    assert!(report.model_lost);
    let failure = |attempt: u32| {
        format!(
            r#"{{"type":"model.call_failure","data":{{"retryAttempt":{attempt},"failureKind":"transport","errorMessage":"refused"}}}}"#
        )
    };
    let mut reader = Cli::Copilot.reader(&usual());
    reader.line(failure(0).as_bytes());
    assert_eq!(reader.hopeless(), None);
    reader.line(failure(2).as_bytes());
    assert_eq!(reader.hopeless(), Some("refused"));
}

#[test]
fn copilots_usage_is_summed_over_its_models() {
    let home = tempfile::tempdir().unwrap();
    let assignment = Assignment {
        home: home.path().to_owned(),
        ..usual()
    };
    let text = r#"{"modelMetrics":{"a":{"usage":{"inputTokens":10,"outputTokens":1,"cacheReadTokens":2,"cacheWriteTokens":0}},"b":{"usage":{"inputTokens":5,"outputTokens":1}}}}"#;
    std::fs::write(home.path().join("usage.json"), text).unwrap();
    let mut reader = Cli::Copilot.reader(&assignment);
    reader.line(br#"{"type":"result","exitCode":0}"#);
    let usage = reader.end(ProcessExit::Exited(0), "").usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached),
        (Some(15), Some(2), Some(2))
    );
}
