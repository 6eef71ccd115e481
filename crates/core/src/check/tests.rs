//! For every check: when it passes, when and why it fails, and when it is unknown.

mod calls;
mod fits;
mod lenient;
mod order;
mod properties;
mod selection;
mod totals;
mod usage;

use std::time::Duration;

use proctor_record::transcript::{
    Call, CallOutcome, CallRequest, Payload, SkillLoad, UnreadMessage,
};
use serde_json::{Value, json};

use super::*;
use crate::matcher::Matcher;
use crate::pattern::Pattern;

const CUT: Payload = Payload::Cut { bytes: 9 };

fn tool_call(seq: u64, name: &str, arguments: Payload) -> Call {
    Call {
        seq,
        server: "fs".to_owned(),
        request: CallRequest::Tool {
            name: name.to_owned(),
            arguments,
        },
        answer: CallOutcome::Result(Payload::Value(json!({"content": []}))),
        duration: Some(Duration::from_millis(10)),
    }
}

/// A tool call with one argument, `x`.
fn called(seq: u64, name: &str, x: impl Into<Value>) -> Call {
    tool_call(seq, name, Payload::Value(json!({"x": x.into()})))
}

fn read(seq: u64, uri: &str) -> Call {
    Call {
        request: CallRequest::Resource {
            uri: uri.to_owned(),
        },
        ..tool_call(seq, "", Payload::Absent)
    }
}

fn prompted(seq: u64, name: &str) -> Call {
    Call {
        request: CallRequest::Prompt {
            name: name.to_owned(),
            arguments: Payload::Absent,
        },
        ..tool_call(seq, "", Payload::Absent)
    }
}

fn transcript(calls: Vec<Call>) -> Transcript {
    Transcript {
        calls,
        skills: None,
        unread: Vec::new(),
        selection: None,
        messages: Vec::new(),
    }
}

fn named(name: &str) -> NameMatcher {
    NameMatcher {
        server: "fs".to_owned(),
        name: Some(name.to_owned()),
        pattern: None,
    }
}

fn like(pattern: &str) -> NameMatcher {
    NameMatcher {
        server: "fs".to_owned(),
        name: None,
        pattern: Some(Pattern::compile(pattern).unwrap()),
    }
}

fn entry(name: &str) -> ToolMatcher {
    ToolMatcher {
        target: named(name),
        arguments: None,
        result: None,
        is_error: None,
        max_duration: None,
        times: Times::default(),
    }
}

/// An entry that asks for the argument `x`.
fn with_x(name: &str, x: impl Into<Value>) -> ToolMatcher {
    ToolMatcher {
        arguments: Some(Matcher::compile(&json!({"x": x.into()})).unwrap()),
        ..entry(name)
    }
}

fn times(
    entry: ToolMatcher,
    min: impl Into<Option<u64>>,
    max: impl Into<Option<u64>>,
) -> ToolMatcher {
    ToolMatcher {
        times: Times {
            min: min.into(),
            max: max.into(),
        },
        ..entry
    }
}

#[track_caller]
fn check_pass(check: &Check, transcript: &Transcript, evidence: &[u64]) {
    let result = check.evaluate(transcript);
    assert_eq!(result.verdict, Verdict::Pass);
    assert_eq!(result.evidence, evidence);
}

#[track_caller]
fn check_fail(check: &Check, transcript: &Transcript, reason: &str, evidence: &[u64]) {
    let result = check.evaluate(transcript);
    assert_eq!(result.verdict, Verdict::fail(reason));
    assert_eq!(result.evidence, evidence);
}

#[track_caller]
fn check_unknown(check: &Check, transcript: &Transcript, reason: &str, evidence: &[u64]) {
    let result = check.evaluate(transcript);
    assert_eq!(result.verdict, Verdict::unknown(reason));
    assert_eq!(result.evidence, evidence);
}

