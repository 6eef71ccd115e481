//! How messages travel: framed, bounded, recorded.
//!
//! Its main type is [`Link`]. A link hands every message that arrives to the [`Peer`], and sends what
//! it is given. It knows bytes and time-outs, not what messages mean.

pub(crate) mod frames;
pub(crate) mod http;
pub(crate) mod legacy;
pub(crate) mod sse;
pub(crate) mod stdio;

use std::sync::Arc;

use crate::client::peer::Peer;

/// The largest message that is taken in.
pub(crate) const MAX_MESSAGE: usize = 32 << 20;

/// A way to a server.
pub(crate) enum Link {
    /// A process.
    Stdio(stdio::StdioLink),
    /// Streamable HTTP.
    Http(Arc<http::HttpLink>),
    /// The older HTTP with server-sent events.
    Legacy(Arc<legacy::LegacyLink>),
}

/// What goes with a message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Labels {
    /// The request that fails when the message can't be sent.
    pub(crate) id: Option<u64>,
    /// On HTTP, what the headers of the stateless era repeat.
    pub(crate) headers: Vec<(String, String)>,
}

/// Why a message could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendError {
    /// Nobody is there any more.
    #[error("the connection is closed")]
    Closed,
    /// The server does not read.
    #[error("the server does not read what it is sent")]
    Stuck,
}

impl Link {
    /// Sends a message that nobody waits for, if that is possible at once.
    pub(crate) fn send_soon(&self, peer: &Arc<Peer>, message: Vec<u8>) {
        match self {
            Self::Stdio(link) => link.send_soon(message),
            Self::Http(link) => link.post_soon(peer, message),
            Self::Legacy(link) => drop(link.post(peer, message, &Labels::default())),
        }
    }

    /// Sends a message. On HTTP, what comes back of the same exchange goes to the peer.
    pub(crate) async fn send(
        &self,
        peer: &Arc<Peer>,
        message: Vec<u8>,
        labels: &Labels,
    ) -> Result<Option<tokio::task::JoinHandle<()>>, SendError> {
        match self {
            Self::Stdio(link) => link.send(message).await.map(|()| None),
            Self::Http(link) => Ok(Some(link.post(peer, message, labels))),
            Self::Legacy(link) => Ok(Some(link.post(peer, message, labels))),
        }
    }
}
