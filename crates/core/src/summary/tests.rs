//! Summaries of written runs.

mod generated;
mod parts;

use std::path::Path;

use proctor_record::event::PlannedGates;
use proctor_record::event::{
    Body, CheckEvaluated, ConnectionId, ConnectionOpened, Finding, FindingKind, ModelAsked,
    ModelReplied, Purpose, RECORD_VERSION, TrialEnded, TrialStarted,
};
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::{RunWriter, TrialWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

use crate::compare::{RunFacts, tally};
use crate::gate::{Gate, conditions};

use super::*;

fn started() -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: vec!["proctor".to_owned()],
        context: None,
    }
}

fn case(name: &str, runs: u32, pass: Option<(u32, u32)>) -> PlannedCase {
    PlannedCase {
        path: format!("tasks/{name}.yaml"),
        hash: "0".to_owned(),
        pass,
        ..PlannedCase::new(format!("tasks/{name}.yaml#{name}"), name.to_owned(), runs)
    }
}

struct Run {
    folder: tempfile::TempDir,
    writer: RunWriter,
}

impl Run {
    fn planned(agents: &[&str], cases: Vec<PlannedCase>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run");
        let mut writer = RunWriter::create(&path, Redactor::default(), started()).expect("a run");
        let agents = agents
            .iter()
            .map(|name| PlannedAgent::new((*name).to_owned()));
        let plan = RunPlanned::new("/suite.yaml".to_owned(), cases, agents.collect());
        writer
            .append(1, EventKind::RunPlanned(plan.into()))
            .expect("a plan");
        Self { folder, writer }
    }

    fn trial(&self, case: &str, agent: &str, repeat: u32, attempt: u32) -> TrialWriter {
        let started = TrialStarted {
            case: format!("tasks/{case}.yaml#{case}"),
            agent: Some(agent.to_owned()),
            repeat,
            attempt,
        };
        let name = format!("{case}.{agent}.{repeat}");
        self.writer.trial(10, &name, started).expect("a trial")
    }

    fn ends(&self, case: &str, agent: &str, repeat: u32, attempt: u32, outcome: Outcome) {
        end(self.trial(case, agent, repeat, attempt), outcome);
    }

    /// Writes the end of the run.
    fn finish(&mut self) {
        let ended = EventKind::RunEnded(RunEnded::default());
        self.writer.append(200, ended).expect("an end");
        self.writer.flush();
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("run")
    }

    fn summary(&self) -> Summary {
        let run = RunReader::open(&self.path()).expect("a run");
        Summary::of_run(&run).expect("a summary")
    }

    /// The gate that the run has if it ends now.
    fn gate(&self) -> Gate {
        let mut summary = self.summary();
        summary.ended = Some(RunEnded::default());
        Gate::of(&summary)
    }
}

fn end(trial: TrialWriter, outcome: Outcome) {
    let ended = TrialEnded {
        outcome,
        reason: (outcome != Outcome::Passed).then(|| "because".to_owned()),
        blame: (outcome == Outcome::Errored).then_some(Blame::Infra),
    };
    index::end_trial(trial, 110, ended).expect("an end");
}

#[test]
fn every_planned_trial_is_listed_in_plan_order() {
    let run = Run::planned(&["a", "b"], vec![case("z", 2, None), case("y", 1, None)]);
    run.ends("y", "b", 1, 1, Outcome::Failed);
    run.ends("z", "a", 2, 1, Outcome::Passed);
    run.ends("z", "b", 1, 1, Outcome::TimedOut);
    run.ends("stranger", "a", 1, 1, Outcome::Passed);
    let summary = run.summary();
    let shown: Vec<(&str, &str, u32, Option<Outcome>)> = summary
        .trials()
        .map(|(case, agent, trial)| {
            let names = (case.case.name.as_str(), agent.agent.as_str());
            (names.0, names.1, trial.repeat, trial.outcome())
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("z", "a", 1, None),
            ("z", "a", 2, Some(Outcome::Passed)),
            ("z", "b", 1, Some(Outcome::TimedOut)),
            ("z", "b", 2, None),
            ("y", "a", 1, None),
            ("y", "b", 1, Some(Outcome::Failed)),
        ]
    );
    let counts = summary.counts();
    assert_eq!(
        (counts.total(), counts.counted(), counts.not_run),
        (6, 3, 3)
    );
    assert_eq!(summary.unplanned, 1);
    assert_eq!(summary.duration, Duration::from_micros(110));
    assert_eq!(summary.rate(Some("a")).unwrap().tally.counted, 1);
    assert_eq!(Gate::of(&summary).exit(), 1);
}

