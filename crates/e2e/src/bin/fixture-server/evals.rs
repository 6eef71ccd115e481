//! The shipped evals: `evals/list` in pages, the declaration, and all their faults.
//!
//! Items are stored and sent as text, so that malformed and unknown ones can be shipped.

use std::path::Path;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::{Era, INVALID_PARAMS, Reply};
use crate::mode::{Mode, Modes};
use crate::options::Options;
use crate::payload::Payload;

const MILLION: u64 = 1_000_000;
const LEVELS: [&str; 3] = ["invocation", "execution", "scenario"];
const EXTENSION: &str = "dev.mcp-proctor/evals";

/// The default eval if a mode needs one and there is no file.
const DEFAULT: &str = r#"{"id":"hello","name":"Says hello","gradingType":"llm-as-judge","input":{"type":"execution","toolName":"echo","arguments":{"text":"hello"}}, "expected":{"type":"llm-as-judge","rubric":"It says hello."},"x-unknown":{"n":12345678901234567890}}"#;
/// The eval that is added when the list changes.
const LATE: &str = r#"{"id":"late","name":"Was not there before","gradingType":"llm-as-judge","input":{"type":"execution","toolName":"echo","arguments":{"text":"late"}}, "expected":{"type":"llm-as-judge","rubric":"It says late."}}"#;

/// The modes that make a server ship evals.
const SHIPPING: [Mode; 11] = [
    Mode::EvalsPage,
    Mode::EvalsAt,
    Mode::EvalsNowhere,
    Mode::EvalsMillion,
    Mode::EvalsEndlessCursor,
    Mode::EvalsSameCursor,
    Mode::EvalsEmptyCursor,
    Mode::EvalsIgnoreLevel,
    Mode::EvalsChangeAfter,
    Mode::EvalsListChanged,
    Mode::EvalsBigRubric,
];

/// The items of the list, as text.
pub struct Evals(Vec<String>);

impl Evals {
    /// Reads the file; `None` if no option asks for evals.
    pub fn read(options: &Options) -> Result<Option<Self>, String> {
        if let Some(path) = &options.evals {
            return Self::of_file(path).map(Some);
        }
        let asked = SHIPPING.iter().any(|mode| options.modes.has(*mode));
        Ok(asked.then(|| Self(vec![DEFAULT.to_owned()])))
    }

    fn of_file(path: &Path) -> Result<Self, String> {
        let wrong = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
        let items: Vec<Box<RawValue>> =
            serde_json::from_str(&text).map_err(|error| wrong(&error))?;
        // In JSON a line break is white space; on stdio it would end the message.
        let on_one_line = |item: Box<RawValue>| item.get().replace(['\n', '\r'], " ");
        Ok(Self(items.into_iter().map(on_one_line).collect()))
    }

