//! Histories of runs, from overviews and from folders.

use std::collections::BTreeMap;
use std::time::Duration;

use proctor_record::event::{RECORD_VERSION, RunEnded, RunStarted};
use proctor_record::fold::ModelActivity;
use proctor_record::model::Usage;

use super::*;
use crate::overview::{CaseOverview, OVERVIEW_VERSION, ServerOverview};

/// A run with the trials of each case: passed, not passed, without a verdict.
fn run(number: usize, cases: &[(&str, &str, [u32; 3])]) -> (String, Overview) {
    let name = format!("run-{number}");
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: format!("2026-11-{:02}T05:00:00Z", number + 1),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let case = |(id, hash, trials): &(&str, &str, [u32; 3])| CaseOverview {
        id: (*id).to_owned(),
        hash: (*hash).to_owned(),
        trials: vec![*trials],
        rule: vec![match trials {
            [_, 0, 0] => Answer::Met,
            [_, 0, _] => Answer::Inconclusive,
            _ => Answer::Missed,
        }],
        medians: Vec::new(),
    };
    let overview = Overview {
        version: OVERVIEW_VERSION,
        run_bytes: 0,
        started,
        suite: "/suite.yaml".to_owned(),
        ended: Some(RunEnded::default()),
        duration: Duration::from_secs(1),
        gate: Answer::Met,
        trials: Counts::default(),
        rate: None,
        agents: vec![AgentOverview {
            name: "codex (gpt-5)".to_owned(),
            model: Some("gpt-5".to_owned()),
            trials: Counts::default(),
            rate: None,
            tokens: Usage::default(),
            cost_usd: None,
            median: None,
        }],
        servers: vec![ServerOverview {
            server: "kubernetes".to_owned(),
            name: None,
            version: Some("0.4.0".to_owned()),
            tools: 1,
            tools_digest: Some("a".to_owned()),
        }],
        findings: BTreeMap::new(),
        agent: ModelActivity::default(),
        judge: ModelActivity::default(),
        cases: cases.iter().map(case).collect(),
    };
    (name, overview)
}

/// The history of one case with these trials in each run.
fn history_of(trials: &[[u32; 3]]) -> SuiteHistory {
    let runs = trials.iter().enumerate();
    let runs: Vec<_> = runs
        .map(|(n, trials)| run(n, &[("a", "1", *trials)]))
        .collect();
    SuiteHistory::of("suite".to_owned(), &runs)
}

#[test]
fn a_case_is_flaky_if_trials_or_runs_differ_back_and_forth() {
    const P: [u32; 3] = [1, 0, 0];
    const F: [u32; 3] = [0, 1, 0];
    const MIXED: [u32; 3] = [2, 1, 0];
    const OPEN: [u32; 3] = [0, 0, 1];
    // Flaky runs, recent runs, the run in which it became flaky.
    let check = |trials: &[[u32; 3]], expected: Option<(usize, usize, Option<usize>)>| {
        let history = history_of(trials);
        let flaky = history.cases[0].flaky.clone();
        let found = flaky.map(|flaky| (flaky.runs, flaky.of, flaky.since));
        assert_eq!(found, expected, "{trials:?}");
    };
    check(&[P, P, P], None);
    check(&[F, F, F], None);
    check(&[OPEN, OPEN], None);
    // Broken and repaired, but not back and forth.
    check(&[P, P, P, F, F], None);
    check(&[F, F, P, P], None);
    check(&[P, F, F, F, P, P], None);
    check(&[MIXED], Some((1, 1, None)));
    check(&[P, P, MIXED], Some((1, 3, None)));
    check(&[P, P, P, MIXED], Some((1, 4, Some(3))));
    check(&[P, OPEN, P, P, OPEN, MIXED, P], Some((1, 5, Some(5))));
    check(&[P, P, P, F, P], Some((1, 5, Some(3))));
    check(&[P, P, P, F, F, P], Some((2, 6, Some(3))));
    check(&[P, F, P, F, P], Some((2, 5, None)));
    // Long ago.
    check(&[P, P, P, MIXED, P, P, P, P, P, P, P, P], None);
    // It was flaky before the recent runs, so it did not become flaky now.
    let old = [P, P, P, MIXED, P, P, P, P, P, P, P, P, MIXED];
    check(&old, Some((1, 8, None)));
}

