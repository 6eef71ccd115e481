//! JSON compared by value: `1`, `1.0` and `1e0` are one number, whatever its size.
//!
//! Numbers keep the digits they were written with, so `==` on [`Value`] compares spelling.
//! All comparisons of JSON values use this module.

mod decimal;
mod decode;
mod duplicate_keys;
mod reserved;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Number, Value};

use self::decimal::Decimal;
pub use self::decode::{compact, decode, has_lone_surrogate, spelled};
pub use self::duplicate_keys::repeats_a_key;

/// The maximum number of characters of a value in a message.
const BRIEF_CHARS: usize = 120;

/// The error of a text with a reserved key.
const RESERVED_KEY: &str = "a key starts with `$serde_json::private::`, which is reserved";

/// The number of equal characters that a message shows before the difference of two long strings.
const SHARED_CHARS: usize = 20;

/// Parses a text. All texts of others are parsed here: a key that `serde_json` reserves is an error.
pub fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    if reserved::names_a_key(text) {
        return Err(serde_json::Error::custom(RESERVED_KEY));
    }
    serde_json::from_str(text)
}

/// Parses bytes. Text that is checked once is parsed faster than bytes, and the program holds only one parser of each
/// type.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> serde_json::Result<T> {
    from_str(str::from_utf8(bytes).map_err(serde_json::Error::custom)?)
}

/// Whether bytes are JSON. Its strings need not be UTF-8.
pub fn is_json(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
}

/// Whether two values are equal: key order and the spelling of numbers do not matter.
pub fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare_numbers(a, b).is_eq(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (Value::String(a), Value::String(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Null, Value::Null) => true,
        _ => false,
    }
}

/// Orders two numbers exactly, by their decimal value.
pub fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    if a.as_str() == b.as_str() {
        return Ordering::Equal;
    }
    Decimal::from(a).cmp(&Decimal::from(b))
}

/// Whether `actual` is at most `tolerance` away from `value`.
///
/// Exact, unless the exponents lie thousands of digits apart: then the nearest floats decide.
pub fn within(actual: &Number, value: &Number, tolerance: &Number) -> bool {
    let [a, b, limit] = [actual, value, tolerance].map(Decimal::from);
    if a == b {
        return !limit.is_negative();
    }
    a.distance_to(&b, &limit).map_or_else(
        || {
            let float = |number: &Number| number.as_str().parse::<f64>().unwrap_or(f64::NAN);
            (float(actual) - float(value)).abs() <= float(tolerance)
        },
        Ordering::is_le,
    )
}

/// Whether a number has no fraction: `1.0` and `1e3` have none.
pub fn is_integer(number: &Number) -> bool {
    Decimal::from(number).is_integer()
}

/// A text that is the same for two values exactly if they are [`equal`].
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => out.push_str(&Decimal::from(number).to_string()),
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                write_canonical(element, out);
                out.push(',');
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (key, member) in members {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write_canonical(member, out);
                out.push(',');
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

/// The value as compact JSON, cut to what a message can carry.
pub fn brief(value: &Value) -> String {
    let mut out = BoundedWriter::default();
    // An error only says that the rest was cut.
    match write!(out, "{value}") {
        Ok(()) => out.text,
        Err(fmt::Error) => out.text + "…",
    }
}

/// Two values for one message. Long strings are shown from shortly before they differ.
pub fn brief_pair(a: &Value, b: &Value) -> (String, String) {
    if let (Value::String(a), Value::String(b)) = (a, b) {
        let differs = a
            .char_indices()
            .zip(b.chars())
            .find(|((_, a), b)| a != b)
            .map_or(a.len().min(b.len()), |((at, _), _)| at);
        // Four bytes are the longest character, so there are enough of them to go back over.
        if differs > 4 * SHARED_CHARS {
            let mut shared = a[..differs].char_indices().rev();
            let from = shared.nth(SHARED_CHARS - 1).map_or(0, |(at, _)| at);
            let tail = |text: &str| format!("…{}", brief(&Value::from(&text[from..])));
            return (tail(a), tail(b));
        }
    }
    (brief(a), brief(b))
}

/// Stops at the maximum length, so that a huge value costs no more than a small one.
#[derive(Default)]
struct BoundedWriter {
    text: String,
    chars: usize,
}

impl fmt::Write for BoundedWriter {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        for c in spelled(part).chars() {
            if self.chars == BRIEF_CHARS {
                return Err(fmt::Error);
            }
            self.text.push(c);
            self.chars += 1;
        }
        Ok(())
    }
}
