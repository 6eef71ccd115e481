//! Agents that are any command: a small program that calls `echo` with its prompt.

use proctor_record::json;
use proctor_record::transcript::{CallRequest, Payload};

use super::*;

/// Says on its stdout what it was asked, after it has told the server. Its first argument is a file or an
/// address, its second the prompt.
pub(crate) const AGENT: &str = r#"
import json, os, subprocess, sys, urllib.request
where, prompt = sys.argv[1], sys.argv[2]
messages = [
    {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
    {"id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": prompt}}},
]
session = None
def post(message):
    global session
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session: headers["Mcp-Session-Id"] = session
    answer = urllib.request.urlopen(urllib.request.Request(where, json.dumps(message).encode(), headers))
    session = answer.headers.get("Mcp-Session-Id") or session
    answer.read()
if where.startswith("http"):
    for message in messages: post(dict(message, jsonrpc="2.0"))
else:
    server = next(iter(json.load(open(where))["mcpServers"].values()))
    process = subprocess.Popen([server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for message in messages:
        process.stdin.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n")
        process.stdin.flush()
        if "id" in message: process.stdout.readline()
    process.stdin.close()
    process.wait()
if os.environ.get("SECRET_OF_THE_USER"): sys.exit("a secret came through")
print("\n" + prompt)
"#;

const HOSTILE: &str = "-n 'a' \"b\" $(touch pwned) `touch pwned` ${HOME} \\\n;touch pwned\n# * ~ %s {{ .Prompt }} \u{e9}";

fn commands(suite: &SuiteFixture, templates: &Value) {
    suite.write("agent.py", AGENT);
    let agent = json!({
        "kind": "Agent",
        "metadata": {"name": "any-command"},
        "commands": templates,
    });
    suite.write("agent.yaml", &agent.to_string());
}

fn by_command(templates: &Value) -> SuiteFixture {
    let agent = json!({"type": "file", "path": "agent.yaml"});
    let suite = suite(&agent, &fixture(&[]), RULES);
    commands(&suite, templates);
    suite
}

fn run_hostile(template: &str, quoted: &str) -> SessionOutcome {
    let agent = json!({"type": "file", "path": "agent.yaml"});
    let suite = suite(&agent, &fixture(&[]), RULES);
    let script = suite.path("agent.py").display().to_string();
    let templates = json!({
        "argTemplateMcpServer": template,
        "runPrompt": format!("python3 {script} {{{{ .McpServerFileArgs }}}} {quoted}"),
        "useVirtualHome": true,
        "getVersion": "echo; echo agent 1.2; echo more",
    });
    commands(&suite, &templates);
    suite.task("say-hello", &json!({"prompt": {"inline": HOSTILE}}));
    let session = suite.check(&[]).env("SECRET_OF_THE_USER", "x");
    run(session, &std::env::var("PATH").unwrap())
}

/// The prompt came to the server and back, and nothing in it was executed.
fn arrived(seen: &SessionOutcome) {
    expect(seen, Outcome::Passed, None, "");
    assert_eq!(answer(seen), Some(HOSTILE));
    assert_eq!(started(seen).version.as_deref(), Some("agent 1.2"));
    let folded = folded(seen);
    let calls = &folded.transcript.calls;
    let CallRequest::Tool {
        arguments: Payload::Value(arguments),
        ..
    } = &calls[0].request
    else {
        panic!("no arguments: {calls:?}");
    };
    assert!(
        json::equal(arguments, &json!({"text": HOSTILE})),
        "{arguments}"
    );
    assert_eq!(folded.work.agent.unmetered, 1, "nobody knows what it took");
}

#[test]
fn a_hostile_prompt_reaches_a_command_unchanged() {
    for quoted in ["\"{{ .Prompt }}\"", "{{ .Prompt }}", "'{{ .Prompt }}'"] {
        arrived(&run_hostile("{{ .File }}", quoted));
    }
}

#[test]
fn a_command_that_takes_an_address_gets_a_server_on_stdio_by_one() {
    arrived(&run_hostile("{{ .URL }}", "\"{{ .Prompt }}\""));
}

/// A command without a server, with this text for a shell.
fn plainly(run_prompt: &str) -> SessionOutcome {
    let suite = by_command(&json!({"runPrompt": run_prompt}));
    run(suite.check(&[]), &std::env::var("PATH").unwrap())
}

#[test]
fn a_command_that_fails_is_an_error_with_its_last_words() {
    let seen = plainly("echo {{ .Prompt }}; echo 'no licence' >&2; exit 4");
    for reason in [
        "it exited with code 4; its environment variables: ",
        "`--pass-env NAME`; the end of its stderr:\nno licence",
    ] {
        expect(&seen, Outcome::Errored, Some(Blame::Agent), reason);
    }
    assert!(seen.stdout.contains("`--pass-env NAME`"), "{}", seen.stdout);
}

#[test]
fn a_command_that_reaches_no_server_was_not_examined() {
    let seen = plainly("echo {{ .Prompt }}");
    expect(
        &seen,
        Outcome::Errored,
        Some(Blame::Agent),
        "did not connect to any of its servers (`ev`)",
    );
}

#[test]
fn a_prompt_that_no_command_line_can_take_is_refused() {
    let suite = by_command(&json!({"runPrompt": "echo {{ .Prompt }}"}));
    suite.task(
        "say-hello",
        &json!({"prompt": {"inline": "x".repeat(200_000)}}),
    );
    let seen = run(suite.check(&[]), &std::env::var("PATH").unwrap());
    expect(&seen, Outcome::Errored, Some(Blame::Suite), "200000 bytes");
}

#[test]
fn an_agent_that_lists_tools_and_neither_says_nor_calls_anything_fails() {
    let suite = by_command(&json!({
        "argTemplateMcpServer": "{{ .File }}",
        "runPrompt": "python3 agent.py {{ .McpServerFileArgs }} {{ .Prompt }}",
    }));
    let script = suite.path("agent.py").display().to_string();
    let lists = AGENT
        .lines()
        .filter(|line| !line.contains("tools/call") && !line.starts_with("print("))
        .collect::<Vec<_>>()
        .join("\n");
    let agent = json!({
        "kind": "Agent",
        "metadata": {"name": "any-command"},
        "commands": {
            "argTemplateMcpServer": "{{ .File }}",
            "runPrompt": format!("python3 {script} {{{{ .McpServerFileArgs }}}} \"{{{{ .Prompt }}}}\""),
        },
    });
    suite.write("agent.yaml", &agent.to_string());
    suite.write("agent.py", &lists);
    let forbids = json!({"toolsNotUsed": [{"server": "ev", "tool": "fail"}], "maxToolCalls": 5});
    let named = json!({"type": "file", "path": "agent.yaml"});
    suite.eval(&json!({"agent": named}), &json!({"assertions": forbids}));
    let seen = run(suite.check(&[]), &std::env::var("PATH").unwrap());
    expect(&seen, Outcome::Failed, Some(Blame::Agent), "gave no answer");
}
