//! A reverse proxy that serves an HTTP server on loopback.
//!
//! Its main type is [`ReverseProxy`]. Bodies and streams pass byte for byte, only for this one
//! server: its own path, and the paths that it announces over HTTP+SSE. Agents can't discover its
//! authorization server (`/.well-known/…`): a server that requires a token needs `auth` or a header
//! in the MCP config.

mod body;
mod endpoints;
mod exchange;
mod gathered;
mod inside;
mod request;
mod stream;
mod upload;

use std::sync::Arc;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;

use self::inside::ReverseProxyState;
use super::addresses::Addresses;
use super::door::{Admission, Door};
use super::refusals::Refusals;
use super::upstream::Upstream;
use super::{ProxyError, ProxyOptions};
use crate::worker::BoxedFuture;

/// An HTTP server on loopback, until this is closed or dropped.
pub struct ReverseProxy {
    door: Door,
    inside: Arc<ReverseProxyState>,
    url: String,
    headers: Vec<(String, String)>,
}

impl ReverseProxy {
    /// Serves a server on a loopback port; 0 picks a free port. Must be called within a tokio
    /// runtime.
    pub fn start<'a>(
        server: &'a Server,
        options: &'a ProxyOptions,
        port: u16,
        admission: Admission,
    ) -> BoxedFuture<'a, Result<Self, ProxyError>> {
        Box::pin(Self::open(server, options, port, admission))
    }

    async fn open(
        server: &Server,
        options: &ProxyOptions,
        port: u16,
        admission: Admission,
    ) -> Result<Self, ProxyError> {
        let (url, headers, is_legacy) = match server.transport.in_trial(options.trial.as_ref())? {
            Transport::Http { url, headers } => (url, headers, false),
            Transport::Sse { url, headers } => (url, headers, true),
            Transport::Stdio { .. } => return Err(ProxyError::NoAddress(server.name.clone())),
        };
        let tokens = options.credentials.source(server, options.program())?;
        let upstream = Upstream::new(&url, &headers)?.authorized(tokens);
        let refusals = Refusals::new(&options.recorder, options.actor, server);
        let inside =
            ReverseProxyState::new(upstream, server, options, Arc::new(refusals), is_legacy);
        let inside = Arc::new(inside);
        let serving = inside.clone();
        let serve = move |request| serving.clone().serve(request);
        let door = Door::open(port, admission, inside.refusals.clone(), serve).await;
        let door = door.map_err(|error| ProxyError::Listen { port, error })?;
        inside.open(Addresses {
            server: inside.upstream.url().clone(),
            door: door.origin(),
            prefix: door.prefix(),
        });
        Ok(Self {
            url: door.url(inside.upstream.url().path()),
            headers: door.headers(),
            door,
            inside,
        })
    }

    /// Returns the URL that replaces the server's.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the headers that a client must send.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Ends every exchange, and waits until the record has their ends.
    pub async fn close(self) {
        self.inside.upstream.closing();
        // What clients have sent can be read only while their connections are open.
        self.inside.endings.close().await;
        self.door.close().await;
        self.inside.endings.close().await;
        self.inside.close();
    }
}
