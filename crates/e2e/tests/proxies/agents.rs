//! Real agents, on a scripted model that calls one tool, through the proxies: the call is in the record.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use proctor_e2e::proctor;
use proctor_record::json;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use proctor_wire::proxy::Admission;
use serde_json::{Value, json};

use super::packages::{finish, program};
use super::ways::{Door, ListeningServer, ProxyRoute, object};

/// How long an agent may take; it takes two seconds.
const BOUND: Duration = Duration::from_mins(5);
const PROMPT: &str = "Have the server say hello.";

/// An agent that is run once.
#[derive(Debug, Clone, Copy)]
pub enum Agent {
    ClaudeCode,
    Goose,
}

fn arguments() -> Value {
    json!({"message": "hello, 世界"})
}

impl Agent {
    /// The command that has it do its task with the server behind a door, in a home of its own.
    pub fn command(self, door: &Door, model: &str, home: &Path) -> Command {
        let (file, words) = match self {
            Self::ClaudeCode => (
                "agents/claude-code/node_modules/.bin/claude",
                claude(door, home),
            ),
            Self::Goose => ("agents/goose/node_modules/.bin/goose", goose(door)),
        };
        let mut command = Command::new(program(file));
        let path = std::env::var_os("PATH").expect("there is a PATH");
        command.args(words).env_clear().env("PATH", path);
        command.env("HOME", home).env("LANG", "C.UTF-8");
        command.envs(self.environment(model));
        command
    }

    fn environment(self, model: &str) -> Vec<(&'static str, &str)> {
        match self {
            Self::ClaudeCode => vec![
                ("ANTHROPIC_BASE_URL", model),
                ("ANTHROPIC_API_KEY", "none"),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("ENABLE_TOOL_SEARCH", "false"),
            ],
            Self::Goose => vec![
                ("GOOSE_PROVIDER", "openai"),
                ("GOOSE_MODEL", "fixture"),
                ("OPENAI_HOST", model),
                ("OPENAI_BASE_PATH", "v1/chat/completions"),
                ("OPENAI_API_KEY", "none"),
                ("GOOSE_DISABLE_KEYRING", "1"),
                ("GOOSE_MODE", "auto"),
            ],
        }
    }

    /// The agent's last words, in what it printed.
    fn answer(self, printed: &str) -> Option<String> {
        let printed: Value = serde_json::from_str(printed).ok()?;
        let text = match self {
            Self::ClaudeCode => &printed["result"],
            Self::Goose => {
                let messages = printed["messages"].as_array()?;
                &messages.last()?["content"][0]["text"]
            }
        };
        Some(text.as_str()?.to_owned())
    }
}

/// Claude Code takes its servers from a file.
fn claude(door: &Door, home: &Path) -> Vec<String> {
    let server = match door {
        Door::Command(words) => json!({"type": "stdio", "command": words[0], "args": words[1..]}),
        Door::Http { url, headers } => {
            json!({"type": "http", "url": url, "headers": object(headers)})
        }
        Door::Sse { url, headers } => {
            json!({"type": "sse", "url": url, "headers": object(headers)})
        }
    };
    let file = home.join("mcp.json");
    let config = json!({"mcpServers": {"ev": server}}).to_string();
    std::fs::write(&file, config).expect("a file can be written");
    let file = file.display().to_string();
    let words = [
        "-p",
        PROMPT,
        "--mcp-config",
        &file,
        "--strict-mcp-config",
        "--allowedTools",
        "mcp__ev",
    ];
    let more = ["--model", "claude-sonnet-4-5", "--output-format", "json"];
    words.iter().chain(&more).map(ToString::to_string).collect()
}

/// goose takes its servers from the command line: a line, or nothing but a URL.
fn goose(door: &Door) -> Vec<String> {
    let server = match door {
        Door::Command(words) => ["--with-extension".to_owned(), words.join(" ")],
        Door::Http { url, .. } | Door::Sse { url, .. } => {
            ["--with-streamable-http-extension".to_owned(), url.clone()]
        }
    };
    let words = [
        "run",
        "-q",
        "--no-session",
        "--no-profile",
        "--output-format",
        "json",
        "-t",
        PROMPT,
    ];
    words
        .iter()
        .map(ToString::to_string)
        .chain(server)
        .collect()
}

