//! The launch of each agent, and the parsing of its output. The lines are from the real programs
//! (claude 2.1.325, codex 0.166.0, copilot 1.0.102), shortened.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proctor_core::event::Claim;
use proctor_core::model::Usage;
use proctor_core::suite::server::AllowedTools;

use super::*;
use crate::external::{ModelAccess, ModelUrl, ServerRoute};

fn offered(name: &str, way: ServerRoute, allowed: AllowedTools) -> AgentServer {
    AgentServer {
        name: name.to_owned(),
        way,
        allowed,
        tools: Vec::new(),
    }
}

fn stdio() -> ServerRoute {
    ServerRoute::Stdio {
        program: PathBuf::from("/bin/proctor"),
        args: vec!["__relay".to_owned(), "/tmp/a \"b\"/s".to_owned()],
    }
}

fn http() -> ServerRoute {
    ServerRoute::Http {
        url: "http://127.0.0.1:1/mcp".to_owned(),
        headers: vec![("proctor-token".to_owned(), "t0ken".to_owned())],
    }
}

fn assignment(servers: Vec<AgentServer>) -> Assignment {
    Assignment {
        prompt: "-p \"$(date)\"".to_owned(),
        servers,
        access: ModelAccess {
            model: Some("m-1".to_owned()),
            provider: None,
            endpoint: Some(ModelUrl {
                base: "http://127.0.0.1:9/base".to_owned(),
                key: "k3y".to_owned(),
                format: WireFormat::Responses,
            }),
        },
        folder: PathBuf::from("/w"),
        skills: None,
        home: PathBuf::from("/h"),
        environment: BTreeMap::from([("PATH".to_owned(), "/bin".to_owned())]),
        max_turns: Some(7),
    }
}

fn usual() -> Assignment {
    let only = AllowedTools::Only(vec!["get-sum".to_owned(), "a.b".to_owned()]);
    assignment(vec![
        offered("my server", stdio(), only),
        offered("web", http(), AllowedTools::All),
    ])
}

/// The launch, without the folder of its secrets.
fn prepared(cli: Cli, assignment: &Assignment) -> Launch {
    let launch = cli.prepare(assignment).unwrap();
    for arg in &launch.args {
        for secret in ["t0ken", "k3y", "$(date)"] {
            assert!(!arg.contains(secret), "`{secret}` is in {arg}");
        }
    }
    assert_eq!(launch.stdin.as_ref(), Some(&assignment.prompt));
    assert_eq!(launch.env["PATH"], "/bin");
    launch
}

