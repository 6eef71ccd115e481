//! The messages in a text that is almost JSON.
//!
//! Its main type is [`Structure`]. It allows what does not change where values start and end: words
//! such as `NaN`, keys that appear twice, raw control characters in strings, lone surrogates, commas
//! too many or too few, several values in a row. With any other mistake the structure is
//! ambiguous, and there is no result.

use serde_json::value::RawValue;

use super::methods::meant;
use crate::message::Id;
use crate::transcript::CallKind;

mod lexer;

use self::lexer::{JsonToken, MessageLexer};

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 100_000;
/// The maximum number of messages.
const MAX_MESSAGES: usize = 10_000;
/// The maximum number of values of one key that are distinguished.
const MAX_VALUES: usize = 4;

/// The messages of a text.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) messages: Vec<Candidate>,
    /// Whether there is text outside of any object.
    pub(super) has_loose_text: bool,
}

/// An object where a message may stand.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    methods: KeyValues,
    names: KeyValues,
    uris: KeyValues,
    ids: Vec<String>,
}

/// The values of a key that may appear several times.
#[derive(Debug, Default)]
struct KeyValues {
    texts: Vec<String>,
    /// Whether one of them is unclear.
    is_unclear: bool,
}

impl KeyValues {
    fn add(&mut self, text: Option<String>) {
        match text {
            Some(text) if self.texts.contains(&text) => {}
            Some(text) if self.texts.len() < MAX_VALUES => self.texts.push(text),
            _ => self.is_unclear = true,
        }
    }
}

impl Candidate {
    /// The calls that it may be: each by kind and name.
    pub(super) fn calls(&self) -> Vec<(Option<CallKind>, Option<String>)> {
        if self.methods.is_unclear {
            return vec![(None, None)];
        }
        let mut calls = Vec::new();
        for kind in CallKind::ALL {
            let mut methods = self.methods.texts.iter();
            if !methods.any(|method| meant(method) == Some(kind)) {
                continue;
            }
            let names = match kind {
                CallKind::Tool | CallKind::Prompt => &self.names,
                CallKind::Resource => &self.uris,
            };
            if names.is_unclear || names.texts.is_empty() {
                calls.push((Some(kind), None));
            } else {
                let each = names.texts.iter();
                calls.extend(each.map(|name| (Some(kind), Some(name.clone()))));
            }
        }
        calls
    }

    /// The ids that an answer to it may have.
    pub(super) fn ids(&self) -> impl Iterator<Item = Id> {
        let is_request = self.methods.is_unclear || !self.methods.texts.is_empty();
        let written = self.ids.iter().filter(move |_| is_request);
        written.filter_map(|id| Some(Id::of(&RawValue::from_string(id.clone()).ok()?)))
    }
}

/// The role of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerRole {
    /// A list in which messages may stand.
    Messages,
    Message,
    Params,
    Other,
}

/// A container that has not ended.
struct OpenContainer {
    role: ContainerRole,
    is_object: bool,
    /// In an object: the key whose value comes next, and whether its colon was there.
    key: Option<MessageKey>,
    has_colon: bool,
}

/// A key, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessageKey {
    Method,
    Params,
    Id,
    Name,
    Uri,
    Other,
}

/// The messages in a text; `None` if parsers may disagree on where they start and end.
pub(super) fn read(bytes: &[u8]) -> Option<Structure> {
    let mut reader = StructureReader {
        structure: Structure::default(),
        open: Vec::new(),
    };
    let mut lexer = MessageLexer::new(std::str::from_utf8(bytes).ok()?);
    while let Some(token) = lexer.next()? {
        reader.take(&token)?;
    }
    reader.open.is_empty().then_some(reader.structure)
}

struct StructureReader {
    structure: Structure,
    open: Vec<OpenContainer>,
}

impl StructureReader {
    fn take(&mut self, token: &JsonToken<'_>) -> Option<()> {
        match token {
            JsonToken::Open { is_object } => self.begin(*is_object),
            JsonToken::Close { is_object } => {
                let closed = self.open.pop()?;
                (closed.is_object == *is_object && closed.key.is_none()).then_some(())
            }
            JsonToken::Colon => {
                let open = self.open.last_mut()?;
                (open.key.is_some() && !open.has_colon).then(|| open.has_colon = true)
            }
            // A value is missing before it.
            JsonToken::Comma => self
                .open
                .last()
                .is_none_or(|o| o.key.is_none())
                .then_some(()),
            JsonToken::Text(_) | JsonToken::Word(_) => self.scalar(token),
        }
    }

    fn begin(&mut self, is_object: bool) -> Option<()> {
        if self.open.len() == MAX_DEPTH || self.structure.messages.len() == MAX_MESSAGES {
            return None;
        }
        let (role, key) = self.value_place()?;
        let role = match (role, key) {
            (ContainerRole::Messages, _) if is_object => {
                self.structure.messages.push(Candidate::default());
                ContainerRole::Message
            }
            (ContainerRole::Messages, _) => ContainerRole::Messages,
            (ContainerRole::Message, Some(MessageKey::Params)) if is_object => {
                ContainerRole::Params
            }
            (role, key) => {
                self.unclear(role, key);
                ContainerRole::Other
            }
        };
        self.open.push(OpenContainer {
            role,
            is_object,
            key: None,
            has_colon: false,
        });
        Some(())
    }

