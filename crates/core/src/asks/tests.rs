use proctor_record::model::{Arguments, Media, ModelMessage, Tool, ToolCall, ToolResult, Turn};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn request(messages: &[&str], tools: &[&str]) -> ModelRequest {
    let tool = |name: &&str| Tool {
        name: (*name).to_owned(),
        description: None,
        schema: serde_json::json!({}),
    };
    ModelRequest {
        messages: messages
            .iter()
            .map(|text| ModelMessage::User((*text).to_owned()))
            .collect(),
        tools: tools.iter().map(tool).collect(),
        ..ModelRequest::default()
    }
}

/// How many messages were known, how many were written, and whether tools were.
fn ask(asks: &mut ModelRequestLog, purpose: Purpose, request: &ModelRequest) -> (u64, usize, bool) {
    let events = asks
        .next(purpose, "m", request, RequestDigest::Whole { folder: None })
        .events;
    let offered = matches!(events[0], EventKind::ToolsOffered { .. });
    let Some(EventKind::ModelAsked(asked)) = events.last() else {
        panic!("{events:?}");
    };
    let Body::Text(text) = &asked.request else {
        panic!("{asked:?}");
    };
    let written: ModelRequest = serde_json::from_str(text).unwrap();
    assert!(written.tools.is_empty());
    (asked.known, written.messages.len(), offered)
}

#[test]
fn a_continued_conversation_is_not_written_again() {
    let mut asks = ModelRequestLog::default();
    let agent = Purpose::Agent;
    assert_eq!(ask(&mut asks, agent, &request(&["a"], &[])), (0, 1, false));
    assert_eq!(
        ask(&mut asks, agent, &request(&["a", "b", "c"], &[])),
        (1, 2, false)
    );
    assert_eq!(
        ask(&mut asks, agent, &request(&["a", "b", "c", "d"], &[])),
        (3, 1, false)
    );
}

#[test]
fn a_new_conversation_is_written_completely() {
    let mut asks = ModelRequestLog::default();
    let agent = Purpose::Agent;
    ask(&mut asks, agent, &request(&["a", "b"], &[]));
    for fresh in [&["a", "b"][..], &["a"], &["x", "b", "c"], &["a", "b", "c"]] {
        // The last one goes on from the second, not from the third.
        assert_eq!(
            ask(&mut asks, agent, &request(fresh, &[])),
            (0, fresh.len(), false)
        );
    }
    assert_eq!(
        ask(
            &mut asks,
            Purpose::Judge,
            &request(&["a", "b", "c", "d"], &[])
        )
        .0,
        0
    );
    assert_eq!(
        ask(&mut asks, agent, &request(&["a", "b", "c", "d"], &[])).0,
        3
    );
}

#[test]
fn an_edited_history_is_written_again() {
    let mut asks = ModelRequestLog::default();
    let mut long = request(&["a"], &[]);
    long.messages.push(ModelMessage::Assistant(Turn::default()));
    ask(&mut asks, Purpose::Agent, &long);
    long.messages[0] = ModelMessage::User("b".to_owned());
    long.messages.push(ModelMessage::User("c".to_owned()));
    assert_eq!(ask(&mut asks, Purpose::Agent, &long), (0, 3, false));
}

#[test]
fn tools_are_written_when_they_change() {
    let mut asks = ModelRequestLog::default();
    let agent = Purpose::Agent;
    let offered = [&["x"][..], &["x"], &["x", "y"], &["x"], &[], &[]]
        .map(|tools| ask(&mut asks, agent, &request(&["a"], tools)).2);
    assert_eq!(offered, [true, false, true, true, true, false]);
}

#[test]
fn requests_have_a_number_and_a_digest() {
    let mut asks = ModelRequestLog::default();
    let all = request(&["a", "b"], &["x"]);
    let given = || RequestDigest::Given("d".to_owned());
    assert_eq!(asks.next(Purpose::Agent, "m", &all, given()).ask, 1);
    let logged = asks.next(Purpose::Judge, "m", &all, given());
    assert_eq!((logged.ask, logged.digest.as_str()), (2, "d"));
    let Some(EventKind::ModelAsked(asked)) = logged.events.last() else {
        panic!("{:?}", logged.events);
    };
    assert_eq!(asked.digest, "d");
}

