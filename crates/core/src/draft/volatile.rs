//! Recognizes values that differ between runs and machines: ids, times, paths, hashes, ports.
//!
//! The main function is [`loosened`]: a matcher that accepts such a value, and everything else as it is.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value, json};

/// How a volatile part of a text is recognized, and the pattern that takes its place.
const PARTS: [(&str, &str); 11] = [
    (r"\[redacted:[^\]]*\]", r".+"),
    (
        r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
        r"[0-9a-fA-F-]{36}",
    ),
    (
        r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?",
        r"\d{4}-\d{2}-\d{2}[\dTZ:.,+ -]*",
    ),
    (
        r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [0-9A-Za-z: ]{6,24}\d(?: [+-]\d{4})?\b",
        r"\w{3},? [\w:+ -]+",
    ),
    (r"\b\d{1,2}:\d{2}:\d{2}(?:[.,]\d+)?\b", r"[\d:.,]+"),
    (
        r"\b(?:localhost|127\.0\.0\.1):\d{2,5}\b",
        r"(?:localhost|127\.0\.0\.1):\d+",
    ),
    (r"\bfile:///[^\s'\x22]+", r"file:///\S+"),
    (
        r"(?P<before>^|[\s'\x22`(=\[,])(?P<path>(?:/[\w.@+~-]+){2,}/?)",
        r"/[\w.@+~/-]+",
    ),
    (
        r"\b(?:[0-9]+[a-f]|[a-f]+[0-9])[0-9a-f]{5,62}\b|\b[0-9a-f]{40}\b",
        r"[0-9a-f]+",
    ),
    (r"\b1\d{9}(?:\d{3})?\b", r"\d+"),
    (r"\b\d+(?:\.\d+)? ?(?:ms|µs)\b", r"[\d.]+ ?[mµ]s"),
];

/// The names of members whose values are volatile whatever they look like.
const NAMES: &str = r"(?ix) ^(?: id | ids | uuid | guid | port | pid | etag | cursor | nonce | seed | sha | hash
    | elapsed | took | timestamp | created | updated | modified )$
    | (?-i: [a-z]I[dD] | _id | At | _at | Time | _time | Port | _port | Hash | _hash | _sha )$";

/// One expression for all parts. Built once; a test builds it, so it is always valid.
static ANY_PART: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts: Vec<String> = PARTS
        .iter()
        .map(|(found, _)| format!("(?:{found})"))
        .collect();
    Regex::new(&parts.join("|")).ok()
});
static EACH_PART: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let parts = PARTS
        .iter()
        .map(|(found, _)| Regex::new(&format!("^(?:{found})$")));
    parts.filter_map(Result::ok).collect()
});
static VOLATILE_NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NAMES).ok());
static PATH: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("{}|{}", PARTS[6].0, PARTS[7].0)).ok());

/// A value that was loosened: where it is, and what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoosenedValue {
    /// The path of the value, such as `arguments.repo_path`.
    pub path: String,
    /// The value, as JSON.
    pub was: String,
}

