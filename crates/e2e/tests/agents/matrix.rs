//! Every agent on servers that die or don't answer in a call: never a pass. Run only where
//! `PROCTOR_EXTENDED` is 1; `PROCTOR_MATRIX_RUNS` says how often crashes are run. Each test prints a row.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use proctor_e2e::Fixture;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Outcome, TrialEnded};
use proctor_record::record::RunReader;
use serde_json::{Value, json};

use crate::cli::{RULES, fixture, is_extended, path_with, scripted};

/// How long a run may take: ten trials of the slowest agent on a busy machine.
const BOUND: Duration = Duration::from_mins(10);

/// How often a crash is run.
fn runs() -> usize {
    let given = std::env::var("PROCTOR_MATRIX_RUNS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(2)
}

/// A suite whose check holds as soon as the tool is called, whatever comes back.
fn suite(agent: &str, server: &Value) -> SuiteFixture {
    let suite = SuiteFixture::on(RULES, &json!({"ev": server}));
    let used = json!({"toolsUsed": [{"server": "ev", "tool": "echo"}]});
    // Long enough for the slowest agent to call, and shorter than any of them waits.
    let limits = json!({"timeout": "45s"});
    suite.eval(
        &json!({"agent": scripted(agent), "defaultTaskLimits": limits}),
        &json!({"assertions": used}),
    );
    suite.task("say-hello", &json!({}));
    suite
}

/// How the trials of a run ended.
fn ends(agent: &str, server: &Value, times: usize) -> Vec<TrialEnded> {
    let suite = suite(agent, server);
    let session = suite.check(&["-n", &times.to_string(), "--jobs", "1"]);
    let seen = session.env("PATH", &path_with(agent)).within(BOUND).run();
    let run = RunReader::open(&seen.record).expect("it can be read");
    let files = run.trials().expect("they can be listed");
    let ended = files.iter().map(|file| {
        let events = run.trial(file).expect("it can be read");
        let last = events.last().expect("an event").expect("an event");
        match last.event {
            EventKind::TrialEnded(ended) => ended,
            other => panic!("no end but {other:?}\n{}", seen.stderr),
        }
    });
    ended.collect()
}

fn at(fixture: &Fixture) -> Value {
    json!({"type": "http", "url": fixture.url()})
}

/// `failed, server ×2`.
fn cell(ends: &[TrialEnded]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for ended in ends {
        let blame = ended.blame.map_or(String::new(), |blame| {
            format!(", {}", format!("{blame:?}").to_lowercase())
        });
        let outcome = format!("{:?}{blame}", ended.outcome);
        *counts.entry(outcome).or_default() += 1;
    }
    let shown: Vec<String> = counts
        .into_iter()
        .map(|(how, count)| format!("{how} ×{count}"))
        .collect();
    shown.join("; ")
}

fn never_passes(agent: &str) {
    if !is_extended() {
        return;
    }
    let crash_on_http = (0..runs()).flat_map(|_| {
        let server = Fixture::http(&["--mode", "exit-in-call=3"]);
        ends(agent, &at(&server), 1)
    });
    let refusing = Fixture::http(&["--mode", "http-status=500"]);
    let hanging = Fixture::http(&["--mode", "never-answer"]);
    let columns = [
        (
            "crash on stdio",
            ends(agent, &fixture(&["--mode", "exit-in-call=3"]), runs()),
        ),
        ("crash on HTTP", crash_on_http.collect()),
        ("HTTP 500", ends(agent, &at(&refusing), 1)),
        (
            "hang on stdio",
            ends(agent, &fixture(&["--mode", "never-answer"]), 1),
        ),
        ("hang on HTTP", ends(agent, &at(&hanging), 1)),
    ];
    let mut row = format!("| {agent}");
    for (_, ends) in &columns {
        row = format!("{row} | {}", cell(ends));
    }
    // Also where the test passes: this is what it is for.
    let _ = writeln!(std::io::stderr(), "{row} |");
    for (column, ends) in &columns {
        assert!(!ends.is_empty(), "{agent}, {column}: no trial");
        for ended in ends {
            assert_ne!(
                ended.outcome,
                Outcome::Passed,
                "{agent}, {column}: {ended:?}"
            );
        }
    }
}

#[test]
fn claude_code_never_passes_on_a_server_that_does_not_answer() {
    never_passes("claude-code");
}

#[test]
fn codex_never_passes_on_a_server_that_does_not_answer() {
    never_passes("codex");
}

#[test]
fn copilot_never_passes_on_a_server_that_does_not_answer() {
    never_passes("copilot");
}

#[test]
fn claude_acp_never_passes_on_a_server_that_does_not_answer() {
    never_passes("claude-acp");
}

#[test]
fn codex_acp_never_passes_on_a_server_that_does_not_answer() {
    never_passes("codex-acp");
}

#[test]
fn gemini_never_passes_on_a_server_that_does_not_answer() {
    never_passes("gemini");
}

#[test]
fn goose_never_passes_on_a_server_that_does_not_answer() {
    never_passes("goose");
}

#[test]
fn opencode_never_passes_on_a_server_that_does_not_answer() {
    never_passes("opencode");
}
