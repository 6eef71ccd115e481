//! The tokens of a text that is almost JSON.

use crate::json;

/// A token. Nothing is decoded yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonToken<'a> {
    Open {
        is_object: bool,
    },
    Close {
        is_object: bool,
    },
    Colon,
    Comma,
    /// A string, with its quotes.
    Text(&'a str),
    /// A number, or a word such as `true` or `NaN`.
    Word(&'a str),
}

impl<'a> JsonToken<'a> {
    /// A scalar as it is written.
    pub(super) fn written(&self) -> &'a str {
        match self {
            Self::Text(text) | Self::Word(text) => text,
            Self::Open { .. } | Self::Close { .. } | Self::Colon | Self::Comma => "",
        }
    }
}

pub(super) struct MessageLexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> MessageLexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token, or the end; `None` if parsers may disagree on what comes next.
    #[expect(
        clippy::option_option,
        reason = "the end differs from an ambiguous token"
    )]
    pub(super) fn next(&mut self) -> Option<Option<JsonToken<'a>>> {
        let rest = &self.text[self.at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
        let rest = &rest[blank..];
        let Some(first) = rest.bytes().next() else {
            return Some(None);
        };
        let (token, length) = match first {
            b'{' => (JsonToken::Open { is_object: true }, 1),
            b'[' => (JsonToken::Open { is_object: false }, 1),
            b'}' => (JsonToken::Close { is_object: true }, 1),
            b']' => (JsonToken::Close { is_object: false }, 1),
            b':' => (JsonToken::Colon, 1),
            b',' => (JsonToken::Comma, 1),
            b'"' => {
                let length = string_length(rest)?;
                (JsonToken::Text(&rest[..length]), length)
            }
            byte if is_word(byte) => {
                let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
                (JsonToken::Word(&rest[..length]), length)
            }
            _ => return None,
        };
        self.at += blank + length;
        Some(Some(token))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.' | b'_' | b'$')
}

/// The length of a string, if all parsers end it at the same place.
fn string_length(rest: &str) -> Option<usize> {
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some(at + 1),
            '\\' => {
                let (_, escaped) = characters.next()?;
                match escaped {
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {}
                    'u' => {
                        for _ in 0..4 {
                            characters.next().filter(|(_, c)| c.is_ascii_hexdigit())?;
                        }
                    }
                    _ => return None,
                }
            }
            // Some readers end a line here, or the whole text.
            '\r'
            | '\n'
            | '\u{b}'
            | '\u{c}'
            | '\u{1c}'..='\u{1e}'
            | '\u{85}'
            | '\u{2028}'
            | '\u{2029}'
            | '\0' => return None,
            _ => {}
        }
    }
    None
}

/// The content of a string; `None` if it contains half of a surrogate pair.
pub(super) fn decode(token: &str) -> Option<String> {
    let inside = token.strip_prefix('"')?.strip_suffix('"')?;
    if !inside.contains('\\') {
        return Some(inside.to_owned());
    }
    // Raw control characters are all that the strict parser could object to, and they stay.
    let mut escaped = String::with_capacity(token.len());
    for character in token.chars() {
        if character.is_ascii_control() {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    json::from_str(&escaped).ok()
}
