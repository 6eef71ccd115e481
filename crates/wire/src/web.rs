//! An HTTP server on loopback, for what stands between an agent and the world.
//!
//! Its main type is [`Web`]. It ends with its handle, and every exchange with it. A handler that is
//! still at work when its client goes away is dropped at its next await; it has begun in any case.

mod begun;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
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

/// How long the head of a request may take.
const HEAD: Duration = Duration::from_secs(30);
/// How long nobody is let in after the system refused to.
const PAUSE: Duration = Duration::from_millis(50);

/// What is said in a response: whole, or as it comes.
pub type ResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, ConnectionAbort>;
/// A request whose body may still be on its way.
pub type IncomingRequest = http::Request<Incoming>;
/// What is answered.
pub type OutgoingResponse = http::Response<ResponseBody>;

/// The address at which a request came in, as an extension of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListenAddress(pub(crate) SocketAddr);

/// An exchange can't go on: its connection is closed without another word.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConnectionAbort(pub String);

/// A server that goes on until this is dropped.
#[derive(Debug)]
pub struct Web {
    address: SocketAddr,
    accepting: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Web {
    /// Serves on a port of loopback; on one that is free, if it is 0. Must be called within a tokio
    /// runtime.
    pub async fn start<S, F>(port: u16, serve: S) -> io::Result<Self>
    where
        S: Fn(IncomingRequest) -> F + Clone + Send + 'static,
        F: Future<Output = Result<OutgoingResponse, ConnectionAbort>> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let accepting = tokio::spawn(accept(listener, serve, stopped));
        Ok(Self {
            address,
            accepting,
            stop: Some(stop),
        })
    }

    /// Where it is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends every exchange, and waits until all of them have ended.
    pub(crate) async fn close(mut self) {
        // It is gone already if nobody listens.
        let _ = self.stop.take().map(|stop| stop.send(()));
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept<S, F>(listener: TcpListener, serve: S, mut stopped: oneshot::Receiver<()>)
where
    S: Fn(IncomingRequest) -> F + Clone + Send + 'static,
    F: Future<Output = Result<OutgoingResponse, ConnectionAbort>> + Send + 'static,
{
    // Dropped with this task, and all connections with it.
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(connections.spawn(converse(stream, serve.clone()))),
                // Out of files, most likely: some will be free again.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => return connections.shutdown().await,
        }
    }
}

async fn converse<S, F>(stream: TcpStream, serve: S)
where
    S: Fn(IncomingRequest) -> F + Clone + Send + 'static,
    F: Future<Output = Result<OutgoingResponse, ConnectionAbort>> + Send + 'static,
{
    // Small messages must not wait for more to go with them; without it they are only slower.
    let _ = stream.set_nodelay(true);
    let address = stream.local_addr().ok().map(ListenAddress);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .preserve_header_case(true)
        // What is passed on has the server's own, or none.
        .auto_date_header(false)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(move |mut request: IncomingRequest| {
                if let Some(address) = address {
                    request.extensions_mut().insert(address);
                }
                HandlerTask::new(serve(request))
            }),
        );
    // How it ended is its client's own doing, or the handler's, which has told whom it concerns.
    let _ = connection.await;
}

/// A response that is whole.
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

    #[tokio::test]
    async fn it_serves_on_loopback_until_it_is_dropped() {
        let web = Web::start(0, hello).await.unwrap();
        let url = format!("http://{}/", web.address());
        assert!(web.address().ip().is_loopback());
        let client = crate::transport::http::client().unwrap();
        let text = client.get(&url).send().await.unwrap().text().await.unwrap();
        assert_eq!(text, "hello");
        drop(web);
        tokio::task::yield_now().await;
        assert!(client.get(&url).send().await.is_err());
    }

    #[tokio::test]
    async fn a_handler_can_close_the_connection_without_a_word() {
        let web = Web::start(0, async |_| Err(ConnectionAbort("gone".to_owned())))
            .await
            .unwrap();
        let client = crate::transport::http::client().unwrap();
        let got = client
            .get(format!("http://{}/", web.address()))
            .send()
            .await;
        assert!(got.is_err());
    }
}
