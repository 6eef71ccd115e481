//! Finds the names of calling methods in a text, in any encoding.
//!
//! Its main type is [`Methods`]. Escapes of all kinds are undone; control characters, NUL bytes (as
//! UTF-16 has them) and bytes that are not UTF-8 are skipped, as lenient decoders do; overlong UTF-8
//! is read. A text without these letters can't be a call for any implementation.

use crate::transcript::CallKind;

/// Replaces every character outside ASCII.
const OTHER: u8 = 0xff;

/// The calling methods that a text names.
#[derive(Debug)]
pub(super) struct Methods {
    /// As readers see it that drop control characters after escapes are undone, or before.
    texts: [Vec<u8>; 2],
    /// Whether the line ends in a backslash: some readers join it with the next one.
    goes_on: bool,
}

impl Methods {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let decoded = decoded(bytes);
        let ended = decoded.strip_suffix(b"\r").unwrap_or(&decoded);
        let goes_on = ended.ends_with(b"\\");
        let is_shown = |byte: &u8| !byte.is_ascii_control();
        let stripped: Vec<u8> = decoded.iter().copied().filter(is_shown).collect();
        Self {
            texts: [unescaped(&decoded), unescaped(&stripped)],
            goes_on,
        }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = CallKind> {
        CallKind::ALL.into_iter().filter(|kind| self.names(*kind))
    }

    fn names(&self, kind: CallKind) -> bool {
        let method = kind.method().as_bytes();
        self.texts.iter().any(|text| {
            let begun = || (1..method.len()).any(|length| text.ends_with(&method[..length]));
            memchr::memmem::find(text, method).is_some() || (self.goes_on && begun())
        })
    }
}

/// The call for which some implementation may take a method.
pub(super) fn meant(method: &str) -> Option<CallKind> {
    // Where strings end at a NUL, the rest of it does not count.
    let method = method.split('\0').next().unwrap_or_default();
    let is_dropped = |c: &char| c.is_control() || is_invisible(u32::from(*c));
    let plain: String = method.chars().filter(|c| !is_dropped(c)).collect();
    let plain = plain.trim().to_ascii_lowercase();
    CallKind::ALL
        .into_iter()
        .find(|kind| kind.method() == plain)
}

/// Whether the bytes are binary, such as a compressed body, with unknown content.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    let wide = bytes
        .strip_prefix(b"\xff\xfe")
        .or_else(|| bytes.strip_prefix(b"\xfe\xff"));
    let start = wide.unwrap_or(bytes).iter().copied();
    let first = start
        .filter(|byte| *byte != 0)
        .find(|byte| !byte.is_ascii_whitespace());
    std::str::from_utf8(bytes).is_err() && !matches!(first, Some(b'{' | b'['))
}

/// The text as lenient decoders see it, with one byte for every character.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    each(bytes, |rest| match rest[0] {
        0 => (None, 1),
        0x80.. => wide(rest),
        ascii => (Some(ascii), 1),
    })
}

/// The text in lower case, with escapes undone and without control characters.
fn unescaped(decoded: &[u8]) -> Vec<u8> {
    each(decoded, |rest| {
        let (character, length) = match rest[0] {
            b'\\' => escape(rest),
            other => (Some(other), 1),
        };
        let shown = character.filter(|byte| !byte.is_ascii_control());
        (shown.map(|byte| byte.to_ascii_lowercase()), length)
    })
}

/// Decodes each part of the bytes. `part` returns its character, if any, and its length.
fn each(bytes: &[u8], part: impl Fn(&[u8]) -> (Option<u8>, usize)) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        let (character, length) = part(rest);
        out.extend(character);
        rest = &rest[length.min(rest.len())..];
    }
    out
}

/// The character of an escape, if any, and its length.
fn escape(rest: &[u8]) -> (Option<u8>, usize) {
    match rest.get(1) {
        Some(b'u') if rest.get(2) == Some(&b'{') => {
            let digits = digits(&rest[3..], 16, 8);
            (number(digits, 16), 4 + digits.len())
        }
        Some(b'u') => fixed(rest, 4),
        Some(b'U') => fixed(rest, 8),
        Some(b'x') => fixed(rest, 2),
        Some(b'0'..=b'7') => {
            let digits = digits(&rest[1..], 8, 3);
            (number(digits, 8), 1 + digits.len())
        }
        Some(b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\n' | b'\r') => (None, 2),
        // Whatever else is escaped stands for itself.
        Some(other) if other.is_ascii() => (Some(*other), 2),
        Some(_) | None => (None, 1),
    }
}

/// An escape with so many hexadecimal digits.
fn fixed(rest: &[u8], count: usize) -> (Option<u8>, usize) {
    let digits = digits(&rest[2..], 16, count);
    if digits.len() == count {
        (number(digits, 16), 2 + count)
    } else {
        (Some(rest[1]), 2)
    }
}

fn digits(bytes: &[u8], radix: u32, most: usize) -> &[u8] {
    let is_digit = |byte: &&u8| char::from(**byte).is_digit(radix);
    let count = bytes.iter().take(most).take_while(is_digit).count();
    &bytes[..count]
}

fn number(digits: &[u8], radix: u32) -> Option<u8> {
    let text = std::str::from_utf8(digits).ok()?;
    let number = u32::from_str_radix(text, radix).ok()?;
    Some(
        u8::try_from(number)
            .ok()
            .filter(u8::is_ascii)
            .unwrap_or(OTHER),
    )
}

/// Whether many decoders drop a character.
fn is_invisible(character: u32) -> bool {
    matches!(character, 0xfeff | 0xfffd | 0x200b..=0x200d)
}

/// A character beyond ASCII; or an ASCII one in more bytes than it needs; or a stray byte.
fn wide(rest: &[u8]) -> (Option<u8>, usize) {
    let length = match rest[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return (None, 1),
    };
    let more = rest.get(1..length).filter(|more| {
        let mut more = more.iter();
        more.all(|byte| byte & 0xc0 == 0x80)
    });
    let Some(more) = more else {
        return (None, 1);
    };
    let lead = u32::from(rest[0]) & (0x7f >> length);
    let value = more
        .iter()
        .fold(lead, |value, byte| (value << 6) | u32::from(byte & 0x3f));
    match value {
        value if is_invisible(value) => (None, length),
        value => {
            let ascii = u8::try_from(value).ok().filter(u8::is_ascii);
            (Some(ascii.unwrap_or(OTHER)), length)
        }
    }
}
