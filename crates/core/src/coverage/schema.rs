//! The arguments and enum values of a tool's input schema, and which of them calls gave.
//!
//! The main type is [`ArgumentCoverage`]. Schemas come from servers, so their depth and size are limited.

use serde_json::{Map, Value};

use proctor_record::json;

/// How deep arguments are nested at most.
const DEPTH: usize = 5;

/// How many arguments and references of one tool are followed.
const SIZE: usize = 1_000;

/// How many values of an enum are listed.
const VALUES: usize = 200;

/// An argument of a tool or prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentCoverage {
    pub name: String,
    pub is_required: bool,
    /// How often it was given. `null` does not count: it stands for an argument that is left out.
    pub given: u64,
    /// The values of its enum, also if it is a list of them.
    pub values: Vec<ValueCoverage>,
    /// The properties of an object, or of the objects in a list.
    pub arguments: Vec<ArgumentCoverage>,
}

/// A value of an enum.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueCoverage {
    pub value: Value,
    /// How often it was given.
    pub given: u64,
}

/// The arguments that a schema declares, in its order.
pub(super) fn arguments(schema: &Value) -> Vec<ArgumentCoverage> {
    let mut walk = SchemaWalk {
        root: schema,
        left: SIZE,
    };
    walk.properties(schema, DEPTH)
}

/// Marks the arguments that a call gave.
pub(super) fn mark(arguments: &mut [ArgumentCoverage], given: &Value) {
    let Value::Object(given) = given else {
        return;
    };
    for argument in arguments {
        match given.get(&argument.name) {
            None | Some(Value::Null) => {}
            Some(value) => argument.mark(value),
        }
    }
}

impl ArgumentCoverage {
    fn mark(&mut self, value: &Value) {
        self.given += 1;
        let items = match value {
            Value::Array(items) => items.as_slice(),
            one => std::slice::from_ref(one),
        };
        for item in items {
            for known in &mut self.values {
                known.given += u64::from(json::equal(&known.value, item));
            }
            mark(&mut self.arguments, item);
        }
    }
}

/// Walks through a schema, whose references may form a circle.
struct SchemaWalk<'a> {
    root: &'a Value,
    left: usize,
}

impl<'a> SchemaWalk<'a> {
    /// The properties of an object, of the objects in a list, and of all alternatives.
    fn properties(&mut self, schema: &'a Value, depth: usize) -> Vec<ArgumentCoverage> {
        let mut found: Vec<ArgumentCoverage> = Vec::new();
        if depth == 0 {
            return found;
        }
        for schema in self.parts(schema, depth) {
            let Some(Value::Object(properties)) = schema.get("properties") else {
                continue;
            };
            let required = schema.get("required").and_then(Value::as_array);
            for (name, property) in properties {
                if self.left == 0 {
                    return found;
                }
                self.left -= 1;
                if found.iter().any(|argument| argument.name == *name) {
                    continue;
                }
                let is_named = |word: &Value| word.as_str() == Some(name);
                found.push(ArgumentCoverage {
                    name: name.clone(),
                    is_required: required.is_some_and(|names| names.iter().any(is_named)),
                    given: 0,
                    values: self.values(property, depth),
                    arguments: self.properties(property, depth - 1),
                });
            }
        }
        found
    }

    fn values(&mut self, schema: &'a Value, depth: usize) -> Vec<ValueCoverage> {
        let mut found: Vec<ValueCoverage> = Vec::new();
        for schema in self.parts(schema, depth) {
            let listed = schema.get("enum").and_then(Value::as_array);
            let fixed = schema.get("const");
            for value in listed.into_iter().flatten().chain(fixed) {
                let is_known = |known: &ValueCoverage| json::equal(&known.value, value);
                if found.len() < VALUES && !value.is_null() && !found.iter().any(is_known) {
                    found.push(ValueCoverage {
                        value: value.clone(),
                        given: 0,
                    });
                }
            }
        }
        found
    }

    /// The schema itself, its alternatives and the items of a list, with references resolved.
    fn parts(&mut self, schema: &'a Value, depth: usize) -> Vec<&'a Map<String, Value>> {
        let mut found = Vec::new();
        let mut waiting = vec![(schema, depth)];
        while let Some((schema, depth)) = waiting.pop() {
            let Value::Object(map) = schema else {
                continue;
            };
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            found.push(map);
            if depth == 0 {
                continue;
            }
            // The first one is visited first.
            waiting.extend(map.get("items").map(|items| (items, depth - 1)));
            for key in ["oneOf", "anyOf", "allOf"] {
                let members = map.get(key).and_then(Value::as_array);
                let members = members.into_iter().flatten().rev();
                waiting.extend(members.map(|member| (member, depth - 1)));
            }
            let target = map.get("$ref").and_then(Value::as_str);
            let target = target.and_then(|target| self.root.pointer(target.strip_prefix('#')?));
            waiting.extend(target.map(|target| (target, depth - 1)));
        }
        found
    }
}
