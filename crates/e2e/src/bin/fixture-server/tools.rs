use std::path::Path;

use serde_json::Value;

use crate::exchange::Exchange;
use crate::message::{Era, INVALID_PARAMS, MISSING_CAPABILITY, Reply, Request, UNKNOWN, quote};
use crate::mode::Mode;
use crate::payload::Payload;

/// Whether a call takes a while without any mode.
pub fn waits(request: &Request) -> bool {
    request.method == "tools/call"
        && matches!(request.subject(), Some("sleep" | "ask" | "progress"))
}

/// Calls a tool; `None` if the call was cancelled.
pub fn call(exchange: &Exchange) -> Option<Reply> {
    if let Some(kind) = exchange.argument(Mode::AsksClient) {
        match ask(exchange, kind, 1) {
            ClientReply::Answer(_) => {}
            ClientReply::Reply(reply) => return Some(reply),
            ClientReply::Cancelled => return None,
        }
    }
    if let Some(content) = odd_content(exchange) {
        return Some(Reply::Complete(content));
    }
    let request = &exchange.request;
    Some(match request.subject().unwrap_or_default() {
        "echo" => {
            let Some(said) = request.argument("text").as_str() else {
                return Some(Reply::error(INVALID_PARAMS, "`text` must be a string"));
            };
            text(said)
        }
        "add" => add(request),
        "fail" => Reply::Complete(
            r#""isError":true,"content":[{"type":"text","text":"this always fails"}]"#.into(),
        ),
        "sleep" => {
            let is_done = match request.argument("until").as_str() {
                Some(file) => exchange.wait_for_file(Path::new(file)),
                None => exchange.pause(number(request, "ms")),
            };
            if !is_done {
                return None;
            }
            text("slept")
        }
        "big" => Reply::Complete(block(Payload::repeat("x", number(request, "bytes")))),
        "env" => {
            let name = request.argument("name").as_str().unwrap_or_default();
            let value = std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
            let structured = Value::from(value.clone());
            let said = quote(&value.unwrap_or_default());
            Reply::Complete(format!(r#""structuredContent":{{"value":{structured}}},"content":[{{"type":"text","text":{said}}}]"#).into())
        }
        "ask" => {
            let kind = request.argument("kind").as_str().unwrap_or("elicitation");
            let rounds = number(request, "rounds").max(1);
            match ask(exchange, kind, rounds) {
                ClientReply::Answer(answer) => structured(&answer),
                ClientReply::Reply(reply) => reply,
                ClientReply::Cancelled => return None,
            }
        }
        "progress" => {
            let steps = number(request, "steps").max(1);
            for step in 1..=steps {
                exchange.progress(step, Some(steps));
                if !exchange.pause(number(request, "ms")) {
                    return None;
                }
            }
            let until = request.argument("until").as_str();
            if until.is_some_and(|file| !exchange.wait_for_file(Path::new(file))) {
                return None;
            }
            text("done")
        }
        "late" => text("better than never"),
        name => Reply::error(INVALID_PARAMS, format!("unknown tool `{name}`")),
    })
}

fn number(request: &Request, name: &str) -> u64 {
    request.argument(name).as_u64().unwrap_or(0)
}

fn text(said: &str) -> Reply {
    let said = quote(said);
    Reply::Complete(format!(r#""content":[ {{"text":{said},"type":"text",  {UNKNOWN}}}]"#).into())
}

fn structured(value: &Value) -> Reply {
    let said = quote(&value.to_string());
    Reply::Complete(
        format!(r#""structuredContent":{value},"content":[{{"type":"text","text":{said}}}]"#)
            .into(),
    )
}

fn block(raw_text: Payload) -> Payload {
    Payload::from(r#""content":[{"type":"text","text":""#)
        .then(raw_text)
        .then("\"}]")
}

/// Adds exactly in 64 bits, otherwise as floats.
fn add(request: &Request) -> Reply {
    let (a, b) = (request.argument("a"), request.argument("b"));
    let whole = a
        .as_i64()
        .zip(b.as_i64())
        .and_then(|(a, b)| a.checked_add(b))
        .map(Value::from);
    let float = || a.as_f64().zip(b.as_f64()).map(|(a, b)| Value::from(a + b));
    match whole.or_else(float) {
        Some(sum) => Reply::Complete(
            format!(r#""structuredContent":{{"sum":{sum}}} ,"content":[{{"type":"text","text":"{sum}",{UNKNOWN}}}]"#).into(),
        ),
        None => Reply::Complete(r#""content":[{"type":"text","text":"`a` and `b` must be numbers"}], "isError":true"#.into()),
    }
}

/// Returns the members of an unusual result.
fn odd_content(exchange: &Exchange) -> Option<Payload> {
    if let Some(bytes) = exchange.number(Mode::BigResult, 0) {
        return Some(block(Payload::repeat("x", bytes)));
    }
    if let Some(blocks) = exchange.number(Mode::ManyBlocks, 1) {
        let more = Payload::repeat(r#"{"type":"text","text":"x"},"#, blocks.saturating_sub(1));
        return Some(
            Payload::from(r#""content":["#)
                .then(more)
                .then(r#"{"type":"text","text":"x"}]"#),
        );
    }
    if let Some(depth) = exchange.number(Mode::DeepNesting, 1) {
        let deep = Payload::repeat("[", depth).then(Payload::repeat("]", depth));
        let content = Payload::from(
            r#""content":[{"type":"text","text":"deep"}],"structuredContent":{"deep":"#,
        );
        return Some(content.then(deep).then("}"));
    }
    if let Some(depth) = exchange.number(Mode::TextsInTexts, 1) {
        let deep = texts_in_texts(depth);
        return Some(Payload::from(format!(
            r#""content":[{{"type":"text","text":"deep"}}],"structuredContent":{deep}"#
        )));
    }
    let odd: &[u8] = if exchange.has(Mode::InvalidUtf8) {
        b"a\xff\xfe\xc3(b"
    } else if exchange.has(Mode::LoneSurrogate) {
        br"a\ud800b"
    } else if exchange.argument(Mode::Nul) == Some("raw") {
        b"a\0b"
    } else if exchange.has(Mode::Nul) {
        br"a\u0000b"
    } else {
        return None;
    };
    Some(block(odd.into()))
}

/// JSON that a parser with the raw values of `serde_json` parses again and again, each time with a new limit of depth.
fn texts_in_texts(depth: u64) -> String {
    (0..depth).fold("1".to_owned(), |text, _| {
        // Written so, an escape grows by five bytes in each text, and is not doubled.
        let text = text.replace('\\', r"\u005c").replace('"', r"\u0022");
        format!(r#"{{"$serde_json::private::RawValue":"{text}"}}"#)
    })
}

/// The outcome of a request to the client.
enum ClientReply {
    Answer(Value),
    /// The request for input, or an error: the response to the call.
    Reply(Reply),
    Cancelled,
}

fn ask(exchange: &Exchange, kind: &str, rounds: u64) -> ClientReply {
    let Some((method, params)) = question(kind) else {
        return ClientReply::Reply(Reply::error(
            INVALID_PARAMS,
            format!("unknown kind `{kind}`"),
        ));
    };
    match exchange.era {
        Era::Stateless => ask_by_answer(exchange, kind, method, params, rounds),
        Era::Handshake => {
            let mut answers = Vec::new();
            for _ in 0..rounds {
                let Some(answer) = exchange.ask(method, params) else {
                    return ClientReply::Cancelled;
                };
                answers.push(outcome(answer));
            }
            ClientReply::Answer(told(kind, &answers))
        }
    }
}

/// Returns the client's result in the form of the stateless era; an error unchanged.
fn outcome(mut answer: Value) -> Value {
    match answer.get_mut("result") {
        Some(result) => result.take(),
        None => serde_json::json!({ "error": answer["error"] }),
    }
}

/// Requests input in the result: in the stateless era the client calls again with its reply.
fn ask_by_answer(
    exchange: &Exchange,
    kind: &str,
    method: &str,
    params: &str,
    rounds: u64,
) -> ClientReply {
    let sent = &exchange.request.params;
    let able = &sent["_meta"]["io.modelcontextprotocol/clientCapabilities"][kind];
    if able.is_null() && !exchange.has(Mode::AsksClient) {
        return ClientReply::Reply(Reply::Error {
            code: MISSING_CAPABILITY,
            message: format!("the client can't do {kind}"),
            data: Some(format!(r#"{{"requiredCapabilities":{{"{kind}":{{}}}}}}"#)),
        });
    }
    let state = sent["requestState"]
        .as_str()
        .and_then(|state| state.strip_prefix("round "));
    let done = state.and_then(|done| done.parse().ok()).unwrap_or(0);
    let key = format!("{kind}-{done}");
    let answer = sent["inputResponses"].get(&key);
    if let Some(answer) = answer
        && done >= rounds
    {
        return ClientReply::Answer(told(kind, std::slice::from_ref(answer)));
    }
    // A retry without the reply gets the same request again.
    let next = if done == 0 || answer.is_some() {
        done + 1
    } else {
        done
    };
    ClientReply::Reply(Reply::InputRequired(format!(
        r#""requestState":"round {next}", "inputRequests":{{"{kind}-{next}":{{"params":{params},"method":"{method}",{UNKNOWN}}}}}"#
    )))
}

fn told(kind: &str, answers: &[Value]) -> Value {
    serde_json::json!({ "kind": kind, "answers": answers })
}

fn question(kind: &str) -> Option<(&'static str, &'static str)> {
    Some(match kind {
        "roots" => ("roots/list", "{}"),
        "sampling" => (
            "sampling/createMessage",
            r#"{"maxTokens":16,"messages":[{"role":"user","content":{"type":"text","text":"Say yes."}}], "x-unknown":1}"#,
        ),
        "elicitation" => (
            "elicitation/create",
            r#"{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"x-unknown":1}"#,
        ),
        _ => return None,
    })
}
