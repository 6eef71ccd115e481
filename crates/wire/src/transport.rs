//! Transports: how messages are framed, limited in size and recorded.
//!
//! Its main type is `Link`. A link passes every incoming message to the `Peer`, and sends outgoing
//! ones. It handles bytes and timeouts, not the content of messages.

mod authorized;
pub mod frames;
pub mod http;
pub(crate) mod legacy;
pub mod lines;
pub mod sse;
pub(crate) mod stdio;

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::peer::Peer;
use crate::recorder::ConnectionTap;

/// How long the last messages may take to be sent.
const GOODBYE: Duration = Duration::from_secs(2);

/// The maximum size of a message, in bytes.
pub const MAX_MESSAGE: usize = 32 << 20;

/// A connection to a server over one of the transports.
pub(crate) enum Link {
    Stdio(stdio::StdioLink),
    Http(Arc<http::HttpLink>),
    /// HTTP+SSE, the transport before streamable HTTP.
    Legacy(Arc<legacy::LegacyLink>),
}

/// The context of an outgoing message.
#[derive(Clone)]
pub(crate) struct Labels {
    /// The record of the message and of its HTTP exchange.
    pub(crate) tap: Arc<ConnectionTap>,
    /// The request that fails if the message can't be sent.
    pub(crate) id: Option<u64>,
    /// The method of that request.
    pub(crate) method: Option<String>,
    /// The headers of the stateless era; only for HTTP.
    pub(crate) headers: Vec<(String, String)>,
}

impl Labels {
    /// Creates the context of a message without a response.
    pub(crate) fn unasked(tap: &Arc<ConnectionTap>) -> Self {
        Self {
            tap: tap.clone(),
            id: None,
            method: None,
            headers: Vec::new(),
        }
    }
}

/// Why a message could not be sent.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendError {
    #[error("the connection is closed")]
    Closed,
    #[error("the server does not read its input")]
    Stuck,
}

impl Link {
    /// Sends a message without waiting, if that is possible now.
    pub(crate) fn send_soon(&self, peer: &Arc<Peer>, tap: &Arc<ConnectionTap>, message: Vec<u8>) {
        let labels = Labels::unasked(tap);
        match self {
            Self::Stdio(link) => {
                // A server that does not read will not miss it.
                link.writer.send_soon(tap.clone(), message);
            }
            Self::Http(link) => link.leaving.add(tap, link.post(peer, message, &labels)),
            Self::Legacy(link) => link.leaving.add(tap, link.post(peer, message, &labels)),
        }
    }

    /// Sends a message. On HTTP, the response of the exchange goes to the peer.
    pub(crate) async fn send(
        &self,
        peer: &Arc<Peer>,
        message: Vec<u8>,
        labels: &Labels,
    ) -> Result<Option<JoinHandle<()>>, SendError> {
        match self {
            Self::Stdio(link) => {
                let sent = link.writer.send(labels.tap.clone(), message).await;
                sent.map(|()| None)
            }
            Self::Http(link) => Ok(Some(link.post(peer, message, labels))),
            Self::Legacy(link) => Ok(Some(link.post(peer, message, labels))),
        }
    }

    /// Ends the exchange of a request that was answered or given up, unless the exchange still
    /// tells how the server received the message.
    pub(crate) fn finish(
        &self,
        tap: &Arc<ConnectionTap>,
        exchange: JoinHandle<()>,
        is_answered: bool,
    ) {
        match self {
            // The response came on the stream, maybe before the HTTP response to the POST.
            Self::Legacy(link) if is_answered => link.leaving.add(tap, exchange),
            Self::Legacy(_) | Self::Http(_) | Self::Stdio(_) => exchange.abort(),
        }
    }

    /// Waits for a limited time until the messages of one tap are sent.
    pub(crate) async fn settle(&self, tap: &Arc<ConnectionTap>) {
        match self {
            Self::Stdio(link) => link.writer.settle().await,
            Self::Http(link) => link.leaving.settle(Some(tap)).await,
            Self::Legacy(link) => link.leaving.settle(Some(tap)).await,
        }
    }

    /// Closes the link without sending anything.
    pub(crate) fn let_go(&self) {
        match self {
            Self::Stdio(link) => drop(link.close()),
            Self::Http(link) => link.stop_listening(),
            Self::Legacy(link) => link.stop_listening(),
        }
    }
}

/// Messages that are sent in the background, each with its tap, which they don't keep open.
#[derive(Default)]
pub(crate) struct BackgroundSends(Mutex<Vec<(Weak<ConnectionTap>, JoinHandle<()>)>>);

impl BackgroundSends {
    fn add(&self, tap: &Arc<ConnectionTap>, message: JoinHandle<()>) {
        let mut leaving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|(_, message)| !message.is_finished());
        leaving.push((Arc::downgrade(tap), message));
    }

    /// Waits for a limited time until all messages, or those of one tap, are sent.
    async fn settle(&self, of: Option<&Arc<ConnectionTap>>) {
        let deadline = Instant::now() + GOODBYE;
        let mut settling = Vec::new();
        {
            let mut leaving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (tap, message) in std::mem::take(&mut *leaving) {
                if of.is_none_or(|of| std::ptr::eq(Arc::as_ptr(of), tap.as_ptr())) {
                    settling.push(message);
                } else {
                    leaving.push((tap, message));
                }
            }
        }
        for message in settling {
            let _ = tokio::time::timeout_at(deadline, message).await;
        }
    }
}
