//! A stdio server, offered over streamable HTTP to clients that take nothing but a URL.
//!
//! Its main type is [`Bridge`]. Messages pass as they are, in both eras; only their envelope is
//! another. The record holds the stdio side, with a connection for each process, and the heads of
//! HTTP beside it.
//!
//! `initialize` opens a process of its own, and a session that leads to it. Requests without a session
//! stand for themselves, and share a process. Streams can't be resumed.

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
use super::started::ServerStartError;
use super::{ProxyError, ProxyOptions};
use crate::web::IncomingRequest;

/// The only path there is.
const PATH: &str = "/mcp";

/// A stdio server that is reached by a URL, until this is closed or dropped.
pub struct Bridge {
    url: String,
    headers: Vec<(String, String)>,
    door: Door,
    hub: Arc<Hub>,
}

impl Bridge {
    /// Offers the server on a port of loopback, or on one that is free if it is 0. It is started when
    /// somebody comes. Must be called within a tokio runtime.
    pub async fn start(
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

    /// Where clients find it. Where the token is part of it, it is as secret as that.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What clients must send with every request.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Lets nobody in any more, and ends all processes: their stdin is closed, and who stays is
    /// stopped. How they ended is in the record then.
    pub async fn close(self) {
        self.door.close().await;
        self.hub.close().await;
        self.hub.refusals.close();
    }
}
