//! The `WWW-Authenticate` header of a response with status 401 or 403.
//!
//! Its main type is [`Challenge`].

use proctor_core::printable::printable;
use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// The longest part that a message shows.
const SHOWN: usize = 300;

/// What a server says about the token that it wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    pub(super) resource_metadata: Option<String>,
    pub(super) scope: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Challenge {
    /// Reads the `Bearer` challenge of a response; empty if it has none.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let mut texts = values.filter_map(|value| value.to_str().ok());
        texts.find_map(parse).unwrap_or_default()
    }

    /// The error as the server words it.
    pub(crate) fn reason(&self) -> String {
        match (&self.error, &self.error_description) {
            (Some(error), Some(why)) => format!("{} ({})", shown(error), shown(why)),
            (Some(error), None) => shown(error),
            (None, Some(why)) => shown(why),
            (None, None) => "HTTP status 401".to_owned(),
        }
    }
}

/// A text of a server as part of a message.
pub(super) fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let short: String = words.join(" ").chars().take(SHOWN).collect();
    printable(&short).into_owned()
}

/// Parses `Bearer name="value", …`, which may follow challenges of other schemes.
fn parse(header: &str) -> Option<Challenge> {
    const SCHEME: &str = "bearer";
    let lower = header.to_ascii_lowercase();
    let mut starts = lower.match_indices(SCHEME).map(|(at, _)| at);
    let is_word = |at: &usize| {
        let before = lower[..*at].trim_end().chars().next_back();
        let after = lower[at + SCHEME.len()..].chars().next();
        before.is_none_or(|c| c == ',') && after.is_none_or(|c| c == ' ')
    };
    let mut rest = &header[starts.find(is_word)? + SCHEME.len()..];
    let mut challenge = Challenge::default();
    while let Some((name, value, after)) = parameter(rest) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => challenge.resource_metadata = Some(value),
            "scope" => challenge.scope = Some(value),
            "error" => challenge.error = Some(value),
            "error_description" => challenge.error_description = Some(value),
            _ => {}
        }
        rest = after;
    }
    Some(challenge)
}

/// The first `name=value` of a list, and the rest; `None` at its end, or where another scheme starts.
fn parameter(text: &str) -> Option<(&str, String, &str)> {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_end();
    if name.is_empty() || name.contains([' ', '"', ',']) {
        return None;
    }
    let rest = rest.trim_start();
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find(',').unwrap_or(rest.len());
        return Some((name, rest[..end].trim().to_owned(), &rest[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((name, value, &quoted[at + 1..])),
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let check = |header: &str, expected: [Option<&str>; 3]| {
            let found = parse(header).unwrap_or_default();
            let all = [
                found.resource_metadata,
                found.scope,
                found.error_description,
            ];
            let all = all.each_ref().map(|part| part.as_deref());
            assert_eq!(all, expected, "{header}");
        };
        check("Bearer", [None; 3]);
        check("Basic realm=\"Bearer resource_metadata\"", [None; 3]);
        check("Notbearer scope=a", [None; 3]);
        check("bearer scope=a", [None, Some("a"), None]);
        check(
            r#"Basic realm="x", Bearer realm="a, \"b\"", resource_metadata="https://a/b?c=d", scope="e f""#,
            [Some("https://a/b?c=d"), Some("e f"), None],
        );
        check(
            r#"Bearer error="invalid_token", error_description="it expired", scope="#,
            [None, Some(""), Some("it expired")],
        );
        check(r#"Bearer scope="never ends"#, [None; 3]);
        check("Bearer scope=a, Digest realm=b", [None, Some("a"), None]);
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_parsed(text in "(Bearer )?[ -~]{0,80}") {
            let _ = parse(&text);
        }
    }
}
