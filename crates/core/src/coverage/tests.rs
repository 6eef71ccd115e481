//! What counts as covered: by names, arguments, enum values and templates.

use proctor_record::event::{
    Actor, Body, ConnectionId, ConnectionOpened, Direction, EventKind, Outcome, PlannedAgent,
    PlannedCase, RECORD_VERSION, RunPlanned, RunStarted, TrialEnded, TrialStarted, WireKind,
};
use proctor_record::record::{RunWriter, TrialWriter};
use proctor_record::redact::Redactor;
use serde_json::json;

use super::schema::{arguments, mark};
use super::*;

fn plan() -> EventKind {
    let case = |name: &str| PlannedCase::new(name.to_owned(), name.to_owned(), 2);
    EventKind::RunPlanned(Box::new(RunPlanned::new(
        "/suite.yaml".to_owned(),
        vec![case("a"), case("b")],
        vec![PlannedAgent::new("loop".to_owned())],
    )))
}

fn seen(surface: Option<Value>) -> EventKind {
    EventKind::ServerSeen(ServerSeen {
        server: "fs".to_owned(),
        name: None,
        version: None,
        protocol: "2025-11-25".to_owned(),
        tools: 3,
        resources: 0,
        prompts: 0,
        tools_digest: None,
        tool_list: None,
        surface: surface.map(|surface| Body::Text(surface.to_string())),
        started_in: None,
    })
}

fn offered() -> Value {
    json!({
        "tools": [
            {"name": "read", "description": "Reads.", "inputSchema": {
                "type": "object",
                "properties": {
                    "path": {"type": "string"},
                    "mode": {"enum": ["text", "bytes", null]},
                    "limit": {"type": "integer"},
                },
                "required": ["path"],
            }},
            {"name": "write", "inputSchema": {"type": "object"}},
            "malformed",
        ],
        "resources": [{"uri": "file:///a"}, {"uri": "file:///b"}],
        "resourceTemplates": [{"uriTemplate": "log:///{day}/{+rest}"}],
        "prompts": [{"name": "greet", "arguments": [{"name": "who", "required": true}, {"name": "how"}]}],
    })
}

/// The requests of one trial, by the loop or a step, with whether each is answered.
type Requests<'a> = &'a [(&'a str, Value)];

fn trial(run: &RunWriter, case: &str, repeat: u32, actor: Actor, requests: Requests<'_>) {
    let started = TrialStarted {
        case: case.to_owned(),
        agent: Some("loop".to_owned()),
        repeat,
        attempt: 1,
    };
    let mut trial = run.trial(1, &format!("{case}{repeat}"), started).unwrap();
    let opened = ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor,
        transport: WireKind::Stdio,
        target: String::new(),
    };
    trial
        .append(2, EventKind::ConnectionOpened(opened))
        .unwrap();
    for (id, (method, params)) in requests.iter().enumerate() {
        request(&mut trial, id, method, params);
    }
    let ended = TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    };
    proctor_record::index::end_trial(trial, 100_000, ended).unwrap();
}

fn request(trial: &mut TrialWriter, id: usize, method: &str, params: &Value) {
    let at = 1_000 * (id as u64 + 1);
    let mut add = |at, direction, message: Value| {
        let text = message.to_string();
        let frame = trial.append_frame(at, ConnectionId(1), None, direction, text.as_bytes());
        frame.unwrap();
    };
    let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    add(at, Direction::ToServer, message);
    // A call named `hang` in its arguments has no answer.
    if params["arguments"]["path"] != "hang" {
        let is_error = params["arguments"]["path"] == "missing";
        let result = json!({"content": [], "isError": is_error});
        add(
            at + 400,
            Direction::ToClient,
            json!({"jsonrpc": "2.0", "id": id, "result": result}),
        );
    }
}

fn call(name: &str, arguments: &Value) -> (&'static str, Value) {
    ("tools/call", json!({"name": name, "arguments": arguments}))
}

