//! A line that a lenient reader reads as a call never lets a negative check pass.

mod lines;
mod reader;

use std::path::Path;

use proctor_record::event::{
    Actor, Body, ConnectionId, ConnectionOpened, Direction, Event, EventKind, FindingKind, Frame,
    WireKind,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold};
use proctor_record::record::Blobs;
use proctor_record::transcript::CallKind;
use proctor_record::verdict::Verdict;
use proptest::prelude::*;
use serde_json::Value;

use self::reader::{LenientCall, readings};
use crate::check::{CallsMode, Check, NameMatcher, Times, ToolMatcher};
use crate::matcher::Matcher;

/// What a client sends on stdio, line by line.
fn sent(stream: &[u8]) -> FoldedTrial {
    let conn = ConnectionId(1);
    let opened = EventKind::ConnectionOpened(ConnectionOpened {
        conn,
        server: "s1".to_owned(),
        actor: Actor::Agent,
        transport: WireKind::Stdio,
        target: String::new(),
    });
    let frames = stream.split(|byte| *byte == b'\n').map(|line| {
        let body = match std::str::from_utf8(line) {
            Ok(text) => Body::Text(text.to_owned()),
            Err(_) => Body::Base64(data_encoding::BASE64.encode(line)),
        };
        EventKind::Frame(Frame {
            conn,
            exchange: None,
            direction: Direction::ToServer,
            body,
        })
    });
    let events = std::iter::once(opened).chain(frames);
    let events = (1..).zip(events).map(|(seq, event)| {
        Ok(Event {
            seq,
            at: seq,
            event,
        })
    });
    let blobs = Blobs::of_run(Path::new("none"));
    fold(events, &blobs, &FoldOptions::default()).unwrap()
}

fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{id}}}}}}}"#
    )
}

fn named(name: Option<&str>) -> NameMatcher {
    NameMatcher {
        server: "s1".to_owned(),
        name: name.map(str::to_owned),
        pattern: None,
    }
}

fn entry(name: Option<&str>, arguments: Option<&Value>) -> ToolMatcher {
    let exactly = |value| serde_json::json!({"$exact": value});
    ToolMatcher {
        target: named(name),
        arguments: arguments.map(|value| Matcher::compile(&exactly(value)).unwrap()),
        result: None,
        is_error: None,
        max_duration: None,
        times: Times::default(),
    }
}

/// The checks that must not pass if this call was made.
fn negative(call: &LenientCall) -> Vec<Check> {
    let name = Some(call.name.as_str());
    match call.kind {
        CallKind::Tool => {
            let mut checks = vec![
                Check::ToolsNotUsed(vec![entry(name, None)]),
                Check::ToolsNotUsed(vec![entry(None, None)]),
                Check::MaxToolCalls(0),
                Check::Calls {
                    mode: CallsMode::Exact,
                    list: vec![ToolMatcher {
                        times: Times {
                            min: Some(0),
                            max: Some(0),
                        },
                        ..entry(Some("other"), None)
                    }],
                },
            ];
            let arguments = call.arguments.as_ref();
            let with = arguments.map(|value| Check::ToolsNotUsed(vec![entry(name, Some(value))]));
            checks.extend(with);
            checks
        }
        CallKind::Resource => vec![Check::ResourcesNotRead(vec![named(name)])],
        CallKind::Prompt => vec![Check::PromptsNotUsed(vec![named(name)])],
    }
}

/// Panics if a call that some reader sees lets a check pass, or is not reported.
fn examine(stream: &[u8]) -> Result<(), TestCaseError> {
    let folded = sent(stream);
    let calls = readings(stream);
    for call in &calls {
        for check in negative(call) {
            let result = check.evaluate(&folded.transcript);
            prop_assert!(
                result.verdict != Verdict::Pass,
                "{} passes, though {call:?} is in {}",
                check.name(),
                String::from_utf8_lossy(stream)
            );
        }
    }
    let mut findings = folded.findings.iter();
    let is_reported = findings.any(|finding| finding.kind == FindingKind::ClientMessage);
    prop_assert!(is_reported || folded.transcript.unread.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn no_call_of_a_lenient_reader_leaves_a_negative_check_green(stream in lines::stream()) {
        examine(&stream)?;
    }
}

#[test]
fn the_reference_reader_is_lenient_and_sees_what_it_should() {
    let names = |stream: &str| {
        let calls = readings(stream.as_bytes());
        let mut names: Vec<String> = calls.into_iter().map(|call| call.name).collect();
        names.sort();
        names.dedup();
        names
    };
    let check = |stream: &str, expected: &[&str]| {
        assert_eq!(names(stream), expected, "{stream}");
        examine(stream.as_bytes()).unwrap();
    };
    check(&call("1", "a"), &["a"]);
    check(r#"{"method":"tools/call","params":{"name":"a"}}"#, &["a"]);
    check(
        r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"a","name":"b"}}"#,
        &["b"],
    );
    check(
        r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        &["a", "b"],
    );
    check(
        r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":NaN}}}"#,
        &["a"],
    );
    check(
        "{'id':1,\n'method':'tools/call', // yes\n'params':{'name':'a'}}",
        &["a"],
    );
    check(
        r#"{"id":1,"method":"tools/call","params":{"name":"a""#,
        &["a"],
    );
    check(
        &format!("{}\r{}", call("1", "a"), call("2", "b")),
        &["a", "b"],
    );
    check(
        r#"{"id":1,"Method":"tools/call","PARAMS":{"Name":"a"}}"#,
        &["a"],
    );
    check(r#"{"id":1,"method":"tools/list"}"#, &[]);
}
