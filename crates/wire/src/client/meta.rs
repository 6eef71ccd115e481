//! Additions to the parameters of a request: `_meta`, and the headers of the stateless era.

use data_encoding::BASE64;
use proctor_core::suite::protocol::HANDSHAKE_VERSIONS;
use serde_json::{Map, Value, json};

use super::Era;

pub(super) use proctor_core::suite::protocol::STATELESS_VERSION;

/// The newest version of the handshake era.
pub(super) const HANDSHAKE_VERSION: &str = HANDSHAKE_VERSIONS[HANDSHAKE_VERSIONS.len() - 1];

const PREFIX: &str = "io.modelcontextprotocol/";

/// A tool argument that a header repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeaderArgument {
    pub(super) argument: String,
    /// The last part of the header's name.
    pub(super) header: String,
}

pub(super) fn client_info() -> Value {
    json!({"name": "proctor", "version": env!("CARGO_PKG_VERSION")})
}

/// Adds the `_meta` of the era, and a progress token.
pub(super) fn add(params: &mut Map<String, Value>, era: Era, id: u64, capabilities: Value) {
    let meta = params.entry("_meta").or_insert_with(|| json!({}));
    let Some(meta) = meta.as_object_mut() else {
        return;
    };
    meta.insert("progressToken".to_owned(), id.into());
    if era == Era::Stateless {
        let mut put = |key: &str, value: Value| meta.insert(format!("{PREFIX}{key}"), value);
        put("protocolVersion", STATELESS_VERSION.into());
        put("clientCapabilities", capabilities);
        put("clientInfo", client_info());
    }
}

/// Returns the server's name and version from the `_meta` of a result.
pub(super) fn server_info(result: &Value) -> Option<&Value> {
    result.get("_meta")?.get(format!("{PREFIX}serverInfo"))
}

/// Returns the headers of a request in the stateless era.
pub(super) fn headers(
    method: &str,
    params: &Map<String, Value>,
    arguments: &[HeaderArgument],
) -> Vec<(String, String)> {
    let mut headers = vec![
        (
            "mcp-protocol-version".to_owned(),
            STATELESS_VERSION.to_owned(),
        ),
        ("mcp-method".to_owned(), method.to_owned()),
    ];
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => None,
    };
    if let Some(name) = name.and_then(Value::as_str) {
        headers.push(("mcp-name".to_owned(), header_value(name)));
    }
    for HeaderArgument { argument, header } in arguments {
        let value = match params.get("arguments").and_then(|a| a.get(argument)) {
            Some(Value::String(text)) => header_value(text),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Bool(value)) => value.to_string(),
            _ => continue,
        };
        headers.push((format!("mcp-param-{header}"), value));
    }
    headers
}

/// Returns the arguments of a tool that must be repeated in headers.
pub(super) fn header_arguments(tool: &Value) -> Vec<HeaderArgument> {
    let properties = tool
        .get("inputSchema")
        .and_then(|s| s.get("properties")?.as_object());
    let marked = properties
        .into_iter()
        .flatten()
        .filter_map(|(argument, schema)| {
            Some(HeaderArgument {
                argument: argument.clone(),
                header: schema.get("x-mcp-header")?.as_str()?.to_owned(),
            })
        });
    marked.collect()
}

/// Encodes a text as a header value, in base64 if it is not plain ASCII.
fn header_value(text: &str) -> String {
    let plain = text.bytes().all(|b| (0x20..0x7f).contains(&b)) && text.trim() == text;
    if plain && !text.starts_with("=?base64?") {
        return text.to_owned();
    }
    format!("=?base64?{}?=", BASE64.encode(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn headers_repeat_parts_of_the_body() {
        let arguments = [
            HeaderArgument {
                argument: "region".to_owned(),
                header: "Region".to_owned(),
            },
            HeaderArgument {
                argument: "absent".to_owned(),
                header: "X".to_owned(),
            },
            HeaderArgument {
                argument: "count".to_owned(),
                header: "Count".to_owned(),
            },
        ];
        let call = params(&json!({"name": "größe", "arguments": {"region": "eu", "count": 3}}));
        let found = headers("tools/call", &call, &arguments);
        let found: Vec<String> = found.iter().map(|(k, v)| format!("{k}: {v}")).collect();
        assert_eq!(
            found,
            [
                "mcp-protocol-version: 2026-07-28",
                "mcp-method: tools/call",
                "mcp-name: =?base64?Z3LDtsOfZQ==?=",
                "mcp-param-Region: eu",
                "mcp-param-Count: 3",
            ]
        );
        assert_eq!(headers("tools/list", &Map::new(), &[]).len(), 2);
    }

    #[test]
    fn stateless_requests_name_the_client() {
        let mut stateless = Map::new();
        add(&mut stateless, Era::Stateless, 7, json!({}));
        let meta = &stateless["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(meta["progressToken"].as_u64(), Some(7));
        let mut handshake = params(&json!({"_meta": {"own": 1}}));
        add(&mut handshake, Era::Handshake, 7, json!({}));
        assert_eq!(
            handshake["_meta"].to_string(),
            r#"{"own":1,"progressToken":7}"#
        );
    }
}
