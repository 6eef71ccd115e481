//! Generated runs: the index agrees with the files.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_record::event::{
    Actor, Body, CheckEvaluated, ConnectionId, ConnectionOpened, Direction, EventKind, Finding,
    FindingKind, ModelAsked, ModelFailed, ModelReplied, Outcome, Phase, PlannedAgent, PlannedCase,
    Purpose, RECORD_VERSION, RunPlanned, RunStarted, TrialEnded, TrialStarted, WireKind,
};
use proctor_record::index::end_trial;
use proctor_record::model::{StopReason, Usage};
use proctor_record::record::{INDEX, RunReader, RunWriter, TRIALS, TrialWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::summary::Summary;

fn create(folder: &Path, started: &str) -> RunWriter {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: started.to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(folder, Redactor::default(), started).unwrap()
}

fn begin(run: &RunWriter, name: &str, attempt: u32) -> TrialWriter {
    let started = TrialStarted {
        case: format!("tasks/{name}.yaml#{name}"),
        agent: Some("loop".to_owned()),
        repeat: 1,
        attempt,
    };
    let mut trial = run.trial(1, name, started).unwrap();
    let opened = EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: Actor::Loop,
        transport: WireKind::Stdio,
        target: String::new(),
    });
    trial.append(2, opened).unwrap();
    trial
}

fn frame(trial: &mut TrialWriter, at: u64, direction: Direction, text: &str) {
    let frame = trial.append_frame(at, ConnectionId(1), None, direction, text.as_bytes());
    frame.unwrap();
}

fn end(trial: TrialWriter, outcome: Outcome) {
    let reason = (outcome != Outcome::Passed).then(|| "because".to_owned());
    let ended = TrialEnded {
        outcome,
        reason,
        blame: None,
    };
    end_trial(trial, 9, ended).unwrap();
}

fn index_of(folder: &Path) -> PathBuf {
    folder.join(INDEX)
}

/// Overwrites a file's bytes, and keeps its length.
fn blank(path: &Path) {
    let length = fs::metadata(path).unwrap().len();
    let file = fs::File::create(path).unwrap();
    file.set_len(length).unwrap();
}

/// The next action of a generated trial.
#[derive(Debug, Clone)]
enum Step {
    Event(Box<EventKind>),
    Frame(Direction, String),
}

#[derive(Debug, Clone)]
struct GeneratedRun {
    attempt: u32,
    steps: Vec<(u64, Step)>,
    /// A trial without an end is abandoned.
    ended: Option<Outcome>,
}

fn plan(cases: usize) -> EventKind {
    let case = |number: usize| PlannedCase {
        hash: "0".to_owned(),
        ..PlannedCase::new(
            format!("tasks/t{number}.yaml#t{number}"),
            format!("t{number}"),
            1,
        )
    };
    EventKind::RunPlanned(Box::new(RunPlanned::new(
        "/suite.yaml".to_owned(),
        (0..cases).map(case).collect(),
        vec![PlannedAgent::new("loop".to_owned())],
    )))
}

fn body(text: &str) -> Body {
    Body::Text(text.to_owned())
}

fn events() -> impl Strategy<Value = EventKind> {
    let phase = prop::sample::select(vec![Phase::Setup, Phase::Serve, Phase::Drive, Phase::Grade]);
    let kind = prop::sample::select(vec![FindingKind::Noise, FindingKind::Dropped]);
    let purpose = prop::sample::select(vec![Purpose::Agent, Purpose::Side, Purpose::Judge]);
    let verdict = prop_oneof![
        Just(Verdict::Pass),
        "\\PC{0,2000}".prop_map(Verdict::fail),
        "\\PC{0,40}".prop_map(Verdict::unknown),
    ];
    let tokens = || prop::option::of(0..1_000_000_u64);
    prop_oneof![
        phase.prop_map(|phase| EventKind::PhaseStarted { phase }),
        (kind, 0..3_u32, "\\PC{0,300}", 0..5_u64).prop_map(|(kind, conn, detail, count)| {
            let conn = ConnectionId(conn);
            EventKind::Finding(Finding {
                conn,
                kind,
                detail,
                count,
            })
        }),
        (1..6_u64, purpose).prop_map(|(ask, purpose)| EventKind::ModelAsked(ModelAsked {
            ask,
            purpose,
            model: format!("scripted:{}", ask % 2),
            known: 0,
            request: body("{}"),
            digest: String::new(),
        })),
        (1..6_u64).prop_map(|ask| EventKind::ModelFailed(ModelFailed {
            ask,
            attempt: 1,
            reason: "busy".to_owned(),
            again_in: None,
        })),
        (
            1..6_u64,
            tokens(),
            tokens(),
            prop::option::of(0.0..10.0_f64)
        )
            .prop_map(|(ask, input, output, cost_usd)| EventKind::ModelReplied(
                ModelReplied {
                    ask,
                    turn: body("{}"),
                    raw: None,
                    stop: StopReason::Done,
                    usage: Usage {
                        input,
                        output,
                        ..Usage::default()
                    },
                    cost_usd,
                }
            )),
        (1..6_u64, any::<bool>()).prop_map(|(ask, drifted)| EventKind::Replayed { ask, drifted }),
        "\\PC{0,9}".prop_map(|text| EventKind::ToolsOffered { tools: body(&text) }),
        verdict.prop_map(|verdict| EventKind::Graded(CheckEvaluated {
            check: "toolsUsed".to_owned(),
            id: None,
            details: Vec::new(),
            verdict,
            evidence: Vec::new(),
            notes: Vec::new(),
        })),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let direction = prop::sample::select(vec![Direction::ToServer, Direction::ToClient]);
    let message = prop_oneof![
        (0..5_u32, "[a-c]").prop_map(|(id, name)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#
        )),
        (0..5_u32, any::<bool>()).prop_map(|(id, flag)| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"isError":{flag}}}}}"#
        )),
        (0..5_u32).prop_map(|id| format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"no"}}}}"#
        )),
        "\\PC{0,40}",
        Just("x".repeat(40_000)),
    ];
    prop_oneof![
        events().prop_map(|what| Step::Event(Box::new(what))),
        (direction, message).prop_map(|(direction, text)| Step::Frame(direction, text)),
    ]
}

