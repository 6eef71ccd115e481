//! Takes secrets out of everything before it is stored.
//!
//! Its main type is [`Redactor`]. What is known to be secret is replaced in every form in which it
//! tends to travel: as it is, in base64 (also wrapped over lines), in hexadecimal, and with any of its
//! characters escaped for JSON or percent-encoded. What merely looks like a key is replaced too. A replacement,
//! `[redacted:NAME]`, has no quotes and no backslashes, and text that was JSON is JSON afterwards.

mod event;
mod forms;
mod json;
mod names;
mod places;
mod search;
mod shapes;
#[cfg(test)]
mod tests;
mod views;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

pub use self::names::is_secret_name;
use self::search::Forms;
use self::shapes::Shapes;
use self::views::Layer;

/// What every replacement starts with.
const MARKER: &str = "[redacted:";

/// The longest name that a replacement shows.
const NAME_CHARS: usize = 64;

/// Values shorter than this are no secrets: they would be found in text that means something else.
const SHORTEST: usize = 8;

/// Secrets up to this long, in any form, are known where a text is cut.
pub const LONGEST: usize = 16 * 1024;

/// Replaces secrets. Cheap to clone; what one clone learns, all know.
#[derive(Debug, Clone)]
pub struct Redactor {
    inner: Arc<RedactorState>,
    learned: Arc<RwLock<LearnedSecrets>>,
}

#[derive(Debug)]
struct RedactorState {
    /// Every form of every secret; absent if there are none.
    forms: Option<Forms>,
    shapes: Shapes,
}

/// Secrets that became known later.
#[derive(Debug, Clone, Default)]
struct LearnedSecrets {
    secrets: Vec<(String, String)>,
    forms: Option<Arc<Forms>>,
}

/// A part of a text, and what takes its place.
struct Replacement {
    range: Range<usize>,
    marker: Arc<str>,
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new([])
    }
}

impl Redactor {
    /// Replaces the values of these (name, value) pairs, and whatever looks like a key.
    ///
    /// Values shorter than eight characters, and words that mean something else (`password`,
    /// `undefined`, `localhost`, one character repeated) are left alone: replacing them would
    /// change what a server said without hiding anything.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            inner: Arc::new(RedactorState {
                forms: forms_of(&worth_hiding(secrets)),
                shapes: Shapes::new(),
            }),
            learned: Arc::default(),
        }
    }

    /// The same, but what it learns is known to its own clones only: a trial's secrets are its own.
    #[must_use]
    pub fn scoped(&self) -> Self {
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            inner: self.inner.clone(),
            learned: Arc::new(RwLock::new(learned.clone())),
        }
    }

    /// Replaces these values from here on too, as those that it was made with.
    pub fn learn(&self, secrets: impl IntoIterator<Item = (String, String)>) {
        let mut secrets = worth_hiding(secrets);
        let mut learned = self.learned.write().unwrap_or_else(PoisonError::into_inner);
        secrets.retain(|secret| !learned.secrets.contains(secret));
        if secrets.is_empty() {
            return;
        }
        learned.secrets.append(&mut secrets);
        learned.secrets.sort();
        learned.forms = forms_of(&learned.secrets).map(Arc::new);
    }

    /// Takes the values of variables whose names sound like a secret: `OPENAI_API_KEY`, `PGPASSWORD`.
    pub fn from_environment(variables: &BTreeMap<String, String>) -> Self {
        Self::new(secrets_of(variables))
    }

    /// The text without secrets.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(into_text(bytes)),
        }
    }

    /// The bytes without secrets.
    pub fn bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let plain = self.plain(bytes);
        match &plain {
            Cow::Owned(redacted) if json::is_valid(bytes) && !json::is_valid(redacted) => {
                Cow::Owned(json::redact(bytes, &|part| self.plain(part).into_owned()))
            }
            _ => plain,
        }
    }

    /// The start of a text, without secrets and without a part of one: to cut first would leave that.
    pub fn head(&self, bytes: &[u8], limit: usize) -> String {
        let looked_at = &bytes[..bytes.len().min(limit + LONGEST)];
        let redacted = self.bytes(looked_at);
        let head = &redacted[..redacted.len().min(limit)];
        let mut text = String::from_utf8_lossy(head).into_owned();
        if head.len() < redacted.len() || looked_at.len() < bytes.len() {
            text.push('…');
        }
        text
    }

    /// The first place at or behind `at` that is not inside a secret: where a text may be cut off in
    /// front. What stands before `at` has to be there, or half a secret is not known for what it is.
    pub fn cut(&self, bytes: &[u8], at: usize) -> usize {
        let levels = search::levels(Layer::Json, bytes);
        let mut found = self.known(bytes, &levels);
        found.extend(search::shapes(&self.inner.shapes, bytes, &levels));
        let mut spans: Vec<Range<usize>> = found.into_iter().map(|found| found.range).collect();
        spans.sort_by_key(|span| span.start);
        spans.iter().fold(at.min(bytes.len()), |at, span| {
            if span.start < at {
                at.max(span.end)
            } else {
                at
            }
        })
    }

    /// The value of a header without secrets: nothing of it, if the name says that it is one.
    pub fn header(&self, name: &str, value: &str) -> String {
        if value.is_empty() || is_marker(value) || !is_secret_name(name) {
            return self.text(value).into_owned();
        }
        format!("{MARKER}{}]", shown_name(&name.to_ascii_lowercase()))
    }

    /// Without a look at what the text means.
    fn plain<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        replace_all(bytes, |part| {
            let levels = search::levels(Layer::Json, part);
            let known = self.known(part, &levels);
            // A secret has its own name; what only looks like a key is looked for in what is left.
            if known.is_empty() {
                search::shapes(&self.inner.shapes, part, &levels)
            } else {
                known
            }
        })
    }

    fn known(&self, part: &[u8], levels: &[Vec<u8>]) -> Vec<Replacement> {
        let forms = self.inner.forms.as_ref();
        let mut found = forms.map_or_else(Vec::new, |forms| forms.find(part, levels));
        let learned = self.learned.read().unwrap_or_else(PoisonError::into_inner);
        let learned = learned.forms.clone();
        if let Some(forms) = learned {
            found.extend(forms.find(part, levels));
            found = search::merged(found);
        }
        found
    }
}