#[test]
fn a_case_with_other_content_starts_a_new_line() {
    let runs = [
        run(0, &[("a", "1", [3, 0, 0]), ("b", "1", [3, 0, 0])]),
        run(1, &[("a", "2", [0, 3, 0])]),
        run(2, &[("a", "2", [0, 3, 0]), ("b", "1", [2, 0, 1])]),
    ];
    let history = SuiteHistory::of("suite".to_owned(), &runs);
    let lines: Vec<_> = history
        .cases
        .iter()
        .map(|line| {
            let runs: Vec<usize> = line.points.iter().map(|point| point.run).collect();
            (&*line.id, &*line.hash, line.is_replaced, runs)
        })
        .collect();
    assert_eq!(
        lines,
        [
            ("a", "2", false, vec![1, 2]),
            ("b", "1", false, vec![0, 2]),
            ("a", "1", true, vec![0]),
        ]
    );
    assert!(history.cases.iter().all(|line| line.flaky.is_none()));
    let rate = history.cases[1].rate.unwrap();
    assert_eq!((rate.passed, rate.counted), (5, 5));
    assert!(rate.low95 < 0.7, "{rate:?}");
    let suite = |run: usize| {
        let marks = history.runs[run].marks.iter();
        marks.map(|mark| mark.text.clone()).collect::<Vec<_>>()
    };
    // The second run has no case `b`, which is no change of the suite.
    assert_eq!(suite(0), Vec::<String>::new());
    assert_eq!(suite(1), ["1 case changed"]);
    assert_eq!(suite(2), Vec::<String>::new());
}

#[test]
fn changes_of_server_model_and_proctor_are_marked_and_explain_flaky_cases() {
    let trials = [[3, 0, 0], [3, 0, 0], [3, 0, 0], [2, 1, 0], [3, 0, 0]];
    let runs = trials.iter().enumerate();
    let mut runs: Vec<_> = runs.map(|(n, t)| run(n, &[("a", "1", *t)])).collect();
    runs[3].1.servers[0].version = Some("0.4.1".to_owned());
    runs[4].1.servers[0].version = Some("0.4.1".to_owned());
    runs[4].1.servers[0].tools_digest = Some("b".to_owned());
    runs[4].1.started.proctor = "0.2.0".to_owned();
    runs[4].1.agents[0].model = Some("gpt-6".to_owned());
    runs[4].1.agents[0].name = "codex (gpt-6)".to_owned();
    let history = SuiteHistory::of("suite".to_owned(), &runs);
    let mark = |kind, text: &str| Mark {
        kind,
        text: text.to_owned(),
    };
    let server = mark(MarkKind::Server, "kubernetes 0.4.0 → 0.4.1");
    assert_eq!(history.runs[3].marks, std::slice::from_ref(&server));
    assert_eq!(
        history.runs[4].marks,
        [
            mark(MarkKind::Server, "kubernetes 0.4.1: other tools"),
            mark(MarkKind::Model, "codex: gpt-5 → gpt-6"),
            mark(MarkKind::Proctor, "Proctor 0.1.0 → 0.2.0"),
        ]
    );
    // Another model is another subject, with a line of its own.
    assert_eq!(history.cases.len(), 2);
    let flaky = history.cases[0].flaky.as_ref().unwrap();
    assert_eq!((flaky.since, &flaky.with), (Some(3), &vec![server]));
}

#[test]
fn every_folder_is_in_the_rows_and_only_runs_with_results_are_in_the_history() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("broken")).unwrap();
    let started = run(0, &[]).1.started;
    let recording = folder.path().join("recording");
    proctor_record::record::RunWriter::create(
        &recording,
        proctor_record::redact::Redactor::default(),
        started,
    )
    .unwrap();
    let (rows, history) = load_all(crate::runs::list(folder.path()).unwrap());
    assert!(matches!(rows[0].content, RunContent::Recording { .. }));
    let RunContent::Unreadable { reason } = &rows[1].content else {
        panic!("{:?}", rows[1]);
    };
    assert!(reason.ends_with("it has no `run.jsonl`"), "{reason}");
    assert!(history.suites.is_empty());
}

#[test]
fn a_case_is_slower_if_it_takes_longer_than_in_every_recent_run() {
    let slower = |medians: &[Option<u64>]| {
        let runs = medians.iter().enumerate().map(|(n, median)| {
            let (name, mut run) = run(n, &[("a", "1", [1, 0, 0])]);
            run.cases[0].medians = vec![*median];
            (name, run)
        });
        let history = SuiteHistory::of("suite".to_owned(), &runs.collect::<Vec<_>>());
        let slower = history.cases[0].slower.clone();
        slower.map(|slower| (slower.before, slower.now))
    };
    assert_eq!(
        slower(&[Some(10), Some(11), Some(9), Some(15)]),
        Some((10, 15))
    );
    // Not much longer, or not longer than before, or too few runs, or no duration.
    assert_eq!(slower(&[Some(10), Some(11), Some(9), Some(14)]), None);
    assert_eq!(slower(&[Some(10), Some(20), Some(9), Some(16)]), None);
    assert_eq!(slower(&[Some(10), Some(10), Some(20)]), None);
    assert_eq!(slower(&[Some(10), Some(10), Some(10), None]), None);
    // A run without a duration does not count.
    assert_eq!(
        slower(&[Some(10), None, Some(10), Some(10), Some(30)]),
        Some((10, 30))
    );
}
