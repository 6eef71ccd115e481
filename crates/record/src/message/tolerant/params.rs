//! The parameters of a call, if implementations may read them differently.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::structure::same_key;
use crate::json;
use crate::transcript::CallKind;

/// The parts of a call that are clear, or why they are not.
#[derive(Debug)]
pub(crate) struct CallParts {
    /// The tool, URI or prompt, if there is one.
    pub(crate) name: Result<Option<String>, String>,
    /// Why the arguments can't be read.
    pub(crate) unclear_arguments: Option<String>,
}

/// The parts of a call's parameters on which all implementations agree.
pub(crate) fn call_parts(kind: CallKind, params: Option<&RawValue>) -> CallParts {
    let Some(params) = params else {
        return CallParts {
            name: Ok(None),
            unclear_arguments: None,
        };
    };
    let Ok(members) = json::from_str::<Members<'_>>(params.get()) else {
        let reason = "its `params` are not an object".to_owned();
        return CallParts {
            name: Err(reason.clone()),
            unclear_arguments: Some(reason),
        };
    };
    CallParts {
        name: members.name(kind.target_key()),
        unclear_arguments: members.only("arguments").err(),
    }
}

/// A key of an object that some implementations take for one of these, and others don't.
pub(super) fn misspelt(object: &str, names: &[&str]) -> Option<String> {
    let Keys(keys) = json::from_str(object).ok()?;
    let is_other = |key: &Cow<'_, str>| names.iter().any(|name| same_key(key, name) && key != name);
    keys.into_iter().find(is_other).map(Cow::into_owned)
}

/// The members of an object that matter here, in order, however often each is there.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl Members<'_> {
    /// The member with a key, if there is one; or why it depends on the reader.
    fn only(&self, key: &str) -> Result<Option<&RawValue>, String> {
        let mut found = self.0.iter().filter(|(other, _)| same_key(other, key));
        let Some((written, value)) = found.next() else {
            return Ok(None);
        };
        if found.next().is_some() {
            return Err(format!("`{key}` appears twice in its `params`"));
        }
        if written != key {
            return Err(format!("some servers read `{key}` in its `params`"));
        }
        Ok(Some(value))
    }

    fn name(&self, key: &str) -> Result<Option<String>, String> {
        let Some(raw) = self.only(key)? else {
            return Ok(None);
        };
        match json::from_str::<String>(raw.get()) {
            // Where strings end at a NUL, the rest of it does not count.
            Ok(name) if !name.contains('\0') => Ok(Some(name)),
            _ => Err(format!("its `{key}` is not a plain string")),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((ParamKey(key), value)) = map.next_entry()? {
                    let matters = ["name", "uri", "arguments"];
                    if matters.iter().any(|name| same_key(&key, name)) {
                        members.push((key, value));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object).map(Members)
    }
}

/// The keys of an object that could be taken for others: those that are not written as usual.
struct Keys<'a>(Vec<Cow<'a, str>>);

impl<'de: 'a, 'a> Deserialize<'de> for Keys<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Vec<Cow<'de, str>>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut keys = Vec::new();
                while let Some((ParamKey(key), IgnoredAny)) = map.next_entry()? {
                    let is_usual = key.bytes().all(|byte| byte.is_ascii_lowercase());
                    if !is_usual && keys.len() < super::MAX_CALLS {
                        keys.push(key);
                    }
                }
                Ok(keys)
            }
        }
        deserializer.deserialize_map(Object).map(Keys)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct ParamKey<'a>(#[serde(borrow)] Cow<'a, str>);
