//! Helper tools that give models access to resources and prompts of servers.
//!
//! Its main type is [`Helper`]. Checks see a read through a helper as a read of the server.

use proctor_record::hint::listed;
use proctor_record::json;
use proctor_record::model::Tool;
use serde_json::{Map, Value, json};

use super::{ConnectedServer, ServerLoss, Toolbox, model_result, offers, rendering};
use proctor_wire::client::{CallError, ListError, ListLimits};

/// The lists of resources: method, key, and the word for one item.
const RESOURCES: [(&str, &str, &str); 2] = [
    ("resources/list", "resources", "resource"),
    (
        "resources/templates/list",
        "resourceTemplates",
        "resourceTemplate",
    ),
];

/// The list of prompts, in the same form.
const PROMPTS: [(&str, &str, &str); 1] = [("prompts/list", "prompts", "prompt")];

/// A tool that the built-in agent adds to those of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl Toolbox {
    /// Executes a helper tool.
    pub(super) async fn help(
        &self,
        helper: Helper,
        arguments: &Map<String, Value>,
    ) -> Result<Result<String, String>, ServerLoss> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str);
        match helper {
            Helper::ListResources => self.list("resources", &RESOURCES).await,
            Helper::ListPrompts => self.list("prompts", &PROMPTS).await,
            Helper::ReadResource => {
                let (connected, uri) = match (self.meant("resources", arguments), text("uri")) {
                    (Ok(connected), Some(uri)) => (connected, uri),
                    (Err(reason), _) => return Ok(Err(reason)),
                    (_, None) => return Ok(Err("`uri` is missing".to_owned())),
                };
                let read = connected.client.call("resources/read", json!({"uri": uri}));
                let read = read.await;
                model_result(
                    connected,
                    read.map(|r| Ok(rendering::resource_result(&r.raw))),
                )
            }
            Helper::GetPrompt => {
                let (connected, name) = match (self.meant("prompts", arguments), text("name")) {
                    (Ok(connected), Some(name)) => (connected, name),
                    (Err(reason), _) => return Ok(Err(reason)),
                    (_, None) => return Ok(Err("`name` is missing".to_owned())),
                };
                let mut params = json!({"name": name});
                if let Some(given) = arguments.get("arguments") {
                    params["arguments"] = given.clone();
                }
                let prompt = connected.client.call("prompts/get", params).await;
                let shown = |raw: &str| Ok(rendering::plain(raw.to_owned()));
                model_result(connected, prompt.map(|result| shown(result.raw.get())))
            }
        }
    }

    /// Lists the items of all servers, one server after another.
    async fn list(
        &self,
        capability: &str,
        lists: &[(&str, &str, &str)],
    ) -> Result<Result<String, String>, ServerLoss> {
        let mut all = Vec::new();
        for connected in &self.servers {
            if !offers(&connected.client, capability) {
                continue;
            }
            for (at, (method, key, one)) in lists.iter().enumerate() {
                match connected
                    .client
                    .list(method, key, &ListLimits::default())
                    .await
                {
                    Ok(listed) => all.extend(listed.items.iter().map(|raw| {
                        let item: Value = json::from_str(raw.get()).unwrap_or_default();
                        json!({"server": connected.name, *one: item})
                    })),
                    // Many servers have resources but no resource templates.
                    Err(ListError::Call {
                        source: CallError::Rpc(_),
                        ..
                    }) if at > 0 => {}
                    Err(ListError::Call { source, .. }) => {
                        if let Err(reason) = model_result(connected, Err(source))? {
                            return Ok(Err(reason));
                        }
                    }
                    Err(error) => return Ok(Err(error.to_string())),
                }
            }
        }
        Ok(Ok(rendering::plain(Value::Array(all).to_string())))
    }

    /// The server that the arguments name, or the only one with this capability.
    fn meant(
        &self,
        capability: &str,
        arguments: &Map<String, Value>,
    ) -> Result<&ConnectedServer, String> {
        let having = || {
            let servers = self.servers.iter();
            servers.filter(|connected| offers(&connected.client, capability))
        };
        let names = || listed(having().map(|connected| connected.name.as_str()));
        if let Some(name) = arguments.get("server").and_then(Value::as_str) {
            let found = having().find(|connected| connected.name == name);
            return found.ok_or_else(|| {
                format!(
                    "no server `{name}` has {capability}; available: {}",
                    names()
                )
            });
        }
        let mut all = having();
        match (all.next(), all.next()) {
            (Some(only), None) => Ok(only),
            _ => Err(format!("`server` is missing; available: {}", names())),
        }
    }
}

impl Helper {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    pub(super) fn tool(self, name: &str, servers: &[&str]) -> Tool {
        let server = json!({"type": "string", "enum": servers, "description": "the server"});
        let (description, properties, required) = match self {
            Self::ListResources => (
                "Lists the resources that can be read.",
                json!({}),
                json!([]),
            ),
            Self::ReadResource => (
                "Reads a resource.",
                json!({"server": server, "uri": {"type": "string"}}),
                json!(["uri"]),
            ),
            Self::ListPrompts => (
                "Lists the prompts that servers offer.",
                json!({}),
                json!([]),
            ),
            Self::GetPrompt => (
                "Gets a prompt, filled in with arguments.",
                json!({
                    "server": server,
                    "name": {"type": "string"},
                    "arguments": {"type": "object", "additionalProperties": {"type": "string"}},
                }),
                json!(["name"]),
            ),
        };
        Tool {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            schema: json!({"type": "object", "properties": properties, "required": required}),
        }
    }
}
