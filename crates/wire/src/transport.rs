//! How messages travel: framed, bounded, recorded.
//!
//! Its main type is `Link`. A link hands every message that arrives to the `Peer`, and sends what
//! it is given. It knows bytes and time-outs, not what messages mean.

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

/// How long what was said last may take to leave.
const GOODBYE: Duration = Duration::from_secs(2);

/// The largest message that is taken in.
pub const MAX_MESSAGE: usize = 32 << 20;

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
#[derive(Clone)]
pub(crate) struct Labels {
    /// Where it belongs, and what comes back with it.
    pub(crate) tap: Arc<ConnectionTap>,
    /// The request that fails when the message can't be sent.
    pub(crate) id: Option<u64>,
    /// The method of that request.
    pub(crate) method: Option<String>,
    /// On HTTP, what the headers of the stateless era repeat.
    pub(crate) headers: Vec<(String, String)>,
}

impl Labels {
    /// For a message that nobody waits for.
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
    /// Nobody is there any more.
    #[error("the connection is closed")]
    Closed,
    /// The server does not read.
    #[error("the server does not read its input")]
    Stuck,
}

impl Link {
    /// Sends a message that nobody waits for, if that is possible at once.
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

    /// Sends a message. On HTTP, what comes back of the same exchange goes to the peer.
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

    /// A request was answered, or is given up: what of its exchange is still under way is ended, unless
    /// it says how the server took the message.
    pub(crate) fn finish(
        &self,
        tap: &Arc<ConnectionTap>,
        exchange: JoinHandle<()>,
        is_answered: bool,
    ) {
        match self {
            // The answer came on the stream, maybe before the response to the POST.
            Self::Legacy(link) if is_answered => link.leaving.add(tap, exchange),
            Self::Legacy(_) | Self::Http(_) | Self::Stdio(_) => exchange.abort(),
        }
    }

    /// Waits until what belongs to one of those who share the link is on its way, but not for long.
    pub(crate) async fn settle(&self, tap: &Arc<ConnectionTap>) {
        match self {
            Self::Stdio(link) => link.writer.settle().await,
            Self::Http(link) => link.leaving.settle(Some(tap)).await,
            Self::Legacy(link) => link.leaving.settle(Some(tap)).await,
        }
    }

    /// Lets the server go, without a word.
    pub(crate) fn let_go(&self) {
        match self {
            Self::Stdio(link) => drop(link.close()),
            Self::Http(link) => link.stop_listening(),
            Self::Legacy(link) => link.stop_listening(),
        }
    }
}

/// Messages that were sent without waiting, each with the one that it belongs to, which they do not
/// keep open.
#[derive(Default)]
pub(crate) struct BackgroundSends(Mutex<Vec<(Weak<ConnectionTap>, JoinHandle<()>)>>);

impl BackgroundSends {
    fn add(&self, tap: &Arc<ConnectionTap>, message: JoinHandle<()>) {
        let mut leaving = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leaving.retain(|(_, message)| !message.is_finished());
        leaving.push((Arc::downgrade(tap), message));
    }

    /// Waits until all of them have left, or all that belong to one, but not for long.
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