#[test]
fn the_latest_attempt_that_ended_counts() {
    let run = Run::planned(&["a"], vec![case("z", 1, None)]);
    run.ends("z", "a", 1, 1, Outcome::Errored);
    run.ends("z", "a", 1, 2, Outcome::Passed);
    drop(run.trial("z", "a", 1, 3));
    let summary = run.summary();
    let trial = &summary.cases[0].agents[0].trials[0];
    assert_eq!(trial.attempts, 3);
    let result = trial.result.as_ref().unwrap();
    assert_eq!((result.attempt, result.outcome), (2, Outcome::Passed));
    assert_eq!(result.duration(), Duration::from_micros(100));
    assert_eq!(run.gate(), Gate::Met);
}

#[test]
fn a_trial_that_never_ended_has_no_verdict() {
    let run = Run::planned(&["a"], vec![case("z", 1, None), case("y", 1, None)]);
    run.ends("y", "a", 1, 1, Outcome::Passed);
    drop(run.trial("z", "a", 1, 1));
    let gate = run.gate();
    assert_eq!(gate.exit(), 3);
    assert_eq!(
        gate.reasons(),
        ["`z`: 0 of 1 trials passed, pass rule: every trial, 1 without a verdict"]
    );
}

#[test]
fn pass_rules_apply_per_case() {
    let run = Run::planned(&["a"], vec![case("z", 5, Some((4, 5)))]);
    for repeat in 1..=4 {
        run.ends("z", "a", repeat, 1, Outcome::Passed);
    }
    run.ends("z", "a", 5, 1, Outcome::Errored);
    assert_eq!(run.gate(), Gate::Met);
}

#[test]
fn a_run_without_an_end_meets_no_gate_and_can_miss_it() {
    let run = Run::planned(&["a"], vec![case("z", 2, None)]);
    run.ends("z", "a", 1, 1, Outcome::Passed);
    run.ends("z", "a", 2, 1, Outcome::Passed);
    assert_eq!(run.gate(), Gate::Met);
    let reason = "the run is not finished: it is still running, or was killed".to_owned();
    let open = Gate::Open {
        reasons: vec![reason],
    };
    assert_eq!(Gate::of(&run.summary()), open);
    let run = Run::planned(&["a"], vec![case("z", 1, None)]);
    run.ends("z", "a", 1, 1, Outcome::Failed);
    assert_eq!(Gate::of(&run.summary()).exit(), 1);
}

#[test]
fn a_run_with_trials_that_did_not_run_meets_no_gate_on_rates() {
    let run = Run::planned(&["a"], vec![case("z", 5, None)]);
    for repeat in 1..=4 {
        run.ends("z", "a", repeat, 1, Outcome::Passed);
    }
    let mut summary = run.summary();
    summary.ended = Some(RunEnded::default());
    let gates = PlannedGates {
        min_pass_rate: Some(0.6),
        ..PlannedGates::default()
    };
    let gate = Gate::with(&summary, &gates);
    assert_eq!(
        (gate.exit(), gate.reasons()),
        (3, &["1 trial did not run".to_owned()][..])
    );
    // A run that stopped since its gate was decided needs no more.
    summary.plan.stop_when_decided = true;
    assert_ne!(
        Gate::with(&summary, &gates).reasons(),
        ["1 trial did not run"]
    );
}

