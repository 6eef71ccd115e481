//! The suites of `examples/real-servers`, on the servers that `scripts/install-servers` installs: every
//! verdict is the one that was meant, every trial has servers of its own, and nothing is left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_e2e::session::{Session, SessionOutcome};
use proctor_record::event::{Actor, Direction, Event, EventKind, FindingKind};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::servers;

/// A trial, and what must come of it: outcome, blame, and a part of the reason.
type ExpectedTrial = (&'static str, &'static str, &'static str, &'static str);

const PASSING: &[ExpectedTrial] = &[
    ("add-numbers", "passed", "", ""),
    ("tell-the-weather", "passed", "", ""),
    ("compare-cities", "passed", "", ""),
    ("mend-a-mistake", "passed", "", ""),
    ("fetch-a-picture", "passed", "", ""),
    ("wait-for-the-end", "passed", "", ""),
    ("read-a-resource", "passed", "", ""),
    ("fill-in-a-prompt", "passed", "", ""),
    ("start-the-log", "passed", "", ""),
    ("start-the-log", "passed", "", ""),
    ("write-a-note", "passed", "", ""),
    ("correct-a-note", "passed", "", ""),
    ("respect-the-border", "passed", "", ""),
    ("publish-a-report", "passed", "", ""),
    ("read-the-forecast", "passed", "", ""),
    (
        "read-the-forecast",
        "failed",
        "agent",
        "verify_0: the script exited with code 1",
    ),
    ("read-the-forecast", "passed", "", ""),
    ("remember-a-person", "passed", "", ""),
    ("recall-a-person", "passed", "", ""),
    ("forget-a-person", "passed", "", ""),
    ("commit-a-change", "passed", "", ""),
    ("read-the-log", "passed", "", ""),
    ("make-a-branch", "passed", "", ""),
    ("keep-a-diary", "passed", "", ""),
];

const NOT_PASSING: &[ExpectedTrial] = &[
    (
        "guess",
        "failed",
        "agent",
        "toolsUsed: `everything` `get-sum` was never called",
    ),
    ("misspell", "failed", "agent", "the file says: rythm"),
    ("misread", "failed", "agent", "It is said to be cold."),
    ("mumble", "errored", "judge", "The answer is unclear"),
    (
        "stumble",
        "errored",
        "suite",
        "setup step `fetch` failed: the script exited with code 7",
    ),
    ("dawdle", "timed-out", "", "timed out after 4s"),
    ("circle", "timed-out", "", "not done after 3 turns"),
    ("unchecked", "errored", "suite", "the case has no checks"),
    (
        "unscripted",
        "errored",
        "suite",
        "no rule matches: turn 1, 0 tool results so far",
    ),
    ("linger", "failed", "agent", "more than 500ms"),
    (
        "litter",
        "errored",
        "suite",
        "cleanup step `cleanup_0` failed",
    ),
];

/// A copy of the example, on servers that are installed. Each server writes a line when it starts.
struct Example {
    folder: tempfile::TempDir,
}

impl Example {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        copy(&example(), folder.path());
        Self { folder }
    }

    /// `proctor check` on one of its suites, with these servers.
    fn check(&self, suite: &str, names: &[&str], words: &[&str]) -> Session {
        let servers: BTreeMap<&str, Value> =
            names.iter().map(|name| (*name, installed(name))).collect();
        let config = self.path("installed.json");
        fs::write(&config, json!({"mcpServers": servers}).to_string()).unwrap();
        let suite = self.path(suite);
        let fixed = ["check", suite.to_str().unwrap(), "-o", "json"];
        let config = ["--mcp-config-file", config.to_str().unwrap()];
        let words = [&fixed[..], &config, &["--keep", "none"], words].concat();
        Session::new(&words).within(Duration::from_mins(10))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// How many servers were started since the last time.
    fn started(&self) -> usize {
        let log = self.path("started.log");
        let lines = fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        let _ = fs::remove_file(log);
        lines
    }

    /// What is in the folder that trials share.
    fn litter(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("shared")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != ".gitignore").collect()
    }
}

fn example() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/real-servers")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn installed(server: &str) -> Value {
    let command = match server {
        "everything" => format!("{} stdio", servers::node("mcp-server-everything")),
        "files" => format!("{} {{trial.dir}}", servers::node("mcp-server-filesystem")),
        "memory" => format!(
            "env MEMORY_FILE_PATH={{trial.dir}}/memory.jsonl {}",
            servers::node("mcp-server-memory")
        ),
        _ => servers::python("mcp-server-git"),
    };
    let script = format!("echo {server} $$ >> started.log; exec {command}");
    json!({"command": "sh", "args": ["-c", script]})
}

