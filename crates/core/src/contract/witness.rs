//! Values worth trying against two schemas.
//!
//! Main function: [`candidates`]. A candidate proves nothing by itself: callers ask both schemas about it. The
//! values lie at the limits of both schemas, since that is where versions of a schema differ.

mod text;

use std::cell::Cell;

use serde_json::{Map, Number, Value, json};

/// The maximum depth of a candidate.
const DEPTH: usize = 5;

/// The maximum number of candidates for one part of a value.
const MOST: usize = 120;

/// The maximum number of schemas that one search looks at.
const BUDGET: usize = 4_000;

/// The longest text and list worth building.
const LONGEST: u64 = 2_000;

/// Values near the limits of `premise`, and of `goal`, which may be stricter.
pub(super) fn candidates(premise: &Value, goal: &Value) -> Vec<Value> {
    let sampler = Sampler {
        premise_root: premise,
        goal_root: goal,
        budget: Cell::new(BUDGET),
    };
    sampler.values(premise, Some(goal), DEPTH)
}

struct Sampler<'a> {
    premise_root: &'a Value,
    goal_root: &'a Value,
    /// The number of schemas that may still be looked at: alternatives multiply with the depth.
    budget: Cell<usize>,
}

impl Sampler<'_> {
    /// Candidates for a part that `schema` describes; `hint` is the other schema's description of it.
    fn values(&self, schema: &Value, hint: Option<&Value>, depth: usize) -> Vec<Value> {
        let Value::Object(schema) = schema else {
            return plain();
        };
        let Some(left) = self.budget.get().checked_sub(1) else {
            return Vec::new();
        };
        self.budget.set(left);
        let schema = flattened(schema, self.premise_root, 8);
        let hint = match hint {
            Some(Value::Object(hint)) => flattened(hint, self.goal_root, 8),
            _ => Map::new(),
        };
        let mut found = Vec::new();
        if let Some(only) = schema.get("const") {
            found.push(only.clone());
        } else if let Some(Value::Array(values)) = schema.get("enum") {
            found.extend(values.iter().take(MOST).cloned());
        } else {
            found.extend(schema.get("default").cloned());
            let examples = schema.get("examples").and_then(Value::as_array);
            found.extend(examples.into_iter().flatten().take(8).cloned());
            for (at, branch) in branches(&schema) {
                let hint = branch_hint(&hint, at);
                found.extend(self.values(&branch, Some(&hint), depth.saturating_sub(1)));
            }
            for kind in kinds(&schema) {
                self.of_kind(kind, &schema, &hint, depth, &mut found);
            }
        }
        distinct(found)
    }

    fn of_kind(
        &self,
        kind: &str,
        schema: &Map<String, Value>,
        hint: &Map<String, Value>,
        depth: usize,
        found: &mut Vec<Value>,
    ) {
        match kind {
            "null" => found.push(Value::Null),
            "boolean" => found.extend([json!(true), json!(false)]),
            "integer" | "number" => found.extend(numbers(kind, schema, hint)),
            "string" => found.extend(text::texts(schema, hint)),
            "array" if depth > 0 => found.extend(self.lists(schema, hint, depth)),
            "object" if depth > 0 => found.extend(self.objects(schema, hint, depth)),
            _ => {}
        }
    }

    fn lists(
        &self,
        schema: &Map<String, Value>,
        hint: &Map<String, Value>,
        depth: usize,
    ) -> Vec<Value> {
        let any = Value::Bool(true);
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let mut found = vec![json!([])];
        if let Some(prefix) = prefix {
            let first = |schema| self.values(schema, None, depth - 1).into_iter().next();
            found.push(prefix.iter().filter_map(first).collect());
        }
        let items = schema.get("items").unwrap_or(&any);
        let elements = self.values(items, hint.get("items"), depth - 1);
        let shortest = count(schema, "minItems").unwrap_or(0).min(LONGEST);
        for element in elements.iter().take(40) {
            let length = shortest.max(1);
            found.push((0..length).map(|_| element.clone()).collect());
        }
        let different: Vec<Value> = elements.iter().take(60).cloned().collect();
        let lengths = [
            count(schema, "maxItems"),
            count(hint, "maxItems").map(|most| most + 1),
            count(hint, "minItems").map(|least| least.saturating_sub(1)),
            Some(shortest),
            Some(2),
        ];
        for length in lengths.into_iter().flatten().filter(|n| *n <= LONGEST) {
            let length = usize::try_from(length).unwrap_or(0);
            if different.len() >= length {
                found.push(different[..length].to_vec().into());
            }
            if let Some(element) = different.first() {
                found.push(vec![element.clone(); length].into());
            }
        }
        found
    }

    fn objects(
        &self,
        schema: &Map<String, Value>,
        hint: &Map<String, Value>,
        depth: usize,
    ) -> Vec<Value> {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&none);
        let hints = hint.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = names(schema).collect();
        let mut samples: Vec<(&str, Vec<Value>)> = Vec::new();
        for (name, property) in properties {
            let hint = hints.and_then(|hints| hints.get(name));
            samples.push((name, self.values(property, hint, depth - 1)));
        }
        let unnamed = required
            .iter()
            .filter(|name| !properties.contains_key(**name));
        samples.extend(unnamed.map(|name| (*name, plain())));
        let mut base = Map::new();
        for (name, values) in &samples {
            if required.contains(name) {
                let first = values.first().cloned().unwrap_or_default();
                base.insert((*name).to_owned(), first);
            }
        }
        let mut found = vec![Value::Object(base.clone())];
        let with = |name: &str, value: &Value| {
            let mut object = base.clone();
            object.insert(name.to_owned(), value.clone());
            Value::Object(object)
        };
        for (name, values) in &samples {
            found.extend(values.iter().take(60).map(|value| with(name, value)));
        }
        let all = samples.iter().filter_map(|(name, values)| {
            let value = values.first()?.clone();
            Some(((*name).to_owned(), value))
        });
        found.push(Value::Object(all.collect()));
        let any = Value::Bool(true);
        let others = schema.get("additionalProperties").unwrap_or(&any);
        let hint = hint.get("additionalProperties");
        let others = self.values(others, hint, depth - 1);
        found.extend(others.iter().take(20).map(|value| with("extra", value)));
        found
    }
}

