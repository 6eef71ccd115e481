//! Records of trials, written as a live trial writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use proctor_record::decision::server_failure;
use proctor_record::event::{
    Actor, Body, ConnectionId, ConnectionOpened, Direction, EventKind, Phase, RECORD_VERSION,
    RunStarted, StepEnded, TrialStarted, WireKind,
};
use proctor_record::fold::{FoldOptions, fold};
use proctor_record::record::{RunReader, RunWriter, TrialWriter};
use proctor_record::redact::Redactor;
use tempfile::TempDir;

use super::*;

/// What a live trial does.
#[derive(Debug, Clone)]
pub(super) struct LiveTrial {
    /// Tool, argument and answer of each call.
    pub(super) calls: Vec<(String, u32, Answer)>,
    pub(super) answer: String,
    pub(super) assertions: Vec<Check>,
    pub(super) verify: Vec<Step>,
    /// The verdict of each verify step, if it is reached.
    pub(super) verdicts: Vec<Verdict>,
    pub(super) ending: LiveEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Result,
    ToolError,
    InternalError,
    Nothing,
    /// A message that is not JSON, then a result.
    Noise,
}

/// What decides the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiveEnd {
    Graded,
    /// The agent gave up before anything was graded.
    BeforeChecks,
    /// After the assertions.
    TimedOut,
    Cancelled,
    /// Errored, if the checks passed.
    CleanupFailed,
    /// The judge did not reply, if one was asked.
    JudgeLost,
}

/// A recorded trial in its own run.
pub(super) struct RecordedRun {
    folder: TempDir,
    pub(super) trial: RecordedTrial,
}

impl RecordedRun {
    pub(super) fn of(live: &LiveTrial) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let run = create(folder.path());
        write(&run, "trial", live);
        drop(run);
        Self {
            trial: read(folder.path()),
            folder,
        }
    }

    /// The trial as its file is now.
    pub(super) fn again(&self) -> Reread {
        Reread(read(self.folder.path()))
    }

    pub(super) fn text(&self) -> String {
        fs::read_to_string(self.folder.path().join("trials/trial.1.jsonl")).unwrap()
    }

    pub(super) fn rewrite(&self, text: &str) {
        fs::write(self.folder.path().join("trials/trial.1.jsonl"), text).unwrap();
    }

    pub(super) fn regraded(
        &self,
        assertions: &[Check],
        verify: &[Step],
        comparison: &CaseComparison,
    ) -> (Vec<CheckGrade>, TrialEnded, Basis) {
        regrade(&self.trial, assertions, verify, comparison, None)
    }

    pub(super) fn judged(
        &self,
        assertions: &[Check],
        verify: &[Step],
        comparison: &CaseComparison,
        verdict: &Verdict,
    ) -> (Vec<CheckGrade>, TrialEnded, Basis) {
        regrade(&self.trial, assertions, verify, comparison, Some(verdict))
    }
}

/// A trial that was read again.
pub(super) struct Reread(RecordedTrial);

impl Reread {
    pub(super) fn regraded(
        &self,
        assertions: &[Check],
        verify: &[Step],
        comparison: &CaseComparison,
    ) -> (Vec<CheckGrade>, TrialEnded, Basis) {
        regrade(&self.0, assertions, verify, comparison, None)
    }
}

/// Regrades a trial; with a verdict, a judge gives it whenever one is asked.
pub(super) fn regrade(
    recorded: &RecordedTrial,
    assertions: &[Check],
    verify: &[Step],
    comparison: &CaseComparison,
    judge: Option<&Verdict>,
) -> (Vec<CheckGrade>, TrialEnded, Basis) {
    let assertions: Vec<Arc<Check>> = assertions.iter().cloned().map(Arc::new).collect();
    let checks = CaseChecks {
        assertions: &assertions,
        verify,
        is_shipped: false,
    };
    let mut regrading = Regrading::new(recorded, checks, comparison, judge.is_some());
    while let NextRegrade::Judge(step) = regrading.next_judge() {
        regrading.judged(step, judged(judge.unwrap().clone()));
    }
    regrading.finish()
}

fn judged(verdict: Verdict) -> JudgeGrade {
    JudgeGrade {
        verdict,
        evidence: vec![4],
        notes: vec!["a note".to_owned()],
    }
}

pub(super) fn create(folder: &Path) -> RunWriter {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-16T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(folder, Redactor::default(), started).unwrap()
}

fn read(folder: &Path) -> RecordedTrial {
    let run = RunReader::open(folder).unwrap();
    let file = run.trials().unwrap().remove(0);
    RecordedTrial::read(&run, &file, FoldOptions::for_checks()).unwrap()
}

