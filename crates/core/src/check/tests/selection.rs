use proctor_record::transcript::{ChosenTool, ToolSelection};
use serde_json::{Value, json};

use super::*;
use crate::check::{ExpectedTools, SelectionCheck, SelectionMode};
use crate::matcher::Matcher;

fn chosen(calls: &[(Option<&str>, &str, Value)]) -> Transcript {
    let calls = calls.iter().map(|(server, tool, arguments)| ChosenTool {
        server: server.map(str::to_owned),
        tool: (*tool).to_owned(),
        arguments: match arguments {
            Value::String(reason) => Payload::Unreadable {
                reason: reason.clone(),
            },
            Value::Number(_) => Payload::Cut { bytes: 9 },
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
                Payload::Value(arguments.clone())
            }
        },
    });
    Transcript {
        selection: Some(ToolSelection {
            calls: calls.collect(),
            withheld: Vec::new(),
        }),
        ..transcript(Vec::new())
    }
}

fn row(expect: &[&str]) -> SelectionCheck {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    SelectionCheck {
        server: Some("git".to_owned()),
        expect: match expect {
            [] => ExpectedTools::None,
            tools => ExpectedTools::AnyOf(names(tools)),
        },
        not: Vec::new(),
        arguments: None,
        mode: SelectionMode::Exact,
    }
}

/// A pass, or the reason of a failure or of an unknown verdict.
fn verdict(row: &SelectionCheck, calls: &[(Option<&str>, &str, Value)]) -> String {
    let result = Check::Selection(Box::new(row.clone())).evaluate(&chosen(calls));
    match result.verdict {
        Verdict::Pass => "pass".to_owned(),
        Verdict::Fail { reason } => format!("fail: {reason}"),
        Verdict::Unknown { reason } => format!("unknown: {reason}"),
    }
}

fn git(tool: &str) -> (Option<&'static str>, &str, Value) {
    (Some("git"), tool, json!({}))
}

#[test]
fn a_turn_passes_if_all_calls_are_expected_and_one_is_there() {
    let either = row(&["log", "show"]);
    assert_eq!(verdict(&either, &[git("show")]), "pass");
    assert_eq!(verdict(&either, &[git("show"), git("log")]), "pass");
    assert_eq!(
        verdict(&either, &[git("show"), git("diff")]),
        "fail: expected `log` or `show`, found `diff`"
    );
    assert_eq!(
        verdict(&either, &[]),
        "fail: expected a call of `log` or `show`; the model answered without a call"
    );
    // The same name on another server is another tool.
    let other = (Some("svn"), "log", json!({}));
    assert_eq!(
        verdict(&either, std::slice::from_ref(&other)),
        "fail: expected `log` or `show`, found `svn.log`"
    );
    let any_server = SelectionCheck {
        server: None,
        ..either
    };
    assert_eq!(verdict(&any_server, &[other]), "pass");
}

#[test]
fn none_fails_on_any_call() {
    assert_eq!(verdict(&row(&[]), &[]), "pass");
    assert_eq!(
        verdict(&row(&[]), &[git("log")]),
        "fail: expected no call, found `log`"
    );
    let lenient = SelectionCheck {
        mode: SelectionMode::Contains,
        ..row(&[])
    };
    assert!(verdict(&lenient, &[git("log")]).starts_with("fail"));
}

#[test]
fn invented_names_fail_in_every_mode() {
    let invented = (None, "blame", json!({}));
    for mode in [SelectionMode::Exact, SelectionMode::Contains] {
        for expect in [&["log"][..], &["blame"], &[]] {
            let check = SelectionCheck {
                mode,
                server: None,
                ..row(expect)
            };
            assert_eq!(
                verdict(&check, &[git("log"), invented.clone()]),
                "fail: the model called `blame`, which no server offers"
            );
        }
    }
}

#[test]
fn contains_allows_other_calls_but_no_forbidden_ones() {
    let check = SelectionCheck {
        mode: SelectionMode::Contains,
        not: vec!["diff".to_owned()],
        ..row(&["log"])
    };
    assert_eq!(verdict(&check, &[git("status"), git("log")]), "pass");
    assert_eq!(
        verdict(&check, &[git("status")]),
        "fail: expected `log`, found `status`"
    );
    assert_eq!(
        verdict(&check, &[git("log"), git("diff")]),
        "fail: the model called `diff`, which must not be chosen"
    );
}

