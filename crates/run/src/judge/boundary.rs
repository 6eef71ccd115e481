//! Separates exhibits from the question by unpredictable lines.
//!
//! Its main type is [`Boundary`].

use std::fmt;

/// A random token that opens and closes every exhibit of one question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Boundary(String);

impl Boundary {
    /// A new token with 128 bits from the operating system; `None` if that fails.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = [0; 16];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).ok()?;
        Some(Self::from_bytes(bytes))
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(data_encoding::HEXLOWER.encode(&bytes))
    }

    /// An exhibit in its block. [`super::exhibit`] has escaped the text; Proctor chose the title.
    pub(super) fn block(&self, title: &str, text: &str) -> String {
        format!("<<<{self} begin {title}>>>\n{text}\n<<<{self} end {title}>>>\n")
    }

    /// The text without the token, which an exhibit can't normally contain.
    pub(super) fn keep_out_of(&self, text: &str) -> String {
        text.replace(&self.0, "(token)")
    }

    /// A line of Proctor's own inside an exhibit.
    pub(super) fn remark(&self, remark: &str) -> String {
        format!("\n<<<{self} {remark}>>>\n")
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
