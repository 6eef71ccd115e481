//! Traces as collectors read them.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};

use crate::sample::{HOSTILE, Sample};

/// The names of the conventions for `GenAI`, MCP, tests and their neighbours that the export may use.
const CONVENTIONS: [&str; 29] = [
    "cicd.pipeline.run.url.full",
    "error.type",
    "gen_ai.agent.name",
    "gen_ai.evaluation.explanation",
    "gen_ai.evaluation.name",
    "gen_ai.evaluation.score.label",
    "gen_ai.evaluation.score.value",
    "gen_ai.operation.name",
    "gen_ai.prompt.name",
    "gen_ai.provider.name",
    "gen_ai.request.model",
    "gen_ai.response.finish_reasons",
    "gen_ai.tool.name",
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.reasoning.output_tokens",
    "jsonrpc.request.id",
    "mcp.method.name",
    "mcp.protocol.version",
    "mcp.resource.uri",
    "network.protocol.name",
    "network.transport",
    "rpc.response.status_code",
    "service.name",
    "service.version",
    "test.case.name",
    "test.suite.name",
];

fn written(sample: &Sample) -> String {
    let mut out = Vec::new();
    proctor_report::otlp::write(&sample.report(), &mut out).expect("traces");
    String::from_utf8(out).expect("a text")
}

/// The spans of each line.
fn traces(text: &str) -> Vec<Vec<Span>> {
    let lines = text.lines().map(|line| {
        // Not directly: numbers with all their digits confuse derived readers.
        let line: serde_json::Value = serde_json::from_str(line).expect("a valid file");
        let data: TracesData = serde_json::from_value(line.clone()).expect("a valid file");
        let [resource] = &data.resource_spans[..] else {
            panic!("{line}");
        };
        let [scope] = &resource.scope_spans[..] else {
            panic!("{line}");
        };
        let attributes = &resource.resource.as_ref().expect("a valid file").attributes;
        assert_eq!(text_of(attributes, "service.name"), Some("proctor"));
        scope.spans.clone()
    });
    lines.collect()
}

fn value_of<'a>(all: &'a [KeyValue], key: &str) -> Option<&'a Value> {
    let mut found = all.iter().filter(|attribute| attribute.key == key);
    let value = found.next()?.value.as_ref()?.value.as_ref();
    assert!(found.next().is_none(), "{key} is there twice");
    value
}

fn text_of<'a>(all: &'a [KeyValue], key: &str) -> Option<&'a str> {
    match value_of(all, key)? {
        Value::StringValue(text) => Some(text),
        other => panic!("{key}: {other:?}"),
    }
}

fn integer_of(all: &[KeyValue], key: &str) -> Option<i64> {
    match value_of(all, key)? {
        Value::IntValue(number) => Some(*number),
        other => panic!("{key}: {other:?}"),
    }
}

/// The trace of the trial that read a file and failed.
fn failed(traces: &[Vec<Span>]) -> &[Span] {
    let mut found = traces.iter().filter(|spans| spans.len() > 4);
    found.next().expect("a trace with calls and requests")
}

#[test]
fn every_ended_trial_is_a_trace_that_a_collector_reads() {
    let sample = Sample::new();
    let text = written(&sample);
    let traces = traces(&text);
    let ended = sample
        .summary
        .trials()
        .filter(|(_, _, t)| t.result.is_some());
    assert_eq!(traces.len(), ended.count());
    assert_eq!(traces.len(), 13);
    let ids: BTreeSet<&Vec<u8>> = traces.iter().map(|spans| &spans[0].trace_id).collect();
    assert_eq!(ids.len(), traces.len());
    for spans in &traces {
        let root = &spans[0];
        assert!(root.parent_span_id.is_empty());
        let ids: BTreeSet<&Vec<u8>> = spans.iter().map(|span| &span.span_id).collect();
        assert_eq!(ids.len(), spans.len(), "span ids are unique");
        for span in spans {
            assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
            assert_eq!(span.trace_id, root.trace_id);
            assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
            let within = span.start_time_unix_nano >= root.start_time_unix_nano
                && span.end_time_unix_nano <= root.end_time_unix_nano;
            assert!(within, "{}", span.name);
        }
        for span in &spans[1..] {
            assert_eq!(span.parent_span_id, root.span_id);
            assert_eq!(span.kind, SpanKind::Client as i32);
        }
    }
    assert_eq!(text, written(&sample), "the ids are the same every time");
}

#[test]
fn names_are_those_of_the_conventions() {
    let known = BTreeSet::from(CONVENTIONS);
    let mut used = BTreeMap::new();
    for spans in traces(&written(&Sample::new())) {
        for span in &spans {
            let events = span.events.iter().flat_map(|event| &event.attributes);
            for attribute in span.attributes.iter().chain(events) {
                *used.entry(attribute.key.clone()).or_insert(0) += 1;
            }
        }
    }
    let own = |key: &str| key.starts_with("proctor.") || key == "test.case.result.status";
    let unknown: Vec<&String> = used
        .keys()
        .filter(|key| !own(key) && !known.contains(key.as_str()))
        .collect();
    assert_eq!(unknown, Vec::<&String>::new());
    for key in [
        "mcp.method.name",
        "gen_ai.tool.name",
        "gen_ai.evaluation.name",
        "gen_ai.usage.input_tokens",
        "test.case.result.status",
    ] {
        assert!(used.contains_key(key), "{key}");
    }
}

