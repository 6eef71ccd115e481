//! The surface contract: real tool lists that change, and generated pairs of schemas.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod generated;
mod hostile;
mod mutations;

use proctor_core::contract::{SurfaceContent, changes};
use proctor_record::event::{Surface, SurfaceChange};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn content(tools: &[Value]) -> SurfaceContent {
    let surface = Surface {
        tools: tools.iter().map(raw).collect(),
        capabilities: json!({"tools": {}}).as_object().cloned(),
        ..Surface::default()
    };
    SurfaceContent::of(&surface).unwrap()
}

/// The changes of the arguments of a tool.
fn arguments(old: &Value, new: &Value) -> Vec<SurfaceChange> {
    let tool = |schema: &Value| content(&[json!({"name": "t", "inputSchema": schema})]);
    changes(&tool(old), &tool(new))
}

/// The changes of the results of a tool.
fn results(old: &Value, new: &Value) -> Vec<SurfaceChange> {
    let tool = |schema: &Value| {
        content(&[json!({"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema})])
    };
    changes(&tool(old), &tool(new))
}

fn validator(schema: &Value) -> jsonschema::Validator {
    let options = jsonschema::options().offline();
    options.should_validate_formats(true).build(schema).unwrap()
}
