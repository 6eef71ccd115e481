//! The real agents, on a script that stands in for their model, with `server-everything` on stdio and on
//! HTTP. All but the fastest are run only where `PROCTOR_EXTENDED` is set.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::port::ReservedPort;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::Claim;
use proctor_record::json;
use proctor_record::record::RunReader;
use proctor_record::transcript::{CallRequest, Payload};
use serde_json::{Value, json};

use super::*;

/// How long a trial with a real agent may take; the slowest takes ten seconds.
const BOUND: Duration = Duration::from_mins(3);

/// A model that adds two numbers with the server's tool.
const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: get-sum, arguments: {a: 20, b: 22}}], usage: {input: 1000, output: 10}}
  - reply: {text: The sum is 42., usage: {input: 2000, output: 20}}
";

/// What Codex calls its tools apart from their server, and what any agent may have besides: nothing that
/// reads or writes, but for what a server offers.
const EVERYTHING: [&str; 15] = [
    "echo",
    "get_annotated_message",
    "get_env",
    "get_resource_links",
    "get_resource_reference",
    "get_roots_list",
    "get_structured_content",
    "get_sum",
    "get_tiny_image",
    "gzip_file_as_resource",
    "simulate_research_query",
    "toggle_simulated_logging",
    "toggle_subscriber_updates",
    "trigger_elicitation_request",
    "trigger_long_running_operation",
];
const HARMLESS: [&str; 5] = [
    "list_mcp_resources",
    "list_mcp_resource_templates",
    "read_mcp_resource",
    "request_user_input",
    // It can't be switched off for a model that Codex does not know.
    "view_image",
];

/// What an agent says of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageReporting {
    All,
    Nothing,
}

struct Agent {
    name: &'static str,
    tells: UsageReporting,
}

const GOOSE: Agent = Agent {
    name: "goose",
    tells: UsageReporting::Nothing,
};
const CLAUDE: Agent = Agent {
    name: "claude-acp",
    tells: UsageReporting::All,
};
const CODEX: Agent = Agent {
    name: "codex-acp",
    tells: UsageReporting::All,
};
const GEMINI: Agent = Agent {
    name: "gemini",
    tells: UsageReporting::All,
};
const OPENCODE: Agent = Agent {
    name: "opencode",
    tells: UsageReporting::Nothing,
};

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

fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").expect("there is a home").join(".cache");
        variable("XDG_CACHE_HOME")
            .unwrap_or_else(home)
            .join("proctor-tests")
    });
    assert!(cache.is_dir(), "run scripts/install-servers first");
    cache
}

fn everything() -> String {
    let path = "node/node_modules/.bin/mcp-server-everything";
    cache().join(path).display().to_string()
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
    ListeningServer {
        child,
        url: format!("http://127.0.0.1:{port}/mcp"),
    }
}

/// A suite in which an agent is to add two numbers.
fn suite(agent: &Agent, server: &Value, rules: &str) -> SuiteFixture {
    let kind = format!("builtin.{}", agent.name);
    let agent = json!({"type": kind, "model": "scripted:model.yaml"});
    suite_of(&agent, server, rules)
}

fn suite_of(agent: &Value, server: &Value, rules: &str) -> SuiteFixture {
    let suite = SuiteFixture::on(rules, &json!({"everything": server}));
    let used = json!({"toolsUsed": [{"server": "everything", "tool": "get-sum"}]});
    suite.eval(&json!({"agent": agent}), &json!({"assertions": used}));
    suite.task("add", &json!({}));
    suite
}

/// Has an agent work on a suite, and checks that nothing of it is left.
fn run(agent: &Agent, suite: &SuiteFixture) -> SessionOutcome {
    let bin = cache().join(format!("agents/{}/node_modules/.bin", agent.name));
    assert!(
        bin.is_dir(),
        "run scripts/install-servers first: no {}",
        bin.display()
    );
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").expect("there is a PATH")
    );
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let folder = temporary.path().display().to_string();
    let session = suite.check(&[]).env("PATH", &path).env("TMPDIR", &folder);
    let session = session.env("SOME_KEY", "none-that-opens-anything");
    let seen = session.within(BOUND).run();
    assert_eq!(processes_with(&folder), [], "{} left something", agent.name);
    seen
}

fn stdio(more: &Value) -> Value {
    let mut server = json!({"command": everything(), "args": ["stdio"]});
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    server
}

/// The call is in the record, the answer is right, and the tokens are right or unknown.
fn works(agent: &Agent, server: &Value) {
    let seen = run(agent, &suite(agent, server, RULES));
    expect(&seen, Outcome::Passed, None, "");
    assert_eq!(answer(&seen), Some("The sum is 42."), "{}", agent.name);
    let run = RunReader::open(&seen.record).expect("it can be read");
    let trials = run.trials().expect("they can be listed");
    let events = run.trial(&trials[0]).expect("it can be read");
    let options = proctor_record::fold::FoldOptions::default();
    let folded = proctor_record::fold::fold(events, run.blobs(), &options).expect("it folds");
    let calls = &folded.transcript.calls;
    assert_eq!(calls.len(), 1, "{calls:?}");
    let CallRequest::Tool {
        arguments: Payload::Value(arguments),
        ..
    } = &calls[0].request
    else {
        panic!("no arguments: {calls:?}");
    };
    assert!(
        json::equal(arguments, &json!({"a": 20, "b": 22})),
        "{arguments}"
    );
    has_no_hands_of_its_own(agent, &seen);
    let claims = claims(&seen);
    assert!(
        claims.iter().all(|claim| claim.status == Claim::Completed),
        "{claims:?}"
    );
    assert_eq!(claims.len(), 1, "{claims:?}");
    let tokens = usage(&seen).map(|usage| (usage.input, usage.output));
    let expected = match agent.tells {
        UsageReporting::All => Some((Some(3000), Some(30))),
        UsageReporting::Nothing => None,
    };
    assert_eq!(tokens, expected, "{}", agent.name);
}

