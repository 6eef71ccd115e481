//! Values that are secret because of their place in a URL or a command line.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::{MARKER, Redactor, is_marker, is_secret_name, shown_name};

/// A password before a host, or a query parameter.
static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    // A test builds it, so it is always valid.
    Regex::new(concat!(
        r#"(?P<user>://[^/\s"'@:\[\]]*:)(?P<password>[^/\s"'@\[\]]+)@"#,
        r#"|(?P<before>[?&](?P<name>[A-Za-z0-9_.-]+)=)(?P<value>[^&\s"'\#\[\]]+)"#,
    ))
    .ok()
});

impl Redactor {
    /// A URL, alone or within a text, without its password and its secret parameters.
    pub fn address(&self, text: &str) -> String {
        let text = self.text(text);
        let Some(parts) = PARTS.as_ref() else {
            return text.into_owned();
        };
        let replaced = parts.replace_all(&text, |found: &Captures<'_>| {
            if let Some(user) = found.name("user") {
                return format!("{}{MARKER}password]@", user.as_str());
            }
            if is_secret_name(&found["name"]) {
                return format!(
                    "{}{MARKER}{}]",
                    &found["before"],
                    shown_name(&found["name"])
                );
            }
            found[0].to_owned()
        });
        match replaced {
            Cow::Borrowed(_) => text.into_owned(),
            Cow::Owned(replaced) => replaced,
        }
    }

    /// A command line without the values of options such as `--api-key` or `--token=`.
    pub fn command(&self, words: Vec<String>) -> Vec<String> {
        let mut option: Option<String> = None;
        let redact = |word: String| {
            let name = option.take();
            if let Some(name) = name
                && !word.starts_with('-')
            {
                return marked(&name, &word);
            }
            match word.split_once('=') {
                Some((name, value)) if is_secret_option(name) => {
                    format!("{name}={}", marked(name, value))
                }
                _ => {
                    option = is_secret_option(&word).then(|| word.clone());
                    self.address(&word)
                }
            }
        };
        words.into_iter().map(redact).collect()
    }
}

fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(char::is_whitespace) && is_secret_name(word)
}

fn marked(option: &str, value: &str) -> String {
    if value.is_empty() || is_marker(value) {
        return value.to_owned();
    }
    format!("{MARKER}{}]", shown_name(option.trim_start_matches('-')))
}
