//! Properties of all transcripts.

use proctor_record::json;
use proptest::prelude::*;

use super::*;

/// A call of one of two tools; arguments repeat often and are sometimes lost.
fn any_calls() -> impl Strategy<Value = Vec<Call>> {
    let arguments = prop_oneof![
        4 => (0..3).prop_map(|x| Payload::Value(json!({"x": x}))),
        1 => Just(Payload::Absent),
        1 => Just(Payload::Value(json!({}))),
        1 => Just(CUT),
    ];
    let call = (prop::sample::select(vec!["a", "b"]), arguments, 0..5);
    prop::collection::vec(call, 0..6).prop_map(|made| {
        let numbered = made.into_iter().zip(1..);
        numbered
            .map(|((name, arguments, kind), seq)| match kind {
                0 => read(seq, name),
                _ => tool_call(seq, name, arguments),
            })
            .collect()
    })
}

fn any_entry() -> impl Strategy<Value = ToolMatcher> {
    let name = prop::sample::select(vec!["a", "b"]);
    prop_oneof![
        name.clone().prop_map(entry),
        (name.clone(), 0..3).prop_map(|(name, x)| with_x(name, x)),
        name.prop_map(|name| with_x(name, json!({"$oneOf": [0, 1]}))),
    ]
}

fn any_entries() -> impl Strategy<Value = Vec<ToolMatcher>> {
    prop::collection::vec(any_entry(), 1..4)
}

fn verdict(check: &Check, calls: &[Call]) -> Verdict {
    check.evaluate(&transcript(calls.to_vec())).verdict
}

fn name_of(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Fail { .. } => "fail",
        Verdict::Unknown { .. } => "unknown",
    }
}

fn passes(check: &Check, calls: &[Call]) -> bool {
    verdict(check, calls) == Verdict::Pass
}

fn fails(check: &Check, calls: &[Call]) -> bool {
    matches!(verdict(check, calls), Verdict::Fail { .. })
}

fn tools_only(calls: &[Call]) -> Vec<Call> {
    let is_tool = |call: &&Call| matches!(call.request, CallRequest::Tool { .. });
    calls.iter().filter(is_tool).cloned().collect()
}

fn fits(entry: &ToolMatcher, call: &Call, doubt_counts: bool) -> bool {
    match verdict(
        &Check::ToolsUsed(vec![entry.clone()]),
        std::slice::from_ref(call),
    ) {
        Verdict::Pass => true,
        Verdict::Unknown { .. } => doubt_counts,
        Verdict::Fail { .. } => false,
    }
}

/// Whether the entries can be given calls of their own, by trying everything.
fn assignable(
    entries: &[ToolMatcher],
    calls: &[Call],
    mode: CallsMode,
    doubt_counts: bool,
) -> bool {
    let Some((first, rest)) = entries.split_first() else {
        return mode != CallsMode::Exact || calls.is_empty();
    };
    (0..calls.len()).any(|at| {
        let left = match mode {
            CallsMode::Contains => [&calls[..at], &calls[at + 1..]].concat(),
            CallsMode::InOrder => calls[at + 1..].to_vec(),
            CallsMode::Exact if at > 0 => return false,
            CallsMode::Exact => calls[1..].to_vec(),
        };
        fits(first, &calls[at], doubt_counts) && assignable(rest, &left, mode, doubt_counts)
    })
}

fn expected_verdict(entries: &[ToolMatcher], calls: &[Call], mode: CallsMode) -> &'static str {
    if assignable(entries, calls, mode, false) {
        "pass"
    } else if assignable(entries, calls, mode, true) {
        "unknown"
    } else {
        "fail"
    }
}

fn is_subsequence(names: &[&str], calls: &[Call]) -> bool {
    let Some((first, rest)) = names.split_first() else {
        return true;
    };
    (0..calls.len()).any(|at| {
        let called = matches!(&calls[at].request, CallRequest::Tool { name, .. } if name == first);
        called && is_subsequence(rest, &calls[at + 1..])
    })
}

fn same_tool(a: &Call, b: &Call) -> Option<bool> {
    match (&a.request, &b.request) {
        (
            CallRequest::Tool {
                name: a,
                arguments: x,
            },
            CallRequest::Tool {
                name: b,
                arguments: y,
            },
        ) if a == b => {
            let empty = json!({});
            let (Ok(x), Ok(y)) = (x.read(), y.read()) else {
                return None;
            };
            Some(json::equal(x.unwrap_or(&empty), y.unwrap_or(&empty)))
        }
        _ => Some(false),
    }
}

fn naive_duplicates(calls: &[Call]) -> &'static str {
    let pairs = || {
        let later = |at: usize| calls[at + 1..].iter();
        (0..calls.len())
            .flat_map(move |at| later(at).map(move |other| same_tool(&calls[at], other)))
    };
    if pairs().any(|same| same == Some(true)) {
        "fail"
    } else if pairs().any(|same| same.is_none()) {
        "unknown"
    } else {
        "pass"
    }
}

