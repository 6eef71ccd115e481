//! The beginning of a text that may be long, for a message that must not be.

use std::borrow::Cow;

/// The maximum number of characters of an external text in a message.
const CHARS: usize = 240;

/// The text, or its beginning with an ellipsis.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(excerpt("é"), "é");
        assert_eq!(excerpt(&"é".repeat(CHARS)), "é".repeat(CHARS));
        assert_eq!(
            excerpt(&"é".repeat(CHARS + 1)),
            format!("{}…", "é".repeat(CHARS))
        );
    }
}