#[test]
fn a_run_is_compared_as_unfinished_until_it_has_an_end_and_all_trials() {
    let is_unfinished = |run: &Run| {
        let reader = RunReader::open(&run.path()).unwrap();
        RunFacts::load(&reader).unwrap().tally.unfinished
    };
    let mut whole = Run::planned(&["a"], vec![case("z", 1, None)]);
    whole.ends("z", "a", 1, 1, Outcome::Passed);
    assert!(is_unfinished(&whole), "it has no end");
    whole.finish();
    assert!(!is_unfinished(&whole));
    let mut part = Run::planned(&["a"], vec![case("z", 2, None)]);
    part.ends("z", "a", 1, 1, Outcome::Passed);
    part.finish();
    assert!(is_unfinished(&part), "a trial did not run");
}

#[test]
fn a_gate_against_a_base_names_the_cases_that_are_gone() {
    let base = Run::planned(&["a"], vec![case("z", 8, None), case("gone", 1, None)]);
    let run = Run::planned(&["a"], vec![case("z", 8, None)]);
    for repeat in 1..=8 {
        base.ends("z", "a", repeat, 1, Outcome::Passed);
        run.ends("z", "a", repeat, 1, Outcome::Passed);
    }
    base.ends("gone", "a", 1, 1, Outcome::Passed);
    let gates = PlannedGates {
        base: Some(tally(&base.summary(), "base".to_owned())),
        ..PlannedGates::default()
    };
    let texts: Vec<String> = conditions(&run.summary(), &gates)
        .into_iter()
        .map(|condition| condition.text)
        .collect();
    let named = "the case `gone` of the base is not in this run";
    assert!(texts.iter().any(|text| text.contains(named)), "{texts:?}");
}

#[test]
fn a_trial_whose_end_was_changed_to_passed_meets_no_gate() {
    let run = Run::planned(&["a"], vec![case("z", 2, None)]);
    run.ends("z", "a", 1, 1, Outcome::Passed);
    run.ends("z", "a", 2, 1, Outcome::Failed);
    assert_eq!(run.gate().exit(), 1);
    let trials = run.path().join("trials");
    for entry in std::fs::read_dir(trials).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("\"failed\"", "\"passed\"")).unwrap();
    }
    let reader = RunReader::open(&run.path()).unwrap();
    let mut summary = Summary::checked(&reader).unwrap();
    summary.ended = Some(RunEnded::default());
    let gate = Gate::of(&summary);
    assert_eq!(gate.exit(), 3);
    assert_eq!(
        gate.reasons(),
        ["the record of the trial `z.a.2` was changed after the trial ended"]
    );
}

#[test]
fn cases_that_no_regression_does_not_compare_must_meet_their_pass_rules() {
    let base = Run::planned(&["a"], vec![case("z", 8, None)]);
    let run = Run::planned(&["a"], vec![case("z", 8, None), case("new", 1, None)]);
    for repeat in 1..=8 {
        base.ends("z", "a", repeat, 1, Outcome::Passed);
        run.ends("z", "a", repeat, 1, Outcome::Passed);
    }
    run.ends("new", "a", 1, 1, Outcome::Failed);
    let gates = PlannedGates {
        base: Some(tally(&base.summary(), "base".to_owned())),
        ..PlannedGates::default()
    };
    let mut summary = run.summary();
    summary.ended = Some(RunEnded::default());
    let missed = Gate::with(&summary, &gates);
    assert_eq!(
        missed.reasons(),
        ["`new`: 0 of 1 trials passed, pass rule: every trial"]
    );
    assert_eq!(missed.exit(), 1);
    // A gate on the rate covers new cases too.
    let by_rate = PlannedGates {
        min_pass_rate: Some(0.5),
        ..gates
    };
    assert_eq!(Gate::with(&summary, &by_rate), Gate::Met);
}