/// Writes a trial in the order of a live one.
pub(super) fn write(run: &RunWriter, name: &str, live: &LiveTrial) {
    let started = TrialStarted {
        case: name.to_owned(),
        agent: Some("loop".to_owned()),
        repeat: 1,
        attempt: 1,
    };
    let mut trial = run.trial(1, name, started).unwrap();
    connect(&mut trial, 1, Actor::Loop);
    let phase = |phase| EventKind::PhaseStarted { phase };
    trial.append(3, phase(Phase::Drive)).unwrap();
    for (id, (tool, argument, answer)) in live.calls.iter().enumerate() {
        call(&mut trial, 1, id, tool, *argument, *answer);
    }
    let text = Body::Text(live.answer.clone());
    trial.append(5, EventKind::AgentAnswered { text }).unwrap();
    let written = trial.written();
    let blobs = written.blobs();
    let folded = fold(written.open().unwrap(), &blobs, &FoldOptions::for_checks()).unwrap();
    if let Some(failure) = server_failure(&folded.conduct) {
        let ended = TrialEnded {
            outcome: failure.outcome,
            reason: Some(failure.reason),
            blame: failure.blame,
        };
        trial.end(9, ended).unwrap();
        return;
    }
    let ended = |outcome, blame, reason: &str| TrialEnded {
        outcome,
        reason: Some(reason.to_owned()),
        blame,
    };
    if live.ending == LiveEnd::BeforeChecks {
        let gave_up = ended(Outcome::Failed, Some(Blame::Agent), "gave up");
        trial.end(9, gave_up).unwrap();
        return;
    }
    trial.append(6, phase(Phase::Grade)).unwrap();
    let mut end = grade(&mut trial, live, &folded);
    // What cleanup steps send must not count as calls of the agent.
    connect(&mut trial, 2, Actor::Step);
    call(&mut trial, 2, 0, "cleanup", 0, Answer::Result);
    match live.ending {
        LiveEnd::TimedOut => end = ended(Outcome::TimedOut, None, "timed out"),
        LiveEnd::Cancelled => end = ended(Outcome::Cancelled, None, "interrupted"),
        LiveEnd::CleanupFailed if end.outcome == Outcome::Passed => {
            end = ended(Outcome::Errored, Some(Blame::Suite), "cleanup step failed");
        }
        LiveEnd::Graded | LiveEnd::BeforeChecks | LiveEnd::CleanupFailed | LiveEnd::JudgeLost => {}
    }
    trial.end(9, end).unwrap();
}

fn grade(
    trial: &mut TrialWriter,
    live: &LiveTrial,
    folded: &proctor_record::fold::FoldedTrial,
) -> TrialEnded {
    let assertions: Vec<Arc<Check>> = live.assertions.iter().cloned().map(Arc::new).collect();
    let checks = CaseChecks {
        assertions: &assertions,
        verify: &live.verify,
        is_shipped: false,
    };
    let verdict = |step: &Step| {
        let place = live.verify.iter().position(|known| known.id == step.id);
        live.verdicts[place.unwrap()].clone()
    };
    let mut grading = Grading::new(checks, folded, &live.answer);
    loop {
        let graded = match grading.next_check() {
            NextCheck::Shipped => panic!("not a shipped eval"),
            NextCheck::Assertion => grading.evaluate().unwrap(),
            NextCheck::Step(_) if live.ending == LiveEnd::TimedOut => {
                return grading_stopped();
            }
            NextCheck::Step(step) => {
                connect(trial, 3, Actor::Step);
                call(trial, 3, 7, "verify", 0, Answer::ToolError);
                step_ended(trial, step, verdict(step));
                let grade = StepGrade {
                    verdict: verdict(step),
                    blame: (verdict(step) != Verdict::Pass).then_some(Blame::Agent),
                    goes_on: may_fail(step),
                    evidence: Vec::new(),
                    notes: Vec::new(),
                };
                grading.step(step, grade)
            }
            NextCheck::Judge(_) if live.ending == LiveEnd::JudgeLost => {
                return TrialEnded {
                    outcome: Outcome::Errored,
                    reason: Some("the judge: 503 (5 attempts)".to_owned()),
                    blame: Some(Blame::Judge),
                };
            }
            NextCheck::Judge(step) => {
                step_ended(trial, step, verdict(step));
                grading.judged(step, judged(verdict(step)))
            }
            NextCheck::End(ended) => return ended,
        };
        trial.append(7, EventKind::Graded(graded)).unwrap();
    }
}

/// The caller replaces it.
fn grading_stopped() -> TrialEnded {
    inconclusive("stopped")
}

fn step_ended(trial: &mut TrialWriter, step: &Step, verdict: Verdict) {
    let ended = EventKind::StepEnded(StepEnded {
        phase: Phase::Grade,
        id: step.id.clone(),
        kind: step.kind.clone(),
        verdict,
        output: None,
        outputs: BTreeMap::new(),
        duration: 1,
    });
    trial.append(7, ended).unwrap();
}

fn connect(trial: &mut TrialWriter, conn: u32, actor: Actor) {
    let opened = EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(conn),
        server: "fs".to_owned(),
        actor,
        transport: WireKind::Stdio,
        target: String::new(),
    });
    trial.append(2, opened).unwrap();
}

fn call(trial: &mut TrialWriter, conn: u32, id: usize, tool: &str, argument: u32, answer: Answer) {
    let mut frame = |direction, text: &str| {
        let conn = ConnectionId(conn);
        let written = trial.append_frame(4, conn, None, direction, text.as_bytes());
        written.unwrap();
    };
    frame(
        Direction::ToServer,
        &format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"x":{argument}}}}}}}"#
        ),
    );
    let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
    match answer {
        Answer::Result => frame(Direction::ToClient, &result),
        Answer::ToolError => frame(
            Direction::ToClient,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"isError":true}}}}"#),
        ),
        Answer::InternalError => frame(
            Direction::ToClient,
            &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":"no"}}}}"#),
        ),
        Answer::Nothing => {}
        Answer::Noise => {
            frame(Direction::ToClient, "{oops");
            frame(Direction::ToClient, &result);
        }
    }
}