#[test]
fn arguments_must_match_in_each_expected_call_or_in_one() {
    let with = |mode| SelectionCheck {
        arguments: Some(Matcher::compile(&json!({"n": {"$min": 2}})).unwrap()),
        mode,
        ..row(&["log"])
    };
    let (exact, contains) = (with(SelectionMode::Exact), with(SelectionMode::Contains));
    let call = |arguments: Value| (Some("git"), "log", arguments);
    let (good, bad) = (call(json!({"n": 2})), call(json!({"n": 1})));
    let (unread, cut) = (call(json!("EOF")), call(json!(1)));
    assert_eq!(verdict(&exact, std::slice::from_ref(&good)), "pass");
    assert!(verdict(&exact, std::slice::from_ref(&bad)).starts_with("fail: `log`: "));
    assert!(verdict(&exact, &[good.clone(), bad.clone()]).starts_with("fail"));
    assert_eq!(verdict(&contains, &[good.clone(), bad.clone()]), "pass");
    assert!(verdict(&contains, std::slice::from_ref(&bad)).starts_with("fail"));
    assert!(verdict(&exact, std::slice::from_ref(&cut)).starts_with("unknown"));
    assert!(verdict(&contains, &[bad.clone(), cut.clone()]).starts_with("unknown"));
    assert!(verdict(&exact, &[bad, cut]).starts_with("fail"));
    // A call that can't be made is wrong, whatever the row says of arguments.
    let without = row(&["log"]);
    assert_eq!(
        verdict(&without, std::slice::from_ref(&unread)),
        "fail: `log`: its arguments are not a JSON object: EOF"
    );
    assert!(verdict(&without, &[good, unread]).starts_with("fail"));
}

#[test]
fn a_record_without_a_choice_decides_nothing() {
    let silent = transcript(Vec::new());
    let reason = "the record does not show which tools the model chose";
    check_unknown(
        &Check::Selection(Box::new(row(&["log"]))),
        &silent,
        reason,
        &[],
    );
    check_unknown(&Check::Selection(Box::new(row(&[]))), &silent, reason, &[]);
    check_unknown(&Check::NotExecuted, &silent, reason, &[]);
}

#[test]
fn a_call_that_reaches_a_server_fails_a_selection_trial() {
    check_pass(&Check::NotExecuted, &chosen(&[git("log")]), &[]);
    let reached = Transcript {
        calls: vec![tool_call(3, "log", Payload::Absent)],
        ..chosen(&[git("log")])
    };
    let result = Check::NotExecuted.evaluate(&reached);
    assert_eq!(
        result.verdict,
        Verdict::fail("the call of `log` reached the server")
    );
    assert_eq!(result.evidence, [3]);
}

#[test]
fn each_withheld_call_excuses_one_call_of_the_same_tool() {
    let with = |calls: &[&str], withheld: &[(&str, &str)]| {
        let mut all = chosen(&[git("log")]);
        let call = |(seq, name): (usize, &&str)| tool_call(seq as u64, name, Payload::Absent);
        all.calls = calls.iter().enumerate().map(call).collect();
        let server = all.calls[0].server.clone();
        if let Some(selection) = &mut all.selection {
            let name = |(of, tool): &(&str, &str)| proctor_record::event::ToolName {
                server: if *of == "same" {
                    server.clone()
                } else {
                    (*of).to_owned()
                },
                tool: (*tool).to_owned(),
            };
            selection.withheld = withheld.iter().map(name).collect();
        }
        Check::NotExecuted.evaluate(&all).verdict == Verdict::Pass
    };
    assert!(with(&["log"], &[("same", "log")]));
    assert!(with(&["log", "diff"], &[("same", "diff"), ("same", "log")]));
    assert!(!with(&["log"], &[]));
    assert!(!with(&["log"], &[("same", "diff")]));
    assert!(!with(&["log"], &[("other", "log")]));
    assert!(!with(&["log", "log"], &[("same", "log")]));
}

/// A shipped invocation eval is graded by `mcp_evals`, for other clients too. It is the same grading as that of a row
/// with `mode: contains`.
mod shipped_invocations {
    use mcp_evals::ExactMatch;
    use mcp_evals::matching::{ModelToolCall, match_invocation};
    use proptest::prelude::*;
    use serde_json::Map;

    use super::*;

    fn arguments() -> impl Strategy<Value = Value> {
        let value = prop::sample::select(vec![
            json!(1),
            json!(1.0),
            json!("1"),
            json!([1]),
            json!({"n": 1}),
            json!(null),
        ]);
        prop::collection::hash_map(prop::sample::select(vec!["a", "b"]), value, 0..3).prop_map(
            |map| {
                let map: Map<String, Value> =
                    map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
                Value::Object(map)
            },
        )
    }

    proptest! {
        #[test]
        fn agree_with_rows(
            tool in prop::sample::select(vec!["log", "show"]),
            wanted in prop::option::of(arguments()),
            calls in prop::collection::vec((prop::sample::select(vec!["log", "show", "diff"]), arguments()), 0..4),
        ) {
            let expected = ExactMatch {
                tool_name: Some(tool.to_owned()),
                arguments: wanted.as_ref().and_then(Value::as_object).cloned(),
                ..ExactMatch::default()
            };
            let objects: Vec<(&str, &Map<String, Value>)> = calls.iter().map(|(name, arguments)| (*name, arguments.as_object().unwrap())).collect();
            let made: Vec<ModelToolCall<'_>> = objects.iter().map(|(name, arguments)| ModelToolCall { name, arguments }).collect();
            let row = SelectionCheck {
                mode: SelectionMode::Contains,
                arguments: wanted.as_ref().map(|wanted| Matcher::compile(wanted).unwrap()),
                ..row(&[tool])
            };
            let chosen: Vec<_> = calls.iter().map(|(name, arguments)| (Some("git"), *name, arguments.clone())).collect();
            prop_assert_eq!(verdict(&row, &chosen) == "pass", match_invocation(&expected, &made).is_ok());
        }
    }
}