/// Without values that would be found in text that means something else. Of two names for one value,
/// the same one is shown in every run.
fn worth_hiding(secrets: impl IntoIterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut secrets: Vec<_> = secrets
        .into_iter()
        .filter(|(_, value)| is_worth_hiding(value))
        .collect();
    secrets.sort();
    secrets
}

fn forms_of(secrets: &[(String, String)]) -> Option<Forms> {
    let each = secrets.iter();
    Forms::build(each.map(|(name, value)| (value.as_str(), marker(name, secrets))))
}

/// The secrets of an environment, by the names of its variables.
pub fn secrets_of(variables: &BTreeMap<String, String>) -> Vec<(String, String)> {
    variables
        .iter()
        .filter(|(name, _)| is_secret_name(name) && !names::holds_a_path(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Replaces until nothing is found: what is left of a cut escape can read as a secret once more.
fn replace_all(bytes: &[u8], find: impl Fn(&[u8]) -> Vec<Replacement>) -> Cow<'_, [u8]> {
    let mut replaced = replace(bytes, &find);
    while let Cow::Owned(once) = &replaced {
        let again = match replace(once, &find) {
            Cow::Owned(again) => again,
            Cow::Borrowed(_) => break,
        };
        replaced = Cow::Owned(again);
    }
    replaced
}

/// Replaces what `find` finds, but for what is already a replacement.
fn replace<'a>(bytes: &'a [u8], find: &impl Fn(&[u8]) -> Vec<Replacement>) -> Cow<'a, [u8]> {
    let mut out: Option<Vec<u8>> = None;
    let mut copied = 0;
    for segment in segments(bytes) {
        for found in find(&bytes[segment.clone()]) {
            let out = out.get_or_insert_with(|| Vec::with_capacity(bytes.len()));
            out.extend_from_slice(&bytes[copied..segment.start + found.range.start]);
            out.extend_from_slice(found.marker.as_bytes());
            copied = segment.start + found.range.end;
        }
    }
    match out {
        Some(mut out) => {
            out.extend_from_slice(&bytes[copied..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(bytes),
    }
}

/// What lies between replacements that were made before, so that they are never replaced again.
fn segments(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let mut from = Some(0);
    std::iter::from_fn(move || {
        let start = from?;
        let (end, next) = match next_marker(bytes, start) {
            Some(marker) => (marker.start, Some(marker.end)),
            None => (bytes.len(), None),
        };
        from = next;
        Some(start..end)
    })
}

fn next_marker(bytes: &[u8], from: usize) -> Option<Range<usize>> {
    let mut at = from;
    loop {
        let start = at + memchr::memmem::find(&bytes[at..], MARKER.as_bytes())?;
        let name = start + MARKER.len();
        let length = bytes[name..]
            .iter()
            .take_while(|b| is_name_byte(**b))
            .count();
        if (1..=NAME_CHARS).contains(&length) && bytes.get(name + length) == Some(&b']') {
            return Some(start..name + length + 1);
        }
        at = name;
    }
}

fn is_marker(text: &str) -> bool {
    next_marker(text.as_bytes(), 0) == Some(0..text.len())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A replacement that shows the name, unless the name itself would show a secret.
fn marker(name: &str, secrets: &[(String, String)]) -> Arc<str> {
    let shown = shown_name(name);
    if secrets.iter().any(|(_, value)| shown.contains(value)) {
        return format!("{MARKER}secret]").into();
    }
    format!("{MARKER}{shown}]").into()
}

fn shown_name(name: &str) -> String {
    let shown: String = name
        .chars()
        .take(NAME_CHARS)
        .map(|c| match c {
            c if c.is_ascii() && is_name_byte(c as u8) => c,
            _ => '-',
        })
        .collect();
    if shown.is_empty() {
        "secret".to_owned()
    } else {
        shown
    }
}

fn is_worth_hiding(value: &str) -> bool {
    /// Values of key-like variables that are settings, and what tutorials write for a password.
    const COMMON: [&str; 14] = [
        "anonymous",
        "changeme",
        "disabled",
        "keychain",
        "keyring",
        "localhost",
        "password",
        "password123",
        "passw0rd",
        "redacted",
        "required",
        "undefined",
        "username",
        "12345678",
    ];
    value.chars().count() >= SHORTEST
        && !value.trim().is_empty()
        && !value.chars().all(|c| value.starts_with(c))
        && !COMMON.contains(&value.to_ascii_lowercase().as_str())
        && !MARKER.contains(value)
        && !is_marker(value)
}

/// Secrets and their replacements are whole characters, so this is text unless the input was not.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
