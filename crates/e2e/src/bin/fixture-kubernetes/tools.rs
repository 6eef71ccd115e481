//! The tools. Most names are those of the real server; the examples also use `pods_create`.

use serde_json::{Value, json};

use crate::cluster::Cluster;

/// Returns the result of `tools/list`.
pub(crate) fn list() -> Value {
    let text = json!({"type": "string"});
    let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
        })
    };
    let named = json!({"namespace": text, "name": text});
    let both = ["namespace", "name"];
    json!([
        tool("namespaces_list", "Lists namespaces.", json!({}), &[]),
        tool(
            "pods_list",
            "Lists pods, of a namespace or of all.",
            json!({"namespace": text, "labelSelector": text}),
            &[]
        ),
        tool("pods_get", "Shows a pod.", named.clone(), &both),
        tool(
            "pods_create",
            "Creates a pod from its manifest.",
            json!({"namespace": text, "manifest": {"type": "object"}}),
            &["namespace", "manifest"]
        ),
        tool("pods_delete", "Deletes a pod.", named.clone(), &both),
        tool("configmaps_get", "Shows a config map.", named, &both),
    ])
}

/// Calls a tool; `None` if the name is unknown.
pub(crate) fn call(
    cluster: &mut Cluster,
    tool: &str,
    arguments: &Value,
) -> Option<Result<Value, String>> {
    let text = |key: &str| arguments[key].as_str();
    let namespace = text("namespace").unwrap_or("default");
    let name = text("name").unwrap_or_default();
    Some(match tool {
        "namespaces_list" => Ok(json!({"namespaces": cluster.namespaces()})),
        "pods_list" => cluster
            .pods(text("namespace"), text("labelSelector"))
            .map(|pods| json!({"pods": pods.into_iter().map(brief).collect::<Vec<_>>()})),
        "pods_get" => cluster.pod(namespace, name).cloned(),
        "pods_create" => cluster
            .create_pod(namespace, arguments["manifest"].clone())
            .map(|pod| brief(&pod)),
        "pods_delete" => cluster
            .delete_pod(namespace, name)
            .map(|()| json!({"deleted": name})),
        "configmaps_get" => cluster.config_map(namespace, name).cloned(),
        _ => return None,
    })
}

fn brief(pod: &Value) -> Value {
    json!({"name": pod["metadata"]["name"], "phase": pod["status"]["phase"]})
}
