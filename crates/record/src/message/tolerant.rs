//! The tolerant reader: which calls a lenient server may find in what an agent sends.
//!
//! Its main type is [`LenientReading`]. The strict parser counts the calls that all implementations agree on.
//! This reader finds the others: calls in messages that the strict parser refuses, calls without an
//! id, and calls whose name depends on who reads them. It may report a call that no server executes;
//! it must never miss one. Linear in the length of the message, and it does not recurse.

mod methods;
mod params;
mod structure;
#[cfg(test)]
mod tests;

use serde_json::value::RawValue;

use self::methods::Methods;
pub(crate) use self::params::{CallParts, call_parts};
use super::{Batch, Id, Message, MessageKind};
use crate::excerpt::excerpt;
use crate::json;
use crate::transcript::CallKind;

/// The maximum number of calls that are distinguished in one frame.
const MAX_CALLS: usize = 100;

/// The calls that a lenient implementation may find in a frame, beyond those of the strict parser.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LenientReading {
    pub calls: Vec<UnclearCall>,
    /// The ids of requests in parts that the strict parser refuses: a server may answer them.
    pub ids: Vec<Id>,
}

/// A part of a message that an implementation may execute as a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnclearCall {
    /// The type of the call, if all readings agree.
    pub kind: Option<CallKind>,
    /// The tool, URI or prompt, if every reading agrees.
    pub name: Option<String>,
    /// Why it is not clear.
    pub reason: String,
}

impl LenientReading {
    /// Reads what a client sent.
    pub fn of(bytes: &[u8]) -> Self {
        let mut reading = Self::default();
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        match std::str::from_utf8(bytes) {
            Err(_) => reading.refused(bytes, "it is not UTF-8"),
            Ok(text) => match batch(text) {
                Some(messages) => {
                    for message in messages {
                        reading.part(message.get());
                    }
                }
                None => reading.part(text),
            },
        }
        reading
    }

    /// One message, or what stands in its place.
    fn part(&mut self, text: &str) {
        let is_object = text.trim_ascii_start().starts_with('{');
        match json::from_str::<Message<'_>>(text) {
            Ok(message) if is_object => self.accepted(&message, text),
            Ok(_) => self.refused(text.as_bytes(), "it is not an object"),
            Err(error) => self.refused(text.as_bytes(), &error.to_string()),
        }
    }

    /// A message that the strict parser reads.
    fn accepted(&mut self, message: &Message<'_>, text: &str) {
        if let Some(key) = params::misspelt(text, &["method", "params"]) {
            let reason = format!("some servers read its key `{}`", excerpt(&key));
            self.structured(text.as_bytes(), &reason);
            // The strict parser knows the id.
            self.ids.clear();
        }
        let (method, has_id) = match message.kind() {
            MessageKind::Request { method, .. } => (method, true),
            MessageKind::Notification { method } => (method, false),
            MessageKind::Answer { .. } | MessageKind::Neither => return,
        };
        let Some(kind) = methods::meant(method) else {
            return;
        };
        let name = call_parts(kind, message.params).name;
        let reason = match &name {
            Err(reason) => reason.clone(),
            Ok(_) if method != kind.method() => {
                format!("some servers read its method `{}`", excerpt(method))
            }
            Ok(_) if !has_id => "it has no `id`".to_owned(),
            Ok(_) => return,
        };
        self.push(Some(kind), name.ok().flatten(), &reason);
    }

    /// A part that the strict parser does not read.
    fn refused(&mut self, bytes: &[u8], reason: &str) {
        if methods::is_binary(bytes) {
            return self.push(None, None, reason);
        }
        self.structured(bytes, reason);
    }

    fn structured(&mut self, bytes: &[u8], reason: &str) {
        let found = Methods::of(bytes);
        match structure::read(bytes) {
            Some(structure) => {
                // A message may be split over several lines: this may be its method.
                if structure.has_loose_text {
                    self.unnamed(&found, reason);
                }
                for candidate in structure.messages {
                    self.ids.extend(candidate.ids());
                    for (kind, name) in candidate.calls() {
                        self.push(kind, name, reason);
                    }
                }
            }
            None => self.unnamed(&found, reason),
        }
    }

    fn unnamed(&mut self, found: &Methods, reason: &str) {
        for kind in found.kinds() {
            self.push(Some(kind), None, reason);
        }
    }

    fn push(&mut self, kind: Option<CallKind>, name: Option<String>, reason: &str) {
        let (kind, name) = match self.calls.len() {
            ..MAX_CALLS => (kind, name),
            MAX_CALLS => (None, None),
            _ => return,
        };
        self.calls.push(UnclearCall {
            kind,
            name,
            reason: reason.to_owned(),
        });
    }
}

/// The messages of a batch, if the strict parser reads it as one.
fn batch(text: &str) -> Option<Vec<&RawValue>> {
    if !text.trim_ascii_start().starts_with('[') {
        return None;
    }
    json::from_str::<Batch<'_>>(text).ok().map(|batch| batch.0)
}
