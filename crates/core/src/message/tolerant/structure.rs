//! The messages in a text that is almost JSON.
//!
//! Its main type is [`Structure`]. It allows what does not change where values start and end: words
//! such as `NaN`, keys that appear twice, raw control characters in strings, lone surrogates, commas
//! too many or too few, several values in a row. Whatever else is wrong makes the structure a matter
//! of opinion, and there is none.

use serde_json::value::RawValue;

use super::methods::meant;
use crate::message::Id;
use crate::transcript::CallKind;

mod lexer;

use self::lexer::{Lexer, Token};

/// How deep values are nested at most.
const MAX_DEPTH: usize = 100_000;
/// How many messages there may be.
const MAX_MESSAGES: usize = 10_000;
/// How many values of one key are told apart.
const MAX_VALUES: usize = 4;

/// What a text is made of.
#[derive(Debug, Default)]
pub(super) struct Structure {
    pub(super) messages: Vec<Candidate>,
    /// Whether there is text outside of any object.
    pub(super) has_loose_text: bool,
}

/// An object where a message may stand.
#[derive(Debug, Default)]
pub(super) struct Candidate {
    methods: Values,
    names: Values,
    uris: Values,
    ids: Vec<String>,
}

/// The values of a key that may appear several times.
#[derive(Debug, Default)]
struct Values {
    texts: Vec<String>,
    /// Whether one of them can't be told.
    is_unclear: bool,
}

impl Values {
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

/// What a container is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// A list in which messages may stand.
    Messages,
    Message,
    Params,
    Other,
}

/// A container that has not ended.
struct Open {
    role: Role,
    is_object: bool,
    /// In an object: the key whose value comes next, and whether its colon was there.
    key: Option<Key>,
    has_colon: bool,
}

/// A key, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Method,
    Params,
    Id,
    Name,
    Uri,
    Other,
}

/// The messages in a text; nothing if readers may disagree on where they start and end.
pub(super) fn read(bytes: &[u8]) -> Option<Structure> {
    let mut reader = Reader {
        structure: Structure::default(),
        open: Vec::new(),
    };
    let mut lexer = Lexer::new(std::str::from_utf8(bytes).ok()?);
    while let Some(token) = lexer.next()? {
        reader.take(&token)?;
    }
    reader.open.is_empty().then_some(reader.structure)
}

struct Reader {
    structure: Structure,
    open: Vec<Open>,
}

impl Reader {
    fn take(&mut self, token: &Token<'_>) -> Option<()> {
        match token {
            Token::Open { is_object } => self.begin(*is_object),
            Token::Close { is_object } => {
                let closed = self.open.pop()?;
                (closed.is_object == *is_object && closed.key.is_none()).then_some(())
            }
            Token::Colon => {
                let open = self.open.last_mut()?;
                (open.key.is_some() && !open.has_colon).then(|| open.has_colon = true)
            }
            // A value is missing before it.
            Token::Comma => self
                .open
                .last()
                .is_none_or(|o| o.key.is_none())
                .then_some(()),
            Token::Text(_) | Token::Word(_) => self.scalar(token),
        }
    }

    fn begin(&mut self, is_object: bool) -> Option<()> {
        if self.open.len() == MAX_DEPTH || self.structure.messages.len() == MAX_MESSAGES {
            return None;
        }
        let (role, key) = self.value_place()?;
        let role = match (role, key) {
            (Role::Messages, _) if is_object => {
                self.structure.messages.push(Candidate::default());
                Role::Message
            }
            (Role::Messages, _) => Role::Messages,
            (Role::Message, Some(Key::Params)) if is_object => Role::Params,
            (role, key) => {
                self.unclear(role, key);
                Role::Other
            }
        };
        self.open.push(Open {
            role,
            is_object,
            key: None,
            has_colon: false,
        });
        Some(())
    }

    fn scalar(&mut self, token: &Token<'_>) -> Option<()> {
        if let Some(open) = self.open.last_mut()
            && open.is_object
            && open.key.is_none()
        {
            open.key = Some(key(open.role, token)?);
            return Some(());
        }
        let (role, key) = self.value_place()?;
        if self.open.is_empty() {
            self.structure.has_loose_text |= matches!(token, Token::Text(_));
            return Some(());
        }
        let Some(candidate) = self.structure.messages.last_mut() else {
            return Some(());
        };
        let text = || match token {
            Token::Text(text) => lexer::decode(text),
            Token::Word(_)
            | Token::Open { .. }
            | Token::Close { .. }
            | Token::Colon
            | Token::Comma => None,
        };
        let plain = || text().filter(|text| !text.chars().any(char::is_control));
        match (role, key) {
            (Role::Message, Some(Key::Method)) => candidate.methods.add(text()),
            (Role::Message, Some(Key::Id)) if candidate.ids.len() < MAX_VALUES => {
                candidate.ids.push(token.written().to_owned());
            }
            (Role::Message, Some(Key::Params)) => self.unclear(role, key),
            (Role::Params, Some(Key::Name)) => candidate.names.add(plain()),
            (Role::Params, Some(Key::Uri)) => candidate.uris.add(plain()),
            (Role::Message, Some(Key::Id | Key::Name | Key::Uri | Key::Other) | None)
            | (Role::Params, Some(Key::Method | Key::Params | Key::Id | Key::Other) | None)
            | (Role::Messages | Role::Other, _) => {}
        }
        Some(())
    }

    /// Where the next value stands; nothing where there can be none.
    fn value_place(&mut self) -> Option<(Role, Option<Key>)> {
        let Some(open) = self.open.last_mut() else {
            return Some((Role::Messages, None));
        };
        if !open.is_object {
            return Some((open.role, None));
        }
        let has_colon = std::mem::take(&mut open.has_colon);
        let key = open.key.take().filter(|_| has_colon)?;
        Some((open.role, Some(key)))
    }

    /// A value is not what its key asks for.
    fn unclear(&mut self, role: Role, key: Option<Key>) {
        let Some(candidate) = self.structure.messages.last_mut() else {
            return;
        };
        match (role, key) {
            (Role::Message, Some(Key::Method)) => candidate.methods.is_unclear = true,
            (Role::Message, Some(Key::Params)) => {
                candidate.names.is_unclear = true;
                candidate.uris.is_unclear = true;
            }
            (Role::Params, Some(Key::Name)) => candidate.names.is_unclear = true,
            (Role::Params, Some(Key::Uri)) => candidate.uris.is_unclear = true,
            (Role::Message, Some(Key::Id | Key::Name | Key::Uri | Key::Other) | None)
            | (Role::Params, Some(Key::Method | Key::Params | Key::Id | Key::Other) | None)
            | (Role::Messages | Role::Other, _) => {}
        }
    }
}

/// Which key it is; nothing if that is not clear where it matters.
fn key(role: Role, token: &Token<'_>) -> Option<Key> {
    let known: &[(&str, Key)] = match role {
        Role::Message => &[
            ("method", Key::Method),
            ("params", Key::Params),
            ("id", Key::Id),
        ],
        Role::Params => &[("name", Key::Name), ("uri", Key::Uri)],
        Role::Messages | Role::Other => return Some(Key::Other),
    };
    let text = match token {
        Token::Text(text) => lexer::decode(text)?,
        Token::Word(_) | Token::Open { .. } | Token::Close { .. } | Token::Colon | Token::Comma => {
            token.written().to_owned()
        }
    };
    let found = known.iter().find(|(name, _)| same_key(&text, name));
    Some(found.map_or(Key::Other, |(_, key)| *key))
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
