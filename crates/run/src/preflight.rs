//! Whether all servers come up and offer anything, before any model is asked.

use data_encoding::HEXLOWER;
use proctor_core::check::OrderKind;
use proctor_core::event::{Actor, Body, ServerSeen, Surface};
use proctor_core::json::canonical;
use proctor_core::suite::Server;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use proctor_wire::client::{Client, ConnectOptions, Era, ListError, ListLimits};

/// What was found out about a server.
pub struct ServerProbe {
    /// For the record.
    pub seen: ServerSeen,
    /// What it lists.
    pub offered: ServerListing,
    /// Which form of the protocol it speaks.
    pub era: Era,
    /// The connection, to be shared or closed.
    pub client: Client,
}

/// Why a run can't start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// A server does not come up.
    #[error("{0}")]
    NotUp(String),
    /// A server does not say what it offers.
    #[error("the server `{server}`: {reason}")]
    NoList {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// A server offers nothing.
    #[error("the server `{0}` has no tools, resources or prompts to test")]
    Empty(String),
}

/// Starts a server and asks what it offers.
pub async fn look(
    server: &Server,
    options: &ConnectOptions,
) -> Result<ServerProbe, PreflightError> {
    debug_assert_eq!(options.actor, Actor::Preflight);
    let client = Client::connect(server, options)
        .await
        .map_err(|error| PreflightError::NotUp(error.naming(&server.name)))?;
    match ask(server, &client).await {
        Ok((seen, offered)) => Ok(ServerProbe {
            seen,
            offered,
            era: client.identity().era,
            client,
        }),
        Err(error) => {
            client.close().await;
            Err(error)
        }
    }
}

/// What a server lists, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerListing {
    /// The names of its tools.
    pub tools: Vec<String>,
    /// The addresses of its resources; `None` if it has templates, which stand for any number of them.
    pub resources: Option<Vec<String>>,
    /// The names of its prompts.
    pub prompts: Vec<String>,
}

impl ServerListing {
    /// What the server has of a kind; `None` if that is not all that it has.
    pub fn of(&self, kind: OrderKind) -> Option<&[String]> {
        match kind {
            OrderKind::Tool => Some(&self.tools),
            OrderKind::Resource => self.resources.as_deref(),
            OrderKind::Prompt => Some(&self.prompts),
        }
    }
}

async fn ask(
    server: &Server,
    client: &Client,
) -> Result<(ServerSeen, ServerListing), PreflightError> {
    let identity = client.identity();
    let declares = |what: &str| identity.capabilities.contains_key(what);
    let failed = |error: &ListError| PreflightError::NoList {
        server: server.name.clone(),
        reason: error.to_string(),
    };
    let list = async |method: &str, key: &str| {
        let listed = client.list(method, key, &ListLimits::default()).await;
        listed.map(|listed| listed.items)
    };
    let mut tools = Vec::new();
    if declares("tools") {
        let listed = client.list_tools(&ListLimits::default()).await;
        tools = listed.map_err(|error| failed(&error))?.items;
    }
    let (mut resources, mut templates) = (Vec::new(), Vec::new());
    if declares("resources") {
        let listed = list("resources/list", "resources").await;
        resources = listed.map_err(|error| failed(&error))?;
        // Many servers have resources and no templates of them.
        let listed = list("resources/templates/list", "resourceTemplates").await;
        templates = listed.unwrap_or_default();
    }
    let mut prompts = Vec::new();
    if declares("prompts") {
        let listed = list("prompts/list", "prompts").await;
        prompts = listed.map_err(|error| failed(&error))?;
    }
    if tools.len() + resources.len() + templates.len() + prompts.len() == 0 {
        return Err(PreflightError::Empty(server.name.clone()));
    }
    let seen = ServerSeen {
        server: server.name.clone(),
        name: identity.name.clone(),
        version: identity.version.clone(),
        protocol: identity.protocol.clone(),
        tools: tools.len() as u64,
        resources: (resources.len() + templates.len()) as u64,
        prompts: prompts.len() as u64,
        tools_digest: Some(digest(&tools)),
        tool_list: None,
        surface: None,
    };
    let offered = ServerListing {
        tools: fields(&tools, "name"),
        resources: templates.is_empty().then(|| fields(&resources, "uri")),
        prompts: fields(&prompts, "name"),
    };
    let surface = Surface {
        tools,
        resources,
        resource_templates: templates,
        prompts,
        instructions: identity.instructions.clone(),
    };
    let surface = serde_json::to_string(&surface).ok().map(Body::Text);
    Ok((ServerSeen { surface, ..seen }, offered))
}

/// The SHA-256 of all items, however they are ordered and written.
fn digest(items: &[Box<RawValue>]) -> String {
    let written = |raw: &RawValue| match serde_json::from_str::<Value>(raw.get()) {
        Ok(value) => canonical(&value),
        // Too deep to be read, and compared as it is.
        Err(_) => raw.get().to_owned(),
    };
    let mut all: Vec<String> = items.iter().map(|raw| written(raw)).collect();
    all.sort_unstable();
    HEXLOWER.encode(&Sha256::digest(all.join("\n")))
}

/// A text of each item that has it.
fn fields(items: &[Box<RawValue>], key: &str) -> Vec<String> {
    let field = |raw: &RawValue| {
        let item: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
        Some(item.get(key)?.as_str()?.to_owned())
    };
    items.iter().filter_map(|raw| field(raw)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(items: &[&str]) -> Vec<Box<RawValue>> {
        let raw = |item: &&str| RawValue::from_string((*item).to_owned()).unwrap();
        items.iter().map(raw).collect()
    }

    #[test]
    fn a_digest_tells_what_tools_are_and_not_how_they_are_written() {
        let one = digest(&items(&[r#"{"name":"a","x":1}"#, r#"{"name":"b"}"#]));
        let same = digest(&items(&[r#"{"name":"b"}"#, r#"{ "x":1, "name":"a"}"#]));
        assert_eq!(one, same);
        for other in [r#"{"name":"a","x":2}"#, r#"{"name":"c","x":1}"#] {
            assert_ne!(one, digest(&items(&[other, r#"{"name":"b"}"#])));
        }
    }

    #[test]
    fn what_has_no_name_is_no_name() {
        let listed = items(&[r#"{"name":"a"}"#, r#"{"name":5}"#, "3", "{}"]);
        assert_eq!(fields(&listed, "name"), ["a"]);
    }
}
