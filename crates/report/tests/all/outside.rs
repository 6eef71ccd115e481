//! A run whose every text comes from outside: names, reasons, versions, outputs. The caller chooses them.

use proctor_record::event::{
    Actor, Blame, CheckEvaluated, ConnectionId, ConnectionOpened, EventKind, Finding, FindingKind,
    NotRunOutcome, Outcome, PlannedAgent, PlannedCase, PlannedEval, RECORD_VERSION, RunEnded,
    RunPlanned, RunStarted, ServerSeen, SkippedEval, SourceContext, TrialEnded, TrialStarted,
    WireKind,
};
use proctor_record::record::{RecordError, RunWriter};
use proctor_record::redact::Redactor;
use proctor_record::verdict::Verdict;

use crate::sample::Sample;

/// The number of the reason of trials that did not pass.
pub(crate) const REASON: usize = 11;

/// How the trials of each case and agent end, two each.
const ENDS: [[Option<Outcome>; 2]; 6] = [
    [Some(Outcome::Passed), Some(Outcome::Passed)],
    [Some(Outcome::Failed), Some(Outcome::Failed)],
    [Some(Outcome::Passed), Some(Outcome::TimedOut)],
    [Some(Outcome::Errored), Some(Outcome::Passed)],
    [Some(Outcome::Cancelled), None],
    [Some(Outcome::Failed), Some(Outcome::Passed)],
];

/// Writes a run with these texts, each under its number. The structure of a report about it does not depend
/// on them.
pub(crate) fn run(text: &dyn Fn(usize) -> String) -> Sample {
    Sample::written(|folder| {
        let mut run = RunWriter::create(folder, Redactor::default(), started(text))?;
        run.append(1, EventKind::RunPlanned(planned(text).into()))?;
        run.append(2, EventKind::ServerSeen(seen(text)))?;
        for agent in 0..2 {
            for (case, ends) in ENDS.iter().enumerate() {
                for (repeat, end) in (1..).zip(ends) {
                    trial(&run, text, agent, case, repeat, *end)?;
                }
            }
        }
        let reason = Some(text(3));
        let ended = RunEnded {
            exit: 3,
            reason,
            changed_trials: [text(44)].into(),
            ..RunEnded::default()
        };
        run.end(9_000_000, ended)
    })
}

fn trial(
    run: &RunWriter,
    text: &dyn Fn(usize) -> String,
    agent: usize,
    case: usize,
    repeat: u32,
    end: Option<Outcome>,
) -> Result<(), RecordError> {
    let Some(outcome) = end else {
        return Ok(());
    };
    let started = TrialStarted {
        case: format!("case {case}"),
        agent: Some(format!("{} {agent}", text(agent))),
        repeat,
        attempt: 1,
    };
    let mut trial = run.trial(1_000_000, &format!("{case}.{agent}.{repeat}"), started)?;
    let conn = ConnectionId(1);
    trial.append(
        1_000_000,
        EventKind::ConnectionOpened(ConnectionOpened {
            conn,
            server: text(4),
            actor: Actor::Loop,
            transport: WireKind::Stdio,
            target: text(5),
        }),
    )?;
    trial.append(
        1_000_000,
        EventKind::Finding(Finding {
            conn,
            kind: FindingKind::Noise,
            detail: text(6),
            count: 1,
        }),
    )?;
    let is_passed = outcome == Outcome::Passed;
    let verdict = if is_passed {
        Verdict::Pass
    } else {
        Verdict::fail(text(9))
    };
    trial.append(
        1_100_000,
        EventKind::Graded(CheckEvaluated {
            check: text(7),
            id: None,
            details: vec![text(8)],
            verdict,
            evidence: Vec::new(),
            notes: vec![text(10)],
        }),
    )?;
    let end = TrialEnded {
        outcome,
        reason: (!is_passed).then(|| text(REASON)),
        blame: (!is_passed).then_some(Blame::Agent),
    };
    trial.end(1_200_000, end).map(drop)
}

fn started(text: &dyn Fn(usize) -> String) -> RunStarted {
    RunStarted {
        record: RECORD_VERSION,
        proctor: text(12),
        started: text(13),
        name: text(14),
        command: vec![text(15)],
        context: Some(SourceContext {
            commit: Some("c0ffee".to_owned()),
            branch: Some(text(17)),
            dirty: Some(true),
            pull_request: Some(text(18)),
            job_url: Some(text(19)),
        }),
    }
}

fn planned(text: &dyn Fn(usize) -> String) -> RunPlanned {
    let case = |number: usize| PlannedCase {
        path: text(30),
        hash: "c0ffee".to_owned(),
        pass: (number == 5).then_some((1, 2)),
        difficulty: Some(text(31)),
        labels: [(text(32), text(33))].into(),
        parallel: true,
        verify_steps: Some(0),
        eval: (number == 0).then(|| PlannedEval {
            server: text(34),
            id: text(35),
            level: "scenario".to_owned(),
            judged: true,
        }),
        ..PlannedCase::new(format!("case {number}"), text(20 + number), 2)
    };
    let agent = |number: usize| PlannedAgent {
        name: format!("{} {number}", text(number)),
        model: Some(format!("{}:model", text(36))),
    };
    RunPlanned {
        judge: Some(text(38)),
        not_run: vec![SkippedEval {
            eval_id: Some(text(39)),
            server: text(40),
            outcome: NotRunOutcome::Invalid,
            reason: text(41),
        }],
        ..RunPlanned::new(
            text(37),
            (0..ENDS.len()).map(case).collect(),
            (0..2).map(agent).collect(),
        )
    }
}

fn seen(text: &dyn Fn(usize) -> String) -> ServerSeen {
    ServerSeen {
        server: text(4),
        name: Some(text(42)),
        version: Some(text(43)),
        protocol: "2025-11-25".to_owned(),
        tools: 1,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: None,
        started_in: None,
    }
}
