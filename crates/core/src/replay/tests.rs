//! Tests of replaying recorded replies.

use proctor_record::event::{
    Direction, ModelAsked, Outcome, RECORD_VERSION, RunStarted, TrialEnded, TrialStarted,
};
use proctor_record::model::ToolResult;
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;

use super::*;

fn request(results: usize, said: &str) -> ModelRequest {
    let result = |n: usize| ToolResult {
        id: n.to_string(),
        name: "t".to_owned(),
        text: "r".to_owned(),
        ..ToolResult::default()
    };
    let mut messages = vec![ModelMessage::User(said.to_owned())];
    for n in 0..results {
        messages.push(ModelMessage::Assistant(Turn::default()));
        messages.push(ModelMessage::Results(vec![result(n)]));
    }
    ModelRequest {
        messages,
        ..ModelRequest::default()
    }
}

/// A request without its known messages, and its reply.
fn exchange(
    ask: u64,
    purpose: Purpose,
    whole: &ModelRequest,
    known: usize,
    text: &str,
) -> [EventKind; 2] {
    let written = ModelRequest {
        messages: whole.messages[known..].to_vec(),
        ..ModelRequest::default()
    };
    let turn = Turn {
        text: text.to_owned(),
        ..Turn::default()
    };
    [
        EventKind::ModelAsked(ModelAsked {
            ask,
            purpose,
            model: "m".to_owned(),
            known: known as u64,
            request: Body::Text(json!(written).to_string()),
            digest: digest(whole),
        }),
        EventKind::ModelReplied(ModelReplied {
            ask,
            turn: Body::Text(json!(turn).to_string()),
            raw: Some(Body::Text(format!("raw {text}"))),
            stop: StopReason::Done,
            usage: Usage::default(),
            cost_usd: None,
        }),
    ]
}

fn recorded(events: impl IntoIterator<Item = EventKind>) -> (tempfile::TempDir, Cassette) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run");
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: String::new(),
        started: String::new(),
        name: "run".to_owned(),
        command: Vec::new(),
        context: None,
    };
    let run = RunWriter::create(&path, Redactor::default(), started).expect("a run");
    let trial = TrialStarted {
        case: "case".to_owned(),
        agent: Some("agent".to_owned()),
        repeat: 1,
        attempt: 1,
    };
    let mut writer = run.trial(0, "case:agent:1", trial).expect("a trial");
    for event in events {
        writer.append(0, event).expect("an event");
    }
    let ended = TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    };
    writer.end(0, ended).expect("an end");
    drop(run);
    let cassette = Cassette::open(&path).expect("a cassette");
    (folder, cassette)
}

fn heard(
    tape: &mut Tape,
    purpose: Purpose,
    request: &ModelRequest,
) -> Result<(String, bool), String> {
    match tape.next(purpose, request, &digest(request), None) {
        Ok((reply, drifts)) => Ok((reply.turn.text, drifts)),
        Err(missing) => Err(missing.to_string()),
    }
}

fn digest(request: &ModelRequest) -> String {
    super::digest(request, None)
}

fn outlined(request: &ModelRequest) -> String {
    outline(request, None)
}

#[test]
fn replies_are_found_by_the_number_of_tool_results() {
    let [first, second] = [request(0, "do"), request(1, "do")];
    let title = request(0, "a title");
    let events = [
        exchange(1, Purpose::Side, &title, 0, "title"),
        exchange(2, Purpose::Agent, &first, 0, "one"),
        exchange(3, Purpose::Agent, &second, 1, "two"),
        exchange(4, Purpose::Judge, &request(0, "judge a"), 0, "a"),
        exchange(5, Purpose::Judge, &request(0, "judge b"), 0, "b"),
    ];
    let (_folder, cassette) = recorded(events.into_iter().flatten());
    let mut tape = cassette.tape("case", "agent", 1).unwrap().unwrap();
    // In another order than they were asked.
    let said = |text: &str, drifts| Ok((text.to_owned(), drifts));
    assert_eq!(
        heard(&mut tape, Purpose::Agent, &second),
        said("two", false)
    );
    assert_eq!(heard(&mut tape, Purpose::Agent, &first), said("one", false));
    assert_eq!(
        heard(&mut tape, Purpose::Agent, &first),
        said("one", false),
        "again"
    );
    assert_eq!(
        heard(&mut tape, Purpose::Agent, &request(1, "other")),
        said("two", true)
    );
    assert_eq!(
        heard(&mut tape, Purpose::Side, &title),
        said("title", false)
    );
    assert_eq!(
        heard(&mut tape, Purpose::Judge, &request(0, "judge a")),
        said("a", false)
    );
    assert_eq!(
        heard(&mut tape, Purpose::Judge, &request(0, "judge b")),
        said("b", false)
    );
    let missing =
        "the record has no model request of the agent after 2 tool results; it has some after 0, 1";
    assert_eq!(
        heard(&mut tape, Purpose::Agent, &request(2, "do")),
        Err(missing.to_owned())
    );
}

