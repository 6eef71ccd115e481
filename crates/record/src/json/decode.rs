//! Parses JSON without loss and without ambiguity.
//!
//! JSON strings may contain half of a surrogate pair, which Rust strings can't: a private-use character
//! replaces it, so that nothing is lost and the rest can be read. A duplicate key is an
//! error: implementations disagree on which of the two counts.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::from_str;
use super::reserved::after_string;
use crate::excerpt::excerpt;

/// The first half of a pair, and what stands for it: the last 2048 characters, which are for private
/// use.
const SURROGATES: u32 = 0xd800;
const STAND_INS: u32 = 0x10_f800;

/// Parses a text. Stand-ins replace half surrogate pairs; duplicate keys are refused.
pub fn decode(text: &str) -> serde_json::Result<Value> {
    let text = with_stand_ins(text);
    match from_str(&text) {
        // A value without its duplicates has fewer members than the text.
        Ok(value) if members_of(&value) == written_members(&text) => Ok(value),
        parsed => {
            from_str::<UnambiguousValue>(&text)?;
            parsed
        }
    }
}

/// The number of members of all objects in a value.
fn members_of(value: &Value) -> usize {
    match value {
        Value::Array(elements) => elements.iter().map(members_of).sum(),
        Value::Object(members) => members.len() + members.values().map(members_of).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// The number of members in a JSON text, which is the number of colons outside of strings.
fn written_members(text: &str) -> usize {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b':', b'"', rest.as_bytes()) {
        let is_string = rest.as_bytes()[at] == b'"';
        rest = &rest[at + 1..];
        if is_string {
            rest = after_string(rest);
        } else {
            count += 1;
        }
    }
    count
}

/// The value without spare memory: the parser leaves room for more in every array and object, several times the size of a
/// small one.
pub fn compact(value: Value) -> Value {
    match value {
        Value::Array(elements) => {
            let elements: Box<[Value]> = elements.into_iter().map(compact).collect();
            Value::Array(elements.into())
        }
        Value::Object(members) => {
            let mut exact = Map::with_capacity(members.len());
            exact.extend(
                members
                    .into_iter()
                    .map(|(key, value)| (key, compact(value))),
            );
            Value::Object(exact)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// Whether a value contains half of a surrogate pair, which parsers read differently.
pub fn has_lone_surrogate(value: &Value) -> bool {
    let is_in = |text: &str| text.chars().any(|c| half(c).is_some());
    match value {
        Value::String(text) => is_in(text),
        Value::Array(elements) => elements.iter().any(has_lone_surrogate),
        Value::Object(members) => members
            .iter()
            .any(|(key, member)| is_in(key) || has_lone_surrogate(member)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// A text with every half of a surrogate pair spelled as its escape. In the text of a JSON document
/// this gives the document back.
pub fn spelled(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| half(c).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match half(c) {
            Some(half) => out.push_str(&format!("\\u{half:04x}")),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// The half that a character stands for.
fn half(c: char) -> Option<u32> {
    u32::from(c)
        .checked_sub(STAND_INS)
        .map(|number| SURROGATES + number)
}

/// The text with stand-ins for escapes of half a pair.
fn with_stand_ins(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        at += found;
        let Some(unit) = unit(&bytes[at..]) else {
            // Also the second of two backslashes is part of this escape.
            at = (at + 2).min(bytes.len());
            continue;
        };
        let next = bytes.get(at + 6..).and_then(self::unit);
        match (unit, next) {
            (0xd800..=0xdbff, Some(0xdc00..=0xdfff)) => at += 12,
            (0xd800..=0xdfff, _) => {
                out.push_str(&text[copied..at]);
                out.extend(char::from_u32(STAND_INS + unit - SURROGATES));
                at += 6;
                copied = at;
            }
            _ => at += 6,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// The number of an escape such as `\\ud800`, if one is here.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Checks a value for duplicate keys, and drops it.
struct UnambiguousValue;

impl<'de> Deserialize<'de> for UnambiguousValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UnambiguousValue {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut keys: HashSet<String> = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<Self>()?;
            if keys.contains(&key) {
                let key = excerpt(&key).into_owned();
                return Err(A::Error::custom(format!("duplicate key `{key}`")));
            }
            keys.insert(key);
        }
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self, A::Error> {
        while seq.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