#[test]
fn an_empty_list_is_never_a_pass() {
    let checks = [
        Check::ToolsUsed(Vec::new()),
        Check::RequireAny(Vec::new()),
        Check::ToolsNotUsed(Vec::new()),
        Check::ResourcesRead(Vec::new()),
        Check::ResourcesNotRead(Vec::new()),
        Check::PromptsUsed(Vec::new()),
        Check::PromptsNotUsed(Vec::new()),
        Check::CallOrder(Vec::new()),
        Check::Calls {
            mode: CallsMode::Contains,
            list: Vec::new(),
        },
        Check::Calls {
            mode: CallsMode::InOrder,
            list: Vec::new(),
        },
        Check::Calls {
            mode: CallsMode::Exact,
            list: Vec::new(),
        },
        Check::SkillsLoaded(Vec::new()),
        Check::SkillsNotLoaded(Vec::new()),
    ];
    let silent = Transcript {
        calls: Vec::new(),
        skills: Some(Vec::new()),
        unread: Vec::new(),
        selection: None,
        messages: Vec::new(),
    };
    for check in checks {
        check_unknown(&check, &silent, "nothing to check", &[]);
    }
}

#[test]
fn a_call_that_may_be_missing_leaves_open_what_it_could_change() {
    let seen = || vec![tool_call(1, "a", Payload::Absent)];
    let cut = Transcript {
        unread: vec![unread(None, None)],
        ..transcript(seen())
    };
    let reason = "message #2 of the agent may be a call on `fs`: duplicate field `method`";
    let helped = [
        Check::ToolsUsed(vec![entry("b")]),
        Check::RequireAny(vec![entry("b")]),
        Check::MinToolCalls(2),
        Check::PromptsUsed(vec![named("p")]),
    ];
    let harmed = [
        Check::ToolsNotUsed(vec![entry("b")]),
        Check::MaxToolCalls(1),
        Check::NoDuplicateCalls,
        Check::ResourcesNotRead(vec![named("r")]),
        Check::Calls {
            mode: CallsMode::Exact,
            list: vec![entry("a")],
        },
        Check::ToolsUsed(vec![times(entry("a"), 1, 1)]),
    ];
    for check in helped.iter().chain(&harmed) {
        check_unknown(check, &cut, reason, &[2]);
    }
    // What one more call can't change is as certain as ever.
    check_pass(&Check::ToolsUsed(vec![entry("a")]), &cut, &[1]);
    assert!(matches!(
        Check::ToolsNotUsed(vec![entry("a")]).evaluate(&cut).verdict,
        Verdict::Fail { .. }
    ));
}

fn unread(kind: Option<CallKind>, name: Option<&str>) -> UnreadMessage {
    UnreadMessage {
        seq: 2,
        server: "fs".to_owned(),
        kind,
        name: name.map(str::to_owned),
        reason: "duplicate field `method`".to_owned(),
    }
}

#[test]
fn a_message_that_may_be_a_call_concerns_only_what_it_may_name() {
    let with = |kind, name| Transcript {
        unread: vec![unread(Some(kind), name)],
        ..transcript(vec![tool_call(1, "a", Payload::Absent)])
    };
    let calls_b = with(CallKind::Tool, Some("b"));
    let reason =
        "message #2 of the agent may be a `tools/call` of `fs` `b`: duplicate field `method`";
    for check in [
        Check::ToolsNotUsed(vec![entry("b")]),
        Check::ToolsUsed(vec![entry("b")]),
        Check::MaxToolCalls(1),
        Check::MinToolCalls(2),
        Check::NoDuplicateCalls,
        Check::CallOrder(vec![OrderEntry {
            kind: OrderKind::Tool,
            server: "fs".to_owned(),
            name: "b".to_owned(),
        }]),
        Check::Calls {
            mode: CallsMode::Exact,
            list: vec![entry("a")],
        },
    ] {
        check_unknown(&check, &calls_b, reason, &[2]);
    }
    check_pass(&Check::ToolsNotUsed(vec![entry("c")]), &calls_b, &[]);
    check_pass(&Check::ResourcesNotRead(vec![named("b")]), &calls_b, &[]);
    check_pass(&Check::PromptsNotUsed(vec![named("b")]), &calls_b, &[]);
    let elsewhere = NameMatcher {
        server: "git".to_owned(),
        ..named("b")
    };
    let elsewhere = ToolMatcher {
        target: elsewhere,
        ..entry("b")
    };
    check_pass(&Check::ToolsNotUsed(vec![elsewhere]), &calls_b, &[]);
    let reads = with(CallKind::Resource, None);
    check_pass(&Check::MaxToolCalls(1), &reads, &[1]);
    let reason =
        "message #2 of the agent may be a `resources/read` on `fs`: duplicate field `method`";
    let check = Check::ResourcesNotRead(vec![named("r")]);
    check_unknown(&check, &reads, reason, &[2]);
}