fn written(surface: Option<Value>) -> (tempfile::TempDir, Coverage) {
    let folder = tempfile::tempdir().unwrap();
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T05:00:00Z".to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let mut run = RunWriter::create(folder.path(), Redactor::default(), started).unwrap();
    run.append(1, plan()).unwrap();
    run.append(2, seen(surface)).unwrap();
    trial(
        &run,
        "a",
        1,
        Actor::Loop,
        &[
            call("read", &json!({"path": "x", "mode": "text", "limit": null})),
            call("read", &json!({"path": "missing"})),
            call("invented", &json!({})),
            ("resources/read", json!({"uri": "file:///a"})),
            ("resources/read", json!({"uri": "log:///monday/x/y"})),
            ("resources/read", json!({"uri": "log:///monday"})),
            (
                "prompts/get",
                json!({"name": "greet", "arguments": {"who": "Ada"}}),
            ),
        ],
    );
    trial(
        &run,
        "b",
        1,
        Actor::Loop,
        &[call("read", &json!({"path": "hang"}))],
    );
    trial(&run, "b", 2, Actor::Step, &[call("write", &json!({}))]);
    drop(run);
    let coverage = Coverage::load(&RunReader::open(folder.path()).unwrap())
        .unwrap()
        .1;
    (folder, coverage)
}

#[test]
fn tools_resources_and_prompts_that_no_case_touched_are_found() {
    let (_folder, coverage) = written(Some(offered()));
    let [server] = coverage.servers.as_slice() else {
        panic!("{coverage:?}");
    };
    assert!(server.is_listed);
    let tools: Vec<(&str, u64, u64, u64, usize)> = server
        .tools
        .iter()
        .map(|tool| {
            let CallUse {
                calls,
                errors,
                unanswered,
                cases,
                ..
            } = tool.used;
            (tool.name.as_str(), calls, errors, unanswered, cases)
        })
        .collect();
    // The call of a step does not count, and the malformed tool is left out.
    assert_eq!(tools, [("read", 3, 2, 1, 2), ("write", 0, 0, 0, 0)]);
    let mean = server.tools[0].used.mean();
    assert_eq!(
        mean,
        Some(Duration::from_micros(400)),
        "of the answered calls"
    );
    assert_eq!(server.tools[1].used.mean(), None);
    let used = |items: &[ItemCoverage]| -> Vec<(String, u64)> {
        let items = items.iter();
        items
            .map(|item| (item.name.clone(), item.used.calls))
            .collect()
    };
    let expected = [("file:///a".to_owned(), 1), ("file:///b".to_owned(), 0)];
    assert_eq!(used(&server.resources), expected);
    assert_eq!(
        used(&server.templates),
        [("log:///{day}/{+rest}".to_owned(), 1)]
    );
    assert_eq!(server.prompts[0].used.calls, 1);
    let unlisted: Vec<(CallKind, &str)> = server
        .unlisted
        .iter()
        .map(|(kind, item)| (*kind, item.name.as_str()))
        .collect();
    let expected = [
        (CallKind::Tool, "invented"),
        (CallKind::Resource, "log:///monday"),
    ];
    assert_eq!(unlisted, expected);
    assert_eq!(
        (
            server.tools_called(),
            server.resources_read(),
            server.prompts_used()
        ),
        (1, 2, 1)
    );
}

#[test]
fn arguments_and_enum_values_that_no_call_gave_are_found() {
    let (_folder, coverage) = written(Some(offered()));
    let server = &coverage.servers[0];
    let given: Vec<(&str, bool, u64)> = server.tools[0]
        .arguments
        .iter()
        .map(|a| (a.name.as_str(), a.is_required, a.given))
        .collect();
    let expected = [("path", true, 3), ("mode", false, 1), ("limit", false, 0)];
    assert_eq!(given, expected, "`null` is not given");
    let values = &server.tools[0].arguments[1].values;
    let values: Vec<(String, u64)> = values
        .iter()
        .map(|v| (v.value.to_string(), v.given))
        .collect();
    assert_eq!(
        values,
        [("\"text\"".to_owned(), 1), ("\"bytes\"".to_owned(), 0)]
    );
    let prompt: Vec<u64> = server.prompts[0]
        .arguments
        .iter()
        .map(|a| a.given)
        .collect();
    assert_eq!(prompt, [1, 0]);
    assert_eq!(coverage.unread_arguments, Some(0));
}

