//! Resolves plain scalars, and converts JSON's escapes to YAML's.

use std::borrow::Cow;

use proctor_record::json;
use serde_json::Number;

use super::NodeValue;

/// Resolves a plain scalar by YAML 1.2's core schema. A value without a JSON
/// form (`.inf`, `.nan`) stays a string.
pub(super) fn resolve(text: Cow<'_, str>) -> NodeValue {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => NodeValue::Null,
        "true" | "True" | "TRUE" => NodeValue::Bool(true),
        "false" | "False" | "FALSE" => NodeValue::Bool(false),
        plain => match json_number(plain) {
            Some(number) => NodeValue::Number(number, text.into_owned()),
            None => NodeValue::String(text.into_owned()),
        },
    }
}

fn json_number(text: &str) -> Option<Number> {
    if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) {
        return None;
    }
    let radix = |digits: &str, radix| {
        u128::from_str_radix(digits, radix)
            .ok()
            .and_then(|n| json::from_str(&n.to_string()).ok())
    };
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    json::from_str(&json_decimal(text)?).ok()
}

/// `+01.` and `.5e3` are numbers in YAML; JSON writes them `1` and `0.5e3`.
fn json_decimal(text: &str) -> Option<String> {
    let (sign, unsigned) = match text.as_bytes()[0] {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let exponent_at = unsigned.find(['e', 'E']).unwrap_or(unsigned.len());
    let (mantissa, exponent) = unsigned.split_at(exponent_at);
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let dot = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{dot}{fraction}{exponent}"))
}

/// JSON writes characters beyond the basic plane as two escapes; YAML has one for them.
pub(super) fn join_surrogates(text: &str) -> Cow<'_, str> {
    let json = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    if !json.starts_with(['{', '[']) || !text.contains("\\u") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if let Some(c) = surrogate_pair(rest) {
            out.push_str(&format!("\\U{:08X}", u32::from(c)));
            12
        } else {
            // Two characters, so that an escaped backslash hides what follows it.
            let two = rest.chars().take(2).map(char::len_utf8).sum();
            out.push_str(&rest[..two]);
            two
        };
        rest = &rest[taken..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn surrogate_pair(text: &str) -> Option<char> {
    let unit = |s: &str| u16::from_str_radix(s.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let pair = [unit(text)?, unit(text.get(6..)?)?];
    if !(0xD800..0xDC00).contains(&pair[0]) {
        return None;
    }
    char::decode_utf16(pair).next()?.ok()
}
