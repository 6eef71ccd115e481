//! Agents whose model is reached through Proctor: what the provider gave is counted exactly, its key is
//! nowhere near the agent, and limits and outages end the trial. Claude Code and goose are run every time,
//! the others where `PROCTOR_EXTENDED` is 1.

mod faults;
mod limits;
mod provider;
mod replay;
mod secrets;
mod works;

use std::time::Duration;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Actor, Blame, EventKind, Outcome};
use proctor_record::fold::{FoldOptions, FoldedTrial};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

use self::provider::{KEY, ServedScript};
use self::secrets::{Search, SecretScan};
use crate::cli::{answer, cache, expect, is_extended, path_with};

/// How long a trial with a real agent may take; the slowest takes ten seconds on an idle machine.
const BOUND: Duration = Duration::from_mins(3);

/// A model that says hello through the server. It thinks for a while, so that the agent can be looked at.
const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {message: hello}}], usage: {input: 1000, output: 10}, delay: 500ms}
  - reply: {text: It said hello., usage: {input: 2000, output: 20}}
";

/// An agent that is tapped.
#[derive(Debug, Clone, Copy)]
struct TappedRun {
    name: &'static str,
    /// The model that it has to be told.
    model: Option<&'static str>,
}

const CLAUDE_CODE: TappedRun = tapped("claude-code", None);
// It has other tools for models that it knows: one that runs programs, and through that the servers'.
const CODEX: TappedRun = tapped("codex", Some("openai-responses:gpt-x"));
const COPILOT: TappedRun = tapped("copilot", Some("openai:gpt-x"));
const CLAUDE_ACP: TappedRun = tapped("claude-acp", None);
const CODEX_ACP: TappedRun = tapped("codex-acp", Some("openai-responses:gpt-x"));
const GEMINI: TappedRun = tapped("gemini", None);
const OPENCODE: TappedRun = tapped("opencode", Some("openai:gpt-x"));
const GOOSE: TappedRun = tapped("goose", Some("anthropic:claude-x"));

const fn tapped(name: &'static str, model: Option<&'static str>) -> TappedRun {
    TappedRun { name, model }
}

impl TappedRun {
    fn agent(self) -> Value {
        let mut agent = json!({"type": format!("builtin.{}", self.name), "modelTap": true});
        if let Some(model) = self.model {
            agent["model"] = json!(model);
        }
        agent
    }

    /// A suite in which it has to use `echo` of `server-everything`.
    fn suite(self) -> SuiteFixture {
        let suite = SuiteFixture::on(
            "  - reply: {text: nobody asks this}\n",
            &json!({"ev": everything(&json!({}))}),
        );
        self.eval(&suite);
        suite.task("say-hello", &json!({}));
        suite
    }

    fn eval(self, suite: &SuiteFixture) {
        let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
        suite.eval(
            &json!({"agent": self.agent()}),
            &json!({"assertions": used}),
        );
    }

    /// A session on a provider, with the user's key.
    fn on(self, session: Session, provider: &str) -> Session {
        let session = session.env("PATH", &path_with(self.name));
        let versioned = format!("{provider}/v1");
        [
            ("ANTHROPIC_BASE_URL", provider),
            ("ANTHROPIC_API_KEY", KEY),
            ("OPENAI_BASE_URL", &versioned),
            ("OPENAI_API_KEY", KEY),
            ("GOOGLE_GEMINI_BASE_URL", provider),
            ("GEMINI_API_KEY", KEY),
        ]
        .into_iter()
        .fold(session, |session, (name, value)| session.env(name, value))
    }
}

fn everything(more: &Value) -> Value {
    let program = cache().join("node/node_modules/.bin/mcp-server-everything");
    let mut server = json!({"command": program, "args": ["stdio"]});
    for (key, value) in more.as_object().into_iter().flatten() {
        server[key] = value.clone();
    }
    server
}

/// Runs it, and checks that nothing is left and that the key was nowhere near the agent.
fn run(session: Session) -> (SessionOutcome, SecretScan) {
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let folder = temporary.path().display().to_string();
    let running = session.env("TMPDIR", &folder).start();
    let search = Search::start(running.id(), temporary.path(), KEY);
    let seen = running.finish();
    let mut found = search.end();
    found.look_at_files(&seen.record, KEY);
    assert!(found.leaks.is_empty(), "{:?}", found.leaks);
    assert_eq!(crate::acp::processes_with(&folder), [], "{}", seen.stderr);
    let left = std::fs::read_dir(temporary.path()).expect("it can be read");
    let names = left.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<String> = names.filter(|name| name.starts_with("proctor-")).collect();
    assert!(left.is_empty(), "folders are left: {left:?}");
    (seen, found)
}

/// What the agent did, as checks see it.
fn folded(seen: &SessionOutcome) -> FoldedTrial {
    let run = RunReader::open(&seen.record).expect("it can be read");
    let trials = run.trials().expect("they can be listed");
    let options = FoldOptions {
        actors: vec![Actor::Agent],
        ..FoldOptions::default()
    };
    proctor_record::fold::fold_trial(&run, &trials[0], &options).expect("it folds")
}
