//! `${VAR}` and `${VAR:-default}` in MCP configs.

use std::collections::BTreeMap;

/// The environment variables for loading a suite. The caller passes them in.
pub type Environment = BTreeMap<String, String>;

/// A text with its variables replaced, and the names of those that are not set.
#[derive(Debug, PartialEq, Eq)]
pub struct ExpandedText {
    /// The text. An unset variable without a default becomes empty.
    pub text: String,
    /// The variables that are not set and have no default.
    pub unset: Vec<String>,
}

/// Replaces `${VAR}` and `${VAR:-default}`. As in a shell, the default also stands for a
/// variable that is set to nothing. Anything else with a `$` is text.
pub fn expand(text: &str, env: &Environment) -> ExpandedText {
    let mut expanded = ExpandedText {
        text: String::with_capacity(text.len()),
        unset: Vec::new(),
    };
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        expanded.text.push_str(&rest[..at]);
        let inside = &rest[at + 2..];
        let Some((name, default, after)) = split_variable(inside) else {
            expanded.text.push_str("${");
            rest = inside;
            continue;
        };
        match (env.get(name), default) {
            (Some(value), None) => expanded.text.push_str(value),
            (Some(value), Some(_)) if !value.is_empty() => expanded.text.push_str(value),
            (_, Some(default)) => expanded.text.push_str(default),
            (None, None) => expanded.unset.push(name.to_owned()),
        }
        rest = after;
    }
    expanded.text.push_str(rest);
    expanded
}

/// Splits `VAR:-default} rest` into its three parts.
fn split_variable(inside: &str) -> Option<(&str, Option<&str>, &str)> {
    let (variable, after) = inside.split_once('}')?;
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    let first = name.bytes().next()?;
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (!first.is_ascii_digit() && name.bytes().all(legal)).then_some((name, default, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_and_everything_else_is_text() {
        let env = Environment::from([
            ("A".to_owned(), "1".to_owned()),
            ("EMPTY".to_owned(), String::new()),
        ]);
        let check = |text: &str, expected: &str, unset: &[&str]| {
            let found = expand(text, &env);
            assert_eq!(
                (found.text.as_str(), found.unset),
                (expected, unset.iter().map(ToString::to_string).collect()),
                "{text}"
            );
        };
        check("plain", "plain", &[]);
        check("x${A}y${A}", "x1y1", &[]);
        check("${A:-d}", "1", &[]);
        check("${B:-d}", "d", &[]);
        check("${B:-}", "", &[]);
        check("${EMPTY:-d}", "d", &[]);
        check("${EMPTY}", "", &[]);
        check("a${B}c", "ac", &["B"]);
        check("$A $$ ${ ${} ${1A} ${A", "$A $$ ${ ${} ${1A} ${A", &[]);
        check("${B:-http://x:80/}", "http://x:80/", &[]);
    }

    proptest::proptest! {
        #[test]
        fn a_text_without_variables_stays(text in "[^$]{0,40}") {
            let found = expand(&text, &Environment::new());
            proptest::prop_assert_eq!(found, ExpandedText { text, unset: vec![] });
        }
    }
}