#[test]
fn a_trial_without_recorded_replies_is_an_error() {
    let (_folder, cassette) = recorded([]);
    let mut tape = cassette.tape("case", "agent", 1).unwrap().unwrap();
    for purpose in [Purpose::Agent, Purpose::Side] {
        let heard = heard(&mut tape, purpose, &request(0, "do"));
        assert!(
            heard
                .unwrap_err()
                .contains("record external agents with `modelTap`")
        );
    }
    let judged = heard(&mut tape, Purpose::Judge, &request(0, "do"));
    assert!(judged.unwrap_err().contains("no judge request"));
}

#[test]
fn a_missing_trial_has_no_tape() {
    let (_folder, cassette) = recorded([]);
    assert!(cassette.tape("case", "agent", 1).unwrap().is_some());
    for (case, agent, repeat) in [
        ("other", "agent", 1),
        ("case", "other", 1),
        ("case", "agent", 2),
    ] {
        assert!(cassette.tape(case, agent, repeat).unwrap().is_none());
    }
}

/// A judge request, whose instructions define what is random in it.
fn judged(token: &str, said: &str) -> ModelRequest {
    ModelRequest {
        system: Some(format!(
            "between <<<{token} begin NAME>>>; {token} is random"
        )),
        ..request(
            0,
            &format!("<<<{token} begin answer>>>\n{said}\n<<<{token} end answer>>>"),
        )
    }
}

#[test]
fn random_boundaries_of_judge_requests_are_ignored() {
    let (one, other) = ("0".repeat(32), "f".repeat(32));
    assert_eq!(digest(&judged(&one, "x")), digest(&judged(&other, "x")));
    assert_ne!(digest(&judged(&one, "x")), digest(&judged(&other, "y")));
    assert_ne!(digest(&judged(&one, "x")), digest(&judged("0123", "x")));
    assert_ne!(digest(&request(0, "<<<é a")), digest(&request(0, "<<<é b")));
}

#[test]
fn text_that_only_looks_like_a_boundary_is_compared() {
    let (one, other) = ("0".repeat(32), "f".repeat(32));
    let said = |token: &str| format!("<<<{token} begin answer>>>");
    let agent = |token: &str| digest(&request(0, &said(token)));
    assert_ne!(agent(&one), agent(&other));
    let token = "a".repeat(32);
    let judge = |shown: &str| digest(&judged(&token, &said(shown)));
    assert_ne!(judge(&one), judge(&other));
}

/// With one pass per token, this took 107 s.
#[test]
fn a_request_full_of_boundaries_is_read_once() {
    let look_alikes = |from: u32| -> String {
        let line = |n: u32| format!("<<<{n:032x} begin answer>>>\n");
        (from..from + 500_000 / 52).map(line).collect()
    };
    let all: String = (0..6).map(|part| look_alikes(part * 10_000)).collect();
    let mut asked = judged(&"a".repeat(32), &all);
    // Even where they are tokens.
    asked.system = Some(all);
    assert_eq!(digest(&asked).len(), 64);
}

#[test]
fn an_outline_covers_tools_and_calls() {
    let with = |tool: &str, name: &str, said: &str| ModelRequest {
        system: Some(format!("today is {said}")),
        messages: vec![
            ModelMessage::User(said.to_owned()),
            ModelMessage::Assistant(Turn {
                calls: vec![proctor_record::model::ToolCall {
                    id: said.to_owned(),
                    name: name.to_owned(),
                    arguments: Arguments::Object(serde_json::Map::new()),
                }],
                ..Turn::default()
            }),
        ],
        tools: vec![proctor_record::model::Tool {
            name: tool.to_owned(),
            description: None,
            schema: json!({}),
        }]
        .into(),
        ..ModelRequest::default()
    };
    let one = outlined(&with("a", "a", "monday"));
    assert_eq!(one, outlined(&with("a", "a", "tuesday")));
    assert_ne!(one, outlined(&with("b", "a", "monday")));
    assert_ne!(one, outlined(&with("a", "b", "monday")));
}