#[test]
fn without_a_list_of_tools_nothing_is_covered() {
    let (_folder, coverage) = written(None);
    let server = &coverage.servers[0];
    assert!(!server.is_listed && server.tools.is_empty());
    let calls: u64 = server
        .unlisted
        .iter()
        .map(|(_, item)| item.used.calls)
        .sum();
    assert_eq!(calls, 8);
}

#[test]
fn the_index_alone_gives_the_same_calls() {
    let (folder, coverage) = written(Some(offered()));
    let run = RunReader::open(folder.path()).unwrap();
    let mut counter = CoverageCounter::default();
    let summary = Summary::observed(&run, |entry| counter.add(entry)).unwrap();
    let quick = counter.finish(&run, &summary.servers).unwrap();
    let totals = |coverage: &Coverage| {
        let server = &coverage.servers[0];
        let tools = server
            .tools
            .iter()
            .map(|tool| (tool.used.calls, tool.used.errors));
        (
            tools.collect::<Vec<_>>(),
            server.resources_read(),
            server.unlisted.clone(),
        )
    };
    assert_eq!(totals(&quick), totals(&coverage));
    assert_eq!(quick.unread_arguments, None);
}

#[test]
fn nested_arguments_references_and_alternatives_are_followed() {
    let schema = json!({
        "properties": {
            "filter": {"$ref": "#/$defs/Filter"},
            "edits": {"type": "array", "items": {"properties": {"kind": {"enum": ["add", "remove"]}}}},
            "level": {"anyOf": [{"enum": [1, 2]}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"enum": ["x", "y"]}},
        },
        "$defs": {"Filter": {"properties": {"name": {}, "inner": {"$ref": "#/$defs/Filter"}}}},
    });
    let mut all = arguments(&schema);
    mark(
        &mut all,
        &json!({
            "filter": {"inner": {"name": "a"}},
            "edits": [{"kind": "add"}],
            "level": 1.0,
            "tags": ["y"],
        }),
    );
    let [filter, edits, level, tags] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(
        (filter.arguments[0].given, filter.arguments[1].given),
        (0, 1)
    );
    assert_eq!(filter.arguments[1].arguments[0].given, 1);
    let given = |argument: &ArgumentCoverage| -> Vec<u64> {
        argument.values.iter().map(|value| value.given).collect()
    };
    assert_eq!(given(&edits.arguments[0]), [1, 0]);
    assert_eq!(given(level), [1, 0], "1.0 is 1");
    assert_eq!(given(tags), [0, 1]);
}

fn count(arguments: &[ArgumentCoverage]) -> usize {
    arguments.iter().map(|a| 1 + count(&a.arguments)).sum()
}

#[test]
fn a_hostile_schema_ends() {
    let names = (0..50).map(|n| (format!("p{n}"), json!({"$ref": "#"})));
    let wide = json!({"properties": names.collect::<serde_json::Map<_, _>>()});
    assert!(count(&arguments(&wide)) <= 1_000);
    for schema in [
        json!(null),
        json!([]),
        json!({"properties": 1}),
        json!({"$ref": "#/x"}),
    ] {
        assert_eq!(arguments(&schema), []);
    }
    assert_eq!(
        arguments(&json!({"properties": {"a": {"$ref": "http://x/y"}}})).len(),
        1
    );
}

#[test]
fn a_template_matches_its_uris() {
    let check = |template: &str, uri: &str, expected: bool| {
        let found = template::uris(template).is_some_and(|uris| uris.is_match(uri));
        assert_eq!(found, expected, "{template} {uri}");
    };
    check("note://{id}", "note://7", true);
    check("note://{id}", "note://", false);
    check("note://{id}", "note://7/8", false);
    check("file:///{+path}", "file:///a/b", true);
    check("x://{a}/y{?q}", "x://1/y", true);
    check("x://{a}/y{?q}", "x://1/y?q=2", true);
    check("x://{a}.txt", "x://1atxt", false);
    check("x://{broken", "x://{broken", false);
    check("plain://a", "plain://a", true);
}
