//! The places at which two versions of a JSON Schema are written differently.
//!
//! Main function: [`differences`]. It compares texts only; whether a difference matters is decided elsewhere.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use proctor_record::json;

/// Keywords that a model reads and that don't decide whether a value is valid.
const TEXTS: [&str; 12] = [
    "description",
    "title",
    "default",
    "examples",
    "example",
    "$comment",
    "enumDescriptions",
    "x-enumDescriptions",
    "markdownDescription",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// Keywords that decide whether a value is valid, and hold no schema.
const ASSERTIONS: [&str; 26] = [
    "$schema",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "required",
    "dependentRequired",
    "dependencies",
];

/// Keywords with one schema, and the step from a value to the part that it describes.
const ONE_SCHEMA: [(&str, Option<&str>); 11] = [
    ("items", Some("[]")),
    ("additionalItems", Some("[]")),
    ("unevaluatedItems", Some("[]")),
    ("contains", Some("[]")),
    ("additionalProperties", Some("*")),
    ("unevaluatedProperties", Some("*")),
    ("propertyNames", None),
    ("not", None),
    ("if", None),
    ("then", None),
    ("else", None),
];

const NAMED_SCHEMAS: [&str; 4] = [
    "$defs",
    "definitions",
    "patternProperties",
    "dependentSchemas",
];

const SCHEMA_LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafKind {
    /// A text that a model reads.
    Text,
    /// A keyword that decides whether a value is valid.
    Assertion,
    /// A property that only the new schema names.
    Added,
    /// A property that only the old schema names.
    Removed,
    /// A keyword that JSON Schema does not define.
    Other,
}

/// One difference of two schemas.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// The steps from the root of the schema.
    pub(super) pointer: Vec<String>,
    /// The steps from the root of a value to the part that the schema describes there.
    pub(super) path: Vec<String>,
    pub(super) keyword: String,
    pub(super) kind: LeafKind,
    pub(super) old: Option<Value>,
    pub(super) new: Option<Value>,
}

/// All differences, in the order of their places.
pub(super) fn differences(old: &Value, new: &Value) -> Vec<Leaf> {
    let mut walk = Walk::default();
    walk.schema(old, new);
    walk.found
}

#[derive(Default)]
struct Walk {
    pointer: Vec<String>,
    path: Vec<String>,
    found: Vec<Leaf>,
}

impl Walk {
    fn schema(&mut self, old: &Value, new: &Value) {
        if json::equal(old, new) {
            return;
        }
        let (Value::Object(before), Value::Object(now)) = (old, new) else {
            self.leaf("schema", LeafKind::Assertion, Some(old), Some(new));
            return;
        };
        let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for key in keys {
            self.keyword(key, before.get(key), now.get(key), now);
        }
    }

    fn keyword(
        &mut self,
        key: &str,
        old: Option<&Value>,
        new: Option<&Value>,
        schema: &Map<String, Value>,
    ) {
        if let (Some(old), Some(new)) = (old, new)
            && (json::equal(old, new) || is_same_set(key, old, new))
        {
            return;
        }
        self.pointer.push(key.to_owned());
        if key == "properties" {
            self.properties(old, new, schema);
        } else if NAMED_SCHEMAS.contains(&key) {
            self.named(key, old, new);
        } else if let Some((_, step)) = ONE_SCHEMA.iter().find(|(known, _)| *known == key) {
            self.one(key, *step, old, new);
        } else if SCHEMA_LISTS.contains(&key) {
            self.list(key, old, new);
        } else {
            let kind = if TEXTS.contains(&key) {
                LeafKind::Text
            } else if ASSERTIONS.contains(&key) {
                LeafKind::Assertion
            } else {
                LeafKind::Other
            };
            self.leaf(key, kind, old, new);
        }
        self.pointer.pop();
    }