    fn scalar(&mut self, token: &JsonToken<'_>) -> Option<()> {
        if let Some(open) = self.open.last_mut()
            && open.is_object
            && open.key.is_none()
        {
            open.key = Some(key(open.role, token)?);
            return Some(());
        }
        let (role, key) = self.value_place()?;
        if self.open.is_empty() {
            self.structure.has_loose_text |= matches!(token, JsonToken::Text(_));
            return Some(());
        }
        let Some(candidate) = self.structure.messages.last_mut() else {
            return Some(());
        };
        let text = || match token {
            JsonToken::Text(text) => lexer::decode(text),
            JsonToken::Word(_)
            | JsonToken::Open { .. }
            | JsonToken::Close { .. }
            | JsonToken::Colon
            | JsonToken::Comma => None,
        };
        let plain = || text().filter(|text| !text.chars().any(char::is_control));
        match (role, key) {
            (ContainerRole::Message, Some(MessageKey::Method)) => candidate.methods.add(text()),
            (ContainerRole::Message, Some(MessageKey::Id)) if candidate.ids.len() < MAX_VALUES => {
                candidate.ids.push(token.written().to_owned());
            }
            (ContainerRole::Message, Some(MessageKey::Params)) => self.unclear(role, key),
            (ContainerRole::Params, Some(MessageKey::Name)) => candidate.names.add(plain()),
            (ContainerRole::Params, Some(MessageKey::Uri)) => candidate.uris.add(plain()),
            (
                ContainerRole::Message,
                Some(MessageKey::Id | MessageKey::Name | MessageKey::Uri | MessageKey::Other)
                | None,
            )
            | (
                ContainerRole::Params,
                Some(MessageKey::Method | MessageKey::Params | MessageKey::Id | MessageKey::Other)
                | None,
            )
            | (ContainerRole::Messages | ContainerRole::Other, _) => {}
        }
        Some(())
    }

    /// The position of the next value; `None` if no value is allowed.
    fn value_place(&mut self) -> Option<(ContainerRole, Option<MessageKey>)> {
        let Some(open) = self.open.last_mut() else {
            return Some((ContainerRole::Messages, None));
        };
        if !open.is_object {
            return Some((open.role, None));
        }
        let has_colon = std::mem::take(&mut open.has_colon);
        let key = open.key.take().filter(|_| has_colon)?;
        Some((open.role, Some(key)))
    }

    /// A value is not what its key asks for.
    fn unclear(&mut self, role: ContainerRole, key: Option<MessageKey>) {
        let Some(candidate) = self.structure.messages.last_mut() else {
            return;
        };
        match (role, key) {
            (ContainerRole::Message, Some(MessageKey::Method)) => {
                candidate.methods.is_unclear = true;
            }
            (ContainerRole::Message, Some(MessageKey::Params)) => {
                candidate.names.is_unclear = true;
                candidate.uris.is_unclear = true;
            }
            (ContainerRole::Params, Some(MessageKey::Name)) => candidate.names.is_unclear = true,
            (ContainerRole::Params, Some(MessageKey::Uri)) => candidate.uris.is_unclear = true,
            (
                ContainerRole::Message,
                Some(MessageKey::Id | MessageKey::Name | MessageKey::Uri | MessageKey::Other)
                | None,
            )
            | (
                ContainerRole::Params,
                Some(MessageKey::Method | MessageKey::Params | MessageKey::Id | MessageKey::Other)
                | None,
            )
            | (ContainerRole::Messages | ContainerRole::Other, _) => {}
        }
    }
}

/// The key; `None` if it is unclear and matters.
fn key(role: ContainerRole, token: &JsonToken<'_>) -> Option<MessageKey> {
    let known: &[(&str, MessageKey)] = match role {
        ContainerRole::Message => &[
            ("method", MessageKey::Method),
            ("params", MessageKey::Params),
            ("id", MessageKey::Id),
        ],
        ContainerRole::Params => &[("name", MessageKey::Name), ("uri", MessageKey::Uri)],
        ContainerRole::Messages | ContainerRole::Other => return Some(MessageKey::Other),
    };
    let text = match token {
        JsonToken::Text(text) => lexer::decode(text)?,
        JsonToken::Word(_)
        | JsonToken::Open { .. }
        | JsonToken::Close { .. }
        | JsonToken::Colon
        | JsonToken::Comma => token.written().to_owned(),
    };
    let found = known.iter().find(|(name, _)| same_key(&text, name));
    Some(found.map_or(MessageKey::Other, |(_, key)| *key))
}

/// Whether an implementation may take a key for another: Go ignores case, also beyond ASCII; where
/// strings end at a NUL, the rest of it does not count.
pub(super) fn same_key(written: &str, name: &str) -> bool {
    let written = written.split('\0').next().unwrap_or_default();
    let folded = written
        .chars()
        .filter(|c| !c.is_control())
        .map(|c| match c {
            '\u{17f}' => 's',
            '\u{212a}' => 'k',
            c => c.to_ascii_lowercase(),
        });
    folded.eq(name.chars())
}
