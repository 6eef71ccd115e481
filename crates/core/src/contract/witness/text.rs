//! Texts near the limits of a schema.

use regex_syntax::hir::{Class, Hir, HirKind};
use serde_json::{Map, Value, json};

use super::{LONGEST, count};

/// One text for each format that JSON Schema defines and that servers use.
const FORMATS: [(&str, &str); 12] = [
    ("date-time", "2026-01-31T12:00:00Z"),
    ("date", "2026-01-31"),
    ("time", "12:00:00Z"),
    ("duration", "P1D"),
    ("email", "a@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("uri", "https://example.com/a"),
    ("uri-reference", "/a"),
    ("uuid", "123e4567-e89b-42d3-a456-426614174000"),
    ("regex", "a+"),
];

/// The maximum number of texts for one pattern.
const MOST: usize = 24;

pub(super) fn texts(schema: &Map<String, Value>, hint: &Map<String, Value>) -> Vec<Value> {
    let mut found: Vec<String> = Vec::new();
    for schema in [schema, hint] {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            found.extend(matching(pattern));
        }
        let format = schema.get("format").and_then(Value::as_str);
        let known = FORMATS.iter().find(|(name, _)| Some(*name) == format);
        found.extend(known.map(|(_, text)| (*text).to_owned()));
    }
    let plain = ["a", "example", "", "A-b_1 é", "0", "-1", "a b", "/", "true"];
    found.extend(plain.map(str::to_owned));
    let values = hint.get("enum").and_then(Value::as_array);
    let values = values.into_iter().flatten().filter_map(Value::as_str);
    found.extend(values.map(|value| format!("{value}x")));
    let lengths = [
        count(schema, "minLength"),
        count(schema, "maxLength"),
        count(hint, "minLength").map(|least| least.saturating_sub(1)),
        count(hint, "maxLength").map(|most| most.saturating_add(1)),
    ];
    for length in lengths.into_iter().flatten().filter(|n| *n <= LONGEST) {
        found.push("a".repeat(usize::try_from(length).unwrap_or(0)));
        let pattern = schema.get("pattern").and_then(Value::as_str);
        found.extend(
            pattern
                .into_iter()
                .flat_map(|pattern| of_length(pattern, length)),
        );
    }
    found.into_iter().map(|text| json!(text)).collect()
}

/// Some texts that match a pattern; empty if the pattern is not supported.
fn matching(pattern: &str) -> Vec<String> {
    let Ok(pattern) = regex_syntax::parse(pattern) else {
        return Vec::new();
    };
    samples(&pattern)
}

/// Texts of about this length that match a pattern, made by repeating.
fn of_length(pattern: &str, length: u64) -> Vec<String> {
    let length = usize::try_from(length).unwrap_or(0);
    let stretched = matching(pattern).into_iter().filter_map(|text| {
        let last = text.chars().last()?;
        let missing = length.checked_sub(text.chars().count())?;
        Some(text + &last.to_string().repeat(missing))
    });
    stretched.take(4).collect()
}

fn samples(pattern: &Hir) -> Vec<String> {
    let mut found = match pattern.kind() {
        HirKind::Empty | HirKind::Look(_) => vec![String::new()],
        HirKind::Literal(literal) => vec![String::from_utf8_lossy(&literal.0).into_owned()],
        HirKind::Class(class) => class_samples(class),
        HirKind::Capture(capture) => samples(&capture.sub),
        HirKind::Alternation(all) => all.iter().flat_map(samples).collect(),
        HirKind::Concat(parts) => {
            let mut found = vec![String::new()];
            for part in parts {
                let next = samples(part);
                let joined = found
                    .iter()
                    .flat_map(|head| next.iter().map(move |tail| format!("{head}{tail}")));
                found = joined.take(MOST).collect();
            }
            found
        }
        HirKind::Repetition(repetition) => {
            let least = repetition.min.min(64);
            let most = repetition.max.unwrap_or(least + 1).min(least + 1);
            let of = samples(&repetition.sub);
            let times = [least, most].into_iter();
            times
                .flat_map(|times| of.iter().map(move |text| text.repeat(times as usize)))
                .collect()
        }
    };
    found.truncate(MOST);
    found
}

fn class_samples(class: &Class) -> Vec<String> {
    let Class::Unicode(class) = class else {
        return Vec::new();
    };
    let holds = |c: &char| {
        let mut ranges = class.iter();
        ranges.any(|range| range.start() <= *c && *c <= range.end())
    };
    let mut found: Vec<char> = ['a', 'Z', '0', '_', '-', ' ']
        .into_iter()
        .filter(holds)
        .collect();
    if found.is_empty() {
        found.extend(
            class
                .iter()
                .take(2)
                .map(regex_syntax::hir::ClassUnicodeRange::start),
        );
    }
    found.into_iter().map(String::from).collect()
}
