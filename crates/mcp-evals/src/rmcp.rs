//! The primitive in a server built on the Rust SDK, in two calls.
//!
//! Its main type is [`Evals`]: [`Evals::around`] makes a service of a handler, which declares the
//! capability and answers `evals/list`; [`stdio`] is the transport that adds the top-level key, which
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

mod writer;

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use ::rmcp::ErrorData;
use ::rmcp::model::{
    ClientNotification, ClientRequest, CustomNotification, CustomRequest, CustomResult, ErrorCode,
    ProtocolVersion, ServerCapabilities, ServerNotification, ServerResult,
};
use ::rmcp::service::{
    NotificationContext, Peer, RequestContext, RoleServer, Service, ServiceRole,
};
use serde_json::Value;

pub use self::writer::{DeclaringWriter, stdio};
use crate::capability::{CAPABILITY, Capability, EXTENSION, LIST_CHANGED, METHOD};
use crate::suite::{PageError, Suite};

/// The evals of a server. Clones are the same evals, so that one can stay outside the server and
/// [`replace`](Self::replace) them.
#[derive(Debug, Clone)]
pub struct Evals {
    capability: Capability,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    suite: RwLock<Suite>,
    /// Who is told of changes: clients that have finished the handshake.
    peers: RwLock<Vec<Peer<RoleServer>>>,
}

impl Evals {
    /// Evals that stay the same as long as the server runs.
    pub fn new(suite: Suite) -> Self {
        Self {
            capability: Capability::default(),
            shared: Arc::new(Shared {
                suite: RwLock::new(suite),
                ..Shared::default()
            }),
        }
    }

    /// Evals that may be [replaced](Self::replace): the capability says `listChanged`.
    pub fn changing(suite: Suite) -> Self {
        Self {
            capability: Capability::with_list_changed(),
            ..Self::new(suite)
        }
    }

    /// A service that is `server`, with evals.
    pub fn around<S: Service<RoleServer>>(&self, server: S) -> WithEvals<S> {
        WithEvals {
            server,
            evals: self.clone(),
        }
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

    /// Ships other evals from now on, and tells every client, if `listChanged` was declared.
    ///
    /// Clients without a handshake (2026-07-28) can't be told through this SDK, and list again before
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

/// A server with evals.
#[derive(Debug, Clone)]
pub struct WithEvals<S> {
    server: S,
    evals: Evals,
}

impl<S: Service<RoleServer>> Service<RoleServer> for WithEvals<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        if let ClientRequest::CustomRequest(request) = &request
            && let Some(answer) = self.evals.answer(request, &context)
        {
            self.check_version(&context)?;
            return answer.map(ServerResult::CustomResult);
        }
        let mut result = self.server.handle_request(request, context).await?;
        match &mut result {
            ServerResult::InitializeResult(result) => self.evals.declare(&mut result.capabilities),
            ServerResult::DiscoverResult(result) => self.evals.declare(&mut result.capabilities),
            _ => {}
        }
        Ok(result)
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if let ClientNotification::InitializedNotification(_) = &notification {
            self.evals.remember(context.peer.clone());
        }
        self.server.handle_notification(notification, context).await
    }

    fn get_info(&self) -> <RoleServer as ServiceRole>::Info {
        let mut info = self.server.get_info();
        self.evals.declare(&mut info.capabilities);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.server.supported_protocol_versions()
    }
}

impl<S: Service<RoleServer>> WithEvals<S> {
    /// What the SDK checks before it hands a request to a handler.
    fn check_version(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let supported = self.server.supported_protocol_versions();
        match context.meta.protocol_version() {
            Some(wanted) if !supported.contains(&wanted) => {
                Err(ErrorData::unsupported_protocol_version(wanted, &supported))
            }
            _ => Ok(()),
        }
    }
}