/// A trial of an external agent that lists the tools of its server and calls one.
fn told(prompt: &str, tool: &serde_json::Value, result: &str) -> Vec<EventKind> {
    let conn = proctor_record::event::ConnectionId(1);
    let frame = |direction, message: serde_json::Value| {
        EventKind::Frame(proctor_record::event::Frame {
            conn,
            exchange: None,
            direction,
            body: Body::Text(message.to_string()),
        })
    };
    let (to_server, to_client) = (Direction::ToServer, Direction::ToClient);
    let call = json!({"name": "echo", "arguments": {"text": "hi"}});
    let content =
        json!({"content": [{"type": "text", "text": result}], "_meta": {"at": result.len()}});
    let mut events = vec![
        EventKind::Prompted {
            text: Body::Text(prompt.to_owned()),
            turn: None,
        },
        EventKind::ConnectionOpened(proctor_record::event::ConnectionOpened {
            conn,
            server: "ev".to_owned(),
            actor: proctor_record::event::Actor::Agent,
            transport: proctor_record::event::WireKind::Stdio,
            target: String::new(),
        }),
        frame(
            to_server,
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        ),
        frame(
            to_client,
            json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}),
        ),
        frame(
            to_server,
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
        ),
        frame(
            to_client,
            json!({"jsonrpc": "2.0", "id": 2, "result": content}),
        ),
    ];
    events.extend(exchange(7, Purpose::Agent, &request(0, "x"), 0, "y"));
    events
}

#[test]
fn the_inputs_of_an_external_agent_are_compared() {
    let tool = json!({"name": "echo", "description": "says it", "inputSchema": {"type": "object"}});
    let surroundings = |events: Vec<EventKind>| {
        let (_folder, cassette) = recorded(events);
        let found = cassette.surroundings("case", "agent", 1).unwrap();
        found.expect("the trial is there")
    };
    let then = surroundings(told("do it", &tool, "hi"));
    assert_eq!(then.asks, [7]);
    let check =
        |prompt: &str, tool: &serde_json::Value, result: &str, task: &[&str], results: &[&str]| {
            let drift = then.drift(&surroundings(told(prompt, tool, result)));
            assert_eq!(drift.of_task, task);
            assert_eq!(drift.of_results, results);
            assert_eq!(drift.is_none(), task.is_empty() && results.is_empty());
        };
    check("do it", &tool, "hi", &[], &[]);
    check("do that", &tool, "hi", &["the prompt has changed"], &[]);
    let changed = ["the tool `ev.echo` has changed"];
    for (key, value) in [
        ("description", json!("says it twice")),
        (
            "inputSchema",
            json!({"type": "object", "required": ["text"]}),
        ),
    ] {
        let mut other = tool.clone();
        other[key] = value;
        check("do it", &other, "hi", &changed, &[]);
    }
    let mut other = tool.clone();
    other["name"] = json!("say");
    let renamed = ["the tool `ev.say` is new", "the tool `ev.echo` was removed"];
    check("do it", &other, "hi", &renamed, &[]);
    let result = ["the result of `ev.echo` has changed"];
    check("do it", &tool, "ho", &[], &result);
}

#[test]
fn the_path_of_a_trials_folder_is_no_difference() {
    let said = |dir: &str| request(0, &format!("Write into {dir}/notes.txt."));
    let of = |dir: &str| super::digest(&said(dir), Some(dir));
    let mut events = exchange(
        1,
        Purpose::Agent,
        &said("/t/old"),
        0,
        "see /t/old/notes.txt",
    );
    if let EventKind::ModelAsked(asked) = &mut events[0] {
        asked.digest = of("/t/old");
    }
    let folder = EventKind::TrialFolder(proctor_record::event::TrialFolder {
        path: "/t/old".to_owned(),
        kept: false,
        reason: None,
    });
    let (_folder, cassette) = recorded(events.into_iter().chain([folder]));
    let mut tape = cassette.tape("case", "agent", 1).unwrap().unwrap();
    let now = said("/t/new");
    let (reply, drifted) = tape
        .next(Purpose::Agent, &now, &of("/t/new"), Some("/t/new"))
        .unwrap();
    assert_eq!(
        (reply.turn.text.as_str(), drifted),
        ("see /t/new/notes.txt", false)
    );
    // Its bytes name the old folder.
    assert_eq!(reply.raw, None);
    let other = super::digest(&request(0, "Write into /t/new/other.txt."), Some("/t/new"));
    let (_, drifted) = tape
        .next(Purpose::Agent, &now, &other, Some("/t/new"))
        .unwrap();
    assert!(drifted);
}
