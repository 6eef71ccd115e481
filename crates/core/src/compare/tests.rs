//! The three answers of a comparison, and how cases and agents are paired.

use proctor_record::event::CaseTally;

use super::*;

/// Passed, not passed and open trials of each agent.
type Trials<'a> = &'a [[u32; 3]];

fn run(name: &str, agents: &[&str], cases: &[(&str, &str, Trials<'_>)]) -> RunTally {
    let case = |(id, hash, trials): &(&str, &str, Trials<'_>)| CaseTally {
        id: (*id).to_owned(),
        name: (*id).to_owned(),
        hash: (*hash).to_owned(),
        trials: trials.to_vec(),
        known_failures: Vec::new(),
    };
    RunTally {
        run: name.to_owned(),
        agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
        cases: cases.iter().map(case).collect(),
        changed_trials: Vec::new(),
        curtailed: false,
        unfinished: false,
    }
}

/// A run of equal cases by one agent, with the trials of each.
fn simple(name: &str, cases: &[[u32; 3]]) -> RunTally {
    let ids: Vec<String> = (0..cases.len())
        .map(|index| format!("case-{index}"))
        .collect();
    let cases: Vec<(&str, &str, Trials<'_>)> = ids
        .iter()
        .zip(cases)
        .map(|(id, trials)| (id.as_str(), "hash", std::slice::from_ref(trials)))
        .collect();
    run(name, &["loop"], &cases)
}

fn compare(base: &[[u32; 3]], new: &[[u32; 3]]) -> Comparison {
    Comparison::of(&simple("base", base), &simple("new", new))
}

const PASS: [u32; 3] = [1, 0, 0];
const FAIL: [u32; 3] = [0, 1, 0];
const OPEN: [u32; 3] = [0, 0, 1];

fn repeated(parts: &[(usize, [u32; 3])]) -> Vec<[u32; 3]> {
    let each = parts.iter().map(|(count, trials)| vec![*trials; *count]);
    each.collect::<Vec<_>>().concat()
}

#[track_caller]
fn check(base: &[(usize, [u32; 3])], new: &[(usize, [u32; 3])], exit: u8) -> Comparison {
    let found = compare(&repeated(base), &repeated(new));
    assert_eq!(found.exit(), exit, "{:?}", found.answer);
    found
}

fn cause(comparison: &Comparison) -> &InconclusiveCause {
    match &comparison.answer {
        ComparisonAnswer::Inconclusive { cause, .. } => cause,
        ComparisonAnswer::Regression | ComparisonAnswer::NoRegressionShown => {
            panic!("{:?}", comparison.answer)
        }
    }
}

#[test]
fn single_trials_give_each_answer() {
    // 7 of 40 cases worse, none better.
    let found = check(&[(38, PASS), (2, FAIL)], &[(31, PASS), (9, FAIL)], 1);
    assert!(found.is_single());
    assert_eq!(found.worse().len(), 7);
    let difference = found.difference.unwrap();
    assert!((difference.interval.low + 0.313_549_5).abs() < 1e-6);
    check(&[(40, PASS)], &[(37, PASS), (3, FAIL)], 0);
    // Five cases can't show anything, even if all of them fail.
    let found = check(&[(5, PASS)], &[(5, PASS)], 3);
    assert_eq!(cause(&found), &InconclusiveCause::TooFewTrials);
    check(&[(5, PASS)], &[(5, FAIL)], 3);
    check(&[(6, PASS)], &[(6, FAIL)], 1);
}

#[test]
fn a_better_run_is_not_a_regression() {
    check(&[(20, FAIL)], &[(20, PASS)], 0);
    check(&[(5, [0, 6, 0])], &[(5, [6, 0, 0])], 0);
}

#[test]
fn a_base_that_rarely_passes_hides_a_drop() {
    // All five cases that passed now fail: they are too few to call it a regression, and too many to
    // call it green.
    check(&[(5, PASS), (35, FAIL)], &[(40, FAIL)], 3);
    check(&[(6, PASS), (34, FAIL)], &[(40, FAIL)], 1);
    // Without any drop, there is nothing to hide.
    check(&[(5, PASS), (35, FAIL)], &[(5, PASS), (35, FAIL)], 0);
}

#[test]
fn one_collapsed_case_of_five_is_a_regression() {
    let base = [[6, 0, 0], [6, 0, 0], [5, 1, 0], [6, 0, 0], [4, 2, 0]];
    let mut new = base;
    new[0] = [0, 6, 0];
    let found = compare(&base, &new);
    assert_eq!(found.answer, ComparisonAnswer::Regression);
    let worse = found.worse();
    assert_eq!(worse[0].id, "case-0");
    assert!(found.is_regressed(worse[0]));
}

#[test]
fn errored_trials_never_make_it_greener() {
    // Whatever the errored trials would have been, it is a regression.
    check(&[(20, PASS)], &[(10, PASS), (9, FAIL), (1, OPEN)], 1);
    // Five worse and one unknown: six worse would be a regression.
    let found = check(&[(20, PASS)], &[(14, PASS), (5, FAIL), (1, OPEN)], 3);
    assert_eq!(
        cause(&found),
        &InconclusiveCause::OpenTrials { base: 0, new: 1 }
    );
    // Six worse is a regression, unless a trial of the base was a failure in truth.
    check(&[(6, PASS), (14, PASS)], &[(6, FAIL), (14, PASS)], 1);
    let found = check(
        &[(6, PASS), (13, PASS), (3, OPEN)],
        &[(6, FAIL), (13, PASS), (3, PASS)],
        3,
    );
    assert_eq!(
        cause(&found),
        &InconclusiveCause::OpenTrials { base: 3, new: 0 }
    );
    // Errored trials that can't change the answer don't matter.
    check(&[(40, PASS)], &[(38, PASS), (1, FAIL), (1, OPEN)], 0);
    // Without any verdict, there is no answer.
    let found = check(&[(20, PASS)], &[(20, OPEN)], 3);
    assert_eq!(cause(&found), &InconclusiveCause::NoVerdicts);
}

#[test]
fn unequal_repeats_are_compared() {
    check(&[(8, [1, 0, 0])], &[(8, [0, 4, 0])], 1);
    check(&[(8, [5, 0, 0])], &[(8, [2, 0, 0])], 0);
}

#[test]
fn changed_cases_are_never_paired() {
    let base = run(
        "base",
        &["loop"],
        &[
            ("same", "1", &[[1, 0, 0]]),
            ("edited", "1", &[[1, 0, 0]]),
            ("gone", "1", &[[1, 0, 0]]),
        ],
    );
    let new = run(
        "new",
        &["loop"],
        &[
            ("same", "1", &[[0, 1, 0]]),
            ("edited", "2", &[[0, 1, 0]]),
            ("fresh", "1", &[[0, 1, 0]]),
        ],
    );
    let found = Comparison::of(&base, &new);
    let ids = |cases: &[UnpairedCase]| cases.iter().map(|c| c.id.clone()).collect::<Vec<_>>();
    assert_eq!(found.pairing.cells.len(), 1);
    assert_eq!(ids(&found.pairing.changed), ["edited"]);
    assert_eq!(ids(&found.pairing.removed), ["gone"]);
    assert_eq!(ids(&found.pairing.added), ["fresh"]);
    // A suite in which every case changed can't be compared.
    let other = run("new", &["loop"], &[("same", "2", &[[1, 0, 0]])]);
    let found = Comparison::of(&base, &other);
    assert_eq!(cause(&found), &InconclusiveCause::NothingPaired);
    assert_eq!(found.exit(), 3);
    let nothing = Comparison::of(&RunTally::default(), &RunTally::default());
    assert_eq!(nothing.exit(), 3);
}

#[test]
fn agents_are_paired_by_name_or_if_they_are_alone() {
    let one = |agent: &str, trials: [u32; 3]| run(agent, &[agent], &[("a", "1", &[trials])]);
    let found = Comparison::of(&one("codex", [6, 0, 0]), &one("claude-code", [0, 6, 0]));
    assert_eq!(found.exit(), 1);
    assert_eq!(
        found.pairing.agents,
        [("codex".to_owned(), "claude-code".to_owned())]
    );
    // With several agents, each is compared with itself, in any order.
    let base = run("base", &["a", "b"], &[("x", "1", &[[6, 0, 0], [0, 6, 0]])]);
    let new = run(
        "new",
        &["b", "c", "a"],
        &[("x", "1", &[[0, 6, 0], [0, 6, 0], [6, 0, 0]])],
    );
    let found = Comparison::of(&base, &new);
    assert_eq!(found.exit(), 0);
    assert!(found.worse().is_empty() && found.better().is_empty());
    assert_eq!(found.pairing.added_agents, ["c"]);
    let swapped = Comparison::of(&new, &base);
    assert_eq!(swapped.pairing.removed_agents, ["c"]);
    // Other agents only: nothing is compared.
    let others = run("new", &["c", "d"], &[("x", "1", &[[6, 0, 0], [6, 0, 0]])]);
    let found = Comparison::of(&base, &others);
    assert_eq!(cause(&found), &InconclusiveCause::NothingPaired);
}

#[test]
fn one_agent_of_two_that_collapses_is_found() {
    let base = run("base", &["a", "b"], &[("x", "1", &[[6, 0, 0], [6, 0, 0]])]);
    let new = run("new", &["a", "b"], &[("x", "1", &[[6, 0, 0], [0, 6, 0]])]);
    let found = Comparison::of(&base, &new);
    assert_eq!(found.exit(), 1);
    assert_eq!(found.worse()[0].agent, "b");
}

#[test]
fn a_changed_record_is_never_trusted() {
    let base = simple("base", &repeated(&[(20, PASS)]));
    let mut new = simple("new", &repeated(&[(20, PASS)]));
    assert_eq!(Comparison::of(&base, &new).exit(), 0);
    new.changed_trials.push("case-3".to_owned());
    for (base, new) in [(&base, &new), (&new, &base)] {
        let found = Comparison::of(base, new);
        assert_eq!(found.exit(), 3);
        assert!(matches!(
            cause(&found),
            InconclusiveCause::ChangedRecord { .. }
        ));
    }
}

#[test]
fn more_data_is_proposed_where_it_helps() {
    let more = |comparison: &Comparison| match comparison.answer {
        ComparisonAnswer::Inconclusive { more, .. } => more,
        ComparisonAnswer::Regression | ComparisonAnswer::NoRegressionShown => None,
    };
    let found = more(&check(&[(5, PASS)], &[(5, PASS)], 3)).unwrap();
    // 77 cases by the reference values, 78 by the exact test, and five are there.
    assert_eq!(found.cases, Some(73));
    assert!(found.runs.unwrap() > 5);
    let found = more(&check(&[(1, [3, 0, 0])], &[(1, [3, 0, 0])], 3)).unwrap();
    assert_eq!(found.cases, None);
    assert!(found.runs.unwrap() > 20);
    // A base that never passes can't drop.
    let found = more(&check(&[(2, FAIL)], &[(2, FAIL)], 3)).unwrap();
    assert_eq!(found.runs, None);
    // Errored trials must be retried first.
    assert_eq!(more(&check(&[(20, PASS)], &[(20, OPEN)], 3)), None);
}

proptest::proptest! {
    /// Whatever the trials without a verdict would have been, a definite answer stands.
    #[test]
    fn definite_answers_hold_for_the_extremes(
        cases in proptest::collection::vec(
            ((0u32..4, 0u32..3, 0u32..2), (0u32..4, 0u32..3, 0u32..2)), 1..10)
    ) {
        let side = |trials: &(u32, u32, u32)| [trials.0, trials.1, trials.2];
        let base: Vec<[u32; 3]> = cases.iter().map(|(base, _)| side(base)).collect();
        let new: Vec<[u32; 3]> = cases.iter().map(|(_, new)| side(new)).collect();
        let found = compare(&base, &new);
        let settle = |trials: &[[u32; 3]], pass: bool| -> Vec<[u32; 3]> {
            let one = |[p, n, o]: &[u32; 3]| if pass { [p + o, *n, 0] } else { [*p, n + o, 0] };
            trials.iter().map(one).collect()
        };
        let best = compare(&settle(&base, false), &settle(&new, true));
        let worst = compare(&settle(&base, true), &settle(&new, false));
        match found.exit() {
            0 => proptest::prop_assert_ne!(worst.exit(), 1),
            1 => proptest::prop_assert_eq!(best.exit(), 1),
            _ => {}
        }
    }
}

#[test]
fn a_case_that_collapsed_in_too_few_trials_is_inconclusive() {
    // Two cases: one passes on, the other passed always and now never.
    let check = |base: u32, new: u32| {
        let before = simple("base", &[[base, 0, 0], [base, 0, 0]]);
        let now = simple("new", &[[new, 0, 0], [0, new, 0]]);
        Comparison::of(&before, &now).answer
    };
    for (base, new) in [(10, 1), (5, 1), (3, 2)] {
        let answer = check(base, new);
        let is_inconclusive = matches!(answer, ComparisonAnswer::Inconclusive { .. });
        assert!(is_inconclusive, "{base} → {new}: {answer:?}");
    }
    assert_eq!(check(10, 10), ComparisonAnswer::Regression);
    // Flaky before: a single failure says nothing.
    let before = simple("base", &[[10, 0, 0], [8, 2, 0]]);
    let now = simple("new", &[[1, 0, 0], [0, 1, 0]]);
    let answer = Comparison::of(&before, &now).answer;
    assert_eq!(answer, ComparisonAnswer::NoRegressionShown);
}

#[test]
fn a_run_that_is_not_whole_shows_no_absence_of_a_regression() {
    let whole = simple("base", &[[10, 0, 0], [10, 0, 0]]);
    let part = |cases: &[[u32; 3]]| RunTally {
        unfinished: true,
        ..simple("new", cases)
    };
    let fine = Comparison::of(&whole, &part(&[[10, 0, 0], [9, 0, 1]])).answer;
    let cause = InconclusiveCause::Unfinished {
        run: "new".to_owned(),
    };
    assert_eq!(fine, ComparisonAnswer::Inconclusive { cause, more: None });
    let base = Comparison::of(&part(&[[10, 0, 0], [9, 0, 1]]), &whole).answer;
    assert!(matches!(base, ComparisonAnswer::Inconclusive { .. }));
    // What is there can still show one.
    let worse = Comparison::of(&whole, &part(&[[0, 10, 0], [0, 9, 1]])).answer;
    assert_eq!(worse, ComparisonAnswer::Regression);
}
