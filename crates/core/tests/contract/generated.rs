//! Generated pairs of schemas: what is classified as safe breaks no generated value.
//!
//! The generator of values is independent of the one that finds witnesses.

use proctor_record::event::ChangeClass;
use serde_json::{Map, Value, json};

use super::{arguments, results, validator};

const PAIRS: u64 = 3_000;

const VALUES: usize = 120;

/// A small generator of random numbers, so that failures repeat.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % n as u64).unwrap()
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let at = self.below(from.len());
        &from[at]
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const TEXTS: [&str; 7] = ["", "x", "xy", "10", "abc", "a-b", "2026-01-31"];
const PATTERNS: [&str; 4] = ["^[a-z]+$", "^[a-z]*$", "^x", "[0-9]"];

fn schema(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 6 } else { 12 }) {
        0 => text_schema(random),
        1 => number_schema(random),
        2 => json!({"type": "boolean"}),
        3 => json!({"enum": (0..=random.below(3)).map(|_| scalar(random)).collect::<Vec<_>>()}),
        4 => {
            json!({"type": [random.pick(&["string", "integer"]), random.pick(&["null", "boolean", "number"])]})
        }
        5 => random
            .pick(&[
                json!({}),
                json!({"type": "string"}),
                json!({"type": "integer"}),
                json!({"const": "x"}),
            ])
            .clone(),
        6 => {
            let mut list = json!({"type": "array", "items": schema(random, depth - 1)});
            for key in ["minItems", "maxItems"] {
                if random.chance(30) {
                    list[key] = json!(random.below(4));
                }
            }
            if random.chance(15) {
                list["uniqueItems"] = json!(true);
            }
            list
        }
        7 | 8 => object_schema(random, depth),
        9 => json!({"anyOf": [schema(random, depth - 1), schema(random, depth - 1)]}),
        10 => json!({"oneOf": [schema(random, depth - 1), schema(random, depth - 1)]}),
        _ => json!({"allOf": [schema(random, depth - 1), schema(random, depth - 1)]}),
    }
}

fn text_schema(random: &mut Random) -> Value {
    let mut text = json!({"type": "string"});
    for key in ["minLength", "maxLength"] {
        if random.chance(35) {
            text[key] = json!(random.below(4));
        }
    }
    if random.chance(30) {
        text["pattern"] = json!(random.pick(&PATTERNS));
    }
    if random.chance(15) {
        text["format"] = json!(random.pick(&["date", "email"]));
    }
    text
}

fn number_schema(random: &mut Random) -> Value {
    let mut number = json!({"type": random.pick(&["integer", "number"])});
    for key in ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"] {
        if random.chance(25) {
            number[key] = json!(i64::try_from(random.below(12)).unwrap() - 4);
        }
    }
    if random.chance(20) {
        number["multipleOf"] = json!(random.below(3) + 1);
    }
    number
}

fn object_schema(random: &mut Random, depth: usize) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for name in NAMES {
        if random.chance(55) {
            properties.insert(name.to_owned(), schema(random, depth - 1));
            if random.chance(40) {
                required.push(name);
            }
        }
    }
    let mut object = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    match random.below(8) {
        0 | 1 => object["additionalProperties"] = json!(false),
        2 => object["additionalProperties"] = schema(random, 0),
        3 => object["maxProperties"] = json!(random.below(4)),
        4 => object["patternProperties"] = json!({"^z": schema(random, 0)}),
        _ => {}
    }
    object
}

fn scalar(random: &mut Random) -> Value {
    match random.below(5) {
        0 => Value::Null,
        1 => json!(random.chance(50)),
        2 => json!(i64::try_from(random.below(14)).unwrap() - 4),
        3 => json!([0.5, -0.5, 2.0, 1e3][random.below(4)]),
        _ => json!(random.pick(&TEXTS)),
    }
}

/// A value that fits a schema more often than not.
fn value(random: &mut Random, schema: &Value, depth: usize) -> Value {
    if random.chance(6) || depth == 0 {
        return scalar(random);
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(Value::Array(all)) = schema.get(key) {
            let branch = random.pick(all).clone();
            return value(random, &branch, depth - 1);
        }
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        return random.pick(values).clone();
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => random.pick(kinds).as_str().unwrap().to_owned(),
        _ => {
            return schema
                .get("const")
                .cloned()
                .unwrap_or_else(|| scalar(random));
        }
    };
    match kind.as_str() {
        "object" => object(random, schema, depth),
        "array" => {
            let items = schema.get("items").cloned().unwrap_or(json!({}));
            let length = random.below(5);
            (0..length)
                .map(|_| value(random, &items, depth - 1))
                .collect()
        }
        "string" => json!(random.pick(&TEXTS)),
        "integer" => json!(i64::try_from(random.below(24)).unwrap() - 8),
        "number" => json!(
            (i32::try_from(random.below(48)).unwrap() - 16)
                .to_string()
                .parse::<f64>()
                .unwrap()
                / 2.0
        ),
        "boolean" => json!(random.chance(50)),
        _ => Value::Null,
    }
}