/// A model that calls the tool, whatever an agent calls that, and then tells what came of it.
fn model(folder: &Path) -> ListeningServer {
    scripted(folder, &json!([{"tool": "echo", "arguments": arguments()}]))
}

/// A model that makes calls one after another, and then tells what came of the last one.
pub fn scripted(folder: &Path, calls: &Value) -> ListeningServer {
    let calls = calls.as_array().expect("a list of calls");
    let rules = calls.iter().enumerate().map(|(results, call)| {
        let when = json!({"results": results, "tool": call["tool"]});
        json!({"when": when, "reply": {"calls": [call]}})
    });
    let mut rules: Vec<Value> = rules.collect();
    let when = json!({"results": calls.len()});
    rules.push(json!({"when": when, "reply": {"text": "The tool said: {result}"}}));
    let script = json!({"kind": "Script", "rules": rules}).to_string();
    let file = folder.join("model.yaml");
    std::fs::write(&file, script).expect("a file can be written");
    let words = [proctor(), "model".into(), "serve".into(), file];
    let words = words.map(|word| word.display().to_string());
    ListeningServer::start(&words, folder)
}

/// Lets an agent do its task by a way, and looks for the call in the record.
fn works(agent: Agent, way: ProxyRoute, server: &Door) {
    let home = tempfile::tempdir().expect("a folder can be made");
    let model = model(home.path());
    let opened = way.open(server);
    let mut command = agent.command(&opened.door, &model.url, home.path());
    let output = finish(command.current_dir(opened.folder()), BOUND);
    let printed = String::from_utf8_lossy(&output.stdout);
    let place = format!("{agent:?} {way:?}");
    let told = || {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!(
            "{place}: {printed}\n{stderr}\n{}",
            std::fs::read_to_string(home.path().join("stderr")).unwrap_or_default()
        )
    };
    assert!(output.status.success(), "{}", told());
    let answer = agent
        .answer(&printed)
        .unwrap_or_else(|| panic!("{}", told()));
    assert!(
        answer.contains("The tool said: Echo: hello, 世界"),
        "{}",
        told()
    );
    let kept = opened.close().expect("there is a record");
    let calls = kept.calls();
    let tools: Vec<&&Call> = calls
        .iter()
        .filter(|c| matches!(c.request, CallRequest::Tool { .. }))
        .collect();
    let [call] = tools[..] else {
        panic!("{place}: {calls:#?}");
    };
    check(call, &place);
}

fn check(call: &Call, place: &str) {
    let CallRequest::Tool {
        name,
        arguments: Payload::Value(given),
    } = &call.request
    else {
        panic!("{place}: {call:?}");
    };
    assert_eq!(name, "echo", "{place}");
    assert!(json::equal(given, &arguments()), "{place}: {given}");
    let CallOutcome::Result(Payload::Value(result)) = &call.answer else {
        panic!("{place}: {call:?}");
    };
    assert_eq!(result["content"][0]["text"], "Echo: hello, 世界", "{place}");
}

fn on_stdio(agent: Agent, way: ProxyRoute) {
    let file = program("node/node_modules/.bin/mcp-server-everything");
    works(agent, way, &Door::Command(vec![file, "stdio".to_owned()]));
}

fn on_http(agent: Agent, way: ProxyRoute) {
    let server = ListeningServer::everything("streamableHttp");
    works(agent, way, &Door::http(&server.url));
}

#[test]
fn claude_code_on_stdio() {
    on_stdio(Agent::ClaudeCode, ProxyRoute::Relay);
    on_stdio(Agent::ClaudeCode, ProxyRoute::Record);
}

#[test]
fn claude_code_on_http() {
    on_http(Agent::ClaudeCode, ProxyRoute::Reverse(Admission::Header));
    on_http(Agent::ClaudeCode, ProxyRoute::RecordUrl);
}

#[test]
fn goose_on_stdio() {
    on_stdio(Agent::Goose, ProxyRoute::Relay);
    on_stdio(Agent::Goose, ProxyRoute::Record);
    // A server on stdio, and the agent on HTTP.
    on_stdio(Agent::Goose, ProxyRoute::RecordHttp);
}

#[test]
fn goose_on_http() {
    on_http(Agent::Goose, ProxyRoute::Reverse(Admission::Path));
    on_http(Agent::Goose, ProxyRoute::RecordUrl);
}
