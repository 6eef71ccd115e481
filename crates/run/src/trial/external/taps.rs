//! The taps between an external agent and the servers of its trial.
//!
//! Its main type is [`Taps`].

use std::sync::Arc;

use proctor_core::suite::Server;
use proctor_core::suite::server::Transport;
use rustix::process::Pid;

use super::withhold::WithheldCalls;

use crate::external::{Adapter, AgentServer, ServerRoute};
use crate::together::together;
use proctor_wire::proxy::{Admission, Bridge, ProxyOptions, Relay, ReverseProxy};

/// The proxies of a trial, one per server. Dropping them ends every session.
pub(crate) struct Taps {
    taps: Vec<ServerTap>,
    offered: Vec<AgentServer>,
}

enum ServerTap {
    Relay(Relay),
    Reverse(ReverseProxy),
    Bridge(Bridge),
}

impl Taps {
    /// Opens a proxy for every server, in the form that the agent needs.
    pub(crate) async fn open(
        servers: &[Server],
        options: &ProxyOptions,
        adapter: Adapter<'_>,
        withheld: Option<&Arc<WithheldCalls>>,
    ) -> Result<Self, String> {
        let mut all = Self {
            taps: Vec::new(),
            offered: Vec::new(),
        };
        for server in servers {
            let editor = withheld.map(|calls| calls.editor(&server.name));
            let options = ProxyOptions {
                editor,
                ..options.clone()
            };
            let opened = open(server, &options, adapter).await;
            let (tap, way) = opened.map_err(|reason| {
                format!(
                    "can't provide the server `{}` to the agent: {reason}",
                    server.name
                )
            })?;
            all.taps.push(tap);
            all.offered.push(AgentServer {
                name: server.name.clone(),
                way,
                allowed: server.allowed.clone(),
                tools: Vec::new(),
            });
        }
        Ok(all)
    }

    /// The servers, as configured for the agent.
    pub(crate) fn offered(&self) -> &[AgentServer] {
        &self.offered
    }

    /// Allows this process and its descendants to connect.
    pub(crate) fn admit(&self, pid: Pid) {
        for tap in &self.taps {
            if let ServerTap::Relay(relay) = tap {
                relay.admit(pid);
            }
        }
    }

    /// Closes every session, and waits until the record has their ends.
    pub(crate) async fn close(self) {
        let close = async |tap: ServerTap| match tap {
            ServerTap::Relay(relay) => relay.close().await,
            ServerTap::Reverse(proxy) => proxy.close().await,
            ServerTap::Bridge(bridge) => bridge.close().await,
        };
        together(self.taps.into_iter().map(close)).await;
    }
}

async fn open(
    server: &Server,
    options: &ProxyOptions,
    adapter: Adapter<'_>,
) -> Result<(ServerTap, ServerRoute), String> {
    let by_url = adapter.wants_url();
    // Custom programs read the URL of a server and send no headers, so the token is in the URL.
    // The file that holds it is readable by its owner only.
    let admission = if adapter.is_from_file() {
        Admission::Path
    } else {
        Admission::Header
    };
    match &server.transport {
        Transport::Stdio { .. } if by_url => {
            let bridge = Bridge::start(server, options, 0, admission).await;
            let bridge = bridge.map_err(|error| error.to_string())?;
            let way = ServerRoute::Http {
                url: bridge.url().to_owned(),
                headers: bridge.headers().to_vec(),
            };
            Ok((ServerTap::Bridge(bridge), way))
        }
        Transport::Stdio { .. } => {
            let relay = Relay::listen(server, options).map_err(|error| error.to_string())?;
            let (program, args) = relay.command();
            Ok((
                ServerTap::Relay(relay),
                ServerRoute::Stdio { program, args },
            ))
        }
        Transport::Http { .. } | Transport::Sse { .. } => {
            let proxy = ReverseProxy::start(server, options, 0, admission).await;
            let proxy = proxy.map_err(|error| error.to_string())?;
            let (url, headers) = (proxy.url().to_owned(), proxy.headers().to_vec());
            let way = if matches!(server.transport, Transport::Sse { .. }) {
                ServerRoute::Sse { url, headers }
            } else {
                ServerRoute::Http { url, headers }
            };
            Ok((ServerTap::Reverse(proxy), way))
        }
    }
}