fn messages() -> impl Strategy<Value = ModelMessage> {
    let text = || prop::sample::select(vec!["", "a", "b", "\"messages\":[", "\u{0}é\n"]);
    let arguments = prop::sample::select(vec![
        Arguments::Object(serde_json::Map::new()),
        Arguments::Object(
            [("a".to_owned(), json!(1)), ("b".to_owned(), json!(2))]
                .into_iter()
                .collect(),
        ),
        Arguments::Object(
            [("b".to_owned(), json!(2)), ("a".to_owned(), json!(1))]
                .into_iter()
                .collect(),
        ),
        Arguments::Object([("a".to_owned(), json!(1.0))].into_iter().collect()),
        Arguments::Malformed {
            text: "{".to_owned(),
            reason: "cut".to_owned(),
        },
    ]);
    let media = |data: &str| Media {
        mime_type: "image/png".to_owned(),
        data: data.to_owned(),
    };
    prop_oneof![
        text().prop_map(|text| ModelMessage::User(text.to_owned())),
        text().prop_map(move |data| ModelMessage::Media(media(data))),
        (text(), arguments).prop_map(|(text, arguments)| ModelMessage::Assistant(Turn {
            text: text.to_owned(),
            thinking: Vec::new(),
            calls: vec![ToolCall {
                id: "1".to_owned(),
                name: "x".to_owned(),
                arguments
            }],
        })),
        (text(), any::<bool>()).prop_map(|(text, is_error)| ModelMessage::Results(vec![
            ToolResult {
                id: "1".to_owned(),
                text: text.to_owned(),
                is_error,
                ..ToolResult::default()
            }
        ])),
    ]
}

/// How a conversation goes on: with more messages, fewer, another one in the middle, or other settings.
#[derive(Debug, Clone)]
enum Step {
    Push(Vec<ModelMessage>),
    Truncate(usize),
    Edit(usize, ModelMessage),
    System(Option<&'static str>),
    Tools(usize),
    Temperature(Option<f64>),
}

fn steps() -> impl Strategy<Value = Step> {
    let systems = vec![
        None,
        Some(""),
        Some("\"messages\":[]"),
        Some("<<<0123456789abcdef0123456789abcdef>>>"),
    ];
    prop_oneof![
        6 => prop::collection::vec(messages(), 0..3).prop_map(Step::Push),
        1 => (0_usize..6).prop_map(Step::Truncate),
        1 => (0_usize..6, messages()).prop_map(|(at, message)| Step::Edit(at, message)),
        1 => prop::sample::select(systems).prop_map(Step::System),
        1 => (0_usize..3).prop_map(Step::Tools),
        1 => prop::option::of(prop::sample::select(vec![0.0, 0.5, 1e30])).prop_map(Step::Temperature),
    ]
}

proptest! {
    /// The digest is the one of the whole JSON, and the known messages are those that the latest request had.
    #[test]
    fn rolling_changes_no_byte(steps in prop::collection::vec(steps(), 1..30)) {
        let mut asks = ModelRequestLog::default();
        let mut now = ModelRequest::default();
        let mut before: Vec<String> = Vec::new();
        for step in steps {
            match step {
                Step::Push(more) => now.messages.extend(more),
                Step::Truncate(to) => now.messages.truncate(to),
                Step::Edit(at, message) => {
                    if let Some(old) = now.messages.get_mut(at) {
                        *old = message;
                    }
                }
                Step::System(system) => now.system = system.map(str::to_owned),
                Step::Tools(count) => now.tools = request(&[], &["x", "y"][..count.min(2)]).tools,
                Step::Temperature(temperature) => now.temperature = temperature,
            }
            let folder = Some("a");
            let logged = asks.next(Purpose::Agent, "m", &now, RequestDigest::Whole { folder });
            prop_assert_eq!(&logged.digest, &replay::digest(&now, folder));
            let texts: Vec<String> = now.messages.iter().map(text).collect();
            let goes_on = texts.len() > before.len() && texts.starts_with(&before);
            let Some(EventKind::ModelAsked(asked)) = logged.events.last() else {
                panic!("{:?}", logged.events);
            };
            prop_assert_eq!(asked.known, if goes_on { before.len() as u64 } else { 0 });
            before = texts;
        }
    }
}
