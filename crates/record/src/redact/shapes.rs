//! Recognizes texts that look like a key of any provider.

use std::sync::{Arc, LazyLock};

use aho_corasick::packed::Searcher;
use data_encoding::BASE64;
use regex::bytes::Regex;

use super::{MARKER, Replacement};

/// A token can follow an escape that ends in a letter or digit: `"key:
/// sk-…"`, `%20sk-…`.
const BEFORE: &str = r"(?:\\[nrtbf]|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|(?-u:\b))";

const TOKENS: &str = concat!(
    r"(?P<token>",
    r"sk-[A-Za-z0-9_-]{20,}",
    r"|gh[pousr]_[A-Za-z0-9_]{30,}",
    r"|github_pat_[A-Za-z0-9_]{30,}",
    r"|glpat-[A-Za-z0-9_-]{20,}",
    r"|xox[abeoprs]-[A-Za-z0-9_-]{10,}",
    r"|npm_[A-Za-z0-9_]{36,}",
    r"|hf_[A-Za-z0-9_]{30,}",
    r"|AIza[A-Za-z0-9_-]{35,}",
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b)",
    r")",
    r"|(?P<jwt>eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*)",
    r"|[Bb]earer\s+(?P<bearer>[A-Za-z0-9_.~+/-]{16,}=*)",
    r"|[Bb]asic\s+(?P<basic>[A-Za-z0-9+/]{8,}={0,2})",
);

/// A header within a text: `Authorization: Bearer x`, `{"x-api-key": "y"}`, also in JSON within
/// JSON.
const HEADER: &str = concat!(
    r#"(?i-u:(?:proxy-)?authorization|x-api-key)(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?"#,
    r#"(?:(?i-u:bearer|basic|token|digest|negotiate|apikey)\s+(?P<header>[^\s"'\\,;\[\]{}]{6,})"#,
    r#"|(?P<bare>[^\s"'\\,;\[\]{}]{6,}))"#,
);

/// Built once: that takes longer than redacting most messages.
static SHAPES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // A test builds it, so it is always valid.
    Regex::new(&format!("{BEFORE}(?:{TOKENS}|{HEADER})")).ok()
});

/// Every match contains one of these. To look for them is much faster than to look for a match.
const PARTS: [&str; 17] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xox",
    "npm_",
    "hf_",
    "AIza",
    "AKIA",
    "ASIA",
    "eyJ",
    "earer",
    "asic",
];
/// These in any case: the starts of headers.
const ANY_CASE: [&str; 2] = ["auth", "x-ap"];

/// `None` on processors for which there is no fast search.
static PART: LazyLock<Option<Searcher>> = LazyLock::new(|| {
    let of_headers = ANY_CASE.into_iter().flat_map(spellings);
    let parts = PARTS.into_iter().map(str::to_owned).chain(of_headers);
    Searcher::new(parts)
});

/// A word in all combinations of upper and lower case.
fn spellings(word: &str) -> Vec<String> {
    word.chars().fold(vec![String::new()], |before, c| {
        let mut cases = vec![c.to_ascii_lowercase(), c.to_ascii_uppercase()];
        cases.dedup();
        let each = before.iter();
        each.flat_map(|start| cases.iter().map(move |c| format!("{start}{c}")))
            .collect()
    })
}

/// Whether a text may have a match.
fn may_match(bytes: &[u8]) -> bool {
    PART.as_ref()
        .is_none_or(|parts| parts.find(bytes).is_some())
}

const NAMES: [&str; 6] = ["token", "jwt", "bearer", "basic", "header", "bare"];

#[derive(Debug)]
pub(super) struct Shapes {
    markers: [Arc<str>; NAMES.len()],
}

impl Shapes {
    pub(super) fn new() -> Self {
        Self {
            markers: NAMES.map(|name| match name {
                "bearer" | "basic" | "header" | "bare" => format!("{MARKER}authorization]").into(),
                name => format!("{MARKER}{name}]").into(),
            }),
        }
    }

    /// All matches in a text, in order.
    pub(super) fn find_all(&self, bytes: &[u8]) -> Vec<Replacement> {
        let mut at = 0;
        let next = || {
            let found = self.find(bytes, at)?;
            at = found.range.end;
            Some(found)
        };
        std::iter::from_fn(next).collect()
    }

    /// The first match at or after `from`.
    fn find(&self, bytes: &[u8], from: usize) -> Option<Replacement> {
        let shapes = SHAPES.as_ref()?;
        if !may_match(&bytes[from..]) {
            return None;
        }
        let mut at = from;
        // Most texts have no match, which is faster to find out without groups.
        while let Some(found) = shapes.find_at(bytes, at) {
            let groups = shapes.captures_at(bytes, found.start())?;
            let mut named = NAMES.iter().zip(&self.markers);
            let (name, marker, group) =
                named.find_map(|(name, marker)| Some((*name, marker, groups.name(name)?)))?;
            if is_secret(name, group.as_bytes()) {
                return Some(Replacement {
                    range: group.range(),
                    marker: marker.clone(),
                });
            }
            // The text after `Bearer` can be a token itself. Everything else is skipped, so that a
            // hostile text can't make the search quadratic.
            at = match name {
                "bearer" | "basic" => group.start(),
                _ => found.end(),
            };
        }
        None
    }
}

/// A match can still be ordinary text: `sk-loading-indicator-wrapper`, `Basic understanding`.
fn is_secret(shape: &str, text: &[u8]) -> bool {
    match shape {
        "bearer" | "bare" => text.iter().any(u8::is_ascii_digit),
        "token" => text[3..]
            .iter()
            .any(|b| b.is_ascii_digit() || b.is_ascii_uppercase()),
        "basic" => {
            let mut padded = text.to_vec();
            padded.resize(text.len().next_multiple_of(4), b'=');
            BASE64.decode(&padded).is_ok_and(|pair| {
                pair.contains(&b':') && pair.iter().all(|b| (b' '..0x7f).contains(b))
            })
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_without_the_parts_is_not_searched() {
        assert!(!may_match(
            br#"{"jsonrpc":"2.0","method":"tools/list","params":{}}"#
        ));
        for text in PARTS
            .into_iter()
            .chain(["Authorization", "X-API-Key", "authorization"])
        {
            assert!(may_match(format!("\"{text}\"").as_bytes()), "{text}");
        }
    }

    proptest! {
        /// The parts are written beside the pattern, so they must not fall behind it.
        #[test]
        fn every_match_has_a_part(text in proptest::string::bytes_regex(
            &format!("(?:{TOKENS}|{HEADER})").replace("(?-u:\\b)", "").replace("(?i-u:", "(?i:").replace("\\s", "[ \\t]")
        ).unwrap()) {
            prop_assert!(may_match(&text), "{:?}", String::from_utf8_lossy(&text));
        }
    }
}