    fn properties(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        schema: &Map<String, Value>,
    ) {
        let none = Value::Object(Map::new());
        let (Value::Object(before), Value::Object(now)) =
            (old.unwrap_or(&none), new.unwrap_or(&none))
        else {
            self.leaf("properties", LeafKind::Assertion, old, new);
            return;
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &String| {
            required.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
        };
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names {
            self.pointer.push(name.clone());
            self.path.push(name.clone());
            match (before.get(name), now.get(name)) {
                (Some(old), Some(new)) => self.schema(old, new),
                // A new required property is reported with `required`.
                (None, Some(new)) if !is_required(name) => {
                    self.leaf(name, LeafKind::Added, None, Some(new));
                }
                (Some(old), None) => self.leaf(name, LeafKind::Removed, Some(old), None),
                (None, _) => {}
            }
            self.path.pop();
            self.pointer.pop();
        }
    }

    fn named(&mut self, key: &str, old: Option<&Value>, new: Option<&Value>) {
        let none = Value::Object(Map::new());
        let (Value::Object(before), Value::Object(now)) =
            (old.unwrap_or(&none), new.unwrap_or(&none))
        else {
            self.leaf(key, LeafKind::Assertion, old, new);
            return;
        };
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for name in names {
            self.pointer.push(name.clone());
            self.path.push(format!("{key}/{name}"));
            match (before.get(name), now.get(name)) {
                (Some(old), Some(new)) => self.schema(old, new),
                (old, new) => self.leaf(key, LeafKind::Assertion, old, new),
            }
            self.path.pop();
            self.pointer.pop();
        }
    }

    fn one(&mut self, key: &str, step: Option<&str>, old: Option<&Value>, new: Option<&Value>) {
        let (Some(before @ Value::Object(_)), Some(now @ Value::Object(_))) = (old, new) else {
            self.leaf(key, LeafKind::Assertion, old, new);
            return;
        };
        self.path.extend(step.map(str::to_owned));
        self.schema(before, now);
        if step.is_some() {
            self.path.pop();
        }
    }

    fn list(&mut self, key: &str, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(Value::Array(before)), Some(Value::Array(now))) if before.len() == now.len() => {
                for (at, (old, new)) in before.iter().zip(now).enumerate() {
                    self.pointer.push(at.to_string());
                    self.schema(old, new);
                    self.pointer.pop();
                }
            }
            (old, new) => self.leaf(key, LeafKind::Assertion, old, new),
        }
    }

    fn leaf(&mut self, keyword: &str, kind: LeafKind, old: Option<&Value>, new: Option<&Value>) {
        self.found.push(Leaf {
            pointer: self.pointer.clone(),
            path: self.path.clone(),
            keyword: keyword.to_owned(),
            kind,
            old: old.cloned(),
            new: new.cloned(),
        });
    }
}

/// Whether both are lists of the same words in another order.
fn is_same_set(key: &str, old: &Value, new: &Value) -> bool {
    let (Value::Array(old), Value::Array(new)) = (old, new) else {
        return false;
    };
    let holds = |all: &[Value], one: &Value| all.iter().any(|value| json::equal(value, one));
    matches!(key, "required" | "type")
        && old.iter().all(|one| holds(new, one))
        && new.iter().all(|one| holds(old, one))
}

impl Leaf {
    /// The schema with this difference applied.
    pub(super) fn applied_to(&self, schema: &Value) -> Value {
        let mut changed = schema.clone();
        set(&mut changed, &self.pointer, self.new.as_ref());
        changed
    }
}

/// Sets or removes the value at a place; missing maps on the way are added.
fn set(schema: &mut Value, pointer: &[String], value: Option<&Value>) {
    let Some((step, rest)) = pointer.split_first() else {
        if let Some(value) = value {
            *schema = value.clone();
        }
        return;
    };
    match schema {
        Value::Object(map) if rest.is_empty() => match value {
            Some(value) => {
                map.insert(step.clone(), value.clone());
            }
            None => {
                map.remove(step);
            }
        },
        Value::Object(map) => set(
            map.entry(step.as_str())
                .or_insert_with(|| Value::Object(Map::new())),
            rest,
            value,
        ),
        Value::Array(list) => {
            let at: Option<usize> = step.parse().ok();
            if let Some(element) = at.and_then(|at| list.get_mut(at)) {
                set(element, rest, value);
            }
        }
        _ => {}
    }
}
