//! Claude Code, Codex and Copilot with `server-everything` on stdio and on HTTP. Claude Code is run every
//! time, the others where `PROCTOR_EXTENDED` is 1.

use std::process::{Child, Command, Stdio};
use std::time::Instant;

use proctor_e2e::Fixture;
use proctor_e2e::port::ReservedPort;
use proctor_record::event::{Claim, Direction};
use rustix::process::Signal;

use super::*;

/// `server-everything` that listens; it is killed when it is dropped.
struct ListeningServer {
    child: Child,
    url: String,
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn everything() -> PathBuf {
    cache().join("node/node_modules/.bin/mcp-server-everything")
}

/// Starts it on a port that is free.
fn listen() -> ListeningServer {
    let reserved = ReservedPort::new();
    let port = reserved.number();
    let child = Command::new(everything())
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let deadline = Instant::now() + Duration::from_mins(3);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "the server does not listen");
        std::thread::sleep(Duration::from_millis(50));
    }
    let url = format!("http://127.0.0.1:{port}/mcp");
    ListeningServer { child, url }
}

/// The call is in the record, the answer is right, and so are the tokens.
fn works(agent: &str, server: &Value) {
    let suite = suite(&scripted(agent), server, RULES);
    let seen = run(suite.check(&[]), &path_with(agent));
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(seen.code, Some(0));
    assert_eq!(answer(&seen), Some("It said hello."), "{agent}");
    let folded = folded(&seen);
    let calls = &folded.transcript.calls;
    assert_eq!(calls.len(), 1, "{calls:?}");
    // What the script was asked, and what the agent itself says.
    let asked = &folded.work.agent;
    let tokens = (asked.usage.input, asked.usage.output);
    assert!(tokens.0 >= Some(3000) && tokens.1 >= Some(30), "{tokens:?}");
    assert_eq!(asked.turns, 2, "{agent}");
    let external = folded.work.external.expect("it is a program");
    let said = external.ended.and_then(|ended| ended.usage);
    let said = said.map(|usage| (usage.input, usage.output));
    assert_eq!(said, Some((Some(3000), Some(30))), "{agent}");
    let claims = external.claims.iter().map(|(_, claim)| claim.status);
    assert_eq!(claims.collect::<Vec<_>>(), [Claim::Completed], "{agent}");
    assert!(started(&seen).version.is_some(), "{agent} has no version");
}

fn works_on_both(agent: &str) {
    works(agent, &json!({"command": everything(), "args": ["stdio"]}));
    let listening = listen();
    works(agent, &json!({"type": "http", "url": listening.url}));
}

/// A tool that is not allowed is not called, whatever the model wants. It is none that its server calls
/// read-only, which some agents use without asking.
fn is_denied(agent: &str) {
    let rules = RULES.replace("tool: echo", "tool: toggle-simulated-logging");
    let server = json!({"command": everything(), "args": ["stdio"], "alwaysAllow": ["echo"]});
    let suite = suite(&scripted(agent), &server, &rules);
    let seen = run(suite.check(&[]), &path_with(agent));
    expect(
        &seen,
        Outcome::Failed,
        Some(Blame::Agent),
        "toggle-simulated-logging",
    );
    let frames = seen.messages(Direction::ToServer);
    let is_call = |frame: &Vec<u8>| String::from_utf8_lossy(frame).contains("tools/call");
    assert!(!frames.iter().any(is_call), "it was called all the same");
}

/// A model that nobody answers for is no answer.
fn is_lost(agent: &str, variables: &[(&str, &str)]) {
    let kind = json!({"type": format!("builtin.{agent}")});
    let suite = suite(&kind, &fixture(&[]), RULES);
    let mut session = suite.check(&[]);
    for (name, value) in variables {
        session = session.env(name, value);
    }
    let seen = run(session, &path_with(agent));
    expect(
        &seen,
        Outcome::Errored,
        Some(Blame::Infra),
        "the agent ended with an error",
    );
    assert_eq!(seen.code, Some(3));
}