proptest! {
    #[test]
    fn more_calls_never_break_tools_used(entries in any_entries(), mut calls in any_calls(), more in any_calls()) {
        for check in [Check::ToolsUsed(entries.clone()), Check::RequireAny(entries)] {
            let passed = passes(&check, &calls);
            calls.extend(more.clone());
            prop_assert!(!passed || passes(&check, &calls));
        }
    }

    #[test]
    fn more_calls_never_mend_tools_not_used(entries in any_entries(), mut calls in any_calls(), more in any_calls()) {
        let check = Check::ToolsNotUsed(entries);
        let failed = fails(&check, &calls);
        calls.extend(more);
        prop_assert!(!failed || fails(&check, &calls));
    }

    #[test]
    fn one_used_is_the_opposite_of_not_used(entries in any_entries(), calls in any_calls()) {
        let any = verdict(&Check::RequireAny(entries.clone()), &calls);
        let none = verdict(&Check::ToolsNotUsed(entries), &calls);
        let opposite = match name_of(&any) {
            "pass" => "fail",
            "fail" => "pass",
            other => other,
        };
        prop_assert_eq!(opposite, name_of(&none));
    }

    #[test]
    fn too_few_calls_are_not_too_many(limit in 1_u64..8, calls in any_calls()) {
        let least = passes(&Check::MinToolCalls(limit), &calls);
        prop_assert_eq!(least, !passes(&Check::MaxToolCalls(limit - 1), &calls));
        prop_assert_eq!(least, tools_only(&calls).len() as u64 >= limit);
    }

    #[test]
    fn duplicates_are_what_comparing_all_pairs_finds(calls in any_calls()) {
        let found = verdict(&Check::NoDuplicateCalls, &calls);
        prop_assert_eq!(name_of(&found), naive_duplicates(&calls));
    }

    #[test]
    fn call_order_is_a_subsequence(
        names in prop::collection::vec(prop::sample::select(vec!["a", "b"]), 1..4),
        calls in any_calls(),
    ) {
        let entries = names.iter().map(|name| OrderEntry {
            kind: OrderKind::Tool,
            server: "fs".to_owned(),
            name: (*name).to_owned(),
        });
        let passed = passes(&Check::CallOrder(entries.collect()), &calls);
        prop_assert_eq!(passed, is_subsequence(&names, &calls));
    }

    #[test]
    fn calls_are_what_trying_every_assignment_finds(list in any_entries(), calls in any_calls()) {
        for mode in [CallsMode::Contains, CallsMode::InOrder, CallsMode::Exact] {
            let expected = expected_verdict(&list, &tools_only(&calls), mode);
            let found = verdict(&Check::Calls { mode, list: list.clone() }, &calls);
            prop_assert_eq!(name_of(&found), expected);
        }
    }

    #[test]
    fn contains_does_not_see_order(
        list in any_entries(),
        (calls, shuffled) in any_calls()
            .prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle())),
    ) {
        let check = Check::Calls { mode: CallsMode::Contains, list };
        prop_assert_eq!(name_of(&verdict(&check, &calls)), name_of(&verdict(&check, &shuffled)));
    }

    #[test]
    fn a_stricter_mode_never_passes_alone(list in any_entries(), calls in any_calls()) {
        let passed = |mode| passes(&Check::Calls { mode, list: list.clone() }, &calls);
        prop_assert!(!passed(CallsMode::Exact) || passed(CallsMode::InOrder));
        prop_assert!(!passed(CallsMode::InOrder) || passed(CallsMode::Contains));
    }

    #[test]
    fn exact_times_are_so_many_entries(
        parts in prop::collection::vec((any_entry(), 0_u64..3, 0_u64..3), 1..3),
        calls in any_calls(),
    ) {
        let list = parts.iter().map(|(entry, least, more)| times(entry.clone(), *least, least + more));
        let found = verdict(&Check::Calls { mode: CallsMode::Exact, list: list.collect() }, &calls);
        let made = tools_only(&calls);
        // Every choice of counts, spelled out as single entries.
        let mut spelled: Vec<Vec<ToolMatcher>> = vec![Vec::new()];
        for (entry, least, more) in &parts {
            let counts = *least..=least + more;
            spelled = spelled.iter().flat_map(|before| {
                counts.clone().map(|count| {
                    let mut list = before.clone();
                    list.extend((0..count).map(|_| entry.clone()));
                    list
                })
            }).collect();
        }
        let any = |doubt_counts| {
            spelled.iter().any(|list| assignable(list, &made, CallsMode::Exact, doubt_counts))
        };
        let expected = if any(false) { "pass" } else if any(true) { "unknown" } else { "fail" };
        prop_assert_eq!(name_of(&found), expected);
    }

    #[test]
    fn evidence_names_calls_of_the_transcript(list in any_entries(), calls in any_calls()) {
        for check in [
            Check::ToolsUsed(list.clone()),
            Check::ToolsNotUsed(list.clone()),
            Check::Calls { mode: CallsMode::Exact, list },
            Check::NoDuplicateCalls,
        ] {
            let result = check.evaluate(&transcript(calls.clone()));
            prop_assert!(result.evidence.is_sorted());
            for seq in result.evidence {
                prop_assert!(calls.iter().any(|call| call.seq == seq));
            }
        }
    }
}