/// A matcher for a value that accepts other ids, times and paths in it. Adds what it loosened to `found`.
pub fn loosened(value: &Value, path: &str, found: &mut Vec<LoosenedValue>) -> Value {
    match value {
        Value::Object(members) if members.keys().any(|key| key.starts_with('$')) => {
            // The keys would be operators.
            json!({ "$exact": value })
        }
        Value::Object(members) => {
            let members = members.iter().map(|(key, value)| {
                let path = format!("{path}.{key}");
                let matcher = named(key, value, &path, found);
                (
                    key.clone(),
                    matcher.unwrap_or_else(|| loosened(value, &path, found)),
                )
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            let items = items.map(|(at, item)| loosened(item, &format!("{path}[{at}]"), found));
            Value::Array(items.collect())
        }
        Value::String(text) => match pattern(text) {
            Some(pattern) => {
                note(value, path, found);
                json!({ "$match": format!("^{pattern}$") })
            }
            None => value.clone(),
        },
        Value::Number(number) => {
            let is_time = number
                .as_i64()
                .is_some_and(|n| (1_000_000_000..100_000_000_000_000).contains(&n));
            if is_time {
                note(value, path, found);
                json!({ "$type": "integer" })
            } else {
                value.clone()
            }
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// The matcher of a member whose name says that it is volatile.
fn named(key: &str, value: &Value, path: &str, found: &mut Vec<LoosenedValue>) -> Option<Value> {
    let is_volatile = VOLATILE_NAME
        .as_ref()
        .is_some_and(|names| names.is_match(key));
    let kind = match value {
        Value::String(_) => "string",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    is_volatile.then(|| {
        note(value, path, found);
        json!({ "$type": kind })
    })
}

fn note(value: &Value, path: &str, found: &mut Vec<LoosenedValue>) {
    found.push(LoosenedValue {
        path: path.to_owned(),
        was: value.to_string(),
    });
}

/// A pattern for a text with volatile parts, without anchors; `None` if it has none.
pub(super) fn pattern(text: &str) -> Option<String> {
    let any = ANY_PART.as_ref()?;
    let mut out = String::new();
    let mut end = 0;
    for found in any.captures_iter(text) {
        let (start, part) = volatile_part(&found)?;
        out.push_str(&escaped(&text[end..start]));
        out.push_str(replacement(part));
        end = start + part.len();
    }
    if end == 0 {
        return None;
    }
    out.push_str(&escaped(&text[end..]));
    Some(out)
}

/// The volatile part of a match, without the character before a path, and where it starts.
fn volatile_part<'a>(found: &Captures<'a>) -> Option<(usize, &'a str)> {
    let part = found.name("path").or_else(|| found.get(0))?;
    Some((part.start(), part.as_str()))
}

fn replacement(part: &str) -> &'static str {
    let at = EACH_PART.iter().position(|each| each.is_match(part));
    at.map_or(".+", |at| PARTS[at].1)
}

/// A text as a pattern in one line.
pub(super) fn escaped(text: &str) -> String {
    regex::escape(text)
        .replace('\r', r"\r")
        .replace('\n', r"\n")
        .replace('\t', r"\t")
        // Escapes that no engine needs make a pattern hard to read.
        .replace(r"\-", "-")
        .replace(r"\#", "#")
        .replace(r"\&", "&")
        .replace(r"\~", "~")
}

/// The first path of a file on this machine in a JSON value, keys included.
pub fn machine_path(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => {
            let found = PATH.as_ref()?.captures(text)?;
            volatile_part(&found).map(|(_, part)| part.to_owned())
        }
        Value::Array(items) => items.iter().find_map(machine_path),
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            machine_path(&Value::from(key.as_str())).or_else(|| machine_path(value))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matcher::Matcher;

    #[test]
    fn volatile_parts_of_texts_are_patterns_that_match_the_text() {
        let check = |text: &str, expected: Option<&str>| {
            let pattern = pattern(text);
            assert_eq!(pattern.as_deref(), expected, "{text}");
            if let Some(pattern) = pattern {
                let matcher = Matcher::compile(&json!({"$match": format!("^{pattern}$")}));
                let found = matcher.unwrap().evaluate(Some(&json!(text)));
                assert!(found.is_ok(), "{text}: {pattern}");
            }
        };
        for stable in [
            "The sum of 2 and 40 is 42.",
            "text/plain",
            "https://example.com/a/b",
            "a/b/c",
            "v1.2.3",
            "and/or",
            "décadé",
            "deadbeef",
            "12:30",
            "10 seconds",
            "1234567",
        ] {
            check(stable, None);
        }
        check(
            "id 6fa459ea-ee8a-3ca4-894e-db77e160355e.",
            Some(r"id [0-9a-fA-F-]{36}\."),
        );
        check(
            "at 2026-11-16T10:00:00.123Z ok",
            Some(r"at \d{4}-\d{2}-\d{2}[\dTZ:.,+ -]* ok"),
        );
        check(
            "Date: 2026-11-16 10:00:00+02:00",
            Some(r"Date: \d{4}-\d{2}-\d{2}[\dTZ:.,+ -]*"),
        );
        check(
            "Date: Mon Nov 16 15:41:35 2026 +0000",
            Some(r"Date: \w{3},? [\w:+ -]+"),
        );
        check("in /tmp/x/repo:\nok", Some(r"in /[\w.@+~/-]+:\nok"));
        check("commit 1a2b3c4d5e", Some("commit [0-9a-f]+"));
        check(
            "localhost:8080/x",
            Some(r"(?:localhost|127\.0\.0\.1):\d+/x"),
        );
        check("took 12.5 ms", Some(r"took [\d.]+ ?[mµ]s"));
        check("key [redacted:API_KEY]!", Some("key .+!"));
        check("since 1763280000", Some(r"since \d+"));
    }

    #[test]
    fn a_loosened_value_matches_itself_and_others_but_not_what_is_stable() {
        let value = json!({
            "repo_path": "/home/me/repo", "max_count": 3, "userId": "u-1", "port": 8080, "at": 1_763_280_000,
            "tags": ["a", "2026-11-16"], "filter": {"$gt": 5}, "name": "Ada", "createdAt": 7.5, "width": 3,
        });
        let mut found = Vec::new();
        let matcher = Matcher::compile(&loosened(&value, "arguments", &mut found)).unwrap();
        assert!(matcher.evaluate(Some(&value)).is_ok());
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "arguments.repo_path",
                "arguments.userId",
                "arguments.port",
                "arguments.at",
                "arguments.tags[1]",
                "arguments.createdAt",
            ]
        );
        let changed = |key: &str, to: Value| {
            let mut value = value.clone();
            value[key] = to;
            matcher.evaluate(Some(&value)).is_ok()
        };
        assert!(changed("repo_path", json!("/tmp/other/repo")));
        assert!(changed("userId", json!("u-2")));
        assert!(changed("port", json!(9090)));
        for (key, to) in [
            ("repo_path", json!("repo")),
            ("max_count", json!(4)),
            ("name", json!("Bob")),
            ("userId", json!(2)),
            ("tags", json!(["b", "2026-11-16"])),
            ("filter", json!({"$gt": 6})),
            ("width", json!(4)),
        ] {
            assert!(!changed(key, to), "{key}");
        }
    }

    #[test]
    fn a_path_of_the_machine_is_found_at_any_depth() {
        let check = |value: Value, expected: Option<&str>| {
            assert_eq!(machine_path(&value).as_deref(), expected, "{value}");
        };
        check(
            json!([{"text": "Allowed:\n/home/me/notes"}]),
            Some("/home/me/notes"),
        );
        check(json!({"a": [{"/var/lib": 1}]}), Some("/var/lib"));
        check(json!("see file:///tmp/x"), Some("file:///tmp/x"));
        check(
            json!({"a": "text/plain, and/or, https://example.com/a/b, 1/2"}),
            None,
        );
    }
}