fn trials() -> impl Strategy<Value = Vec<GeneratedRun>> {
    let outcome = prop::sample::select(vec![
        Outcome::Passed,
        Outcome::Failed,
        Outcome::TimedOut,
        Outcome::Errored,
        Outcome::Cancelled,
    ]);
    let one = (
        1..4_u32,
        vec((0..50_u64, steps()), 0..20),
        prop::option::weighted(0.8, outcome),
    )
        .prop_map(|(attempt, steps, ended)| GeneratedRun {
            attempt,
            steps,
            ended,
        });
    vec(one, 0..5)
}

fn write(folder: &Path, trials: &[GeneratedRun]) {
    let mut run = create(folder, "2026-11-15T05:00:00Z");
    run.append(1, plan(trials.len())).unwrap();
    for (number, generated) in trials.iter().enumerate() {
        let mut trial = begin(&run, &format!("t{number}"), generated.attempt);
        let mut at = 10;
        for (after, step) in &generated.steps {
            at += after;
            match step {
                Step::Event(what) => drop(trial.append(at, *what.clone()).unwrap()),
                Step::Frame(direction, text) => frame(&mut trial, at, *direction, text),
            }
        }
        if let Some(outcome) = generated.ended {
            let ended = TrialEnded {
                outcome,
                reason: Some("é".repeat(generated.steps.len() * 100)),
                blame: None,
            };
            end_trial(trial, at + 1, ended).unwrap();
        }
    }
}

fn blank_all(folder: &Path, suffix: &str) {
    for entry in fs::read_dir(folder.join(TRIALS)).unwrap() {
        let path = entry.unwrap().path();
        if path.to_str().unwrap().ends_with(suffix) {
            blank(&path);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_summary_from_the_index_is_the_summary_from_the_files(trials in trials()) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &trials);
        let reader = RunReader::open(folder.path()).unwrap();
        let written = fs::read(index_of(folder.path())).unwrap();
        fs::remove_file(index_of(folder.path())).unwrap();
        let from_files = Summary::of_run(&reader).unwrap();
        let made_again = fs::read(index_of(folder.path())).unwrap();

        fs::write(index_of(folder.path()), &written).unwrap();
        prop_assert_eq!(&Summary::checked(&reader).unwrap(), &from_files);
        fs::write(index_of(folder.path()), &written).unwrap();
        blank_all(folder.path(), ".jsonl");
        prop_assert_eq!(&Summary::of_run(&reader).unwrap(), &from_files);
        // With those that were left, which only the index that was made again names.
        fs::write(index_of(folder.path()), &made_again).unwrap();
        blank_all(folder.path(), ".part");
        prop_assert_eq!(&Summary::of_run(&reader).unwrap(), &from_files);
    }
}

#[test]
fn two_thousand_trials_are_summarized_without_opening_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = create(folder.path(), "2026-11-15T05:00:00Z");
    run.append(1, plan(2_000)).unwrap();
    end(begin(&run, "t0", 1), Outcome::Passed);
    drop(run);
    let trials = folder.path().join(TRIALS);
    let first = fs::read_to_string(trials.join("t0.1.jsonl")).unwrap();
    for number in 1..2_000 {
        let mut text = first.replace("t0", &format!("t{number}"));
        if number % 4 == 0 {
            text = text.replace("passed", "failed");
        }
        fs::write(trials.join(format!("t{number}.1.jsonl")), text).unwrap();
    }
    let reader = RunReader::open(folder.path()).unwrap();
    let from_files = Summary::of_run(&reader).unwrap();
    blank_all(folder.path(), ".jsonl");
    let summary = Summary::of_run(&reader).unwrap();
    assert_eq!(summary, from_files);
    let counts = summary.counts();
    assert_eq!((counts.passed, counts.failed), (1_501, 499));
    let counts = Summary::checked(&reader).unwrap().counts();
    assert_eq!(counts.not_run, 2_000, "the files tell nothing any more");
}
