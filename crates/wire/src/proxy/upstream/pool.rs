//! The connections to the server.
//!
//! Its main type is [`ConnectionPool`]. A connection serves one exchange after another. It is free again when
//! its response was read to the end; otherwise it is closed, so that the server notices.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Uri, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_rustls::HttpsConnector;
use tower_service::Service as _;

use super::connecting::PromptConnector;
use crate::web::ResponseBody;

/// How long an idle connection is kept. Common servers close theirs after five seconds, and a
/// request at that moment would be lost.
const IDLE: Duration = Duration::from_secs(3);

/// How much earlier than the server, which says when, the pool closes an idle connection.
const MARGIN: Duration = Duration::from_secs(1);

/// All connections to one server.
pub(super) struct ConnectionPool {
    server: Uri,
    connector: HttpsConnector<PromptConnector>,
    idle: Arc<Mutex<IdleConnections>>,
}

#[derive(Debug, Default)]
struct IdleConnections {
    /// The connections, and until when they may be used.
    connections: Vec<(SendRequest<ResponseBody>, Instant)>,
    /// Whether a task closes those that are idle for too long.
    is_watched: bool,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(super) enum PoolError {
    #[error("could not connect")]
    Connect(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("no response")]
    Send(#[source] hyper::Error),
}

impl ConnectionPool {
    pub(super) fn new(server: Uri, connector: HttpsConnector<PromptConnector>) -> Self {
        Self {
            server,
            connector,
            idle: Arc::default(),
        }
    }

    /// Sends a request. It is repeated only if a connection had closed before any byte of it was sent.
    pub(super) async fn send(
        self: Arc<Self>,
        mut request: http::Request<ResponseBody>,
    ) -> Result<http::Response<PooledBody>, PoolError> {
        while let Some(mut connection) = self.take_idle() {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(self.answered(response, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(PoolError::Send(error.into_error())),
                },
            }
        }
        let mut connection = Box::pin(self.connect()).await?;
        let response = connection.send_request(request).await;
        Ok(self.answered(response.map_err(PoolError::Send)?, connection))
    }

    async fn connect(&self) -> Result<SendRequest<ResponseBody>, PoolError> {
        let stream = self.connector.clone().call(self.server.clone()).await;
        let (sender, connection) = http1::Builder::new()
            .preserve_header_case(true)
            .handshake(stream.map_err(PoolError::Connect)?)
            .await
            .map_err(PoolError::Send)?;
        // Whoever waits for a response gets the error.
        tokio::spawn(connection);
        Ok(sender)
    }

    /// Takes the connection that was used last.
    fn take_idle(&self) -> Option<SendRequest<ResponseBody>> {
        let mut idle = lock(&self.idle);
        let idle = &mut idle.connections;
        idle.retain(is_usable);
        let newest = idle.iter().rposition(|(sender, _)| sender.is_ready())?;
        Some(idle.remove(newest).0)
    }

    fn answered(
        &self,
        response: http::Response<Incoming>,
        connection: SendRequest<ResponseBody>,
    ) -> http::Response<PooledBody> {
        // To a server of HTTP/1.0, a body of unknown length can't be sent, and hyper would drop it.
        let idle = idle_time(response.headers());
        let is_reusable = response.version() >= Version::HTTP_11 && !idle.is_zero();
        response.map(|inner| {
            let mut body = PooledBody {
                inner,
                connection: Some(connection),
                pool: if is_reusable {
                    Arc::downgrade(&self.idle)
                } else {
                    Weak::new()
                },
                idle,
            };
            body.release_at_end();
            body
        })
    }
}

fn is_usable((sender, until): &(SendRequest<ResponseBody>, Instant)) -> bool {
    !sender.is_closed() && Instant::now() < *until
}

/// How long a connection may be idle after a response. A server may say how long it keeps one.
fn idle_time(headers: &HeaderMap) -> Duration {
    let said = headers.get("keep-alive").and_then(|value| {
        let options = value.to_str().ok()?.split(',');
        let mut options = options.filter_map(|option| option.split_once('='));
        let (_, seconds) = options.find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
        Some(Duration::from_secs(seconds.trim().parse().ok()?))
    });
    said.map_or(IDLE, |said| said.saturating_sub(MARGIN).min(IDLE))
}

fn lock(idle: &Mutex<IdleConnections>) -> MutexGuard<'_, IdleConnections> {
    idle.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes connections that are idle for too long, until there is none.
async fn watch(pool: Weak<Mutex<IdleConnections>>) {
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        let mut idle = lock(&pool);
        idle.connections.retain(is_usable);
        if idle.connections.is_empty() {
            idle.is_watched = false;
            return;
        }
    }
}

/// The body of a response. At its end, the connection is free for the next request.
#[derive(Debug)]
pub struct PooledBody {
    inner: Incoming,
    /// `None` once it is free.
    connection: Option<SendRequest<ResponseBody>>,
    /// Where it goes then; nowhere if it must be closed.
    pool: Weak<Mutex<IdleConnections>>,
    /// How long it may be idle there.
    idle: Duration,
}

impl PooledBody {
    fn release_at_end(&mut self) {
        if self.inner.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        let (Some(connection), Some(pool)) = (self.connection.take(), self.pool.upgrade()) else {
            return;
        };
        let mut idle = lock(&pool);
        idle.connections
            .push((connection, Instant::now() + self.idle));
        if !idle.is_watched {
            idle.is_watched = true;
            tokio::spawn(watch(self.pool.clone()));
        }
    }
}

impl Body for PooledBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        match &frame {
            Some(Ok(_)) => self.release_at_end(),
            Some(Err(_)) => self.connection = None,
            None => self.release(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;