/// Writes an attempt with a finding, a reply of the model and three checks, that ends as errored.
fn errored_attempt(run: &Run, attempt: u32) {
    let mut trial = run.trial("z", "a", 1, attempt);
    let mut add = |what| trial.append(20, what).expect("an event");
    add(EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: proctor_record::event::Actor::Loop,
        transport: WireKind::Stdio,
        target: String::new(),
    }));
    add(EventKind::Finding(Finding {
        conn: ConnectionId(1),
        kind: FindingKind::Noise,
        detail: "hello".to_owned(),
        count: 3,
    }));
    add(EventKind::ModelAsked(ModelAsked {
        ask: 1,
        purpose: Purpose::Agent,
        model: "scripted:a".to_owned(),
        known: 0,
        request: Body::Text("{}".to_owned()),
        digest: String::new(),
    }));
    add(EventKind::ModelReplied(ModelReplied {
        ask: 1,
        turn: Body::Text("{}".to_owned()),
        raw: None,
        stop: StopReason::Done,
        usage: Usage {
            input: Some(10),
            output: Some(1),
            ..Usage::default()
        },
        cost_usd: Some(0.5),
    }));
    for verdict in [Verdict::unknown("u"), Verdict::Pass, Verdict::fail("f")] {
        add(EventKind::Graded(CheckEvaluated {
            check: "calls".to_owned(),
            id: None,
            details: Vec::new(),
            verdict,
            evidence: Vec::new(),
            notes: Vec::new(),
        }));
    }
    end(trial, Outcome::Errored);
}

#[test]
fn findings_and_usage_are_summed_over_all_attempts() {
    let run = Run::planned(&["a"], vec![case("z", 1, None)]);
    for attempt in [1, 2] {
        errored_attempt(&run, attempt);
    }
    let summary = run.summary();
    assert_eq!(
        summary.transports,
        [("fs".to_owned(), WireKind::Stdio)].into()
    );
    let found = FoundKind {
        count: 6,
        example: "hello".to_owned(),
    };
    let found = [(FindingKind::Noise, found)].into();
    assert_eq!(summary.findings, [("fs".to_owned(), found)].into());
    assert_eq!(
        (summary.agent.turns, summary.agent.cost_usd),
        (2, Some(1.0))
    );
    let trial = &summary.cases[0].agents[0].trials[0];
    let result = trial.result.as_ref().unwrap();
    assert_eq!(
        (result.agent().turns, result.blame),
        (1, Some(Blame::Infra))
    );
    assert_eq!(
        result.decisive.as_ref().unwrap().verdict,
        Verdict::fail("f")
    );
    assert_eq!(summary.blames(), [((Blame::Infra, true), 1)].into());
}

#[test]
fn trials_share_what_is_equal() {
    let run = Run::planned(&["a"], vec![case("z", 4, None)]);
    for repeat in [1, 2, 4] {
        run.ends("z", "a", repeat, 1, Outcome::Passed);
    }
    run.ends("z", "a", 3, 1, Outcome::Failed);
    let reader = RunReader::open(&run.path()).unwrap();
    let summary = Summary::of_written(&reader).unwrap();
    assert_eq!(summary, run.summary());
    let trials = &summary.cases[0].agents[0].trials;
    assert_eq!(trials.capacity(), 4);
    let files: Vec<String> = trials.iter().filter_map(TrialSummary::file).collect();
    assert_eq!(
        files,
        [
            "z.a.1.1.jsonl",
            "z.a.2.1.jsonl",
            "z.a.3.1.jsonl",
            "z.a.4.1.jsonl"
        ]
    );
    // A hundred thousand of them are in memory.
    assert!(size_of::<TrialSummary>() <= 32);
}