    /// Returns one page, as the modes require.
    pub fn page(&self, params: &Value, modes: &Modes, changed: bool, era: Era) -> Reply {
        let level = params.get("level");
        let known = level.is_none_or(|level| LEVELS.iter().any(|known| level == known));
        if !known && !modes.has(Mode::EvalsIgnoreLevel) {
            return Reply::error(INVALID_PARAMS, "unknown `level`");
        }
        let level = level.and_then(Value::as_str);
        let level = level.filter(|_| !modes.has(Mode::EvalsIgnoreLevel));
        let cursor = params.get("cursor");
        let start = match cursor {
            None => Some(0),
            Some(cursor) => cursor.as_str().and_then(|cursor| start_of(cursor, modes)),
        };
        let Some(start) = start else {
            return Reply::error(INVALID_PARAMS, "unknown cursor");
        };
        let (items, next) = self.slice(start, level, modes, changed);
        let next = next.map_or_else(String::new, |cursor| format!(r#""nextCursor":"{cursor}","#));
        let cache = if era == Era::Stateless {
            r#","cacheScope":"private", "ttlMs":0"#
        } else {
            ""
        };
        let head = Payload::from(format!(r#"{next}"evals":[ "#));
        Reply::Complete(head.then(items).then(format!("]{cache}")))
    }

    /// Returns the items from a position on, and the next cursor.
    fn slice(
        &self,
        start: u64,
        level: Option<&str>,
        modes: &Modes,
        changed: bool,
    ) -> (Payload, Option<String>) {
        if modes.has(Mode::EvalsMillion) {
            let end = (start + modes.number(Mode::EvalsPage, 1).unwrap_or(1000)).min(MILLION);
            let made: Vec<String> = (start..end).map(generated).collect();
            let next = (end < MILLION).then(|| format!("from-{end}"));
            return (made.join(",").into(), next);
        }
        let mut meant: Vec<Payload> = self
            .0
            .iter()
            .map(String::as_str)
            .chain(changed.then_some(LATE))
            .filter(|item| level.is_none_or(|level| is_of(item, level)))
            .map(Payload::from)
            .collect();
        if let Some(bytes) = modes.number(Mode::EvalsBigRubric, 0)
            && level.is_none_or(|level| level == "execution")
        {
            meant.push(big_rubric(bytes));
        }
        let all = meant.len() as u64;
        let empty_cursor = modes.has(Mode::EvalsEmptyCursor);
        let missing = if empty_cursor { 1 } else { all };
        let size = modes.number(Mode::EvalsPage, 1).unwrap_or(missing).max(1);
        // The second page of two has all remaining items.
        let size = if empty_cursor && start > 0 { all } else { size };
        let end = start.saturating_add(size);
        let place = |at: u64| usize::try_from(at.min(all)).unwrap_or(usize::MAX);
        let items = meant.drain(place(start)..place(end));
        let joined = items
            .enumerate()
            .fold(Payload::default(), |all, (at, item)| {
                let comma = if at == 0 { "" } else { " ," };
                all.then(comma).then(item)
            });
        let next = if modes.has(Mode::EvalsSameCursor) {
            Some("again".to_owned())
        } else if empty_cursor {
            (start == 0).then(String::new)
        } else {
            let more = end < all || modes.has(Mode::EvalsEndlessCursor);
            more.then(|| format!("from-{end}"))
        };
        (joined, next)
    }

    /// Returns the members of the capabilities, of `experimental` and of `extensions` that declare
    /// evals.
    pub fn declared(modes: &Modes) -> [String; 3] {
        let object = if modes.has(Mode::EvalsListChanged) {
            r#"{"listChanged":true, "x-unknown":1}"#
        } else {
            r#"{ "x-unknown":1}"#
        };
        let places = modes
            .argument(Mode::EvalsAt)
            .unwrap_or("top,experimental,extensions");
        let at = |place: &str, key: &str| {
            let asked = places.split(',').any(|asked| asked == place);
            if asked && !modes.has(Mode::EvalsNowhere) {
                format!(r#""{key}":{object},"#)
            } else {
                String::new()
            }
        };
        [
            at("top", "evals"),
            at("experimental", "evals"),
            at("extensions", EXTENSION),
        ]
    }
}

/// Returns the start of the page of a cursor.
fn start_of(cursor: &str, modes: &Modes) -> Option<u64> {
    match cursor {
        "" if modes.has(Mode::EvalsEmptyCursor) => {
            Some(modes.number(Mode::EvalsPage, 1).unwrap_or(1))
        }
        "again" if modes.has(Mode::EvalsSameCursor) => Some(0),
        _ => cursor.strip_prefix("from-")?.parse().ok(),
    }
}

/// Whether an item has this level; `false` if it is malformed.
fn is_of(item: &str, level: &str) -> bool {
    let item: Value = serde_json::from_str(item).unwrap_or_default();
    item["input"]["type"] == level
}

fn generated(number: u64) -> String {
    format!(
        r#"{{"id":"made-{number}","name":"Made {number}","gradingType":"llm-as-judge","input":{{"type":"execution","toolName":"echo","arguments":{{"text":"{number}"}}}},"expected":{{"type":"llm-as-judge","rubric":"It says {number}."}}}}"#
    )
}

fn big_rubric(bytes: u64) -> Payload {
    let head = r#"{"id":"big-rubric","name":"Says much","gradingType":"llm-as-judge","input":{"type":"execution","toolName":"echo","arguments":{"text":"x"}},"expected":{"type":"llm-as-judge","rubric":""#;
    Payload::from(head)
        .then(Payload::repeat("x", bytes))
        .then("\"}}")
}