/// An object with the properties that the schema names, and at times one that no schema names.
fn object(random: &mut Random, schema: &Value, depth: usize) -> Value {
    let mut object = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array();
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        if is_required || random.chance(55) {
            object.insert(name.clone(), value(random, property, depth - 1));
        }
    }
    if random.chance(15) {
        let of = schema
            .get("additionalProperties")
            .cloned()
            .unwrap_or(json!({}));
        let name = *random.pick(&["zz", "other"]);
        object.insert(name.to_owned(), value(random, &of, depth - 1));
    }
    Value::Object(object)
}

/// The schema with a change somewhere.
fn mutated(random: &mut Random, schema: &Value, depth: usize) -> Value {
    let mut changed = schema.clone();
    let Value::Object(map) = &mut changed else {
        return self::schema(random, depth);
    };
    if depth > 0 && random.chance(60) {
        if let Some(Value::Object(properties)) = map.get_mut("properties")
            && let Some(name) = properties.keys().nth(random.below(4)).cloned()
        {
            properties[&name] = mutated(random, &properties[&name].clone(), depth - 1);
            return changed;
        }
        if let Some(items) = map.get_mut("items") {
            *items = mutated(random, &items.clone(), depth - 1);
            return changed;
        }
    }
    match random.below(9) {
        0 => json!({"anyOf": [changed, self::schema(random, 0)]}),
        1 => {
            let name = *random.pick(&NAMES);
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                properties.insert(name.to_owned(), self::schema(random, 0));
            }
            changed
        }
        2 => {
            let keys: Vec<String> = map.keys().filter(|key| *key != "type").cloned().collect();
            if !keys.is_empty() {
                map.remove(random.pick(&keys));
            }
            changed
        }
        3 => {
            for (_, value) in map.iter_mut() {
                if let Some(number) = value.as_i64() {
                    let by = [-1, 1, 2][random.below(3)];
                    *value = json!((number + by).max(1));
                }
            }
            changed
        }
        4 => {
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.push(json!("new"));
            } else if let Some(Value::String(kind)) = map.get("type").cloned() {
                map.insert("type".to_owned(), json!([kind, "null"]));
            }
            changed
        }
        5 => {
            map.insert("description".to_owned(), json!("other words"));
            changed
        }
        6 => json!({"allOf": [changed]}),
        7 => {
            map.remove("required");
            changed
        }
        _ => self::schema(random, depth),
    }
}

/// The properties that the new schema names, at any depth, and the old one does not.
fn new_names(old: &Value, new: &Value) -> Vec<&'static str> {
    fn names(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    found.extend(properties.keys().cloned());
                }
                map.values().for_each(|part| names(part, found));
            }
            Value::Array(list) => list.iter().for_each(|part| names(part, found)),
            _ => {}
        }
    }
    let (mut before, mut now) = (Vec::new(), Vec::new());
    names(old, &mut before);
    names(new, &mut now);
    let is_new = |name: &&str| now.iter().any(|n| n == name) && !before.iter().any(|n| n == name);
    NAMES.into_iter().filter(is_new).collect()
}

fn uses(value: &Value, names: &[&str]) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(name, part)| names.contains(&name.as_str()) || uses(part, names)),
        Value::Array(list) => list.iter().any(|part| uses(part, names)),
        _ => false,
    }
}

#[test]
fn what_is_safe_breaks_no_generated_value() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut safe, mut checked, mut witnesses, mut classes) = (0, 0, 0, [0; 3]);
    for _ in 0..PAIRS {
        let old = object_schema(&mut random, 2);
        let mut new = old.clone();
        for _ in 0..=random.below(2) {
            new = mutated(&mut random, &new, 2);
        }
        let is_input = random.chance(70);
        let found = if is_input {
            arguments(&old, &new)
        } else {
            results(&old, &new)
        };
        // For results, values go from the new schema to the old one.
        let (from, to) = if is_input { (&old, &new) } else { (&new, &old) };
        let (accepts, still) = (validator(from), validator(to));
        for change in &found {
            classes[change.class as usize] += 1;
            if let Some(witness) = &change.witness {
                witnesses += 1;
                assert!(
                    accepts.is_valid(witness) && !still.is_valid(witness),
                    "{change:?}\n{old}\n{new}"
                );
            }
        }
        let is_text = |message: &str| message.contains("description") || message.contains("weigh");
        let is_safe = |change: &proctor_record::event::SurfaceChange| {
            change.class == ChangeClass::Safe || is_text(&change.message)
        };
        if !found.iter().all(is_safe) {
            continue;
        }
        safe += 1;
        let unnamed = new_names(from, to);
        for _ in 0..VALUES {
            let value = value(&mut random, from, 4);
            if accepts.is_valid(&value) && !uses(&value, &unnamed) {
                checked += 1;
                assert!(
                    still.is_valid(&value),
                    "{value}\nold {old}\nnew {new}\n{found:#?}"
                );
            }
        }
    }
    assert!(
        safe > PAIRS / 10 && checked > 10_000 && witnesses > 100,
        "{PAIRS} pairs, {safe} safe, {checked} values, {witnesses} witnesses, {classes:?}"
    );
}