/// The schema with its references and `allOf` merged into it, roughly.
fn flattened(schema: &Map<String, Value>, root: &Value, depth: usize) -> Map<String, Value> {
    let mut merged = schema.clone();
    if depth == 0 {
        return merged;
    }
    let mut parts: Vec<Value> = Vec::new();
    if let Some(Value::String(reference)) = merged.remove("$ref") {
        let target = reference.strip_prefix('#').and_then(|at| root.pointer(at));
        parts.extend(target.cloned());
    }
    if let Some(Value::Array(all)) = merged.remove("allOf") {
        parts.extend(all);
    }
    for part in parts {
        if let Value::Object(part) = part {
            merge(&mut merged, flattened(&part, root, depth - 1));
        }
    }
    merged
}

fn merge(into: &mut Map<String, Value>, part: Map<String, Value>) {
    for (key, value) in part {
        match (into.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => {
                known.extend(more);
            }
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                known.extend(more);
            }
            (Some(_), _) => {}
            (None, value) => {
                into.insert(key, value);
            }
        }
    }
}

/// The schema with each of its alternatives merged into it.
fn branches(schema: &Map<String, Value>) -> Vec<(usize, Value)> {
    let mut found = Vec::new();
    for key in ["anyOf", "oneOf"] {
        let all = schema.get(key).and_then(Value::as_array);
        for (at, branch) in all.into_iter().flatten().enumerate() {
            if let Value::Object(branch) = branch {
                let mut merged = branch.clone();
                let mut rest = schema.clone();
                rest.remove("anyOf");
                rest.remove("oneOf");
                merge(&mut merged, rest);
                found.push((at, Value::Object(merged)));
            }
        }
    }
    found
}

fn branch_hint(hint: &Map<String, Value>, at: usize) -> Value {
    let branch = branches(hint).into_iter().find(|(branch, _)| *branch == at);
    branch.map_or_else(|| Value::Object(hint.clone()), |(_, branch)| branch)
}

/// The types that a schema allows, as its keywords suggest.
fn kinds(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind.as_str()],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ if schema.contains_key("anyOf") || schema.contains_key("oneOf") => Vec::new(),
        _ => vec![
            "object", "string", "integer", "number", "boolean", "null", "array",
        ],
    }
}

fn numbers(kind: &str, schema: &Map<String, Value>, hint: &Map<String, Value>) -> Vec<Value> {
    let mut found = vec![
        json!(0),
        json!(1),
        json!(-1),
        json!(2),
        json!(1_000_000),
        json!(-1_000_000),
    ];
    let own = [
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ];
    for schema in [schema, hint] {
        for limit in own.iter().filter_map(|key| schema.get(*key)) {
            found.push(limit.clone());
            if let Some(limit) = limit.as_i64() {
                let near = [limit.saturating_sub(1), limit.saturating_add(1)];
                found.extend(near.map(Value::from));
                // A limit of 2^53 and more has no neighbour with a fraction.
                #[expect(clippy::cast_precision_loss, reason = "a candidate need not be exact")]
                let limit = limit as f64;
                let near = [limit - 0.5, limit + 0.5].into_iter();
                found.extend(near.filter_map(|n| Number::from_f64(n).map(Value::Number)));
            } else if let Some(limit) = limit.as_f64() {
                let near = [limit.floor(), limit.ceil(), limit - 0.5, limit + 0.5];
                found.extend(
                    near.into_iter()
                        .filter_map(|n| Number::from_f64(n).map(Value::Number)),
                );
            }
        }
    }
    if kind == "number" {
        found.extend([json!(0.5), json!(-0.25)]);
    }
    found
}

/// One value of each type.
fn plain() -> Vec<Value> {
    vec![
        json!("a"),
        json!(1),
        json!(true),
        Value::Null,
        json!([]),
        json!({}),
        json!(0.5),
    ]
}

fn names(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn count(schema: &Map<String, Value>, key: &str) -> Option<u64> {
    schema.get(key)?.as_u64()
}

fn distinct(values: Vec<Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    let mut values: Vec<Value> = values
        .into_iter()
        .filter(|value| seen.insert(value.to_string()))
        .collect();
    values.truncate(4 * MOST);
    values
}
