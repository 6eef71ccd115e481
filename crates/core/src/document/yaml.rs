//! Writes values as YAML, for files that people read and edit.
//!
//! Its main function is [`push_block`]. What it writes, [`parse`](super::parse) reads back as the same
//! value; strings other than plain words are quoted, so that no syntax in them has an effect.

use serde_json::Value;

use crate::printable::is_hidden;

/// Words that YAML interprets without quotes.
const WORDS: [&str; 10] = [
    "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan",
];

/// A string in double quotes. Invisible characters are escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_hidden(c) && u32::from(c) > 0xffff => {
                out.push_str(&format!("\\U{:08x}", u32::from(c)));
            }
            c if is_hidden(c) => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The key of a map, in quotes only where it needs them.
pub fn key(text: &str) -> String {
    // An operator of a matcher, such as `$match`, is a plain word too.
    let word = text.strip_prefix('$').unwrap_or(text);
    let is_plain = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_plain {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// A string: a plain word, or in the quotes that need fewer escapes.
fn string(text: &str) -> String {
    let is_escaped = |c: char| is_hidden(c) || matches!(c, '\n' | '\t' | '\r');
    if text.contains(['\\', '"']) && !text.contains(is_escaped) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    key(text)
}

/// Adds a value after `key:` or `-`: on the same line, or on separate lines with this indentation.
pub fn push_block(out: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                out.push_str(&format!("\n{pad}{}:", key(name)));
                push_block(out, value, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("\n{pad}-"));
                let mut below = String::new();
                push_block(&mut below, item, indent + 2);
                // The first line of what is below stands behind the dash.
                let first = format!("\n{pad}  ");
                match below.strip_prefix(&first) {
                    Some(rest) => out.push_str(&format!(" {rest}")),
                    None => out.push_str(&below),
                }
            }
        }
        Value::String(text) => out.push_str(&format!(" {}", string(text))),
        scalar => out.push_str(&format!(" {scalar}")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::document::parse;
    use proctor_record::json::equal;
    use proctor_record::problem::{Problems, SourceText};

    fn written(value: &Value) -> String {
        let mut out = "value:".to_owned();
        push_block(&mut out, value, 2);
        out.push('\n');
        out
    }

    fn read(text: &str) -> Value {
        let mut problems = Problems::default();
        let source = SourceText::new("test.yaml", text.to_owned());
        let document =
            parse(&source, &mut problems).unwrap_or_else(|| panic!("{problems:?}\n{text}"));
        document.root.get("value").expect("a value").to_json()
    }

    #[test]
    fn lists_and_maps_stand_on_lines_of_their_own() {
        let value = json!({"a": [1, {"b": "x", "yes": []}, [[true], {}]], "c d": null, "e": "1"});
        let expected = "value:\n  a:\n    - 1\n    - b: x\n      \"yes\": []\n    - - - true\n      - {}\n  \"c d\": null\n  e: \"1\"\n";
        assert_eq!(written(&value), expected);
        assert!(equal(&read(expected), &value));
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
            "[\\x00-\\xff\u{2000}-\u{2070}\u{e0000}-\u{e0010}'\"#:{}\\[\\]-]{0,12}"
                .prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,6}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(value in any_value()) {
            let text = written(&value);
            prop_assert!(equal(&read(&text), &value), "{}", text);
            prop_assert!(!text.chars().any(|c| c != '\n' && is_hidden(c)));
        }
    }
}