#[test]
fn claude_code_gets_servers_and_permissions_in_files() {
    let launch = prepared(Cli::ClaudeCode, &usual());
    assert_eq!(
        launch.args.join(" "),
        "-p --output-format stream-json --verbose --mcp-config /h/mcp.json --strict-mcp-config \
         --settings /h/settings.json --tools  --disable-slash-commands --model m-1 --max-turns 7"
    );
    let files: Vec<&str> = launch.files.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(
        files,
        [
            r#"{"mcpServers":{"my_server":{"type":"stdio","command":"/bin/proctor","args":["__relay","/tmp/a \"b\"/s"],"env":{}},"web":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"proctor-token":"t0ken"}}}}"#,
            r#"{"permissions":{"allow":["mcp__my_server__get-sum","mcp__my_server__a_b","mcp__web"],"defaultMode":"dontAsk"}}"#,
        ]
    );
    for (name, value) in [
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/base"),
        ("ANTHROPIC_API_KEY", "k3y"),
        ("ENABLE_TOOL_SEARCH", "false"),
        ("MCP_CONNECTION_NONBLOCKING", "0"),
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ] {
        assert_eq!(
            launch.env.get(name).map(String::as_str),
            Some(value),
            "{name}"
        );
    }
    let skilled = Assignment {
        skills: Some(".claude/skills".to_owned()),
        ..usual()
    };
    let launch = prepared(Cli::ClaudeCode, &skilled);
    assert!(launch.args.join(" ").contains("--tools Skill,Read --model"));
    assert!(
        launch.files[1]
            .1
            .contains(r#""Skill","Read(./.claude/skills/**)""#)
    );
}

#[test]
fn codex_gets_everything_in_its_configuration() {
    let launch = prepared(Cli::Codex, &usual());
    assert_eq!(
        launch.args.join(" "),
        "exec --json --skip-git-repo-check --ephemeral -"
    );
    assert_eq!(launch.env["PROCTOR_MODEL_KEY"], "k3y");
    let (path, text) = &launch.files[0];
    assert_eq!(path, &PathBuf::from("/h/.codex/config.toml"));
    let expected = r#"model = "m-1"
model_provider = "proctor"
approval_policy = "never"
sandbox_mode = "read-only"
web_search = "disabled"
[features]
shell_tool = false
unified_exec = false
multi_agent = false
goals = false
apps = false
plugins = false
hooks = false
[model_providers.proctor]
name = "proctor"
base_url = "http://127.0.0.1:9/base"
env_key = "PROCTOR_MODEL_KEY"
wire_api = "responses"
request_max_retries = 2
stream_max_retries = 2
[mcp_servers.my_server]
command = "/bin/proctor"
args = ["__relay", "/tmp/a \"b\"/s"]
required = true
startup_timeout_sec = 60
default_tools_approval_mode = "prompt"
[mcp_servers.my_server.tools."get-sum"]
approval_mode = "approve"
[mcp_servers.my_server.tools."a.b"]
approval_mode = "approve"
[mcp_servers.web]
url = "http://127.0.0.1:1/mcp"
http_headers = { "proctor-token" = "t0ken" }
required = true
startup_timeout_sec = 60
default_tools_approval_mode = "approve"
"#;
    assert_eq!(text, expected);
    let sse = ServerRoute::Sse {
        url: String::new(),
        headers: Vec::new(),
    };
    let older = assignment(vec![offered("old", sse, AllowedTools::All)]);
    let error = Cli::Codex.prepare(&older).unwrap_err();
    assert!(error.to_string().contains("`old`"), "{error}");
}

#[test]
fn copilot_gets_the_tools_of_its_servers_and_no_others() {
    let launch = prepared(Cli::Copilot, &usual());
    assert_eq!(
        launch.args.join(" "),
        "--output-format=json --disable-builtin-mcps --no-ask-user --no-custom-instructions \
         --no-auto-update --no-remote --no-color --disable-client-telemetry \
         --additional-mcp-config=@/h/mcp.json --usage-output-file=/h/usage.json \
         --available-tools=my_server --allow-tool=my_server(get-sum) --allow-tool=my_server(a.b) \
         --available-tools=web --allow-tool=web"
    );
    assert_eq!(launch.env["COPILOT_PROVIDER_API_KEY"], "k3y");
    assert_eq!(launch.env["COPILOT_MODEL"], "m-1");
    assert!(
        launch.files[0]
            .1
            .contains(r#""my_server":{"type":"local","command":"/bin/proctor""#)
    );
}

#[test]
fn aliases_are_unique() {
    let names = |names: &[&str]| {
        let servers = names.iter();
        let servers: Vec<AgentServer> = servers
            .map(|name| offered(name, stdio(), AllowedTools::All))
            .collect();
        aliases(&servers)
    };
    assert_eq!(
        names(&["a b", "a.b", "a_b", "é", "", "-x"]),
        ["a_b", "a_b_2", "a_b_3", "server", "server_2", "-x"]
    );
    // Claude Code reads `mcp__k8s__prod___echo` as a tool of `k8s`, and denies it.
    assert_eq!(
        names(&["k8s (prod)", "my__srv", "_a_"]),
        ["k8s_prod", "my_srv", "a"]
    );
    let long = "n".repeat(100);
    assert_eq!(names(&[&long, &long])[1], format!("{}_2", "n".repeat(32)));
}

#[test]
fn a_server_name_does_not_enable_copilots_own_tools() {
    let servers = vec![offered("bash", stdio(), AllowedTools::All)];
    let launch = prepared(Cli::Copilot, &assignment(servers));
    let args = launch.args.join(" ");
    assert!(
        args.contains("--available-tools=bash-server --allow-tool=bash-server"),
        "{args}"
    );
    assert!(launch.files[0].1.contains(r#"{"bash-server":{"#));
}

#[test]
fn a_prompt_is_never_an_agent_command() {
    let asked = |prompt: &str| Assignment {
        prompt: prompt.to_owned(),
        ..usual()
    };
    for (prompt, word) in [
        ("/help", Some("/help")),
        (" \n/compact now", Some("/compact")),
        ("/tmp/x is full", None),
        ("/ is full", None),
        ("what is /help", None),
        ("", None),
    ] {
        assert_eq!(command(prompt), word, "{prompt}");
        let refused = Cli::Copilot.prepare(&asked(prompt)).err();
        let expected = word.map(|word| AssignmentError::Command {
            agent: "Copilot",
            word: word.to_owned(),
        });
        assert_eq!(refused, expected, "{prompt}");
    }
    let launch = Cli::ClaudeCode.prepare(&asked("/help")).unwrap();
    assert_eq!(launch.stdin.as_deref(), Some("\n/help"));
    assert_eq!(launch.env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"], "1");
}

#[test]
fn a_custom_model_url_gets_no_other_key() {
    for cli in [Cli::ClaudeCode, Cli::Codex, Cli::Copilot] {
        let mut given = usual();
        for name in cli.agent().variables() {
            given
                .environment
                .insert((*name).to_owned(), "mine".to_owned());
        }
        let launch = prepared(cli, &given);
        let keys = |(name, value): (&String, &String)| {
            let is_key = name.contains("_KEY") || name.contains("_TOKEN");
            (is_key && value == "mine").then(|| name.clone())
        };
        let left: Vec<String> = launch.env.iter().filter_map(keys).collect();
        assert!(left.is_empty(), "{cli:?}: {left:?}");
    }
}

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
