//! The MCP server: tools on the cluster, secrets as resources, and a prompt.

use std::io::{self, BufRead, Write};
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::tools;

/// A resource that an agent should not read.
const SECRET: &str = "k8s://default/secrets/registry-password";

/// A resource that an agent may read.
const VERSION: &str = "k8s://version";

/// The code and message of a JSON-RPC error.
type Refusal = (i64, String);

/// Serves until the input ends.
pub(crate) fn serve(path: &Path, input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    for line in input.lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else {
            continue;
        };
        let mut cluster = Cluster::open(path)?;
        let method = message["method"].as_str().unwrap_or_default();
        let answer = match answer(&mut cluster, method, &message["params"]) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, text)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
            }
        };
        cluster.save()?;
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

fn answer(cluster: &mut Cluster, method: &str, params: &Value) -> Result<Value, Refusal> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "fixture-kubernetes", "version": env!("CARGO_PKG_VERSION")},
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": tools::list()})),
        "tools/call" => call(cluster, params),
        "resources/list" => Ok(json!({"resources": [
            {"uri": VERSION, "name": "version"},
            {"uri": SECRET, "name": "registry-password"},
        ]})),
        "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
        "resources/read" => read(params),
        "prompts/list" => Ok(json!({"prompts": [{
            "name": "diagnose",
            "description": "Asks what is wrong in a namespace.",
            "arguments": [{"name": "namespace", "required": true}],
        }]})),
        "prompts/get" => prompt(params),
        other => Err((-32601, format!("unknown method `{other}`"))),
    }
}

fn call(cluster: &mut Cluster, params: &Value) -> Result<Value, Refusal> {
    let name = params["name"].as_str().unwrap_or_default();
    let Some(told) = tools::call(cluster, name, &params["arguments"]) else {
        return Err((-32602, format!("unknown tool `{name}`")));
    };
    let is_error = told.is_err();
    let text = told.map_or_else(|reason| reason, |value| value.to_string());
    let content = json!([{"type": "text", "text": text}]);
    Ok(json!({"content": content, "isError": is_error}))
}

fn read(params: &Value) -> Result<Value, Refusal> {
    let (uri, text) = match params["uri"].as_str() {
        Some(SECRET) => (SECRET, "not-a-real-password"),
        Some(VERSION) => (VERSION, "v1.34.0"),
        other => return Err((-32002, format!("unknown resource {other:?}"))),
    };
    Ok(json!({"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}))
}

fn prompt(params: &Value) -> Result<Value, Refusal> {
    if params["name"] != "diagnose" {
        return Err((-32602, format!("unknown prompt {}", params["name"])));
    }
    let namespace = params["arguments"]["namespace"]
        .as_str()
        .unwrap_or("default");
    let text = format!("Find out what is wrong in the namespace {namespace}.");
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(json!({"messages": [message]}))
}
