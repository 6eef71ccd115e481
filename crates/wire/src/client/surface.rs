//! Everything that a server offers.

use proctor_core::contract::NOT_IMPLEMENTED;
use proctor_record::event::Surface;

use super::{CallError, Client, ListError, ListLimits};

/// The JSON-RPC error for a method that a server does not implement.
const METHOD_NOT_FOUND: i64 = -32601;

impl Client {
    /// Lists everything that the server offers. Only capabilities that it declares are listed.
    pub async fn surface(&self, limits: &ListLimits) -> Result<Surface, ListError> {
        let identity = self.identity();
        let declares = |what: &str| identity.capabilities.contains_key(what);
        let mut surface = Surface {
            instructions: identity.instructions.clone(),
            capabilities: Some(identity.capabilities.clone()),
            ..Surface::default()
        };
        if declares("tools") {
            surface.tools = self.list_tools(limits).await?.items;
        }
        if declares("resources") {
            let listed = self.list("resources/list", "resources", limits).await?;
            surface.resources = listed.items;
            // Many servers have resources but no resource templates.
            let key = "resourceTemplates";
            match self.list("resources/templates/list", key, limits).await {
                Ok(listed) => surface.resource_templates = listed.items,
                Err(error) => {
                    surface.unlisted.insert(key.to_owned(), reason(&error));
                }
            }
        }
        if declares("prompts") {
            surface.prompts = self.list("prompts/list", "prompts", limits).await?.items;
        }
        Ok(surface)
    }
}

fn reason(error: &ListError) -> String {
    match error {
        ListError::Call {
            source: CallError::Rpc(error),
            ..
        } if error.code == METHOD_NOT_FOUND => NOT_IMPLEMENTED.to_owned(),
        other => other.to_string(),
    }
}