#[test]
fn a_trial_is_an_invocation_of_its_agent_with_requests_below() {
    let traces = traces(&written(&Sample::new()));
    let spans = failed(&traces);
    let root = &spans[0];
    assert_eq!(root.name, "invoke_agent scripted");
    assert_eq!(root.kind, SpanKind::Internal as i32);
    let all = &root.attributes;
    assert_eq!(text_of(all, "gen_ai.operation.name"), Some("invoke_agent"));
    assert_eq!(text_of(all, "gen_ai.agent.name"), Some("scripted"));
    assert_eq!(text_of(all, "gen_ai.provider.name"), Some("scripted"));
    assert_eq!(text_of(all, "gen_ai.request.model"), Some("answers.yaml"));
    assert_eq!(text_of(all, "test.case.name"), Some("read a file"));
    assert_eq!(text_of(all, "test.case.result.status"), Some("fail"));
    assert_eq!(text_of(all, "proctor.blame"), Some("server"));
    assert_eq!(integer_of(all, "gen_ai.usage.input_tokens"), Some(1200));
    assert_eq!(integer_of(all, "proctor.trial"), Some(2));
    let status = root.status.as_ref().unwrap();
    assert_eq!(status.code, StatusCode::Error as i32);
    assert!(status.message.contains("expected at least 1 call"));
    // One second after the start of the run, 2026-11-15T05:00:00Z.
    assert_eq!(root.start_time_unix_nano, 1_794_718_801_000_000_000);

    let chats: Vec<&Span> = spans
        .iter()
        .filter(|s| s.name.starts_with("chat "))
        .collect();
    assert_eq!(chats.len(), 2, "the agent's and the judge's");
    let purposes: Vec<_> = chats
        .iter()
        .map(|s| text_of(&s.attributes, "proctor.purpose"))
        .collect();
    assert_eq!(purposes, [Some("agent"), Some("judge")]);
    assert_eq!(
        text_of(&chats[0].attributes, "gen_ai.operation.name"),
        Some("chat")
    );

    let call = spans
        .iter()
        .find(|s| s.name == "tools/call read_file")
        .unwrap();
    let all = &call.attributes;
    assert_eq!(text_of(all, "mcp.method.name"), Some("tools/call"));
    assert_eq!(text_of(all, "gen_ai.tool.name"), Some("read_file"));
    assert_eq!(text_of(all, "gen_ai.operation.name"), Some("execute_tool"));
    assert_eq!(text_of(all, "mcp.protocol.version"), Some("2025-11-25"));
    assert_eq!(text_of(all, "network.transport"), Some("pipe"));
    assert_eq!(text_of(all, "jsonrpc.request.id"), Some("1"));
    assert_eq!(text_of(all, "error.type"), Some("tool_error"));
    let open = spans.iter().find(|s| s.name == "tools/call list").unwrap();
    assert_eq!(text_of(&open.attributes, "error.type"), Some("no_response"));
}

#[test]
fn each_check_is_an_evaluation_result() {
    let traces = traces(&written(&Sample::new()));
    let root = &failed(&traces)[0];
    let found: Vec<(&str, &str)> = root
        .events
        .iter()
        .map(|event| {
            assert_eq!(event.name, "gen_ai.evaluation.result");
            let name = text_of(&event.attributes, "gen_ai.evaluation.name");
            let label = text_of(&event.attributes, "gen_ai.evaluation.score.label");
            (name.unwrap(), label.unwrap())
        })
        .collect();
    let expected = [
        ("toolsUsed", "fail"),
        ("verify_0", "fail"),
        ("verify_1", "fail"),
    ];
    assert_eq!(found, expected);
    // An unknown verdict has no score.
    let mut unknown = traces
        .iter()
        .flat_map(|spans| &spans[0].events)
        .filter(|event| {
            text_of(&event.attributes, "gen_ai.evaluation.score.label") == Some("unknown")
        });
    let unknown = unknown.next().unwrap();
    assert!(value_of(&unknown.attributes, "gen_ai.evaluation.score.value").is_none());
}

#[test]
fn only_trials_with_a_verdict_have_a_test_status() {
    let mut found = BTreeMap::new();
    for spans in traces(&written(&Sample::new())) {
        let all = &spans[0].attributes;
        let outcome = text_of(all, "proctor.outcome").unwrap().to_owned();
        let status = text_of(all, "test.case.result.status").map(str::to_owned);
        let is_error = spans[0]
            .status
            .as_ref()
            .is_some_and(|s| s.code == StatusCode::Error as i32);
        found.insert(outcome, (status, is_error));
    }
    let text = |text: &str| Some(text.to_owned());
    let expected = [
        ("errored", (None, true)),
        ("failed", (text("fail"), true)),
        ("passed", (text("pass"), false)),
        ("timed-out", (text("fail"), true)),
    ];
    assert_eq!(found, expected.map(|(k, v)| (k.to_owned(), v)).into());
}

#[test]
fn contents_are_not_exported() {
    let text = written(&Sample::new());
    assert!(
        !text.contains("/etc/motd"),
        "arguments and prompts stay in the record"
    );
    // Names are, whatever they are.
    let traces = traces(&text);
    let names = traces.iter().flatten().map(|span| span.name.as_str());
    assert!(
        names
            .into_iter()
            .any(|name| name == format!("tools/call {HOSTILE}"))
    );
}
