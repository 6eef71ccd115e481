//! Serves a stdio server over streamable HTTP, for clients that only accept a URL.
//!
//! Its main type is [`Bridge`]. Messages pass unchanged in both eras; only the transport differs.
//! The record holds the stdio side, with one connection per process, and the HTTP heads.
//!
//! `initialize` starts a process and opens a session for it. Requests without a session are
//! independent, and share a process. Streams can't be resumed.

mod hub;
mod inbound;
mod outlet;
mod router;
mod serve;
mod upstream;

use std::sync::Arc;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;

use self::hub::Hub;
use super::door::{Admission, Door};
use super::refusals::Refusals;
use super::server_process::ServerStartError;
use super::{ProxyError, ProxyOptions};
use crate::web::IncomingRequest;
use crate::worker::BoxedFuture;

/// The only path of the bridge.
const PATH: &str = "/mcp";

/// A stdio server behind a URL, until this is closed or dropped.
pub struct Bridge {
    url: String,
    headers: Vec<(String, String)>,
    door: Door,
    hub: Arc<Hub>,
}

impl Bridge {
    /// Serves the server on a loopback port; 0 picks a free port. The first request starts the
    /// server. Must be called within a tokio runtime.
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
        if !matches!(server.transport, Transport::Stdio { .. }) {
            return Err(ServerStartError::NoCommand(server.name.clone()).into());
        }
        let refusals = Arc::new(Refusals::new(&options.recorder, options.actor, server));
        let hub = Arc::new(Hub::new(server, options, refusals.clone()));
        let serving = hub.clone();
        let serve = move |request: IncomingRequest| serve::serve(serving.clone(), request);
        let door = Door::open(port, admission, refusals, serve)
            .await
            .map_err(|error| ProxyError::Listen { port, error })?;
        Ok(Self {
            url: door.url(PATH),
            headers: door.headers(),
            door,
            hub,
        })
    }

    /// Returns the URL for clients. It may contain the token, and is then secret.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the headers that clients must send with every request.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Refuses new requests, and ends all processes: closes their stdin, and stops those that don't
    /// exit. The record then says how they ended.
    pub async fn close(self) {
        self.door.close().await;
        self.hub.close().await;
        self.hub.refusals.close();
    }
}
