//! Regrading: with the same checks nothing changes, and what a record can't tell is never a pass.

mod generated;
mod live;

use proctor_record::event::{CaseParts, PlannedCase, StepPart};

use crate::check::{Check, NameMatcher, Times, ToolMatcher};
use crate::suite::step::{Judgement, ScriptSource, ScriptStep};
use crate::suite::template::Template;

use self::live::{LiveEnd, LiveTrial, RecordedRun};
use super::*;

fn script(id: &str) -> Step {
    Step {
        id: id.to_owned(),
        kind: "script".to_owned(),
        action: Action::Script(ScriptStep {
            source: ScriptSource::Inline("test -e x".to_owned()),
            digest: None,
            folder: std::path::PathBuf::new(),
            env: std::collections::BTreeMap::new(),
            timeout: std::time::Duration::from_secs(1),
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

fn tool(name: &str) -> ToolMatcher {
    ToolMatcher {
        target: NameMatcher {
            server: "fs".to_owned(),
            name: Some(name.to_owned()),
            pattern: None,
        },
        arguments: None,
        result: None,
        is_error: None,
        max_duration: None,
        times: Times::default(),
    }
}

/// A trial that calls `a` once, with these checks, all of whose steps pass.
fn trial(assertions: Vec<Check>, verify: Vec<Step>) -> LiveTrial {
    LiveTrial {
        calls: vec![("a".to_owned(), 1, live::Answer::Result)],
        answer: "done".to_owned(),
        assertions,
        verdicts: verify.iter().map(|_| Verdict::Pass).collect(),
        verify,
        ending: LiveEnd::Graded,
    }
}

fn parts(prompt: &str, setup: &str, verify: &[(&str, &str)]) -> CaseParts {
    let step = |(id, hash): &(&str, &str)| StepPart {
        id: (*id).to_owned(),
        hash: (*hash).to_owned(),
    };
    CaseParts {
        prompt: prompt.to_owned(),
        setup: setup.to_owned(),
        checks: "c".to_owned(),
        verify: verify.iter().map(step).collect(),
    }
}

fn planned(hash: &str, parts: Option<CaseParts>) -> PlannedCase {
    PlannedCase {
        hash: hash.to_owned(),
        parts,
        ..PlannedCase::new("a".to_owned(), "a".to_owned(), 1)
    }
}

/// A comparison in which everything is as in the run.
fn same() -> CaseComparison {
    CaseComparison::new(&planned("h", None), "h", &parts("p", "s", &[]))
}

/// A comparison of a case whose verify steps were these, and now are those.
fn steps(then: &[(&str, &str)], now: &[(&str, &str)]) -> CaseComparison {
    CaseComparison::new(
        &planned("h", Some(parts("p", "s", then))),
        "other",
        &parts("p", "s", now),
    )
}

fn outcome(regraded: &(Vec<CheckGrade>, TrialEnded, Basis)) -> (Outcome, &str) {
    (
        regraded.1.outcome,
        regraded.1.reason.as_deref().unwrap_or_default(),
    )
}

#[test]
fn other_assertions_change_the_outcome_of_a_recorded_trial() {
    let recorded = RecordedRun::of(&trial(vec![Check::ToolsUsed(vec![tool("b")])], Vec::new()));
    assert_eq!(
        recorded.trial.ended.as_ref().unwrap().outcome,
        Outcome::Failed
    );
    let check = |check: Check, expected: Outcome| {
        let regraded = recorded.regraded(&[check], &[], &same());
        assert_eq!(regraded.1.outcome, expected);
        assert_eq!(regraded.2, Basis::Regraded);
    };
    check(Check::ToolsUsed(vec![tool("a")]), Outcome::Passed);
    check(Check::MaxToolCalls(0), Outcome::Failed);
    // Without a check, there is nothing that could pass.
    assert_eq!(
        recorded.regraded(&[], &[], &same()).1.outcome,
        Outcome::Errored
    );
}

#[test]
fn a_step_that_is_new_changed_or_after_a_changed_one_is_inconclusive() {
    let verify = vec![script("v0"), script("v1")];
    let recorded = RecordedRun::of(&trial(vec![Check::MinToolCalls(1)], verify.clone()));
    assert_eq!(
        recorded.trial.ended.as_ref().unwrap().outcome,
        Outcome::Passed
    );
    let then = [("v0", "x"), ("v1", "y")];
    let check = |verify: &[Step], now: &[(&str, &str)], outcome: Outcome, origins: &[Origin]| {
        let regraded = recorded.regraded(&[], verify, &steps(&then, now));
        assert_eq!(regraded.1.outcome, outcome, "{now:?} {:?}", regraded.1);
        let found: Vec<Origin> = regraded.0.iter().map(|check| check.origin).collect();
        assert_eq!(found, origins, "{now:?}");
    };
    let kept = Origin::Recorded;
    check(&verify, &then, Outcome::Passed, &[kept, kept]);
    // Another script under the same id.
    check(
        &verify,
        &[("v0", "x"), ("v1", "z")],
        Outcome::Errored,
        &[kept, Origin::Missing],
    );
    check(
        &verify,
        &[("v0", "z"), ("v1", "y")],
        Outcome::Errored,
        &[Origin::Missing],
    );
    // A new step, and a step that may depend on it.
    let new = [script("n"), script("v1")];
    check(
        &new,
        &[("n", "x"), ("v1", "y")],
        Outcome::Errored,
        &[Origin::Missing],
    );
    // A removed step.
    check(&verify[1..], &[("v1", "y")], Outcome::Passed, &[kept]);
    // The record of an older Proctor does not tell what changed.
    let older = CaseComparison::new(&planned("h", None), "other", &parts("p", "s", &then));
    let regraded = recorded.regraded(&[Check::MinToolCalls(1)], &verify, &older);
    assert_eq!(regraded.1.outcome, Outcome::Errored);
}

#[test]
fn a_step_that_never_ran_is_inconclusive() {
    let verify = vec![script("v0"), script("v1")];
    let mut live = trial(Vec::new(), verify.clone());
    live.verdicts[0] = Verdict::fail("exit 1");
    let recorded = RecordedRun::of(&live);
    let then = [("v0", "x"), ("v1", "y")];
    // The failed step is removed: the one after it has no result.
    let regraded = recorded.regraded(&[], &verify[1..], &steps(&then, &then[1..]));
    assert_eq!(
        outcome(&regraded),
        (
            Outcome::Errored,
            "v1: the step did not run, so the record has no result of it"
        )
    );
}

#[test]
fn a_judge_that_was_not_asked_is_inconclusive_until_one_is() {
    let verify = vec![judge("j")];
    let live = trial(vec![Check::ToolsUsed(vec![tool("b")])], verify.clone());
    let recorded = RecordedRun::of(&live);
    assert_eq!(recorded.trial.folded.work.checks.len(), 1);
    let same = steps(&[("j", "x")], &[("j", "x")]);
    let now = [Check::ToolsUsed(vec![tool("a")])];
    let regraded = recorded.regraded(&now, &verify, &same);
    assert_eq!(
        outcome(&regraded),
        (
            Outcome::Errored,
            "j: no judge was asked in the run; ask one with `--judge`"
        )
    );
    for (verdict, expected) in [
        (Verdict::Pass, Outcome::Passed),
        (Verdict::fail("no"), Outcome::Failed),
        (Verdict::unknown("?"), Outcome::Errored),
    ] {
        let regraded = recorded.judged(&now, &verify, &same, &verdict);
        assert_eq!(regraded.1.outcome, expected);
        assert_eq!(regraded.0[1].origin, Origin::Judged);
    }
}

#[test]
fn another_prompt_or_setup_is_another_task() {
    let recorded = RecordedRun::of(&trial(vec![Check::MinToolCalls(1)], Vec::new()));
    for (now, reason) in [
        (parts("q", "s", &[]), "the prompt changed since the run"),
        (parts("p", "t", &[]), "the setup changed since the run"),
    ] {
        let then = planned("h", Some(parts("p", "s", &[])));
        let comparison = CaseComparison::new(&then, "other", &now);
        let regraded = recorded.regraded(&[Check::MinToolCalls(1)], &[], &comparison);
        assert_eq!(outcome(&regraded), (Outcome::Errored, reason));
        assert_eq!(regraded.2, Basis::Inconclusive(reason.to_owned()));
    }
}

#[test]
fn what_checks_did_not_decide_stays() {
    let passing = vec![Check::MinToolCalls(1)];
    for (ending, expected) in [
        (LiveEnd::TimedOut, Outcome::TimedOut),
        (LiveEnd::Cancelled, Outcome::Cancelled),
        (LiveEnd::CleanupFailed, Outcome::Errored),
        (LiveEnd::BeforeChecks, Outcome::Failed),
    ] {
        let recorded = RecordedRun::of(&LiveTrial {
            ending,
            ..trial(passing.clone(), Vec::new())
        });
        let regraded = recorded.regraded(&passing, &[], &same());
        assert_eq!(regraded.1.outcome, expected, "{ending:?}");
        assert!(matches!(regraded.2, Basis::Kept(_)), "{ending:?}");
    }
}

#[test]
fn a_judge_without_a_reply_can_be_asked_again() {
    let verify = vec![judge("j")];
    let passing = vec![Check::MinToolCalls(1)];
    let recorded = RecordedRun::of(&LiveTrial {
        ending: LiveEnd::JudgeLost,
        ..trial(passing.clone(), verify.clone())
    });
    let regraded = recorded.regraded(&passing, &verify, &same_with(&verify));
    assert_eq!(Some(&regraded.1), recorded.trial.ended.as_ref());
    let judged = recorded.judged(&passing, &verify, &same_with(&verify), &Verdict::Pass);
    assert_eq!(judged.1.outcome, Outcome::Passed);
}

/// A comparison in which these steps are as in the run.
fn same_with(verify: &[Step]) -> CaseComparison {
    let ids: Vec<(&str, &str)> = verify.iter().map(|step| (step.id.as_str(), "x")).collect();
    CaseComparison::new(&planned("h", None), "h", &parts("p", "s", &ids))
}

#[test]
fn an_incomplete_record_proves_nothing() {
    let passing = [Check::MinToolCalls(1)];
    let live = trial(passing.to_vec(), Vec::new());
    let recorded = RecordedRun::of(&live);
    let text = recorded.text();
    let lines: Vec<&str> = text.lines().collect();
    let check = |text: String, reason: &str| {
        recorded.rewrite(&text);
        let regraded = recorded.again().regraded(&passing, &[], &same());
        let (found, why) = outcome(&regraded);
        assert_eq!(found, Outcome::Errored, "{why}");
        assert!(why.contains(reason), "{why}");
    };
    check(lines[..lines.len() - 1].join("\n") + "\n", "no end");
    check(text.trim_end().to_owned(), "incomplete");
    let next = lines.len() + 1;
    let newer = format!("{{\"seq\":{next},\"at\":99,\"event\":{{\"teleported\":{{}}}}}}\n");
    check(text.clone() + &newer, "newer Proctor");
    recorded.rewrite(&text);
    assert_eq!(
        recorded.again().regraded(&passing, &[], &same()).1.outcome,
        Outcome::Passed
    );
}

#[test]
fn changes_name_the_checks_that_changed() {
    let recorded = RecordedRun::of(&trial(
        vec![Check::ToolsUsed(vec![tool("b")]), Check::MinToolCalls(1)],
        Vec::new(),
    ));
    let now = [Check::ToolsUsed(vec![tool("a")]), Check::MaxToolCalls(0)];
    let (checks, ..) = recorded.regraded(&now, &[], &same());
    let changes = CheckChange::between(&recorded.trial.folded.work.checks, &checks);
    let found: Vec<(&str, bool, bool)> = changes
        .iter()
        .map(|change| {
            let is_pass = |verdict: &Option<Verdict>| *verdict == Some(Verdict::Pass);
            (
                change.check.as_str(),
                is_pass(&change.before),
                is_pass(&change.after),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("toolsUsed", false, true),
            ("maxToolCalls", false, false),
            ("minToolCalls", true, false),
        ]
    );
    assert_eq!((&changes[1].before, &changes[2].after), (&None, &None));
}