/// The model is offered nothing by which the agent could do the work without the server.
fn has_no_hands_of_its_own(agent: &Agent, seen: &SessionOutcome) {
    let run = RunReader::open(&seen.record).expect("it can be read");
    let offers = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::ToolsOffered { tools } => Some(tools),
        _ => None,
    });
    let mut count = 0;
    for tools in offers {
        let tools = run.body_bytes(tools).expect("it can be read");
        let tools: Value =
            serde_json::from_slice(&tools.expect("it is there")).expect("it is JSON");
        for tool in tools.as_array().expect("a list") {
            let name = tool["name"].as_str().expect("a name");
            let is_servers = name.contains("everything") || EVERYTHING.contains(&name);
            let is_harmless = HARMLESS.contains(&name);
            assert!(is_servers || is_harmless, "{} has `{name}`", agent.name);
            count += 1;
        }
    }
    assert!(count > 0, "{} was offered nothing", agent.name);
}

/// A model that is not there is no answer either, and is not waited for.
fn is_alone(agent: &Agent) {
    let file = json!({"type": "file", "path": "agent.yaml"});
    let suite = suite_of(&file, &stdio(&json!({})), RULES);
    let builtin = json!({"type": agent.name, "model": "m-1", "baseUrl": "http://127.0.0.1:9/v1",
        "apiKey": "SOME_KEY"});
    let file = json!({"kind": "Agent", "metadata": {"name": "alone"}, "builtin": builtin});
    suite.write("agent.yaml", &file.to_string());
    let seen = run(agent, &suite);
    expect(&seen, Outcome::Errored, Some(Blame::Infra), "");
}

fn works_on_both(agent: &Agent) {
    works(agent, &stdio(&json!({})));
    let listening = listen();
    works(agent, &json!({"type": "http", "url": listening.url}));
}

/// A tool that is not allowed is not called, whatever the model wants.
fn is_denied(agent: &Agent) {
    let seen = run(
        agent,
        &suite(agent, &stdio(&json!({"alwaysAllow": ["echo"]})), RULES),
    );
    expect(&seen, Outcome::Failed, Some(Blame::Agent), "get-sum");
    assert!(
        ended(&seen)
            .reason
            .as_deref()
            .is_some_and(|r| r.contains("not allowed"))
    );
    assert_eq!(claims(&seen)[0].status, Claim::Denied);
    let frames = seen.messages(proctor_record::event::Direction::ToServer);
    let called = |frame: &Vec<u8>| String::from_utf8_lossy(frame).contains("tools/call");
    assert!(!frames.iter().any(called), "it was called all the same");
}

/// A dead model is no answer.
fn is_lost(agent: &Agent) {
    let rules = "  - reply: {error: {kind: unavailable, detail: on holiday}}\n";
    let seen = run(agent, &suite(agent, &stdio(&json!({})), rules));
    assert_eq!(ended(&seen).outcome, Outcome::Errored, "{}", seen.stdout);
    assert_ne!(seen.code, Some(0));
}

fn is_extended() -> bool {
    std::env::var_os("PROCTOR_EXTENDED").is_some_and(|value| value == "1")
}

#[test]
fn goose_works() {
    works_on_both(&GOOSE);
}

#[test]
fn goose_is_denied_a_tool() {
    is_denied(&GOOSE);
}

#[test]
fn goose_without_a_model_is_an_error() {
    is_lost(&GOOSE);
}

#[test]
fn goose_with_nobody_to_ask_is_an_error() {
    is_alone(&GOOSE);
}

#[test]
fn claude_codex_and_gemini_with_nobody_to_ask_are_errors() {
    if is_extended() {
        [&CLAUDE, &CODEX, &GEMINI].into_iter().for_each(is_alone);
    }
}

/// Tools of a server that is slow to start are there when the model is first asked.
#[test]
fn every_agent_waits_for_a_slow_server() {
    if !is_extended() {
        return;
    }
    let rules = "
  - when: {results: 0}
    reply: {calls: [{tool: get-sum, arguments: {a: 20, b: 22}}]}
  - reply: {text: The sum is 42.}
";
    let script = format!("sleep 4; exec {} stdio", everything());
    let server = json!({"command": "sh", "args": ["-c", script]});
    for agent in [&GOOSE, &CLAUDE, &CODEX, &GEMINI, &OPENCODE] {
        let seen = run(agent, &suite(agent, &server, rules));
        expect(&seen, Outcome::Passed, None, "");
    }
}

/// The tests of an agent that are not run every time.
macro_rules! extended {
    ($agent:expr, $works:ident, $denied:ident, $lost:ident) => {
        #[test]
        fn $works() {
            if is_extended() {
                works_on_both(&$agent);
            }
        }

        #[test]
        fn $denied() {
            if is_extended() {
                is_denied(&$agent);
            }
        }

        #[test]
        fn $lost() {
            if is_extended() {
                is_lost(&$agent);
            }
        }
    };
}

extended!(
    CLAUDE,
    claude_works,
    claude_is_denied_a_tool,
    claude_without_a_model_is_an_error
);
extended!(
    CODEX,
    codex_works,
    codex_is_denied_a_tool,
    codex_without_a_model_is_an_error
);
extended!(
    GEMINI,
    gemini_works,
    gemini_is_denied_a_tool,
    gemini_without_a_model_is_an_error
);
extended!(
    OPENCODE,
    opencode_works,
    opencode_is_denied_a_tool,
    opencode_without_a_model_is_an_error
);