#[test]
fn times_that_no_count_can_meet_are_never_a_pass() {
    let list = vec![times(entry("a"), 3, 2)];
    let reason = "`fs` `a`: `times` requires at least 3 and at most 2 calls";
    for check in [
        Check::ToolsUsed(list.clone()),
        Check::RequireAny(list.clone()),
        Check::ToolsNotUsed(list.clone()),
        Check::Calls {
            mode: CallsMode::Contains,
            list,
        },
    ] {
        check_unknown(&check, &transcript(Vec::new()), reason, &[]);
    }
}

#[test]
fn a_result_survives_being_written_and_read() {
    for verdict in [
        Verdict::Pass,
        Verdict::fail("no"),
        Verdict::unknown("who knows"),
    ] {
        let result = CheckResult {
            verdict,
            evidence: vec![1, 2],
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<CheckResult>(&text).unwrap(), result);
    }
}

#[test]
fn a_name_a_pattern_or_neither_selects() {
    let both = NameMatcher {
        name: Some("a".to_owned()),
        ..like("^b")
    };
    let any = NameMatcher {
        name: None,
        ..named("")
    };
    let table = [
        (&both, "a", true),
        (&both, "bc", true),
        (&both, "cb", false),
        (&any, "whatever", true),
        (&named("a"), "ab", false),
        (&like("b"), "abc", true),
    ];
    for (matcher, name, expected) in table {
        assert_eq!(matcher.matches("fs", name), expected, "{matcher} on {name}");
        assert!(!matcher.matches("other", name));
    }
    assert_eq!(both.to_string(), "`fs` `a` or `/^b/`");
    assert_eq!(any.to_string(), "`fs` (any)");
}

#[test]
fn a_check_is_named_as_in_the_file() {
    let names = [
        (Check::ToolsUsed(Vec::new()), "toolsUsed"),
        (Check::RequireAny(Vec::new()), "requireAny"),
        (Check::ToolsNotUsed(Vec::new()), "toolsNotUsed"),
        (Check::MinToolCalls(1), "minToolCalls"),
        (Check::MaxToolCalls(1), "maxToolCalls"),
        (Check::ResourcesRead(Vec::new()), "resourcesRead"),
        (Check::ResourcesNotRead(Vec::new()), "resourcesNotRead"),
        (Check::PromptsUsed(Vec::new()), "promptsUsed"),
        (Check::PromptsNotUsed(Vec::new()), "promptsNotUsed"),
        (Check::CallOrder(Vec::new()), "callOrder"),
        (Check::NoDuplicateCalls, "noDuplicateCalls"),
        (
            Check::Calls {
                mode: CallsMode::Exact,
                list: Vec::new(),
            },
            "calls",
        ),
        (Check::SkillsLoaded(Vec::new()), "skillsLoaded"),
        (Check::SkillsNotLoaded(Vec::new()), "skillsNotLoaded"),
    ];
    for (check, name) in names {
        assert_eq!(check.name(), name);
    }
}
