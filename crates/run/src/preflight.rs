//! Checks that all servers start and offer something, before any model is asked.

mod names;
mod selection;

use std::time::Instant;

use data_encoding::HEXLOWER;
use proctor_core::check::OrderKind;
use proctor_core::suite::Server;
use proctor_record::event::{Actor, Body, ServerSeen, Surface};
use proctor_record::json;
use proctor_record::json::canonical;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use self::names::unknown_names;
pub use self::selection::misfits;
use crate::trial_folder::TrialFolderError;
use proctor_wire::client::{Client, ConnectOptions, Era, ListError, ListLimits};

/// What Proctor learned of a server before it is used.
pub struct PreflightReport {
    pub seen: ServerSeen,
    pub offered: ServerListing,
    pub surface: Surface,
}

/// The result of checking one server.
pub struct ServerProbe {
    pub report: PreflightReport,
    pub era: Era,
    /// The open connection, which the caller shares or closes.
    pub client: Client,
}

/// Why a run can't start.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PreflightError {
    /// The server failed to start.
    #[error("{0}")]
    StartFailed(String),
    /// The server did not list what it offers.
    #[error("the server `{server}`: {reason}")]
    NoList { server: String, reason: String },
    #[error("the server `{0}` has no tools, resources or prompts to test")]
    Empty(String),
    /// The servers have no folder to start in.
    #[error("{0}")]
    NoFolder(String),
}

impl From<TrialFolderError> for PreflightError {
    fn from(error: TrialFolderError) -> Self {
        Self::NoFolder(error.to_string())
    }
}

/// Starts a server and asks what it offers.
pub async fn look(
    server: &Server,
    options: &ConnectOptions,
) -> Result<ServerProbe, PreflightError> {
    debug_assert_eq!(options.actor, Actor::Preflight);
    let started = Instant::now();
    let client = Client::connect(server, options)
        .await
        .map_err(|error| PreflightError::StartFailed(error.naming(&server.name)))?;
    let started_in = u64::try_from(started.elapsed().as_micros()).ok();
    match ask(server, &client).await {
        Ok(report) => Ok(ServerProbe {
            report: PreflightReport {
                seen: ServerSeen {
                    started_in,
                    ..report.seen
                },
                ..report
            },
            era: client.identity().era,
            client,
        }),
        Err(error) => {
            client.close().await;
            Err(error)
        }
    }
}

/// The names that a server lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerListing {
    pub tools: Vec<String>,
    /// The URIs of its resources; `None` if it has templates, which match any number of URIs.
    pub resources: Option<Vec<String>>,
    pub prompts: Vec<String>,
}

impl ServerListing {
    /// The names of one kind; `None` if the list is incomplete.
    pub fn of(&self, kind: OrderKind) -> Option<&[String]> {
        match kind {
            OrderKind::Tool => Some(&self.tools),
            OrderKind::Resource => self.resources.as_deref(),
            OrderKind::Prompt => Some(&self.prompts),
        }
    }
}

async fn ask(server: &Server, client: &Client) -> Result<PreflightReport, PreflightError> {
    let identity = client.identity();
    let listed = client.surface(&ListLimits::default()).await;
    let surface = listed.map_err(|error: ListError| PreflightError::NoList {
        server: server.name.clone(),
        reason: error.to_string(),
    })?;
    let Surface {
        tools,
        resources,
        resource_templates: templates,
        prompts,
        ..
    } = &surface;
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
        tools_digest: Some(digest(tools)),
        tool_list: None,
        surface: None,
        started_in: None,
    };
    let offered = ServerListing {
        tools: fields(tools, "name"),
        resources: templates.is_empty().then(|| fields(resources, "uri")),
        prompts: fields(prompts, "name"),
    };
    let written = serde_json::to_string(&surface).ok().map(Body::Text);
    let seen = ServerSeen {
        surface: written,
        ..seen
    };
    Ok(PreflightReport {
        seen,
        offered,
        surface,
    })
}

/// The SHA-256 of all items, independent of their order and formatting.
fn digest(items: &[Box<RawValue>]) -> String {
    let written = |raw: &RawValue| match json::from_str::<Value>(raw.get()) {
        Ok(value) => canonical(&value),
        // Nested too deeply to parse, so it is compared as text.
        Err(_) => raw.get().to_owned(),
    };
    let mut all: Vec<String> = items.iter().map(|raw| written(raw)).collect();
    all.sort_unstable();
    HEXLOWER.encode(&Sha256::digest(all.join("\n")))
}

/// The value of one text field, for each item that has it.
fn fields(items: &[Box<RawValue>], key: &str) -> Vec<String> {
    let field = |raw: &RawValue| {
        let item: Map<String, Value> = json::from_str(raw.get()).ok()?;
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
    fn a_digest_ignores_the_formatting_of_tools() {
        let one = digest(&items(&[r#"{"name":"a","x":1}"#, r#"{"name":"b"}"#]));
        let same = digest(&items(&[r#"{"name":"b"}"#, r#"{ "x":1, "name":"a"}"#]));
        assert_eq!(one, same);
        for other in [r#"{"name":"a","x":2}"#, r#"{"name":"c","x":1}"#] {
            assert_ne!(one, digest(&items(&[other, r#"{"name":"b"}"#])));
        }
    }

    #[test]
    fn items_without_a_name_are_left_out() {
        let listed = items(&[r#"{"name":"a"}"#, r#"{"name":5}"#, "3", "{}"]);
        assert_eq!(fields(&listed, "name"), ["a"]);
    }
}
