//! Long texts, cut in the middle so that a page stays small.
//!
//! The main type is [`PageBody`]. A cut text keeps the size and the SHA-256 of the whole one, so that it can be found
//! in the record.

use data_encoding::HEXLOWER;
use proctor_record::event::Body;
use proctor_record::fold::ClippedText;
use proctor_record::json;
use proctor_record::record::RunReader;
use serde::Serialize;
use sha2::{Digest, Sha256};

/// The maximum length of a text on a page, in bytes.
pub const BODY_BYTES: usize = 16 * 1024;

/// A text of a record. In JSON a string, or an object if the text is cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PageBody {
    Whole(String),
    Cut {
        /// The part before the omission.
        head: String,
        /// The part after the omission.
        tail: String,
        /// The length of the whole text.
        bytes: u64,
        /// The SHA-256 of the whole text; `None` if the record does not hold it.
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
}

/// The room that is left for the texts of a page.
#[derive(Debug)]
pub(super) struct BodyRoom {
    left: usize,
    search: Option<TextSearch>,
}

/// A text that is searched by its hash.
#[derive(Debug)]
struct TextSearch {
    sha256: String,
    found: Option<String>,
}

impl BodyRoom {
    pub(super) fn new(bytes: usize) -> Self {
        Self {
            left: bytes,
            search: None,
        }
    }

    /// Without room, and with an eye on the text with this hash.
    pub(super) fn searching(sha256: &str) -> Self {
        Self {
            left: 0,
            search: Some(TextSearch {
                sha256: sha256.to_owned(),
                found: None,
            }),
        }
    }

    /// The text that was searched, if it occurred.
    pub(super) fn into_found(self) -> Option<String> {
        self.search.and_then(|search| search.found)
    }

    /// The text, cut if it is long or if there is no room left.
    pub(super) fn text(&mut self, text: &str) -> PageBody {
        let text = &*json::spelled(text);
        let limit = BODY_BYTES.min(self.left);
        if text.len() <= limit {
            self.left -= text.len();
            return PageBody::Whole(text.to_owned());
        }
        let (head, tail) = ends(text, limit);
        self.left -= head.len() + tail.len();
        let sha256 = HEXLOWER.encode(&Sha256::digest(text));
        if let Some(search) = self.search.as_mut().filter(|s| s.sha256 == sha256) {
            search.found = Some(text.to_owned());
        }
        PageBody::Cut {
            head: head.to_owned(),
            tail: tail.to_owned(),
            bytes: text.len() as u64,
            sha256: Some(sha256),
        }
    }

    /// A text that may have been shortened already.
    pub(super) fn clipped(&mut self, text: &ClippedText) -> PageBody {
        if text.left_out == 0 {
            return self.text(&text.head);
        }
        let (head, tail) = (json::spelled(&text.head), json::spelled(&text.tail));
        let half = BODY_BYTES.min(self.left) / 2;
        let head = ends(&head, half.min(head.len()) * 2).0.to_owned();
        let tail = ends(&tail, half.min(tail.len()) * 2).1.to_owned();
        self.left -= head.len() + tail.len();
        PageBody::Cut {
            head,
            tail,
            bytes: (text.head.len() + text.tail.len()) as u64 + text.left_out,
            sha256: None,
        }
    }

    /// The content of an event. Content that is missing or damaged is empty, with its length.
    pub(super) fn body(&mut self, body: &Body, run: &RunReader) -> PageBody {
        if let Ok(Some(bytes)) = run.body_bytes(body) {
            return self.text(&String::from_utf8_lossy(&bytes));
        }
        let (bytes, sha256) = match body {
            Body::Blob { sha256, bytes } | Body::Cut { bytes, sha256 } => {
                (*bytes, Some(sha256.clone()))
            }
            Body::Text(text) | Body::Base64(text) => (text.len() as u64, None),
        };
        PageBody::Cut {
            head: String::new(),
            tail: String::new(),
            bytes,
            sha256,
        }
    }
}

/// The two ends of a text that together have at most so many bytes.
fn ends(text: &str, limit: usize) -> (&str, &str) {
    let half = limit / 2;
    let head = text.floor_char_boundary(half);
    let tail = text.ceil_char_boundary(text.len().saturating_sub(half));
    (&text[..head], &text[tail.max(head)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_ends_its_size_and_its_hash() {
        let text = format!("{}é{}", "a".repeat(BODY_BYTES), "b".repeat(BODY_BYTES));
        let PageBody::Cut {
            head,
            tail,
            bytes,
            sha256,
        } = BodyRoom::new(usize::MAX).text(&text)
        else {
            panic!("the text is cut");
        };
        assert_eq!(bytes, text.len() as u64);
        assert_eq!((head.len(), tail.len()), (BODY_BYTES / 2, BODY_BYTES / 2));
        assert!(text.starts_with(&head) && text.ends_with(&tail));
        assert_eq!(sha256, Some(HEXLOWER.encode(&Sha256::digest(&text))));
    }

    #[test]
    fn a_page_without_room_keeps_sizes_only() {
        let mut room = BodyRoom::new(10);
        assert_eq!(
            room.text("12345678"),
            PageBody::Whole("12345678".to_owned())
        );
        let cut = |text: PageBody| match text {
            PageBody::Cut {
                head, tail, bytes, ..
            } => (head, tail, bytes),
            PageBody::Whole(text) => panic!("whole: {text}"),
        };
        let (one, other) = ("a".to_owned(), "z".to_owned());
        assert_eq!(cut(room.text("abcxyz")), (one, other, 6));
        assert_eq!(cut(room.text("more")), (String::new(), String::new(), 4));
    }

    proptest::proptest! {
        #[test]
        fn a_cut_text_has_the_ends_of_the_whole_one(text in ".{0,60}", limit in 0usize..80) {
            let (head, tail) = ends(&text, limit.min(text.len()));
            proptest::prop_assert!(text.starts_with(head) && text.ends_with(tail));
            proptest::prop_assert!(head.len() + tail.len() <= limit);
        }
    }
}
