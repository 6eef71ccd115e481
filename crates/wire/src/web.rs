//! An HTTP server on loopback, for proxies, model servers and [`crate::site`].
//!
//! Its main type is [`Web`]. Dropping its handle ends it and every exchange. If a client
//! disconnects, its handler is dropped at the next await, but it always starts.
//!
//! The server is compiled once, in this crate, which is built for speed: handlers are boxed, and so are the futures that
//! start servers.

mod begun;
mod flushed_body;
mod slow_client;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use self::begun::HandlerTask;
use self::flushed_body::FlushedBody;
use self::slow_client::ImpatientStream;
use crate::worker::BoxedFuture;

/// The answer to a connection over the limit.
const TOO_MANY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\n\
    connection: close\r\n\r\ntoo many connections; close some and try again\n";
/// How long the listener pauses after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);

/// A response body, complete or streamed.
pub type ResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, ConnectionAbort>;
/// A request whose body may still be arriving.
pub type IncomingRequest = http::Request<Incoming>;
pub type OutgoingResponse = http::Response<ResponseBody>;

/// Answers requests.
type Handler = Arc<dyn Fn(IncomingRequest) -> BoxedFuture<'static, Answer> + Send + Sync>;
type Answer = Result<OutgoingResponse, ConnectionAbort>;

/// The local address at which a request arrived, as a request extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

/// Aborts an exchange: the connection is closed without a response.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionAbort(pub String);

/// What clients may use of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLimits {
    /// The number of connections at a time; a further one gets an error.
    pub connections: usize,
    /// How long reading the head of a request may take.
    pub head: Duration,
    /// How long a client may leave a response unread.
    pub unread: Option<Duration>,
}

impl Default for WebLimits {
    /// For programs under test, whose pace is part of the test.
    fn default() -> Self {
        Self {
            connections: usize::MAX,
            head: Duration::from_secs(30),
            unread: None,
        }
    }
}

/// A server that runs until this is dropped.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Web {
    /// Serves on a loopback port; 0 picks a free port. Must be called within a tokio runtime.
    pub async fn start<S, F>(port: u16, serve: S) -> io::Result<Self>
    where
        S: Fn(IncomingRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        Self::limited(port, WebLimits::default(), serve).await
    }

    /// Like [`Web::start`], with limits.
    pub async fn limited<S, F>(port: u16, limits: WebLimits, serve: S) -> io::Result<Self>
    where
        S: Fn(IncomingRequest) -> F + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let serve: Handler = Arc::new(move |request| Box::pin(serve(request)));
        Self::listen(port, limits, serve).await
    }

    fn listen(
        port: u16,
        limits: WebLimits,
        serve: Handler,
    ) -> BoxedFuture<'static, io::Result<Self>> {
        Box::pin(async move {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
            let address = listener.local_addr()?;
            let (stop, stopped) = oneshot::channel();
            let accepting = tokio::spawn(accept(listener, limits, serve, stopped));
            Ok(Self {
                address,
                accepting,
                stop: Some(stop),
            })
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every exchange, and waits until all have ended.
    pub(crate) async fn close(mut self) {
        // The receiver is already gone if the listener has ended.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    limits: WebLimits,
    serve: Handler,
    mut stopped: oneshot::Receiver<()>,
) {
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                // The reply fits into the empty buffer of the socket; a client that is gone needs none.
                Ok((stream, _)) if connections.len() >= limits.connections => {
                    let _ = stream.try_write(TOO_MANY.as_bytes());
                }
                Ok((stream, _)) => {
                    drop(connections.spawn(converse(stream, limits, serve.clone())));
                }
                // Most likely out of descriptors; some will become free.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => return connections.shutdown().await,
        }
    }
}

async fn converse(stream: TcpStream, limits: WebLimits, serve: Handler) {
    // Small messages must not wait to be combined; without this they are only slower.
    let _ = stream.set_nodelay(true);
    let address = stream.local_addr().ok().map(ListenAddress);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .preserve_header_case(true)
        // A forwarded response has the server's own date, or none.
        .auto_date_header(false)
        .serve_connection(
            TokioIo::new(ImpatientStream::new(stream, limits.unread)),
            service_fn(move |mut request: IncomingRequest| {
                if let Some(address) = address {
                    request.extensions_mut().insert(address);
                }
                let handler = HandlerTask::new(serve(request));
                async { Ok::<_, ConnectionAbort>(handler.await?.map(FlushedBody::new)) }
            }),
        );
    // The client or the handler caused the end, and the handler has reported it.
    let _ = connection.await;
}

/// Returns a complete response.
pub fn whole(
    status: http::StatusCode,
    kind: &'static str,
    body: impl Into<Bytes>,
) -> OutgoingResponse {
    let body = Full::new(body.into()).map_err(|never| match never {});
    let mut response = http::Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    let kind = http::HeaderValue::from_static(kind);
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, kind);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn hello(_: IncomingRequest) -> Result<OutgoingResponse, ConnectionAbort> {
        Ok(whole(http::StatusCode::OK, "text/plain", "hello"))
    }

    /// Waits for a response: the server notices in its own time that a connection ended.
    async fn accepted(web: &Web) {
        let client = crate::http_client::client().unwrap();
        let url = format!("http://{}/", web.address());
        let is_success = |got: reqwest::Response| got.status().is_success();
        while !client.get(&url).send().await.is_ok_and(is_success) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_server_runs_until_it_is_dropped() {
        let web = Web::start(0, hello).await.unwrap();
        let url = format!("http://{}/", web.address());
        assert!(web.address().ip().is_loopback());
        let client = crate::http_client::client().unwrap();
        let text = client.get(&url).send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "hello");
        drop(web);
        tokio::task::yield_now().await;
        assert!(client.get(&url).send().await.is_err());
    }

    #[tokio::test]
    async fn a_connection_over_the_limit_gets_an_error_until_another_one_ends() {
        use tokio::io::AsyncReadExt;
        let limits = WebLimits {
            connections: 2,
            ..WebLimits::default()
        };
        let web = Web::limited(0, limits, hello).await.unwrap();
        let open = async || TcpStream::connect(web.address()).await.unwrap();
        let (first, _second, mut third) = (open().await, open().await, open().await);
        let mut text = String::new();
        third.read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
        assert!(text.ends_with("too many connections; close some and try again\n"));
        drop(first);
        accepted(&web).await;
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected() {
        use tokio::io::AsyncWriteExt;
        let limits = WebLimits {
            connections: 1,
            unread: Some(Duration::from_millis(50)),
            ..WebLimits::default()
        };
        let large = Bytes::from(vec![b'x'; 64 * 1024 * 1024]);
        let web = Web::limited(0, limits, move |_| {
            let body = large.clone();
            async { Ok(whole(http::StatusCode::OK, "text/plain", body)) }
        })
        .await
        .unwrap();
        let mut slow = TcpStream::connect(web.address()).await.unwrap();
        slow.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        slow.readable().await.unwrap();
        // The only place becomes free although the client neither reads nor leaves.
        accepted(&web).await;
    }

    #[tokio::test]
    async fn a_handler_can_close_the_connection_without_a_response() {
        let web = Web::start(0, async |_| Err(ConnectionAbort("gone".to_owned())))
            .await
            .unwrap();
        let client = crate::http_client::client().unwrap();
        let got = client
            .get(format!("http://{}/", web.address()))
            .send()
            .await;
        assert!(got.is_err());
    }
}
