//! Evals in front of a server on HTTP: an address on loopback, to be used instead of the server's own.
//!
//! Its main type is [`HttpServed`]. Requests go to that one server only, and what comes back passes byte
//! for byte, but for what is put into the answer to a handshake.

mod answer;
mod inside;
mod posted;
mod streams;

use std::sync::Arc;

use proctor_core::event::Actor;
use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::inside::Inside;
use super::Desk;
use crate::proxy::door::Door;
use crate::proxy::refusals::Refusals;
use crate::proxy::reverse::addresses::Addresses;
use crate::proxy::upstream::Upstream;
use crate::proxy::{Admission, ProxyError};
use crate::recorder::Recorder;

/// A server with evals, offered on loopback until this is dropped.
pub struct HttpServed {
    door: Door,
    url: String,
    telling: JoinHandle<()>,
}

impl HttpServed {
    /// Offers a server on a port of loopback; on one that is free, if it is 0. Whenever `changes`
    /// changes, clients are told. Must be called within a tokio runtime.
    pub async fn start(
        server: &Server,
        desk: &Arc<Desk>,
        port: u16,
        admission: Admission,
        mut changes: watch::Receiver<()>,
    ) -> Result<Self, ProxyError> {
        let (Transport::Http { url, headers } | Transport::Sse { url, headers }) =
            &server.transport
        else {
            return Err(ProxyError::NoAddress(server.name.clone()));
        };
        let inside = Arc::new(Inside::new(Upstream::new(url, headers)?, desk.clone()));
        let serving = inside.clone();
        let serve = move |request| serving.clone().serve(request);
        // What edits never records.
        let refusals = Refusals::new(&Recorder::nothing(), Actor::Agent, server);
        let door = Door::open(port, admission, Arc::new(refusals), serve).await;
        let door = door.map_err(|error| ProxyError::Listen { port, error })?;
        inside.open(Addresses {
            server: inside.upstream.url().clone(),
            door: door.origin(),
            prefix: door.prefix(),
        });
        Ok(Self {
            url: door.url(inside.upstream.url().path()),
            telling: tokio::spawn(async move {
                while changes.changed().await.is_ok() {
                    inside.tell();
                }
            }),
            door,
        })
    }

    /// The address to use instead of the server's own.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends every exchange.
    pub async fn close(self) {
        self.telling.abort();
        self.door.close().await;
    }
}
