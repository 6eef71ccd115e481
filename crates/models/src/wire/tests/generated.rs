//! Every reply survives every format, complete and as a stream, wherever the stream is split; and
//! no input makes a parser panic.

use proctor_record::model::{
    Arguments, ModelRequest, Reply, StopReason, Thinking, ToolCall, Turn, Usage,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::*;
use super::{ALL, envelope, question_of};
use crate::turns::arguments_of_text;

fn arguments() -> impl Strategy<Value = Arguments> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        Just(json!({"deep": [1, {"er": "é\u{1f600}"}]})),
    ];
    let object = prop::collection::vec(("[a-z]{1,8}", value), 0..4)
        .prop_map(|entries| Arguments::Object(entries.into_iter().collect()));
    let malformed = prop_oneof![
        Just("{\"a\": "),
        Just("[1, 2]"),
        Just("no JSON é"),
        Just("7")
    ];
    prop_oneof![4 => object, 1 => malformed.prop_map(arguments_of_text)]
}

fn turn() -> impl Strategy<Value = Turn> {
    let call = ("[a-z_]{1,20}", arguments());
    (
        any::<String>(),
        prop::option::of("\\PC{1,60}"),
        prop::collection::vec(call, 0..4),
    )
        .prop_map(|(text, thinking, calls)| Turn {
            text,
            thinking: thinking
                .into_iter()
                .map(|text| Thinking { text, raw: None })
                .collect(),
            calls: calls
                .into_iter()
                .enumerate()
                .map(|(at, (name, arguments))| ToolCall {
                    id: format!("call_{at}"),
                    name,
                    arguments,
                })
                .collect(),
        })
}

fn replies() -> impl Strategy<Value = Reply> {
    let stop = prop_oneof![
        Just(StopReason::Done),
        Just(StopReason::Length),
        Just(StopReason::Refusal),
        Just(StopReason::Other("something_new".to_owned())),
    ];
    let numbers = (0..9_000_u64, 0..9_000_u64, 0..100_u64, 0..100_u64);
    (turn(), stop, numbers).prop_map(|(turn, stop, (input, output, cached, reasoning))| {
        let has_calls = !turn.calls.is_empty();
        Reply {
            stop: match stop {
                StopReason::Done | StopReason::Refusal if has_calls => StopReason::Calls,
                stop => stop,
            },
            turn,
            usage: Usage {
                input: Some(input + cached),
                output: Some(output + reasoning),
                cached: Some(cached),
                cache_written: None,
                reasoning: Some(reasoning),
            },
            raw: None,
        }
    })
}

/// The parts of a reply that may differ: data that providers want back, and the cache that was not
/// written.
fn plain(mut reply: Reply) -> Reply {
    reply
        .turn
        .thinking
        .retain(|thought| !thought.text.is_empty());
    for thought in &mut reply.turn.thinking {
        thought.raw = None;
    }
    reply.usage.cache_written = reply.usage.cache_written.filter(|written| *written > 0);
    reply
}

fn has_malformed(reply: &Reply) -> bool {
    let is_malformed = |call: &ToolCall| matches!(call.arguments, Arguments::Malformed { .. });
    reply.turn.calls.iter().any(is_malformed)
}

proptest! {
    #[test]
    fn a_reply_survives_every_format(original in replies(), each in 1..50_usize) {
        let asked = ModelRequest::default();
        let question = question_of();
        for format in ALL {
            if format == WireFormat::Gemini && has_malformed(&original) {
                continue;
            }
            let whole = render(format, &original, &envelope(&question));
            let read = reply(format, &whole, &asked);
            prop_assert_eq!(read.map(plain), Ok(plain(original.clone())), "{:?}: {}", format, whole);
            let stream = render_stream(format, &original, &envelope(&question)).concat();
            let mut gathered = StreamedReply::new(format);
            for chunk in stream.as_bytes().chunks(each) {
                gathered.take(chunk);
            }
            let read = reply(format, &gathered.end(), &asked);
            prop_assert_eq!(read.map(plain), Ok(plain(original.clone())), "{:?}: {}", format, stream);
        }
    }

    #[test]
    fn an_incomplete_stream_never_panics(original in replies(), share in 0..100_usize) {
        let question = question_of();
        for format in ALL {
            let stream = render_stream(format, &original, &envelope(&question)).concat();
            let mut gathered = StreamedReply::new(format);
            gathered.take(&stream.as_bytes()[..stream.len() * share / 100]);
            let _ = reply(format, &gathered.end(), &ModelRequest::default());
        }
    }

    #[test]
    fn parsers_never_panic(noise in noise()) {
        for format in ALL {
            let _ = question(format, &noise);
            let _ = reply(format, &noise, &ModelRequest::default());
            let mut gathered = StreamedReply::new(format);
            for value in noise.as_array().unwrap_or(&vec![noise.clone()]) {
                gathered.take(format!("data: {value}\n\n").as_bytes());
            }
            let _ = reply(format, &gathered.end(), &ModelRequest::default());
        }
    }
}

const KEYS: [&str; 24] = [
    "messages",
    "role",
    "content",
    "type",
    "text",
    "tools",
    "contents",
    "parts",
    "input",
    "output",
    "choices",
    "message",
    "delta",
    "tool_calls",
    "function",
    "arguments",
    "index",
    "candidates",
    "functionCall",
    "functionResponse",
    "usage",
    "error",
    "content_block",
    "item",
];

const WORDS: [&str; 16] = [
    "user",
    "assistant",
    "tool",
    "model",
    "text",
    "tool_use",
    "tool_result",
    "message",
    "function_call",
    "function_call_output",
    "message_start",
    "content_block_start",
    "content_block_delta",
    "message_delta",
    "response.completed",
    "response.output_item.done",
];

/// Values with keys of all formats in odd places.
fn noise() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (0..9_u64).prop_map(Value::from),
        prop::sample::select(&WORDS[..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        let key = prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key, inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
}
