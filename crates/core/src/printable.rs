//! Text from outside, made safe to show.
//!
//! A file, a server or a model can write anything. Shown as it is, a control character moves the
//! cursor and a bidirectional mark makes a line read as something else.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every control, bidirectional, invisible and tag character as an escape, line breaks
/// included.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        push_printable(&mut out, c);
    }
    Cow::Owned(out)
}

/// Adds one character, or its escape.
pub fn push_printable(out: &mut String, c: char) {
    match c {
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        c if is_hidden(c) => {
            // Writing to a string can't fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        }
        c => out.push(c),
    }
}

/// Whether a character is invisible, or changes how others are shown.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                // Letters of Hangul and vowels of Khmer that are blank.
                | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                // A pattern of Braille without a dot, and the Hangul filler.
                | '\u{2800}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_become_escapes() {
        let check = |text: &str, expected: &str| assert_eq!(printable(text), expected);
        check("plain é 漢 😀", "plain é 漢 😀");
        check("\x1b[31mred", "\\u{1b}[31mred");
        check("a\tb\r\nc", "a\\tb\\r\\nc");
        check("\u{9b}1m\u{7f}", "\\u{9b}1m\\u{7f}");
        check("user\u{202e}gnp.exe", "user\\u{202e}gnp.exe");
        check("a\u{200b}b\u{e0041}", "a\\u{200b}b\\u{e0041}");
        // Long sequences of variation selectors can hide text.
        check("a\u{e0100}\u{e01ef}", "a\\u{e0100}\\u{e01ef}");
        check("a\u{fe0f}\u{fe00}", "a\\u{fe0f}\\u{fe00}");
        for c in [
            '\u{34f}', '\u{115f}', '\u{1160}', '\u{3164}', '\u{ffa0}', '\u{2800}', '\u{17b4}',
        ] {
            check(&c.to_string(), &format!("\\u{{{:x}}}", u32::from(c)));
        }
    }

    proptest::proptest! {
        #[test]
        fn nothing_hidden_is_left(text in "\\PC{0,20}|[\\x00-\\x9f\u{2000}-\u{2100}]{0,20}") {
            proptest::prop_assert!(!printable(&text).chars().any(is_hidden));
        }
    }
}
