//! Generates a string that matches its schema and that the tool may accept.

use proctor_core::pattern::Pattern;
use serde_json::Value;

/// A value for each format.
const FORMATS: [(&str, &str); 14] = [
    ("date", "2025-01-31"),
    ("date-time", "2025-01-31T12:00:00Z"),
    ("time", "12:00:00Z"),
    ("duration", "PT1H"),
    ("email", "user@example.com"),
    ("idn-email", "user@example.com"),
    ("hostname", "example.com"),
    ("ipv4", "192.0.2.1"),
    ("ipv6", "2001:db8::1"),
    ("uri", "https://example.com/"),
    ("uri-reference", "https://example.com/"),
    ("uuid", "00000000-0000-4000-8000-000000000000"),
    ("json-pointer", "/example"),
    ("regex", "example"),
];

/// A value for the last part of a property name.
const NAMES: [(&str, &str); 19] = [
    ("timezone", "UTC"),
    ("tz", "UTC"),
    ("datetime", "2025-01-31T12:00:00Z"),
    ("time", "12:00"),
    ("date", "2025-01-31"),
    ("path", "."),
    ("dir", "."),
    ("directory", "."),
    ("folder", "."),
    ("repo", "."),
    ("revision", "HEAD"),
    ("url", "https://example.com/"),
    ("uri", "https://example.com/"),
    ("email", "user@example.com"),
    ("host", "example.com"),
    ("id", "1"),
    ("language", "en"),
    ("currency", "EUR"),
    ("country", "DE"),
];

/// Values that match common patterns.
const COMMON: [&str; 7] = ["Example", "EXAMPLE", "a", "A", "1", "12:00", "2025-01-31"];

pub(super) fn make(schema: &Value, name: &str) -> Option<String> {
    let format = schema.get("format").and_then(Value::as_str);
    let by_format = FORMATS.iter().find(|(word, _)| Some(*word) == format);
    let plain: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let plain = plain.to_lowercase();
    let by_name = NAMES
        .iter()
        .find(|(word, _)| last_part(name) == *word || plain.ends_with(word) && word.len() > 3);
    let described = schema
        .get("description")
        .and_then(Value::as_str)
        .and_then(example_in);
    let candidates = by_format
        .map(|(_, text)| (*text).to_owned())
        .into_iter()
        .chain(described)
        .chain(by_name.map(|(_, text)| (*text).to_owned()))
        .chain(["example".to_owned()])
        .chain(of_length(schema))
        .chain(COMMON.map(str::to_owned));
    let pattern = match schema.get("pattern").and_then(Value::as_str) {
        Some(pattern) => Some(Pattern::compile(pattern).ok()?),
        None => None,
    };
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let fits = |text: &String| {
        let length = text.chars().count() as u64;
        bound("minLength").is_none_or(|least| length >= least)
            && bound("maxLength").is_none_or(|most| length <= most)
            && pattern
                .as_ref()
                .is_none_or(|pattern| pattern.is_match(text))
    };
    candidates.into_iter().find(fits)
}

/// The last part of `source_timezone` and `sourceTimezone`, in lower case.
fn last_part(name: &str) -> String {
    let start = name
        .rfind(|c: char| !c.is_alphanumeric())
        .map_or(0, |at| at + 1);
    let part = name.get(start..).unwrap_or(name);
    let start = part.rfind(char::is_uppercase).unwrap_or(0);
    part[start..].to_lowercase()
}

/// A string of the minimum length.
fn of_length(schema: &Value) -> Option<String> {
    let least = schema.get("minLength").and_then(Value::as_u64)?;
    let least = usize::try_from(least)
        .ok()
        .filter(|least| *least <= 1_000)?;
    Some("example ".chars().cycle().take(least).collect())
}

/// The quoted text after `e.g.` in a description.
fn example_in(description: &str) -> Option<String> {
    let lower = description.to_ascii_lowercase();
    let at = ["e.g.", "for example", "example:"]
        .iter()
        .filter_map(|word| Some(lower.find(word)? + word.len()))
        .min()?;
    let behind = description.get(at..)?;
    let (start, quote) = behind
        .char_indices()
        .take(20)
        .find(|(_, c)| matches!(c, '\'' | '"' | '`'))?;
    let inside = behind.get(start + 1..)?;
    let text = &inside[..inside.find(quote)?];
    (!text.is_empty() && text.len() <= 100).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn e38_texts_fit_their_schema_and_their_name() {
        let check = |name: &str, schema: Value, expected: Option<&str>| {
            assert_eq!(make(&schema, name).as_deref(), expected, "{name}: {schema}");
        };
        check("message", json!({}), Some("example"));
        check(
            "x",
            json!({"format": "uuid"}),
            Some("00000000-0000-4000-8000-000000000000"),
        );
        check("source_timezone", json!({}), Some("UTC"));
        check("sourceTimezone", json!({}), Some("UTC"));
        check("repo_path", json!({}), Some("."));
        check("userId", json!({}), Some("1"));
        check("grid", json!({}), Some("example"));
        check(
            "x",
            json!({"description": "A name (e.g., 'America/New_York') of a zone"}),
            Some("America/New_York"),
        );
        check(
            "x",
            json!({"description": "It's a name, e.g. of Ada's"}),
            Some("example"),
        );
        check("x", json!({"maxLength": 3}), Some("a"));
        check("x", json!({"minLength": 10}), Some("example ex"));
        check("x", json!({"pattern": "^[0-9]+$"}), Some("1"));
        check("x", json!({"pattern": "^(?!x)nothing$"}), None);
        check("x", json!({"minLength": 100_000}), None);
    }
}
