use std::time::Duration;

use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::check::NameMatcher;
use crate::matcher::Matcher;

fn call((seq, (tool, x)): (u64, (&'static str, Option<u8>))) -> Call {
    Call {
        seq,
        server: "fs".to_owned(),
        request: CallRequest::Tool {
            name: tool.to_owned(),
            // A call whose arguments are lost may be any.
            arguments: match x {
                Some(x) => Payload::Value(json!({"x": x})),
                None => Payload::Cut { bytes: 9 },
            },
        },
        answer: CallOutcome::None,
        duration: Some(Duration::from_millis(1)),
    }
}

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let one = (
        prop::sample::select(vec!["a", "b"]),
        prop::option::weighted(0.9, 0_u8..2),
    );
    prop::collection::vec(one, 0..7).prop_map(|all| (1..).zip(all).map(call).collect())
}

fn entry((tool, x, min, max): (&'static str, Option<u8>, u64, Option<u64>)) -> ToolMatcher {
    ToolMatcher {
        target: NameMatcher {
            server: "fs".to_owned(),
            name: Some(tool.to_owned()),
            pattern: None,
        },
        arguments: x.map(|x| Matcher::compile(&json!({"x": x})).unwrap()),
        result: None,
        is_error: None,
        max_duration: None,
        times: Times {
            min: Some(min),
            max: max.map(|more| min + more),
        },
    }
}

fn entries() -> impl Strategy<Value = Vec<ToolMatcher>> {
    let one = (
        prop::sample::select(vec!["a", "b"]),
        prop::option::of(0_u8..2),
        0_u64..3,
        prop::option::of(0_u64..2),
    );
    prop::collection::vec(one.prop_map(entry), 1..5)
}

proptest! {
    /// One pass finds the same calls as the whole matrix, or leaves the answer to it.
    #[test]
    fn one_pass_is_as_good_as_the_matrix(entries in entries(), calls in calls()) {
        let transcript = Transcript { calls, ..Transcript::default() };
        let observed = || tool_calls(&transcript);
        let matrix = FitMatrix::new(&entries, observed());
        for mode in [CallsMode::InOrder, CallsMode::Exact, CallsMode::Contains] {
            let whole = matrix.complete(mode, Certainty::Certain);
            match certain(mode, &entries, &observed()) {
                Some(taken) => prop_assert_eq!(Some(taken), whole),
                None if mode == CallsMode::InOrder => prop_assert_eq!(None, whole),
                None => {}
            }
        }
    }
}
