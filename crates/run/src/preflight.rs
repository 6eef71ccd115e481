//! Whether all servers come up and offer anything, before any model is asked.

use proctor_core::event::{Actor, ServerSeen};
use proctor_core::suite::Server;

use crate::client::{Caps, Client, ConnectOptions, Era, ListError};

/// What was found out about a server.
pub struct Seen {
    /// For the record.
    pub seen: ServerSeen,
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
    #[error("the server `{0}` offers no tool, resource or prompt, so there is nothing to test")]
    Empty(String),
}

/// Starts a server and asks what it offers.
pub async fn look(server: &Server, options: &ConnectOptions) -> Result<Seen, PreflightError> {
    debug_assert_eq!(options.actor, Actor::Preflight);
    let client = Client::connect(server, options)
        .await
        .map_err(|error| PreflightError::NotUp(error.naming(&server.name)))?;
    match count(server, &client).await {
        Ok(seen) => Ok(Seen {
            seen,
            era: client.identity().era,
            client,
        }),
        Err(error) => {
            client.close().await;
            Err(error)
        }
    }
}

async fn count(server: &Server, client: &Client) -> Result<ServerSeen, PreflightError> {
    let identity = client.identity();
    let declares = |what: &str| identity.capabilities.contains_key(what);
    let failed = |error: &ListError| PreflightError::NoList {
        server: server.name.clone(),
        reason: error.to_string(),
    };
    let mut tools = 0;
    if declares("tools") {
        let listed = client.list_tools(&Caps::default()).await;
        tools = listed.map_err(|error| failed(&error))?.items.len();
    }
    let list = async |method: &str, key: &str| {
        let listed = client.list(method, key, &Caps::default()).await;
        listed.map(|listed| listed.items.len())
    };
    let mut resources = 0;
    if declares("resources") {
        let listed = list("resources/list", "resources").await;
        resources = listed.map_err(|error| failed(&error))?;
        // Many servers have resources and no templates of them.
        let templates = list("resources/templates/list", "resourceTemplates").await;
        resources += templates.unwrap_or(0);
    }
    let mut prompts = 0;
    if declares("prompts") {
        let listed = list("prompts/list", "prompts").await;
        prompts = listed.map_err(|error| failed(&error))?;
    }
    if tools + resources + prompts == 0 {
        return Err(PreflightError::Empty(server.name.clone()));
    }
    Ok(ServerSeen {
        server: server.name.clone(),
        name: identity.name.clone(),
        version: identity.version.clone(),
        protocol: identity.protocol.clone(),
        tools: tools as u64,
        resources: resources as u64,
        prompts: prompts as u64,
    })
}