/// Its tools are there though they come late.
fn waits(agent: &str) {
    let server = fixture(&["--mode", "slow-start=4000"]);
    let suite = suite(&scripted(agent), &server, RULES);
    let seen = run(suite.check(&[]), &path_with(agent));
    expect(&seen, Outcome::Passed, None, "");
}

const DEAD: &str = "http://127.0.0.1:9";

#[test]
fn claude_code_works() {
    works_on_both("claude-code");
}

#[test]
fn claude_code_is_denied_a_tool() {
    is_denied("claude-code");
}

#[test]
fn claude_code_without_a_model_is_an_error() {
    let variables = [("ANTHROPIC_BASE_URL", DEAD), ("ANTHROPIC_API_KEY", "any")];
    is_lost("claude-code", &variables);
}

#[test]
fn claude_code_waits_for_a_slow_server() {
    waits("claude-code");
}

#[test]
fn claude_code_works_on_the_older_http() {
    let server = Fixture::sse(&[]);
    let suite = suite(
        &scripted("claude-code"),
        &json!({"type": "sse", "url": server.url()}),
        RULES,
    );
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(&seen, Outcome::Passed, None, "");
}

#[test]
fn claude_code_loads_a_skill() {
    let rules = r"
  - when: {results: 0}
    reply: {calls: [{tool: Skill, arguments: {skill: greet}}]}
  - when: {results: 1}
    reply: {calls: [{tool: echo, arguments: {text: hello}}]}
  - reply: {text: It said hello.}
";
    let suite = suite(&scripted("claude-code"), &fixture(&[]), rules);
    let skill = "---\nname: greet\ndescription: How people are greeted\n---\nSay hello.\n";
    suite.write("skills/greet/SKILL.md", skill);
    let sources = json!({"sources": [{"type": "path", "path": "skills"}]});
    let loaded = json!({"assertions": {
        "skillsLoaded": [{"skill": "greet"}],
        "skillsNotLoaded": [{"skill": "other"}],
    }});
    let agent = scripted("claude-code");
    suite.eval(&json!({"agent": agent, "skills": sources}), &loaded);
    let seen = run(suite.check(&[]), &path_with("claude-code"));
    expect(&seen, Outcome::Passed, None, "");
}

#[test]
fn an_interrupt_leaves_nothing_of_an_agent() {
    let rules = "  - reply: {text: late, delay: 5m}\n";
    let suite = suite(&scripted("claude-code"), &fixture(&[]), rules);
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().display().to_string();
    let session = suite.check(&[]).env("PATH", &path_with("claude-code"));
    let running = session.env("TMPDIR", &folder).within(BOUND).start();
    running.wait_for("tools/list");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    expect(&seen, Outcome::Cancelled, None, "interrupted");
    assert_eq!(crate::acp::processes_with(&folder), []);
    let left = std::fs::read_dir(temporary.path()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = names.filter(|name| name.starts_with("proctor-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The tests of an agent that are not run every time.
macro_rules! extended {
    ($module:ident, $agent:expr, $dead:expr) => {
        mod $module {
            use super::*;

            #[test]
            fn works() {
                if is_extended() {
                    works_on_both($agent);
                }
            }

            #[test]
            fn is_denied_a_tool() {
                if is_extended() {
                    is_denied($agent);
                }
            }

            #[test]
            fn waits_for_a_slow_server() {
                if is_extended() {
                    waits($agent);
                }
            }

            #[test]
            fn without_a_model_is_an_error() {
                if is_extended() {
                    is_lost($agent, &$dead);
                }
            }
        }
    };
}

extended!(
    codex,
    "codex",
    [
        ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"),
        ("OPENAI_API_KEY", "any")
    ]
);
extended!(
    copilot,
    "copilot",
    [
        ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:9/v1"),
        ("COPILOT_PROVIDER_API_KEY", "any"),
        ("COPILOT_MODEL", "any"),
        ("COPILOT_OFFLINE", "true"),
    ]
);
