//! Which trials have the same cause.

use proctor_record::event::{PlannedCase, TrialEnded};

use crate::pass_rule::TrialCounts;
use crate::summary::UnmetCheck;

use super::*;

#[test]
fn a_pattern_has_no_numbers_quoted_values_and_ids() {
    let check = |text: &str, expected: &str| assert_eq!(pattern(text), expected, "{text}");
    check("no call fits", "no call fits");
    check(
        "call #15: expected 3, found 2",
        "call #…: expected …, found …",
    );
    check("at least 1,234.5 of 10", "at least …,… of …");
    check(
        r#"namespace "dev" instead of "prod""#,
        r#"namespace "…" instead of "…""#,
    );
    check(r#"{"id":3,"a":"x\"y"} ends"#, r#"{"…":…,"…":"…"} ends"#);
    check(r#"an open " quote 7"#, r#"an open " quote …"#);
    check("No module named 'foo'", "No module named '…'");
    check(
        "the model's turn doesn't end",
        "the model's turn doesn't end",
    );
    check(
        "`library` `borrow_book`: never",
        "`library` `borrow_book`: never",
    );
    check("pod web-7f9c6d-x2k9p failed", "pod web-…-… failed");
    check("id 550e8400-e29b-41d4-a716-446655440000.", "id ….");
}

#[test]
fn names_stay_and_durations_have_one_pattern() {
    let same = |a: &str, b: &str| assert_eq!(pattern(a), pattern(b));
    same("no answer within 980ms", "no answer within 1.2s");
    same(
        "at `http://127.0.0.1:4312/mcp`",
        "at `http://127.0.0.1:99/mcp`",
    );
    same("file /tmp/a1b2c3d4/x", "file /tmp/99ffee00/x");
    let differ = |a: &str, b: &str| assert_ne!(pattern(a), pattern(b));
    differ(
        "`create_pod` was never called",
        "`delete_pod` was never called",
    );
    differ("exited with code 1", "was killed by signal 1");
    differ("expected true, found false", "expected false, found true");
}

fn case(name: &str) -> PlannedCase {
    PlannedCase::new(format!("tasks/{name}.yaml#{name}"), name.to_owned(), 1)
}

/// A trial with an outcome, a blame, a check and a reason.
type Failure = (Outcome, Option<Blame>, Option<&'static str>, &'static str);

fn trial((outcome, blame, check, reason): Failure) -> TrialSummary {
    let decisive = check.map(|check| {
        Box::new(UnmetCheck {
            check: check.to_owned(),
            verdict: Verdict::fail(reason),
        })
    });
    let reason = match check {
        Some(check) => format!("{check}: {reason} (and 1 more)"),
        None => reason.to_owned(),
    };
    let ended = TrialEnded {
        outcome,
        reason: Some(reason),
        blame,
    };
    TrialSummary {
        repeat: 1,
        attempts: 1,
        result: Some(TrialResult::of_check(&ended, decisive)),
    }
}

fn cells(trials: &[Failure]) -> Vec<CaseSummary> {
    let cell = |(index, failure): (usize, &Failure)| CaseSummary {
        case: case(&format!("case-{index}")),
        agents: vec![AgentTrials {
            agent: "loop".to_owned(),
            trials: vec![trial(*failure)],
            left_out: TrialCounts::default(),
            known_failure: None,
        }],
    };
    trials.iter().enumerate().map(cell).collect()
}

fn grouped(trials: &[Failure]) -> Vec<(usize, String)> {
    let cases = cells(trials);
    let rows = cases.iter().map(|case| {
        let agent = &case.agents[0];
        (case, agent, &agent.trials[0])
    });
    let groups = group(rows);
    let shown = groups.iter().map(|cause| {
        assert_eq!(cause.cases(), cause.trials.len());
        (cause.trials.len(), cause.text())
    });
    shown.collect()
}

const FAILED: Outcome = Outcome::Failed;
const AGENT: Option<Blame> = Some(Blame::Agent);

#[test]
fn trials_with_the_same_cause_are_one_group_and_the_largest_comes_first() {
    let used = Some("toolsUsed");
    let groups = grouped(&[
        (
            Outcome::Errored,
            Some(Blame::Infra),
            None,
            "429 from the model after 5 attempts",
        ),
        (
            FAILED,
            AGENT,
            used,
            "nearest is call #15: expected 3, found 2",
        ),
        (
            FAILED,
            AGENT,
            used,
            "nearest is call #9: expected 3, found 1",
        ),
        (FAILED, AGENT, Some("callOrder"), "1 of 2 was never called"),
    ]);
    let expected = [
        // What is the same in all of them stays.
        (2, "toolsUsed: nearest is call #…: expected 3, found …"),
        (1, "callOrder: 1 of 2 was never called"),
        (1, "429 from the model after 5 attempts"),
    ];
    let expected: Vec<(usize, String)> = expected.map(|(n, t)| (n, t.to_owned())).into();
    assert_eq!(groups, expected);
}

#[test]
fn another_outcome_blame_or_check_is_another_cause() {
    let reason = "no";
    let groups = grouped(&[
        (FAILED, AGENT, Some("toolsUsed"), reason),
        (FAILED, None, Some("toolsUsed"), reason),
        (FAILED, AGENT, Some("callOrder"), reason),
        (FAILED, AGENT, None, reason),
        (Outcome::TimedOut, AGENT, None, reason),
        (Outcome::Errored, AGENT, None, reason),
    ]);
    assert_eq!(groups.len(), 6, "{groups:?}");
}

#[test]
fn trials_that_passed_or_were_cancelled_have_no_cause() {
    assert_eq!(
        grouped(&[
            (Outcome::Passed, None, None, "x"),
            (Outcome::Cancelled, None, None, "x")
        ]),
        []
    );
}

#[test]
fn a_trial_that_ended_for_another_reason_than_its_checks_says_that_reason() {
    let mut cases = cells(&[(FAILED, AGENT, Some("toolsUsed"), "no call fits")]);
    let trial = &mut cases[0].agents[0].trials[0];
    let died = "the server `fs` failed while the agent worked: it exited with code 134";
    if let Some(result) = &mut trial.result {
        result.end_mut().reason = Some(died.to_owned());
    }
    let agent = &cases[0].agents[0];
    let groups = group([(&cases[0], agent, &agent.trials[0])]);
    assert_eq!((groups[0].check, groups[0].text().as_str()), (None, died));
}

#[test]
fn a_reason_of_several_lines_is_shown_with_its_last_ones() {
    let check = |output: &str, expected: &str| {
        let reason = format!("it exited with code 1; the end of its output:\n{output}");
        assert_eq!(
            one_line(&reason),
            format!("it exited with code 1; the end of its output{expected}")
        );
    };
    check("expected `hello`\n", ": expected `hello`");
    check("no such file /a\n\nexit 9\n", ": no such file /a / exit 9");
    check(
        "checking\nno such file /a\nexit 9",
        ": no such file /a / exit 9",
    );
    check("", ":");
}
