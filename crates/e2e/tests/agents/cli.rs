//! Agents with a command line: the real ones on a script, and any command.

pub(crate) mod commands;
mod faults;
mod lenient;
mod real;
mod seeds;

use std::path::PathBuf;
use std::time::Duration;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{Actor, AgentStarted, Blame, Body, EventKind, Outcome, TrialEnded};
use proctor_record::fold::{FoldOptions, FoldedTrial};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

/// How long a trial with a real agent may take; the slowest takes ten seconds on an idle machine.
const BOUND: Duration = Duration::from_mins(3);

/// A model that says hello through the server.
pub(crate) const RULES: &str = r"
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hello, message: hello}}], usage: {input: 1000, output: 10}}
  - reply: {text: It said hello., usage: {input: 2000, output: 20}}
";

/// Where `scripts/install-servers` puts things.
pub(crate) fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE").unwrap_or_else(|| {
        let home = || variable("HOME").expect("there is a home").join(".cache");
        let caches = variable("XDG_CACHE_HOME").unwrap_or_else(home);
        caches.join("proctor-tests")
    });
    assert!(cache.is_dir(), "run scripts/install-servers first");
    cache
}

/// A PATH on which the program of an agent is. Codex comes with its ACP adapter.
pub(crate) fn path_with(agent: &str) -> String {
    let folder = match agent {
        "codex" => "codex-acp",
        other => other,
    };
    let bin = cache().join(format!("agents/{folder}/node_modules/.bin"));
    let shown = bin.display();
    assert!(
        bin.is_dir(),
        "run scripts/install-servers first: no {shown}"
    );
    format!(
        "{shown}:{}",
        std::env::var("PATH").expect("there is a PATH")
    )
}

/// A suite in which an agent has to use `echo` of a server.
fn suite(agent: &Value, server: &Value, rules: &str) -> SuiteFixture {
    let suite = SuiteFixture::on(rules, &json!({"ev": server}));
    let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
    suite.eval(&json!({"agent": agent}), &json!({"assertions": used}));
    suite.task("say-hello", &json!({}));
    suite
}

/// An agent that Proctor knows, on the suite's script.
pub(crate) fn scripted(agent: &str) -> Value {
    json!({"type": format!("builtin.{agent}"), "model": "scripted:model.yaml"})
}

/// The fixture server with these words.
pub(crate) fn fixture(words: &[&str]) -> Value {
    json!({"command": proctor_e2e::fixture(), "args": words})
}

/// Runs it, and checks that nothing is left: no process, and no folder.
pub(crate) fn run(session: Session, path: &str) -> SessionOutcome {
    let temporary = tempfile::tempdir().expect("a folder can be made");
    let folder = temporary.path().display().to_string();
    let session = session.env("PATH", path).env("TMPDIR", &folder);
    let seen = session.within(BOUND).run();
    let left = crate::acp::processes_with(&folder);
    assert_eq!(left, [], "something is left\n{}", seen.stderr);
    let is_ours = |name: &String| name.starts_with("proctor-");
    let entries = std::fs::read_dir(temporary.path()).expect("it can be read");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let left: Vec<String> = names.filter(is_ours).collect();
    assert!(left.is_empty(), "folders are left: {left:?}");
    seen
}

pub(crate) fn ended(seen: &SessionOutcome) -> &TrialEnded {
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended,
        other => panic!("no end: {other:?}\n{}\n{}", seen.stdout, seen.stderr),
    }
}

/// Checks how a trial ended, who is blamed, and that the reason says this.
pub(crate) fn expect(seen: &SessionOutcome, outcome: Outcome, blame: Option<Blame>, reason: &str) {
    let ended = ended(seen);
    let said = ended.reason.as_deref().unwrap_or_default();
    let place = format!("{said}\n{}\n{}", seen.stdout, seen.stderr);
    assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{place}");
    assert!(said.contains(reason), "{place}");
}

fn started(seen: &SessionOutcome) -> &AgentStarted {
    let mut events = seen.events.iter();
    let started = events.find_map(|event| match &event.event {
        EventKind::AgentStarted(started) => Some(started),
        _ => None,
    });
    started.expect("the agent was started")
}

pub(crate) fn answer(seen: &SessionOutcome) -> Option<&str> {
    seen.events.iter().find_map(|event| match &event.event {
        EventKind::AgentAnswered {
            text: Body::Text(text),
        } => Some(text.as_str()),
        _ => None,
    })
}

/// What the agent did, as checks see it.
pub(crate) fn folded(seen: &SessionOutcome) -> FoldedTrial {
    let run = RunReader::open(&seen.record).expect("it can be read");
    let trials = run.trials().expect("they can be listed");
    let options = FoldOptions {
        actors: vec![Actor::Agent],
        ..FoldOptions::default()
    };
    proctor_record::fold::fold_trial(&run, &trials[0], &options).expect("it folds")
}

pub(crate) fn is_extended() -> bool {
    std::env::var_os("PROCTOR_EXTENDED").is_some_and(|value| value == "1")
}
