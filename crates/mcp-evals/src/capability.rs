//! The capability of a server, and the names of the wire format.
//!
//! Its main type is [`Capability`].

use serde_json::{Map, Value};

use crate::fields::{Fields, ShapeFault, object, serde_by_hand};

/// The key of the capability, at the top of `capabilities` and below `capabilities.experimental`.
pub const CAPABILITY: &str = "evals";

/// The key of the capability below `capabilities.extensions`, where names must have a prefix.
pub const EXTENSION: &str = "dev.mcp-proctor/evals";

/// The method that lists evals.
pub const METHOD: &str = "evals/list";

/// The notification that a server which declared `listChanged` sends when its evals change.
pub const LIST_CHANGED: &str = "notifications/evals/list_changed";

/// The key in `subscriptions/listen` with which a client asks for [`LIST_CHANGED`].
pub const LISTEN_KEY: &str = "evalsListChanged";

/// The capability that a server with evals declares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Capability {
    /// Whether the server notifies clients when its evals change.
    pub list_changed: Option<bool>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl Capability {
    /// The capability of a server that notifies clients when its evals change.
    pub fn with_list_changed() -> Self {
        Self {
            list_changed: Some(true),
            extra: Map::new(),
        }
    }

    /// The capability as the object that is sent over the wire.
    pub fn to_map(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        if let Some(list_changed) = self.list_changed {
            members.insert("listChanged".to_owned(), list_changed.into());
        }
        members
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let mut fields = Fields::new(members, path, faults);
        let list_changed = fields.optional_bool("listChanged");
        Some(Self {
            extra: fields.rest()?,
            list_changed,
        })
    }

    pub(crate) fn write(&self) -> Value {
        Value::Object(self.to_map())
    }
}

serde_by_hand!(Capability);