/// Checks that the trials came to what they should, in the order of the plan.
fn as_meant(seen: &SessionOutcome, expected: &[ExpectedTrial]) -> Value {
    let document: Value = serde_json::from_str(&seen.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", seen.stdout, seen.stderr));
    let results = document["results"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for (result, expected) in results.iter().zip(expected) {
        let (name, outcome, blame, reason) = *expected;
        let own = &result["proctor"];
        let came = (
            text(&result["taskName"]),
            text(&own["outcome"]),
            text(&own["blame"]),
        );
        let meant = (name.to_owned(), outcome.to_owned(), blame.to_owned());
        assert_eq!(came, meant, "{}", own["reason"]);
        assert!(text(&own["reason"]).contains(reason), "{name}: {own}");
    }
    assert_eq!(results.len(), expected.len());
    let regraded = proctor_e2e::regraded::assert_same(&seen.record);
    assert_eq!(regraded, expected.len());
    document
}

/// Checks that every trial that came as far had its servers for itself, and counts the connections.
fn own_servers(seen: &SessionOutcome, is_meant: impl Fn(&[&str]) -> bool) -> usize {
    let mut connections = 0;
    let trials = seen
        .events
        .split(|event| matches!(event.event, EventKind::TrialEnded(_)));
    for trial in trials {
        let opened = |actor: Actor| -> Vec<&str> {
            let opened = trial.iter().filter_map(|event| match &event.event {
                EventKind::ConnectionOpened(opened) if opened.actor == actor => Some(opened),
                _ => None,
            });
            opened.map(|opened| opened.server.as_str()).collect()
        };
        let (mut of_loop, of_steps) = (opened(Actor::Loop), opened(Actor::Step));
        connections += of_loop.len() + of_steps.len();
        of_loop.sort_unstable();
        let is_meant = of_loop.is_empty() || is_meant(&of_loop);
        assert!(is_meant, "the agent's connections: {of_loop:?}");
        assert_eq!(closed(trial), of_loop.len() + of_steps.len());
    }
    connections
}

fn closed(trial: &[Event]) -> usize {
    let closed = |event: &&Event| matches!(event.event, EventKind::ConnectionClosed(_));
    trial.iter().filter(closed).count()
}

const ALL: &[&str] = &["everything", "files", "git", "memory"];

/// Every trial's end and every call with its arguments, in the order of the plan.
fn done(document: &Value) -> Vec<Value> {
    let results = document["results"].as_array().unwrap();
    let one = |trial: &Value| {
        let calls = trial["callHistory"]["ToolCalls"].as_array();
        let calls = calls.into_iter().flatten();
        let calls = calls.map(|call| json!([call["serverName"], call["name"], call["request"]]));
        let checks = trial["proctor"]["checks"].as_array();
        let checks = checks.into_iter().flatten();
        let checks = checks.map(|check| json!([check["check"], check["verdict"]]));
        let own = &trial["proctor"];
        json!([
            trial["taskName"],
            own["outcome"],
            own["blame"],
            calls.collect::<Vec<_>>(),
            checks.collect::<Vec<_>>()
        ])
    };
    results.iter().map(one).collect()
}

/// Tasks on `everything` and `memory`, and one of which a trial fails.
const REPLAYED: &str = "^(add-numbers|mend-a-mistake|fetch-a-picture|read-the-forecast|remember-a-person|recall-a-person|forget-a-person)$";

/// On the same servers, from the record alone: neither script is there any more.
#[test]
fn the_example_replays_without_its_models() {
    let example = Example::new();
    let is_replayed = |(name, ..): &&ExpectedTrial| REPLAYED.contains(name);
    let expected: Vec<ExpectedTrial> = PASSING.iter().filter(is_replayed).copied().collect();
    let words = ["--run", REPLAYED, "--parallel", "4"];
    let first = example.check("eval.yaml", ALL, &words).run();
    let then = as_meant(&first, &expected);
    let gone = "kind: Script\nrules: [{reply: {error: {kind: key, detail: gone}}}]\n";
    for script in ["model.yaml", "judge.yaml"] {
        fs::write(example.path(script), gone).unwrap();
    }
    let record = first.record.to_str().unwrap();
    let words = [&words[..], &["--replay", record]].concat();
    let again = example.check("eval.yaml", ALL, &words).run();
    let now = as_meant(&again, &expected);
    assert_eq!(done(&then), done(&now));
    assert_eq!(example.litter(), Vec::<String>::new());
    let asked = |event: &&Event| matches!(event.event, EventKind::ModelAsked(_));
    let heard = |event: &&Event| matches!(event.event, EventKind::Replayed { .. });
    let count = |of: fn(&&Event) -> bool| again.events.iter().filter(of).count();
    assert_eq!(count(asked), count(heard));
    assert!(count(heard) > expected.len());
}

fn passes(words: &[&str]) {
    let example = Example::new();
    let seen = example.check("eval.yaml", ALL, words).run();
    let document = as_meant(&seen, PASSING);
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(document["proctor"]["cases"]["met"], 21);
    // Once before the first trial, then for each by itself. Each task lists its only server, but for one
    // that uses all. Five tasks have steps that use a server.
    let connections = own_servers(&seen, |servers| servers.len() == 1 || servers == ALL);
    assert_eq!(connections, PASSING.len() - 1 + ALL.len() + 5);
    assert_eq!(example.started(), connections + ALL.len());
    assert_eq!(example.litter(), [""; 0]);
    // What the long operation says of its progress was recorded, and nothing was found wrong.
    let messages = seen.messages(Direction::ToClient);
    let is_progress =
        |message: &&Vec<u8>| String::from_utf8_lossy(message).contains("notifications/progress");
    assert_eq!(messages.iter().filter(is_progress).count(), 4);
    assert_eq!(seen.found(FindingKind::Noise), 0);
}

#[test]
fn the_example_passes_one_by_one() {
    passes(&["--jobs", "1"]);
}

#[test]
fn the_example_passes_side_by_side() {
    passes(&["--parallel", "4"]);
}

#[test]
fn what_is_meant_to_go_wrong_goes_wrong_as_it_is_meant() {
    let two = &["everything", "files"];
    for words in [["--jobs", "1"], ["--parallel", "4"]] {
        let example = Example::new();
        let seen = example.check("not-passing.yaml", two, &words).run();
        as_meant(&seen, NOT_PASSING);
        assert_eq!(seen.code, Some(1), "{}", seen.stderr);
        // Two trials end before any server is started.
        let connections = own_servers(&seen, |servers| servers == two);
        assert_eq!(connections, (NOT_PASSING.len() - 2) * two.len());
        assert_eq!(example.started(), connections + two.len());
        assert_eq!(example.litter(), [""; 0]);
    }
}

#[test]
fn a_server_that_is_killed_while_the_agent_works_is_to_blame() {
    let example = Example::new();
    // What the setup leaves running kills the server once the record shows that the agent waits for it.
    let setup = json!([{"script": {"inline": r#"
        cd ..
        while sleep 0.2; do
            pid=$(sed -n 's/^everything //p' started.log | tail -n 1)
            grep -qs tools/call dawdle.run/trials/* && kill -9 "$pid" && exit
        done > killer.log 2>&1 &
    "#}}]);
    let task = json!({
        "kind": "Task",
        "apiVersion": "mcpchecker/v1alpha2",
        "metadata": {"name": "dawdle"},
        "spec": {"prompt": {"inline": "Wait for ten minutes."}, "setup": setup},
    });
    fs::write(example.path("not-passing/dawdle.yaml"), task.to_string()).unwrap();
    let only = ["--run", "^dawdle$"];
    let seen = example
        .check("not-passing.yaml", &["everything", "files"], &only)
        .record_in(&example.path("dawdle.run"))
        .run();
    let killed = "the server `everything` failed while the agent worked: ";
    as_meant(&seen, &[("dawdle", "failed", "server", killed)]);
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
}

#[test]
fn an_interrupted_run_on_real_servers_leaves_nothing() {
    let example = Example::new();
    let running = example.check("eval.yaml", ALL, &["--jobs", "3"]).start();
    running.wait_for("tools/call");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    assert_eq!(example.litter(), [""; 0]);
}

/// The tests use what users get: the versions are the same.
#[test]
fn the_example_names_the_versions_that_are_tested() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = fs::read_to_string(root.join("scripts/install-servers")).unwrap();
    for config in ["mcp-config.yaml", "mcp-config-not-passing.yaml"] {
        let text = fs::read_to_string(example().join(config)).unwrap();
        for (at, _) in text.match_indices("server-") {
            let pinned = text[at + "server-".len()..].split([' ', '"', ']', '\n']);
            let (name, version) = pinned.clone().next().unwrap().split_once('@').unwrap();
            assert!(
                script.contains(&format!("{name}={version}")),
                "{config}: {name} is not tested at {version}"
            );
        }
    }
}
