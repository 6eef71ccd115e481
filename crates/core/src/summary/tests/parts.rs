//! Parts of a run: which trials a filter selects, and what stays true of the whole.

use std::fs;

use super::*;
use crate::pattern::Pattern;
use crate::plan::LabelSelector;

fn labelled(name: &str, runs: u32, pass: Option<(u32, u32)>, area: &str) -> PlannedCase {
    PlannedCase {
        labels: BTreeMap::from([("area".to_owned(), area.to_owned())]),
        ..case(name, runs, pass)
    }
}

/// Two cases by two agents. `flaky` fails once with `a (m)`, `bad` errors with `b`.
fn run() -> Run {
    let cases = vec![
        labelled("flaky", 5, Some((4, 5)), "x"),
        labelled("bad", 1, None, "y"),
    ];
    let run = Run::planned(&["a (m)", "b"], cases);
    for repeat in 1..=5 {
        let outcome = match repeat {
            3 => Outcome::Failed,
            _ => Outcome::Passed,
        };
        run.ends("flaky", "a (m)", repeat, 1, outcome);
        run.ends("flaky", "b", repeat, 1, Outcome::Passed);
    }
    run.ends("bad", "a (m)", 1, 1, Outcome::Passed);
    run.ends("bad", "b", 1, 1, Outcome::Errored);
    run
}

fn part(run: &Run, filter: &TrialFilter) -> Option<Summary> {
    let reader = RunReader::open(&run.path()).unwrap();
    let whole = Summary::checked(&reader).unwrap();
    whole.part(&reader, filter).unwrap()
}

#[track_caller]
fn check(filter: &TrialFilter, expected: &[(&str, &str, u32)]) {
    let part = part(&run(), filter);
    let trials = part.iter().flat_map(Summary::trials);
    let shown: Vec<(String, String, u32)> = trials
        .map(|(case, agent, trial)| (case.case.name.clone(), agent.agent.clone(), trial.repeat))
        .collect();
    let expected: Vec<(String, String, u32)> = expected
        .iter()
        .map(|(case, agent, repeat)| ((*case).to_owned(), (*agent).to_owned(), *repeat))
        .collect();
    assert_eq!(shown, expected);
    assert_eq!(part.is_none(), expected.is_empty(), "an empty part is none");
}

fn failed() -> TrialFilter {
    TrialFilter {
        failed: true,
        ..TrialFilter::default()
    }
}

fn of_case(pattern: &str) -> TrialFilter {
    TrialFilter {
        case: Some(Pattern::compile(pattern).unwrap()),
        ..TrialFilter::default()
    }
}

fn of_agent(name: &str) -> TrialFilter {
    TrialFilter {
        agents: vec![name.to_owned()],
        ..TrialFilter::default()
    }
}

fn of_label(text: &str) -> TrialFilter {
    TrialFilter {
        labels: Some(LabelSelector::parse(text).unwrap()),
        ..TrialFilter::default()
    }
}

#[test]
fn a_filter_selects_by_outcome_case_agent_and_label() {
    check(&failed(), &[("flaky", "a (m)", 3), ("bad", "b", 1)]);
    check(&of_case("^ba"), &[("bad", "a (m)", 1), ("bad", "b", 1)]);
    check(&of_case("nothing"), &[]);
    check(&of_label("area=y"), &[("bad", "a (m)", 1), ("bad", "b", 1)]);
    check(&of_label("area=z"), &[]);
    check(&of_agent("c"), &[]);
    check(&of_agent("a (m"), &[]);
    for name in ["a", "a (m)"] {
        let both = TrialFilter {
            failed: true,
            ..of_agent(name)
        };
        check(&both, &[("flaky", "a (m)", 3)]);
    }
    let passed = TrialFilter {
        failed: true,
        ..of_case("^bad$")
    };
    let of_a = TrialFilter {
        agents: vec!["a".to_owned()],
        ..passed
    };
    check(&of_a, &[]);
}

#[test]
fn trials_that_are_left_out_still_count_for_the_pass_rule() {
    let part = part(&run(), &failed()).unwrap();
    let cells: Vec<(&str, &str, CaseVerdict)> = part
        .cells()
        .map(|(case, agent)| {
            (
                case.case.name.as_str(),
                agent.agent.as_str(),
                agent.verdict(&case.case),
            )
        })
        .collect();
    let expected = [
        ("flaky", "a (m)", CaseVerdict::Met),
        ("bad", "b", CaseVerdict::Open),
    ];
    assert_eq!(cells, expected);
    assert_eq!(
        part.cases[0].agents.len(),
        2,
        "agents stay in the order of the plan"
    );
    let counts = part.counts();
    assert_eq!((counts.total(), counts.failed, counts.errored), (2, 1, 1));
}

#[test]
fn totals_of_a_part_are_those_of_its_trials() {
    let cases = vec![case("one", 1, None), case("two", 1, None)];
    let run = Run::planned(&["a"], cases);
    for (name, tokens) in [("one", 10), ("two", 7)] {
        let mut trial = run.trial(name, "a", 1, 1);
        let reply = EventKind::ModelReplied(ModelReplied {
            ask: 1,
            turn: Body::Text("{}".to_owned()),
            raw: None,
            stop: StopReason::Done,
            usage: Usage {
                input: Some(tokens),
                output: Some(1),
                ..Usage::default()
            },
            cost_usd: Some(0.5),
        });
        trial.append(30, reply).unwrap();
        end(trial, Outcome::Passed);
    }
    let part = part(&run, &of_case("two")).unwrap();
    assert_eq!((part.agent.turns, part.agent.usage.input), (1, Some(7)));
    assert_eq!(part.agent.cost_usd, Some(0.5));
}

#[test]
fn an_index_that_lies_does_not_change_an_outcome_of_a_part() {
    // The writer holds the lock, so the index can't be replaced by a true one.
    let run = run();
    let index = run.path().join(proctor_record::record::INDEX);
    let lie = fs::read_to_string(&index)
        .unwrap()
        .replace("\"failed\"", "\"passed\"");
    fs::write(&index, &lie).unwrap();
    let part = part(&run, &of_case("flaky")).unwrap();
    assert_eq!(fs::read_to_string(&index).unwrap(), lie);
    assert_eq!(part.counts().failed, 1);
}
