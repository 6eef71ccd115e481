//! The order of checks, and the outcome that their verdicts lead to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use proctor_record::fold::{Fold, FoldOptions};

use super::*;
use crate::suite::step::{Judgement, ScriptSource, ScriptStep};
use crate::suite::template::Template;

fn script(id: &str) -> Step {
    Step {
        id: id.to_owned(),
        kind: "script".to_owned(),
        action: Action::Script(ScriptStep {
            source: ScriptSource::Inline("test -e x".to_owned()),
            digest: None,
            folder: PathBuf::new(),
            env: BTreeMap::new(),
            timeout: Duration::from_secs(1),
            continue_on_error: false,
        }),
    }
}

fn judge(id: &str) -> Step {
    Step {
        id: id.to_owned(),
        kind: "llmJudge".to_owned(),
        action: Action::Judge(Judgement::Contains(Template::literal("a fact"))),
    }
}

fn folded() -> FoldedTrial {
    Fold::new(FoldOptions::for_checks()).finish()
}

/// Grades with these verdicts of steps and judges, by id. Returns the checks in order, and the end.
fn grade(
    assertions: &[Check],
    verify: &[Step],
    answer: &str,
    verdicts: &[(&str, Verdict, bool)],
) -> (Vec<String>, TrialEnded) {
    let assertions: Vec<Arc<Check>> = assertions.iter().cloned().map(Arc::new).collect();
    let folded = folded();
    let checks = CaseChecks {
        assertions: &assertions,
        verify,
        is_shipped: false,
    };
    let verdict = |id: &str| {
        let found = verdicts.iter().find(|(known, ..)| *known == id);
        let (_, verdict, goes_on) = found.unwrap_or_else(|| panic!("`{id}` was not expected"));
        (verdict.clone(), *goes_on)
    };
    let mut grading = Grading::new(checks, &folded, answer);
    let mut order = Vec::new();
    loop {
        let graded = match grading.next_check() {
            NextCheck::Shipped => panic!("not a shipped eval"),
            NextCheck::Assertion => grading.evaluate().unwrap(),
            NextCheck::Step(step) => {
                let (verdict, goes_on) = verdict(&step.id);
                let blame = Some(Blame::Suite);
                grading.step(
                    step,
                    StepGrade {
                        verdict,
                        blame,
                        goes_on,
                        evidence: Vec::new(),
                        notes: Vec::new(),
                    },
                )
            }
            NextCheck::Judge(step) => grading.judged(
                step,
                JudgeGrade {
                    verdict: verdict(&step.id).0,
                    evidence: Vec::new(),
                    notes: Vec::new(),
                },
            ),
            NextCheck::End(ended) => return (order, ended),
        };
        order.push(graded.check);
    }
}

fn fail() -> Verdict {
    Verdict::fail("no")
}

#[test]
fn judges_come_last_and_only_if_no_check_failed() {
    let verify = [judge("j1"), script("s1"), judge("j2"), script("s2")];
    let none = Check::MaxToolCalls(1);
    let passing = |id| (id, Verdict::Pass, false);
    let all = ["s1", "s2", "j1", "j2"].map(passing);
    let (order, ended) = grade(std::slice::from_ref(&none), &verify, "done", &all);
    assert_eq!(order, ["maxToolCalls", "s1", "s2", "j1", "j2"]);
    assert_eq!(ended.outcome, Outcome::Passed);

    // A failed step ends the steps, and no judge is asked.
    let (order, ended) = grade(
        std::slice::from_ref(&none),
        &verify,
        "done",
        &[("s1", fail(), false)],
    );
    assert_eq!(order, ["maxToolCalls", "s1"]);
    assert_eq!(ended.outcome, Outcome::Failed);
    assert_eq!(ended.blame, Some(Blame::Suite));

    // A step that may fail does not end them.
    let failed = [("s1", fail(), true), passing("s2")];
    let (order, ended) = grade(std::slice::from_ref(&none), &verify, "done", &failed);
    assert_eq!(order, ["maxToolCalls", "s1", "s2"]);
    assert_eq!(ended.outcome, Outcome::Failed);

    // A failed judge ends the judges.
    let failed = [passing("s1"), passing("s2"), ("j1", fail(), false)];
    let (order, ended) = grade(&[none], &verify, "done", &failed);
    assert_eq!(order, ["maxToolCalls", "s1", "s2", "j1"]);
    assert_eq!(ended.outcome, Outcome::Failed);

    // A failed assertion does not end the steps.
    let passing = [passing("s1"), passing("s2")];
    let (order, ended) = grade(&[Check::MinToolCalls(1)], &verify, "done", &passing);
    assert_eq!(order, ["minToolCalls", "s1", "s2"]);
    assert_eq!(ended.outcome, Outcome::Failed);
}

#[test]
fn an_unknown_verdict_is_no_pass() {
    let unknown = Verdict::unknown("who knows");
    let judged = |verdict| [("s", Verdict::Pass, false), ("j", verdict, false)];
    let verify = [script("s"), judge("j")];
    let (_, ended) = grade(&[], &verify, "done", &judged(unknown.clone()));
    assert_eq!(
        (ended.outcome, ended.blame),
        (Outcome::Errored, Some(Blame::Judge))
    );
    let (order, ended) = grade(&[], &verify[..1], "done", &[("s", unknown, false)]);
    assert_eq!(
        (order.len(), ended.outcome, ended.reason.as_deref()),
        (1, Outcome::Errored, Some("s: who knows"))
    );
}

#[test]
fn a_case_without_checks_and_a_silent_agent_do_not_pass() {
    let (_, ended) = grade(&[], &[], "done", &[]);
    assert_eq!(ended.outcome, Outcome::Errored);
    for answer in ["", " \n\u{200b}"] {
        let (order, ended) = grade(&[Check::MaxToolCalls(1)], &[script("s")], answer, &[]);
        assert_eq!(order, ["maxToolCalls"]);
        assert_eq!(
            (ended.outcome, ended.reason.as_deref()),
            (Outcome::Failed, Some(SILENT))
        );
    }
}

#[test]
fn a_check_without_an_answer_stays_the_next_one() {
    let verify = [script("s")];
    let folded = folded();
    let checks = CaseChecks {
        assertions: &[],
        verify: &verify,
        is_shipped: false,
    };
    let mut grading = Grading::new(checks, &folded, "done");
    for _ in 0..3 {
        assert!(matches!(grading.next_check(), NextCheck::Step(_)));
        assert_eq!(grading.evaluate(), None);
    }
    let checks = CaseChecks {
        is_shipped: true,
        ..checks
    };
    let mut grading = Grading::new(checks, &folded, "");
    assert!(matches!(grading.next_check(), NextCheck::Shipped));
    assert!(matches!(grading.next_check(), NextCheck::Shipped));
}
