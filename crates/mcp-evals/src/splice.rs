//! Inserts the capability into a serialized message, without changing anything else.
//!
//! SDKs refuse or drop a top-level capability that they do not know, so a server declares it in the
//! serialized message. Bytes are only inserted: unknown content, white space, the spelling of
//! numbers and the order of keys stay unchanged. Existing declarations take precedence.

mod scan;

use serde_json::Value;

use self::scan::Object;
use crate::capability::{CAPABILITY, Capability, EXTENSION};

/// Bytes to insert into a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Insertion {
    /// The byte offset in the message.
    pub at: usize,
    /// The bytes to insert.
    pub text: String,
}

/// Why the capability can't be inserted. Send the message unchanged.
#[derive(Debug, thiserror::Error)]
pub enum SpliceError {
    /// The message is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The message is not a response to `initialize` or `server/discover`.
    #[error("the message has no object `result.capabilities`")]
    NoCapabilities,
}

/// The response to `initialize` or `server/discover`, with the capability in all three places:
/// `evals`, `experimental.evals` and `extensions["dev.mcp-proctor/evals"]`.
pub fn declare(message: &[u8], capability: &Capability) -> Result<Vec<u8>, SpliceError> {
    let insertions = insertions(message, capability)?;
    Ok(apply(message, &insertions))
}

/// The insertions of [`declare`], in ascending order.
pub fn insertions(message: &[u8], capability: &Capability) -> Result<Vec<Insertion>, SpliceError> {
    let capabilities = find_capabilities(message)?;
    let mut places = Vec::new();
    let mut missing = Vec::new();
    add(
        &capabilities,
        CAPABILITY,
        capability,
        &mut missing,
        &mut places,
    );
    for (group, key) in [("experimental", CAPABILITY), ("extensions", EXTENSION)] {
        match capabilities.member(group) {
            None => missing.push(format!(r#""{group}":{{{}}}"#, member(key, capability))),
            Some(_) => {
                // A group that is no object can't hold anything; the other places are enough.
                if let Some(group) = capabilities.object(group) {
                    let mut missing = Vec::new();
                    add(&group, key, capability, &mut missing, &mut places);
                    places.extend(group.insertion(&missing));
                }
            }
        }
    }
    places.extend(capabilities.insertion(&missing));
    places.sort_by_key(|insertion| insertion.at);
    Ok(places)
}

/// Applies insertions to a message. They must be in ascending order.
pub fn apply(message: &[u8], insertions: &[Insertion]) -> Vec<u8> {
    let added: usize = insertions
        .iter()
        .map(|insertion| insertion.text.len())
        .sum();
    let mut out = Vec::with_capacity(message.len() + added);
    let mut done = 0;
    for insertion in insertions {
        out.extend_from_slice(&message[done..insertion.at]);
        out.extend_from_slice(insertion.text.as_bytes());
        done = insertion.at;
    }
    out.extend_from_slice(&message[done..]);
    out
}

fn find_capabilities(message: &[u8]) -> Result<Object<'_>, SpliceError> {
    serde_json::from_slice::<serde::de::IgnoredAny>(message)?;
    Object::outermost(message)
        .and_then(|envelope| envelope.object("result"))
        .and_then(|result| result.object("capabilities"))
        .ok_or(SpliceError::NoCapabilities)
}

/// Adds the capability to an object: as a new member, or the fields that the present one lacks.
fn add(
    object: &Object<'_>,
    key: &str,
    capability: &Capability,
    missing: &mut Vec<String>,
    places: &mut Vec<Insertion>,
) {
    if object.member(key).is_none() {
        missing.push(member(key, capability));
    } else if let Some(present) = object.object(key) {
        let lacking: Vec<String> = capability
            .to_map()
            .into_iter()
            .filter(|(key, _)| present.member(key).is_none())
            .map(|(key, value)| format!("{}:{value}", Value::from(key)))
            .collect();
        places.extend(present.insertion(&lacking));
    }
}

fn member(key: &str, capability: &Capability) -> String {
    format!(r#""{key}":{}"#, capability.write())
}
