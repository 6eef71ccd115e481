//! Removes secrets from everything before it is stored.
//!
//! The main type is [`Redactor`]. A known secret is replaced in all its usual forms: unchanged, in
//! base64 (also with line breaks), in hexadecimal, and with any of its characters escaped for JSON
//! or percent-encoded. Text that looks like a key is replaced too. A replacement,
//! `[redacted:NAME]`, has no quotes and no backslashes, and JSON stays valid.

mod event;
mod forms;
mod heads;
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
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use memchr::memmem::Finder;

use self::heads::KnownHeads;
pub use self::names::is_secret_name;
use self::search::Forms;
use self::shapes::Shapes;
use self::views::Layer;

/// The start of every replacement.
const MARKER: &str = "[redacted:";

/// Built once: that takes longer than to search most messages.
static MARKERS: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(MARKER));

/// The longest name that a replacement shows.
const NAME_CHARS: usize = 64;

/// Shorter values are not secrets: they would match ordinary text.
const SHORTEST: usize = 8;

/// The longest secret, in any form, that is recognized where a text is cut.
pub const LONGEST: usize = 16 * 1024;

/// Replaces secrets. Cheap to clone; all clones share what one learns.
#[derive(Debug, Clone)]
pub struct Redactor {
    inner: Arc<RedactorState>,
    learned: SharedSecrets,
    /// Those that every redactor of the process knows.
    obtained: SharedSecrets,
    heads: Arc<Mutex<KnownHeads>>,
}

#[derive(Debug)]
struct RedactorState {
    /// All forms of all secrets; `None` if there are none.
    forms: Option<Forms>,
    shapes: Shapes,
}

/// Secrets that become known while Proctor runs, such as tokens. Cheap to clone; all clones share
/// them.
#[derive(Clone, Default)]
pub struct SharedSecrets(Arc<RwLock<LearnedSecrets>>);

#[derive(Clone, Default)]
struct LearnedSecrets {
    secrets: Vec<(String, String)>,
    forms: Option<Arc<Forms>>,
}

impl SharedSecrets {
    /// Adds secrets, which are replaced from now on.
    pub fn learn(&self, secrets: impl IntoIterator<Item = (String, String)>) {
        let mut secrets = worth_hiding(secrets);
        let mut learned = self.0.write().unwrap_or_else(PoisonError::into_inner);
        secrets.retain(|secret| !learned.secrets.contains(secret));
        if secrets.is_empty() {
            return;
        }
        learned.secrets.append(&mut secrets);
        learned.secrets.sort();
        learned.forms = forms_of(&learned.secrets).map(Arc::new);
    }

    fn forms(&self) -> Option<Arc<Forms>> {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner);
        learned.forms.clone()
    }

    /// The number of secrets. None is ever removed.
    fn count(&self) -> usize {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner);
        learned.secrets.len()
    }

    /// The same secrets, which later ones don't join.
    fn copied(&self) -> Self {
        let learned = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Self(Arc::new(RwLock::new(learned.clone())))
    }
}

impl std::fmt::Debug for SharedSecrets {
    /// Shows no secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedSecrets")
    }
}

/// A range of a text, and its replacement.
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
    /// Replaces the values of these (name, value) pairs, and text that looks like a key.
    ///
    /// Ignores values shorter than eight characters and common words (`password`, `undefined`,
    /// `localhost`, one character repeated): replacing them would change ordinary text without
    /// hiding a secret.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            inner: Arc::new(RedactorState {
                forms: forms_of(&worth_hiding(secrets)),
                shapes: Shapes::new(),
            }),
            learned: SharedSecrets::default(),
            obtained: SharedSecrets::default(),
            heads: Arc::default(),
        }
    }

    /// A redactor with the same secrets that shares what it learns only with its own clones: the
    /// secrets of a trial are its own.
    #[must_use]
    pub fn scoped(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            learned: self.learned.copied(),
            obtained: self.obtained.clone(),
            heads: Arc::default(),
        }
    }

    /// Also replaces these secrets, and those that join them later.
    #[must_use]
    pub fn sharing(mut self, obtained: &SharedSecrets) -> Self {
        self.obtained = obtained.clone();
        self.heads = Arc::default();
        self
    }

    /// Adds secrets, which are replaced from now on.
    pub fn learn(&self, secrets: impl IntoIterator<Item = (String, String)>) {
        self.learned.learn(secrets);
    }

    /// Whether a value can be replaced without changing ordinary text.
    pub fn can_hide(value: &str) -> bool {
        is_worth_hiding(value) && value.len() <= LONGEST
    }

    /// Uses the values of variables whose names indicate a secret: `OPENAI_API_KEY`, `PGPASSWORD`.
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

    /// The start of a text without secrets. It is redacted before it is cut, since cutting first
    /// could leave a part of a secret.
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

    /// The first position at or after `at` that is not within a secret, where the start of a text
    /// may be cut off. The text before `at` is needed to recognize secrets.
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

    /// The value of a header without secrets; fully redacted if the name indicates a secret.
    pub fn header(&self, name: &str, value: &str) -> String {
        if value.is_empty() || is_marker(value) || !is_secret_name(name) {
            return self.text(value).into_owned();
        }
        format!("{MARKER}{}]", shown_name(&name.to_ascii_lowercase()))
    }

    /// Redacts bytes without parsing JSON.
    fn plain<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        replace_all(bytes, |part| {
            let levels = search::levels(Layer::Json, part);
            let known = self.known(part, &levels);
            // Known secrets keep their own names; then the rest is searched for text that looks
            // like a key.
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
        let later = [&self.learned, &self.obtained];
        for forms in later.into_iter().filter_map(SharedSecrets::forms) {
            found.extend(forms.find(part, levels));
            found = search::merged(found);
        }
        found
    }
}

/// Drops values that would match ordinary text. If one value has two names, every run shows the
/// same one.
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

/// Replaces until nothing is found: the rest of a cut escape can form a secret again.
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

/// Replaces what `find` finds, except in existing replacements.
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

/// The parts between existing replacements, which are never replaced again.
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
        let start = at + MARKERS.find(&bytes[at..])?;
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

/// Whether a text has a replacement in it.
pub fn has_marker(text: &str) -> bool {
    next_marker(text.as_bytes(), 0).is_some()
}

fn is_marker(text: &str) -> bool {
    next_marker(text.as_bytes(), 0) == Some(0..text.len())
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// A replacement that shows the name, unless the name itself contains a secret.
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
    /// Common settings of key-like variables, and common example passwords.
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

/// Secrets and their replacements are whole characters, so valid UTF-8 stays valid.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
