//! A call with its arguments and result, laid out for people.

use proctor_record::duration;
use proctor_record::json;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::Value;

use super::screen::Screen;
use super::{BAD, DOUBTFUL, FAINT, STRONG};
use crate::words;

/// Renders a call. `note` is shown behind its name.
pub(super) fn render(screen: &mut Screen, call: &Call, note: Option<&str>) {
    request(screen, call, note);
    outcome(screen, &call.answer);
}

/// Renders a call whose response may still arrive.
pub(super) fn render_open(screen: &mut Screen, call: &Call) {
    request(screen, call, None);
    screen.line(2, "→ no response yet", Some(DOUBTFUL));
}

fn request(screen: &mut Screen, call: &Call, note: Option<&str>) {
    let (what, arguments) = match &call.request {
        CallRequest::Tool { name, arguments } => {
            (format!("{}.{name}", call.server), Some(arguments))
        }
        CallRequest::Prompt { name, arguments } => {
            (format!("{}: prompt {name}", call.server), Some(arguments))
        }
        CallRequest::Resource { uri } => (format!("{}: resource {uri}", call.server), None),
    };
    let mut facts = Vec::from_iter(call.duration.map(duration::brief));
    facts.extend(note.map(str::to_owned));
    screen.numbered(call.seq, &what, STRONG, &facts.join(", "));
    match arguments.map(Payload::read) {
        None | Some(Ok(None)) => {}
        Some(Ok(Some(value))) => screen.block(2, &laid_out(value, screen.room(2)), None),
        Some(Err(unread)) => screen.line(2, &format!("arguments {unread}"), Some(FAINT)),
    }
}

fn outcome(screen: &mut Screen, outcome: &CallOutcome) {
    match outcome {
        CallOutcome::Error { code, message } => {
            screen.line(2, &format!("→ error {code}"), Some(BAD));
            screen.block(4, message, None);
        }
        CallOutcome::None => screen.line(2, "→ no response", Some(BAD)),
        CallOutcome::Result(payload) => match payload.read() {
            Ok(Some(value)) => result(screen, value),
            Ok(None) => screen.line(2, "→ empty result", Some(FAINT)),
            Err(unread) => screen.line(2, &format!("→ result {unread}"), Some(FAINT)),
        },
    }
}

fn result(screen: &mut Screen, value: &Value) {
    let bytes = words::thousands(value.to_string().len() as u64);
    if value["isError"].as_bool() == Some(true) {
        screen.line(2, &format!("→ tool error, {bytes} bytes"), Some(BAD));
    } else {
        screen.line(2, &format!("→ {bytes} bytes"), Some(FAINT));
    }
    let parts = value["content"]
        .as_array()
        .filter(|parts| !parts.is_empty());
    match parts {
        Some(parts) => {
            for part in parts {
                screen.block(4, &part_text(part, screen.room(4)), None);
            }
        }
        None => screen.block(4, &laid_out(value, screen.room(4)), None),
    }
}

/// A part of a tool's result: its text, or what it is.
fn part_text(part: &Value, room: usize) -> String {
    if let Some(text) = part["text"].as_str() {
        return match json::from_str::<Value>(text) {
            Ok(value @ (Value::Object(_) | Value::Array(_))) => laid_out(&value, room),
            _ => json::spelled(text).into_owned(),
        };
    }
    match (part["type"].as_str(), part["data"].as_str()) {
        (Some(kind), Some(data)) => {
            let mime = part["mimeType"].as_str().unwrap_or("unknown type");
            let bytes = words::thousands(data.len() as u64);
            format!("({kind}, {mime}, {bytes} bytes of base64)")
        }
        _ => laid_out(part, room),
    }
}

/// JSON in one line if it fits, otherwise indented.
fn laid_out(value: &Value, room: usize) -> String {
    let short = value.to_string();
    let text = if short.len() <= room {
        short
    } else {
        serde_json::to_string_pretty(value).unwrap_or(short)
    };
    json::spelled(&text).into_owned()
}
