//! The canonical form of what a server offers.
//!
//! Main type: [`SurfaceContent`]. It is the same for every order of items and keys, every transport, every era of
//! the protocol and every number of pages.

use std::collections::BTreeMap;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use proctor_record::event::Surface;
use proctor_record::json;

/// The estimated number of bytes of JSON per token.
const BYTES_PER_TOKEN: u64 = 4;

/// What a server offers, each item by its name or URI.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SurfaceContent {
    /// The capabilities that the server declares; `None` if a record does not hold them.
    pub capabilities: Option<BTreeMap<String, Value>>,
    pub instructions: Option<String>,
    pub prompts: BTreeMap<String, Value>,
    pub resource_templates: BTreeMap<String, Value>,
    pub resources: BTreeMap<String, Value>,
    pub tools: BTreeMap<String, Value>,
    /// The lists that the server did not return, with the reason.
    #[serde(skip)]
    pub unlisted: BTreeMap<String, String>,
}

/// Why a surface has no canonical form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    #[error("the server lists the {kind} `{name}` twice")]
    ListedTwice { kind: &'static str, name: String },
    #[error("the server lists a {kind} without `{key}`")]
    Unnamed {
        kind: &'static str,
        key: &'static str,
    },
    #[error("the server lists a {kind} that can't be read: {reason}")]
    Unreadable { kind: &'static str, reason: String },
}

impl SurfaceContent {
    pub fn of(surface: &Surface) -> Result<Self, ContentError> {
        let capabilities = surface.capabilities.as_ref().map(|declared| {
            let declared = declared.iter();
            declared
                .map(|(name, value)| (name.clone(), capability(value)))
                .collect()
        });
        Ok(Self {
            capabilities,
            instructions: surface.instructions.clone(),
            prompts: named("prompt", "name", &surface.prompts)?,
            resource_templates: named(
                "resource template",
                "uriTemplate",
                &surface.resource_templates,
            )?,
            resources: named("resource", "uri", &surface.resources)?,
            tools: named("tool", "name", &surface.tools)?,
            unlisted: surface.unlisted.clone(),
        })
    }

    /// Whether the server offers nothing to test.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
            && self.resources.is_empty()
            && self.resource_templates.is_empty()
            && self.prompts.is_empty()
    }

    /// The list that the server has and did not return, with the reason.
    pub fn unknown_list(&self) -> Option<String> {
        let mut unlisted = self.unlisted.iter();
        let (list, reason) = unlisted.find(|(_, reason)| *reason != super::NOT_IMPLEMENTED)?;
        Some(format!("did not list its {list}: {reason}"))
    }

    /// The estimated tokens of all tools in a model request.
    pub fn schema_tokens(&self) -> u64 {
        let tokens = |(name, tool): (&String, &Value)| {
            let part = |key: &str| tool.get(key).unwrap_or(&Value::Null);
            tool_tokens(name, part("description"), part("inputSchema"))
        };
        self.tools.iter().map(tokens).sum()
    }
}

/// The estimated tokens of a tool in a model request.
pub fn tool_tokens(name: &str, description: &Value, schema: &Value) -> u64 {
    let described = serde_json::json!({
        "name": name,
        "description": description,
        "inputSchema": schema,
    });
    (described.to_string().len() as u64).div_ceil(BYTES_PER_TOKEN)
}

fn named(
    kind: &'static str,
    key: &'static str,
    items: &[Box<RawValue>],
) -> Result<BTreeMap<String, Value>, ContentError> {
    let mut found = BTreeMap::new();
    for raw in items {
        let parsed: Result<Map<String, Value>, _> = json::from_str(raw.get());
        let mut item = parsed.map_err(|error| ContentError::Unreadable {
            kind,
            reason: error.to_string(),
        })?;
        let Some(Value::String(name)) = item.remove(key) else {
            return Err(ContentError::Unnamed { kind, key });
        };
        if found.contains_key(&name) {
            return Err(ContentError::ListedTwice { kind, name });
        }
        found.insert(name, canonical_item(kind, item));
    }
    Ok(found)
}

/// The parts of an item that clients and models depend on.
fn canonical_item(kind: &str, mut item: Map<String, Value>) -> Value {
    item.remove("_meta");
    if kind == "resource" {
        // The size and the time of a file change without a change of the server.
        item.remove("size");
        if let Some(Value::Object(annotations)) = item.get_mut("annotations") {
            annotations.remove("lastModified");
        }
    }
    for (key, part) in &mut item {
        match key.as_str() {
            "inputSchema" | "outputSchema" => {}
            "icons" => {
                let icons = part.as_array().into_iter().flatten();
                *part = icons.map(|icon| Value::String(digest(icon))).collect();
            }
            _ => without_meta(part),
        }
    }
    sorted(Value::Object(item))
}

fn without_meta(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("_meta");
            map.values_mut().for_each(without_meta);
        }
        Value::Array(list) => list.iter_mut().for_each(without_meta),
        _ => {}
    }
}

fn digest(value: &Value) -> String {
    let hash = HEXLOWER.encode(&Sha256::digest(json::canonical(value)));
    format!("sha256:{hash}")
}

/// A declared capability. Whether a server announces changed lists depends on the transport and the era.
fn capability(value: &Value) -> Value {
    let mut value = value.clone();
    without_meta(&mut value);
    if let Value::Object(map) = &mut value {
        map.remove("listChanged");
        map.retain(|_, flag| *flag != Value::Bool(false));
    }
    sorted(value)
}

/// The value with the keys of all its maps in order, and the names of `required` too.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut members: Vec<(String, Value)> = map.into_iter().collect();
            members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let members = members.into_iter().map(|(key, value)| {
                let mut value = sorted(value);
                if key == "required"
                    && let Value::Array(names) = &mut value
                    && names.iter().all(Value::is_string)
                {
                    names.sort_unstable_by(|a, b| a.as_str().cmp(&b.as_str()));
                }
                (key, value)
            });
            Value::Object(members.collect())
        }
        Value::Array(list) => Value::Array(list.into_iter().map(sorted).collect()),
        other => other,
    }
}
