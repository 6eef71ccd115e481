//! Finds unknown JSON Schema keywords: validators ignore them, so a mistyped keyword checks nothing.

use proctor_record::hint::nearest_hint;
use serde_json::Value;

use crate::matcher::{MatcherError, PathStep};

/// Keywords whose value is a schema, or a list of schemas.
const SCHEMAS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords whose value holds schemas by names that the user chooses.
const TABLES: &[&str] = &[
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// All other keywords of drafts 4 to 2020-12.
const OTHERS: &[&str] = &[
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$recursiveAnchor",
    "$recursiveRef",
    "$ref",
    "$schema",
    "$vocabulary",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "id",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
    "writeOnly",
];

/// The first keyword that no draft has. Keywords that start with `x-` are allowed.
pub(super) fn unknown(schema: &Value) -> Option<MatcherError> {
    find(schema, &mut Vec::new())
}

fn find(schema: &Value, path: &mut Vec<PathStep>) -> Option<MatcherError> {
    let Value::Object(keywords) = schema else {
        return None;
    };
    keywords.iter().find_map(|(key, value)| {
        let name = key.as_str();
        path.push(PathStep::Key(key.clone()));
        let found = if SCHEMAS.contains(&name) {
            inside(value, path)
        } else if TABLES.contains(&name) {
            let mut entries = value.as_object().into_iter().flatten();
            entries.find_map(|(key, schema)| below(PathStep::Key(key.clone()), schema, path))
        } else if OTHERS.contains(&name) || name.starts_with("x-") {
            None
        } else {
            Some(refused(name, path))
        };
        path.pop();
        found
    })
}

/// Looks at a schema, or at each of a list.
fn inside(value: &Value, path: &mut Vec<PathStep>) -> Option<MatcherError> {
    let Value::Array(schemas) = value else {
        return find(value, path);
    };
    let mut schemas = schemas.iter().enumerate();
    schemas.find_map(|(index, schema)| below(PathStep::Index(index), schema, path))
}

fn below(step: PathStep, schema: &Value, path: &mut Vec<PathStep>) -> Option<MatcherError> {
    path.push(step);
    let found = find(schema, path);
    path.pop();
    found
}

fn refused(name: &str, path: &[PathStep]) -> MatcherError {
    let known = SCHEMAS.iter().chain(TABLES).chain(OTHERS).copied();
    MatcherError {
        path: path.to_vec(),
        message: format!("unknown JSON Schema keyword `{name}`"),
        hint: nearest_hint(name, known)
            .or_else(|| Some("prefix custom keywords with `x-`".to_owned())),
    }
}
