//! A reason without the parts that differ from trial to trial: numbers, quoted values and ids.
//!
//! The main function is [`pattern`]. Names in backticks stay: a call of another tool is another cause.

/// What stands for a part that was removed.
const GAP: char = '…';

/// The text with `…` for each number, quoted value and id.
pub fn pattern(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' | '\'' => quoted(rest, before).inspect(|_| {
                out.push(first);
                gap(&mut out);
                out.push(first);
            }),
            first if is_word(first) && first != '.' => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                // A full stop after a word does not belong to it.
                let end = rest[..end]
                    .trim_end_matches('.')
                    .len()
                    .max(first.len_utf8());
                word(&rest[..end], &mut out);
                Some(end)
            }
            _ => None,
        };
        let end = taken.unwrap_or_else(|| {
            out.push(first);
            first.len_utf8()
        });
        before = rest[..end].chars().next_back();
        rest = &rest[end..];
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// The length of the quoted value that a text begins with. An apostrophe in a word quotes nothing.
fn quoted(text: &str, before: Option<char>) -> Option<usize> {
    let quote = text.chars().next()?;
    if quote == '\'' && before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        let ends = c == quote && !escaped;
        let is_apostrophe = || {
            let next = text[at + 1..].chars().next();
            quote == '\'' && next.is_some_and(char::is_alphanumeric)
        };
        if ends && !is_apostrophe() {
            return Some(at + 1);
        }
        escaped = c == '\\' && !escaped;
    }
    None
}

/// Adds a word without its numbers, or a gap for a word that is an id or a duration.
fn word(word: &str, out: &mut String) {
    if is_uuid(word) || is_duration(word) {
        gap(out);
        return;
    }
    for part in word.split_inclusive(['-', '_', '.']) {
        let (name, separator) = match part.char_indices().next_back() {
            Some((at, '-' | '_' | '.')) => part.split_at(at),
            _ => (part, ""),
        };
        if is_id(name) {
            gap(out);
        } else {
            without_digits(name, out);
        }
        // `1.5` and `10-20` are one gap each.
        if !(out.ends_with(GAP) && separator == ".") {
            out.push_str(separator);
        }
    }
}

fn without_digits(name: &str, out: &mut String) {
    for c in name.chars() {
        if c.is_ascii_digit() {
            gap(out);
        } else {
            out.push(c);
        }
    }
}

/// Adds a gap, unless the text already ends in one.
fn gap(out: &mut String) {
    if !out.ends_with(GAP) {
        out.push(GAP);
    }
}

fn is_uuid(word: &str) -> bool {
    let parts: Vec<&str> = word.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    lengths == [8, 4, 4, 4, 12] && parts.iter().all(|part| is_hex(part))
}

/// Whether a word is a number with a unit of time: the same wait is `980ms` or `1.2s`.
fn is_duration(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    unit.len() < word.len() && matches!(unit, "ns" | "µs" | "us" | "ms" | "s" | "m" | "min" | "h")
}

/// Whether a part of a word is generated: a hash, or letters and digits in turns.
fn is_id(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 {
        return false;
    }
    let bytes = part.as_bytes();
    let turns = bytes
        .windows(2)
        .filter(|pair| pair[0].is_ascii_digit() != pair[1].is_ascii_digit());
    let turns = turns.count();
    (part.len() >= 6 && is_hex(part)) || (part.len() >= 5 && digits >= 2 && turns >= 2)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
