//! Generated trials: regrading with the record's own checks gives the recorded verdicts.
//!
//! CI grades 500 of them; with `PROCTOR_EXTENDED=1` there are 10,000.

use proctor_record::fold::FoldOptions;
use proctor_record::record::RunReader;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::*;
use crate::check::{CallsMode, OrderEntry, OrderKind};
use crate::matcher::Matcher;

fn any_tool() -> impl Strategy<Value = ToolMatcher> {
    (
        prop::sample::select(vec!["a", "b"]),
        prop::option::of(0..3),
        prop::option::weighted(0.2, any::<bool>()),
        prop::option::weighted(0.2, 0..3_u64),
    )
        .prop_map(|(name, x, is_error, max)| ToolMatcher {
            arguments: x.map(|x| Matcher::compile(&json!({"x": x})).unwrap()),
            is_error,
            times: Times { min: None, max },
            ..tool(name)
        })
}

fn any_check() -> impl Strategy<Value = Check> {
    let tools = || vec(any_tool(), 1..3);
    let mode = prop::sample::select(vec![
        CallsMode::Contains,
        CallsMode::InOrder,
        CallsMode::Exact,
    ]);
    let order = vec(prop::sample::select(vec!["a", "b"]), 1..3).prop_map(|names| {
        let entry = |name: &str| OrderEntry {
            kind: OrderKind::Tool,
            server: "fs".to_owned(),
            name: name.to_owned(),
        };
        Check::CallOrder(names.into_iter().map(entry).collect())
    });
    prop_oneof![
        3 => tools().prop_map(Check::ToolsUsed),
        1 => tools().prop_map(Check::RequireAny),
        1 => tools().prop_map(Check::ToolsNotUsed),
        3 => (0..3_u64).prop_map(Check::MinToolCalls),
        3 => (0..4_u64).prop_map(Check::MaxToolCalls),
        1 => Just(Check::NoDuplicateCalls),
        1 => order,
        1 => (mode, tools()).prop_map(|(mode, list)| Check::Calls { mode, list }),
    ]
}

fn any_trial() -> impl Strategy<Value = LiveTrial> {
    let answer = prop_oneof![
        6 => Just(live::Answer::Result),
        2 => Just(live::Answer::ToolError),
        1 => Just(live::Answer::InternalError),
        1 => Just(live::Answer::Nothing),
        1 => Just(live::Answer::Noise),
    ];
    let call = (prop::sample::select(vec!["a", "b"]), 0..3_u32, answer)
        .prop_map(|(tool, x, answer)| (tool.to_owned(), x, answer));
    let step = (any::<bool>(), any::<bool>());
    let verdict = prop_oneof![
        6 => Just(Verdict::Pass),
        2 => Just(Verdict::fail("exit 1")),
        1 => Just(Verdict::unknown("timed out")),
    ];
    let ending = prop_oneof![
        8 => Just(LiveEnd::Graded),
        1 => Just(LiveEnd::BeforeChecks),
        1 => Just(LiveEnd::TimedOut),
        1 => Just(LiveEnd::Cancelled),
        1 => Just(LiveEnd::CleanupFailed),
        1 => Just(LiveEnd::JudgeLost),
    ];
    (
        vec(call, 0..5),
        prop::sample::select(vec!["done", "", " \n"]),
        vec(any_check(), 0..4),
        vec((step, verdict), 0..4),
        ending,
    )
        .prop_map(|(calls, answer, assertions, steps, ending)| LiveTrial {
            calls,
            answer: answer.to_owned(),
            assertions,
            verdicts: steps.iter().map(|(_, verdict)| verdict.clone()).collect(),
            verify: steps
                .iter()
                .enumerate()
                .map(|(index, ((is_judge, may_fail), _))| any_step(index, *is_judge, *may_fail))
                .collect(),
            ending,
        })
}

fn any_step(index: usize, is_judge: bool, may_fail: bool) -> Step {
    let id = format!("verify_{index}");
    let mut step = if is_judge { judge(&id) } else { script(&id) };
    if let Action::Script(script) = &mut step.action {
        script.continue_on_error = may_fail;
    }
    step
}

#[test]
fn the_checks_of_the_record_give_the_recorded_verdicts() {
    let is_extended = std::env::var_os("PROCTOR_EXTENDED").is_some_and(|value| value == "1");
    let count = if is_extended { 10_000 } else { 500 };
    let mut runner = TestRunner::deterministic();
    let strategy = any_trial();
    let folder = tempfile::tempdir().unwrap();
    let run = live::create(folder.path());
    let trials: Vec<LiveTrial> = (0..count)
        .map(|_| strategy.new_tree(&mut runner).unwrap().current())
        .collect();
    for (number, trial) in trials.iter().enumerate() {
        live::write(&run, &format!("t{number:05}"), trial);
    }
    drop(run);
    let reader = RunReader::open(folder.path()).unwrap();
    let files = reader.trials().unwrap();
    assert_eq!(files.len(), count);
    let mut outcomes = std::collections::BTreeMap::new();
    for (file, trial) in files.iter().zip(&trials) {
        let recorded = RecordedTrial::read(&reader, file, FoldOptions::for_checks()).unwrap();
        let comparison = same_with(&trial.verify);
        let (checks, ended, basis) = live::regrade(
            &recorded,
            &trial.assertions,
            &trial.verify,
            &comparison,
            None,
        );
        assert_eq!(Some(&ended), recorded.ended.as_ref(), "{trial:#?}");
        let then = &recorded.folded.work.checks;
        let now: Vec<_> = checks
            .iter()
            // A judge that did not reply has no check in the record.
            .filter(|check| check.origin != Origin::Missing)
            .map(|check| check.check.clone())
            .collect();
        assert_eq!(&now, then, "{trial:#?}");
        *outcomes
            .entry(format!("{:?} {}", ended.outcome, basis_name(&basis)))
            .or_insert(0) += 1;
    }
    // Every kind of trial is among them.
    for wanted in [
        "Passed regraded",
        "Failed regraded",
        "Errored regraded",
        "Failed kept",
        "Errored kept",
        "TimedOut kept",
        "Cancelled kept",
    ] {
        assert!(outcomes.contains_key(wanted), "{wanted}: {outcomes:?}");
    }
}

fn basis_name(basis: &Basis) -> &'static str {
    match basis {
        Basis::Regraded => "regraded",
        Basis::Kept(_) => "kept",
        Basis::Inconclusive(_) => "inconclusive",
        Basis::NotRun => "not run",
    }
}