#[test]
fn a_file_with_the_usual_name_is_not_stored_with_its_trial() {
    let run = Run::planned(&["a (m)"], vec![case("z", 3, None)]);
    for repeat in 1..=3 {
        let id = "tasks/z.yaml#z";
        let started = TrialStarted {
            case: id.to_owned(),
            agent: Some("a (m)".to_owned()),
            repeat,
            attempt: 2,
        };
        let name = proctor_record::record::trial_name(id, "a (m)", repeat);
        let trial = run.writer.trial(10, &name, started).unwrap();
        let outcome = if repeat == 2 {
            Outcome::Failed
        } else {
            Outcome::Passed
        };
        end(trial, outcome);
    }
    let summary = run.summary();
    let trials = &summary.cases[0].agents[0].trials;
    let [first, second, third] = [0, 1, 2].map(|index| trials[index].result.as_ref().unwrap());
    assert!(first.shares_with(third) && !first.shares_with(second));
    let mut names: Vec<String> = trials.iter().filter_map(TrialSummary::file).collect();
    names.sort();
    let reader = RunReader::open(&run.path()).unwrap();
    let files: Vec<String> = reader
        .trial_names()
        .unwrap()
        .into_iter()
        .map(String::from)
        .collect();
    assert_eq!(names, files);
}

#[test]
fn a_run_without_a_plan_is_an_error() {
    let check = |folder: &Path| {
        let run = RunReader::open(folder).unwrap();
        let error = Summary::of_run(&run).unwrap_err();
        let text = error.to_string();
        assert!(text.ends_with("has no plan: nothing to report"), "{text}");
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    drop(RunWriter::create(&path, Redactor::default(), started()).unwrap());
    check(&path);
    check(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/records/v1"));
}

#[test]
fn events_of_a_newer_version_are_counted_and_skipped() {
    let run = Run::planned(&["bot"], vec![case("a", 1, None)]);
    let mut trial = run.trial("a", "bot", 1, 1);
    let phase = proctor_record::event::Phase::Setup;
    trial.append(11, EventKind::PhaseStarted { phase }).unwrap();
    end(trial, Outcome::Passed);
    let before = run.summary();
    assert_eq!((before.counts().passed, before.unknown_events), (1, 0));
    let folder = run.path().join("trials");
    let file = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let text = std::fs::read_to_string(file.path()).unwrap();
    let newer = text.replace("phaseStarted", "phasePaused");
    std::fs::write(file.path(), newer).unwrap();
    let summary = run.summary();
    assert_eq!((summary.counts().passed, summary.unknown_events), (1, 1));
    // The end in a form that is not known is no end, and of this version it is damage.
    let newer = text.replace(r#""outcome":"passed""#, r#""outcome":"pardoned""#);
    std::fs::write(file.path(), newer).unwrap();
    let reader = RunReader::open(&run.path()).unwrap();
    assert!(Summary::of_run(&reader).is_err());
    let own = run.path().join("run.jsonl");
    let text = std::fs::read_to_string(&own).unwrap();
    let version = started().proctor;
    let newer = text.replace(&format!("\"{version}\""), "\"99.0.0\"");
    std::fs::write(&own, newer).unwrap();
    let summary = run.summary();
    assert_eq!((summary.counts().passed, summary.unknown_events), (0, 1));
}

#[test]
fn the_example_of_noise_is_the_first_line_that_is_not_blank() {
    let check = |details: &[&str], expected: &str| {
        let mut found = FoundKind::default();
        for detail in details {
            found.add(FoundKind {
                count: 1,
                example: (*detail).to_owned(),
            });
        }
        assert_eq!(found.example, expected, "{details:?}");
        assert_eq!(found.count, details.len() as u64);
    };
    let blank = proctor_record::event::BLANK_LINE;
    check(&[blank, blank, "Spring", "Boot", blank], "Spring");
    check(&["Spring", blank], "Spring");
    check(&[blank], blank);
}
