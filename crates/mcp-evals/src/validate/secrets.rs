//! Warns of values that look like secrets, in an eval's arguments and expected values.
//!
//! It knows the shapes of common tokens, and keys that often hold secrets. It never repeats a value.

use serde_json::{Map, Value};

use crate::eval::Eval;
use crate::expected::Expected;
use crate::fields::below;
use crate::input::Input;

use super::{EvalFindings, FindingRule};

/// How tokens begin, and how many characters of `A-Z a-z 0-9 _ -` follow at least.
const TOKENS: [(&str, usize, &str); 20] = [
    ("sk-", 20, "an API key"),
    ("sk_live_", 16, "a payment key"),
    ("rk_live_", 16, "a payment key"),
    ("ghp_", 30, "a GitHub token"),
    ("gho_", 30, "a GitHub token"),
    ("ghs_", 30, "a GitHub token"),
    ("ghu_", 30, "a GitHub token"),
    ("github_pat_", 30, "a GitHub token"),
    ("glpat-", 20, "a GitLab token"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("xapp-", 20, "a Slack token"),
    ("AKIA", 16, "an AWS key id"),
    ("ASIA", 16, "an AWS key id"),
    ("AIza", 30, "a Google API key"),
    ("npm_", 30, "an npm token"),
    ("pypi-", 30, "a PyPI token"),
    ("hf_", 30, "a Hugging Face token"),
    ("dop_v1_", 40, "a DigitalOcean token"),
    ("SG.", 20, "a SendGrid key"),
];

/// Keys, without `_`, `-` and case, that often hold secrets.
const KEYS: [&str; 12] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "clientsecret",
    "apikey",
    "accesstoken",
    "authtoken",
    "refreshtoken",
    "privatekey",
    "authorization",
    "credentials",
];

pub(super) fn check(eval: &Eval, about: &mut EvalFindings<'_>) {
    if let Input::Execution(input) = &eval.input {
        check_members(&input.arguments, "/input/arguments", about);
    }
    match &eval.expected {
        Expected::ExactMatch(expected) => {
            if let Some(arguments) = &expected.arguments {
                check_members(arguments, "/expected/arguments", about);
            }
            if let Some(content) = &expected.content {
                check_value(content, "/expected/content", about);
            }
        }
        Expected::LlmJudge(expected) => check_text(&expected.rubric, "/expected/rubric", about),
        Expected::Other(members) => check_members(members, "/expected", about),
    }
}

fn check_members(members: &Map<String, Value>, path: &str, about: &mut EvalFindings<'_>) {
    for (key, value) in members {
        let path = below(path, key);
        match value {
            Value::String(text) if holds_secrets(key) && !is_placeholder(text) => {
                let text = format!("`{key}` looks like a secret: use made-up data");
                about.warn(&path, FindingRule::Secret, text);
            }
            _ => check_value(value, &path, about),
        }
    }
}

fn check_value(value: &Value, path: &str, about: &mut EvalFindings<'_>) {
    match value {
        Value::String(text) => check_text(text, path, about),
        Value::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                check_value(element, &below(path, &index.to_string()), about);
            }
        }
        Value::Object(members) => check_members(members, path, about),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn check_text(text: &str, path: &str, about: &mut EvalFindings<'_>) {
    if let Some(kind) = token_in(text) {
        let text = format!("seems to contain {kind}: use made-up data");
        about.warn(path, FindingRule::Secret, text);
    }
}

fn token_in(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN ") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    if has_credentials(text) {
        return Some("a password in a URL");
    }
    text.split(|c: char| !is_token_char(c) && c != '.')
        .find_map(token)
}

fn token(word: &str) -> Option<&'static str> {
    let mut parts = word.split('.');
    let is_part = |part: Option<&str>| part.is_some_and(|part| part.len() >= 10);
    if word.starts_with("eyJ") && (0..3).all(|_| is_part(parts.next())) {
        return Some("a JSON web token");
    }
    TOKENS.iter().find_map(|(start, length, kind)| {
        let rest = word.strip_prefix(start)?;
        let follows = rest.chars().take_while(|c| is_token_char(*c)).count();
        // Words joined by hyphens have no digits; tokens of this length do.
        let is_random = rest.chars().any(|c| c.is_ascii_digit());
        (follows >= *length && is_random).then_some(*kind)
    })
}

/// Whether there is a `scheme://user:password@host`.
fn has_credentials(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '"', '\n']).next();
        authority
            .and_then(|authority| authority.rsplit_once('@'))
            .and_then(|(user, _)| user.split_once(':'))
            .is_some_and(|(_, password)| !is_placeholder(password))
    })
}

fn holds_secrets(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(|c| !matches!(c, '_' | '-'))
        .map(|c| c.to_ascii_lowercase())
        .collect();
    KEYS.contains(&plain.as_str())
}

/// Whether a value is a placeholder: empty, in brackets, or one repeated character.
fn is_placeholder(text: &str) -> bool {
    let marks = ["<", "{", "$", "[", "%"];
    let plain = text.to_ascii_lowercase();
    let mut chars = plain.chars();
    let first = chars.next();
    first.is_none()
        || marks.iter().any(|mark| plain.starts_with(mark))
        || chars.all(|c| Some(c) == first)
        || [
            "example",
            "redacted",
            "placeholder",
            "changeme",
            "dummy",
            "fake",
        ]
        .iter()
        .any(|word| plain.contains(word))
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
