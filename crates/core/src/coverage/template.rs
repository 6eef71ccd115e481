//! Whether a URI can come from a template (RFC 6570).

use regex::Regex;

/// The longest template that is read, in bytes.
const LONGEST: usize = 2_000;

/// A pattern for the URIs of a template: its fixed parts, and text for each expression. An expression of optional
/// parameters (`{?…}`, `{&…}`, `{;…}`, `{#…}`) may be empty. `None` if the template is malformed.
pub(super) fn uris(template: &str) -> Option<Regex> {
    if template.len() > LONGEST {
        return None;
    }
    let mut pattern = String::from("^");
    let mut rest = template;
    while let Some((fixed, after)) = rest.split_once('{') {
        let (expression, after) = after.split_once('}')?;
        pattern.push_str(&regex::escape(fixed));
        pattern.push_str(match expression.chars().next()? {
            '?' | '&' | ';' | '#' => ".*",
            '+' | '/' | '.' => ".+",
            _ => "[^/]+",
        });
        rest = after;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    Regex::new(&pattern).ok()
}
