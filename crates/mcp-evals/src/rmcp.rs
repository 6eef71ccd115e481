//! Adds evals to a server built on the Rust SDK, in two calls.
//!
//! Its main type is [`Evals`]: [`Evals::around`] wraps a handler. The wrapper declares the
//! capability and answers `evals/list`. [`stdio`] is the transport that adds the top-level key, which
//! the SDK can't write. Over HTTP the capability is in `experimental` and `extensions` only.
//!
//! ```no_run
//! use mcp_evals::{EvalFile, rmcp::{Evals, stdio}};
//! use rmcp::{ServerHandler, ServiceExt};
//!
//! # #[derive(Clone)]
//! # struct MyServer;
//! # impl ServerHandler for MyServer {}
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let evals = Evals::new(EvalFile::from_json(r#"{"evals": []}"#)?.into_suite()?);
//! evals.around(MyServer).serve(stdio()).await?.waiting().await?;
//! # Ok(())
//! # }
//! ```

mod with_evals;
mod writer;

use std::sync::{Arc, PoisonError, RwLock};

use ::rmcp::model::{
    CustomNotification, CustomRequest, CustomResult, ErrorCode, ProtocolVersion,
    ServerCapabilities, ServerNotification,
};
use ::rmcp::service::{Peer, RequestContext, RoleServer};
use ::rmcp::{ErrorData, ServerHandler};
use serde_json::Value;

pub use self::with_evals::WithEvals;
pub use self::writer::{DeclaringWriter, stdio};
use crate::capability::{CAPABILITY, Capability, EXTENSION, LIST_CHANGED, METHOD};
use crate::suite::{PageError, Suite};

/// The evals of a server. Clones share the evals, so that a clone outside the server can
/// [`replace`](Self::replace) them.
#[derive(Debug, Clone)]
pub struct Evals {
    capability: Capability,
    shared: Arc<EvalsState>,
}

#[derive(Debug, Default)]
struct EvalsState {
    suite: RwLock<Suite>,
    /// The clients to notify of changes: those that have finished the handshake.
    peers: RwLock<Vec<Peer<RoleServer>>>,
}

impl Evals {
    /// Evals that don't change while the server runs.
    pub fn new(suite: Suite) -> Self {
        Self {
            capability: Capability::default(),
            shared: Arc::new(EvalsState {
                suite: RwLock::new(suite),
                ..EvalsState::default()
            }),
        }
    }

    /// Evals that may be [replaced](Self::replace). The capability declares `listChanged`.
    pub fn changing(suite: Suite) -> Self {
        Self {
            capability: Capability::with_list_changed(),
            ..Self::new(suite)
        }
    }

    /// Wraps `server` in a handler that adds evals.
    pub fn around<H: ServerHandler>(&self, server: H) -> WithEvals<H> {
        WithEvals::new(server, self.clone())
    }

    /// Adds the capability where the SDK has a place for it. For servers that can't use
    /// [`around`](Self::around).
    pub fn declare(&self, capabilities: &mut ServerCapabilities) {
        let experimental = capabilities.experimental.get_or_insert_default();
        let ours = self.capability.to_map();
        experimental
            .entry(CAPABILITY.to_owned())
            .or_insert_with(|| ours.clone());
        let extensions = capabilities.extensions.get_or_insert_default();
        extensions.entry(EXTENSION.to_owned()).or_insert(ours);
    }

    /// The answer to `evals/list`, `None` for other methods. For servers that can't use
    /// [`around`](Self::around): call it from `on_custom_request`.
    pub fn answer(
        &self,
        request: &CustomRequest,
        context: &RequestContext<RoleServer>,
    ) -> Option<Result<CustomResult, ErrorData>> {
        if request.method != METHOD {
            return None;
        }
        let suite = self.shared.suite.read();
        let page = suite
            .unwrap_or_else(PoisonError::into_inner)
            .answer(request.params.as_ref());
        Some(page.map_err(|error| refusal(&error)).map(|page| {
            let mut result = page.to_value();
            if let Value::Object(members) = &mut result
                && is_stateless(context.protocol_version().as_ref())
            {
                members.insert("resultType".to_owned(), "complete".into());
                members.insert("ttlMs".to_owned(), 0.into());
                members.insert("cacheScope".to_owned(), "private".into());
            }
            CustomResult::new(result)
        }))
    }

    /// Replaces the evals, and notifies every client if `listChanged` was declared.
    ///
    /// This SDK can't notify clients without a handshake (2026-07-28). They list again before
    /// they run anything.
    pub async fn replace(&self, suite: Suite) {
        *self
            .shared
            .suite
            .write()
            .unwrap_or_else(PoisonError::into_inner) = suite;
        if self.capability.list_changed != Some(true) {
            return;
        }
        let peers = {
            let mut peers = self
                .shared
                .peers
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            peers.retain(|peer| !peer.is_transport_closed());
            peers.clone()
        };
        for peer in peers {
            let changed = CustomNotification::new(LIST_CHANGED, None);
            // A client that has gone needs no news.
            let _ = peer
                .send_notification(ServerNotification::CustomNotification(changed))
                .await;
        }
    }

    fn remember(&self, peer: Peer<RoleServer>) {
        let mut peers = self
            .shared
            .peers
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| !peer.is_transport_closed());
        peers.push(peer);
    }
}

fn refusal(error: &PageError) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_PARAMS, error.to_string(), None)
}

fn is_stateless(version: Option<&ProtocolVersion>) -> bool {
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}
