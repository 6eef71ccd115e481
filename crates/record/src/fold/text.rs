//! Long texts, shortened to a limit.

use std::fmt;

use crate::event::Body;

/// A text that may have been shortened.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClippedText {
    /// The part before the omission; the whole text if nothing is omitted.
    pub head: String,
    /// The number of omitted bytes.
    pub left_out: u64,
    /// The part after the omission.
    pub tail: String,
}

impl ClippedText {
    /// The text; if it exceeds `limit` bytes, only its start and its end.
    pub(crate) fn middle(text: &str, limit: usize) -> Self {
        let half = if text.len() > limit {
            limit / 2
        } else {
            text.len()
        };
        Self::around(text, half, limit.saturating_sub(half))
    }

    /// The text; if it exceeds `limit` bytes, only its end.
    pub(super) fn tail(text: &str, limit: usize) -> Self {
        let head = if text.len() > limit { 0 } else { text.len() };
        Self::around(text, head, limit)
    }

    /// A text that the record does not hold.
    pub(super) fn unread(body: &Body) -> Self {
        let left_out = match body {
            Body::Cut { bytes, .. } | Body::Blob { bytes, .. } => *bytes,
            Body::Text(text) | Body::Base64(text) => text.len() as u64,
        };
        Self {
            left_out,
            ..Self::default()
        }
    }

    fn around(text: &str, head: usize, tail: usize) -> Self {
        if head == text.len() {
            return Self {
                head: text.to_owned(),
                ..Self::default()
            };
        }
        let head = text.floor_char_boundary(head);
        let tail = text.ceil_char_boundary(text.len() - tail).max(head);
        Self {
            head: text[..head].to_owned(),
            left_out: (tail - head) as u64,
            tail: text[tail..].to_owned(),
        }
    }
}

impl fmt::Display for ClippedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.left_out == 0 {
            return f.write_str(&self.head);
        }
        let Self {
            head,
            left_out,
            tail,
        } = self;
        write!(f, "{head}[… {left_out} bytes left out …]{tail}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_loses_its_middle() {
        let check = |text: &str, limit, shown: &str| {
            assert_eq!(ClippedText::middle(text, limit).to_string(), shown);
        };
        check("", 4, "");
        check("abcd", 4, "abcd");
        check("abcdef", 4, "ab[… 2 bytes left out …]ef");
        check("éééé", 3, "[… 6 bytes left out …]é");
        check("abc", 1, "[… 2 bytes left out …]c");
    }

    #[test]
    fn a_long_log_loses_its_beginning() {
        assert_eq!(ClippedText::tail("abc", 3).to_string(), "abc");
        assert_eq!(
            ClippedText::tail("abcd", 3).to_string(),
            "[… 1 bytes left out …]bcd"
        );
    }

    proptest::proptest! {
        #[test]
        fn every_byte_is_shown_or_counted(text in ".{0,40}", limit in 1usize..50) {
            for kept in [ClippedText::middle(&text, limit), ClippedText::tail(&text, limit)] {
                let shown = kept.head.len() + kept.tail.len();
                proptest::prop_assert_eq!(shown as u64 + kept.left_out, text.len() as u64);
                proptest::prop_assert!(shown <= limit.max(text.len().min(limit)));
                proptest::prop_assert!(text.starts_with(&kept.head) && text.ends_with(&kept.tail));
            }
        }
    }
}
