//! Keys that `serde_json` reserves for itself.
//!
//! With raw values and exact numbers, `serde_json` reads an object with such a key as the JSON in a text, or as a number. So
//! Proctor would see another value than other parsers; and each text in a text is parsed with a new limit of depth, until
//! the stack is exhausted. [`names_a_key`] finds such texts, so that they can be refused.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;

/// The start of all reserved keys.
const RESERVED: &str = "$serde_json::private::";

/// Reserved keys are shorter than this, if each character is an escape.
const LONGEST_SPELLING: usize = 64 * r"\u0000".len();

/// Whether an object of a JSON text has a reserved key. If the text is not JSON, this is true of the part that is.
pub(super) fn names_a_key(text: &str) -> bool {
    may_name_a_key(text) && find(text)
}

/// Whether a reserved key may be in the text, as it is or in escapes. Other escapes than these don't spell its characters.
fn may_name_a_key(text: &str) -> bool {
    static PLAIN: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(RESERVED));
    static ESCAPE: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(r"\u00"));
    text.len() > RESERVED.len()
        && (PLAIN.find(text.as_bytes()).is_some() || ESCAPE.find(text.as_bytes()).is_some())
}

fn find(text: &str) -> bool {
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'"', rest.as_bytes()) {
        let from = &rest[start..];
        rest = after_string(&from[1..]);
        let literal = &from[..from.len() - rest.len()];
        if is_reserved(literal) && rest.trim_ascii_start().starts_with(':') {
            return true;
        }
    }
    false
}

/// What follows a string, whose opening quote is not part of the text.
pub(super) fn after_string(text: &str) -> &str {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'"', b'\\', rest.as_bytes()) {
        if rest.as_bytes()[at] == b'"' {
            return &rest[at + 1..];
        }
        // Only a text that is not JSON has another character than ASCII here.
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    ""
}

/// Whether a string, with its quotes, is a reserved key.
fn is_reserved(literal: &str) -> bool {
    if literal.len() > LONGEST_SPELLING {
        return false;
    }
    let key = if literal.contains('\\') {
        serde_json::from_str(literal).unwrap_or(Cow::Borrowed(""))
    } else {
        Cow::Borrowed(literal.trim_matches('"'))
    };
    key.starts_with(RESERVED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_keys_are_found_however_they_are_written() {
        for text in [
            r#"{"$serde_json::private::RawValue":"1"}"#,
            r#"[1,{"a":{"$serde_json::private::Number" : "1"}}]"#,
            r#"{"a\"":"\\","\u0024serde_json::private::RawValue":"1"}"#,
            r#"{"$serde_json::private::R\u0061wValue":"1"}"#,
            r#"{"$serde_json::private::Something":1}"#,
            // The parser takes these before it notices the mistake.
            r#"{"$serde_json::private::RawValue":"1","#,
            r#"{"$serde_json::private::RawValue":"1"}}"#,
        ] {
            assert!(names_a_key(text), "{text}");
        }
        for text in [
            "",
            "\"",
            r#"{"a":"$serde_json::private::RawValue"}"#,
            r#"{"$serde_json::private":1,"\u0024":2,"\u001b":3}"#,
            r#"["$serde_json::private::RawValue",{"a":1}]"#,
            r#"{"text":"{\"$serde_json::private::RawValue\":\"1\"}"}"#,
            r#"{"text":"{\"\\u0024serde_json::private::RawValue\":\"1\"}"}"#,
            r#"{"\\u0024serde_json::private::RawValue":1}"#,
            "\"\\é\":$serde_json::private::",
        ] {
            assert!(!names_a_key(text), "{text}");
        }
    }

    #[test]
    fn a_longer_key_is_no_reserved_one() {
        let key = "a".repeat(2 * LONGEST_SPELLING);
        assert!(!names_a_key(&format!(
            r#"{{"$serde_json::private::{key}":1}}"#
        )));
    }
}
