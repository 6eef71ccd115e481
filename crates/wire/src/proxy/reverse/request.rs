//! A request without a response.
//!
//! Its main type is [`ProxiedRequest`]. If the client disconnects meanwhile, that is recorded.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use http::Method;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName};
use proctor_record::event::{EndedBy, HttpFailure};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use super::body::BodyKind;
use super::exchange::ProxyExchange;
use super::stream::RecordedStream;
use super::upload::{BROKEN, Upload};
use crate::proxy::upstream::UpstreamError;
use crate::web::ConnectionAbort;

/// A request that was forwarded to the server.
pub(super) struct ProxiedRequest {
    pub(super) method: Method,
    pub(super) exchange: Arc<ProxyExchange>,
    pub(super) upload: Upload,
    stream: Option<RecordedStream>,
    is_answered: bool,
}

impl ProxiedRequest {
    pub(super) fn new(
        method: &Method,
        exchange: ProxyExchange,
        stream: Option<RecordedStream>,
    ) -> Self {
        Self {
            method: method.clone(),
            exchange: Arc::new(exchange),
            upload: Upload::default(),
            stream,
            is_answered: false,
        }
    }

    /// Whether it opens an HTTP+SSE stream.
    pub(super) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// Ends the wait with a response, and returns the exchange and stream of it.
    pub(super) fn answered(
        mut self,
        endings: &RequestEndings,
    ) -> (Arc<ProxyExchange>, Option<RecordedStream>) {
        self.is_answered = true;
        // A server may answer a request without reading it.
        if self.upload.is_open() {
            let (exchange, upload) = (self.exchange.clone(), self.upload.clone());
            let closing = endings.closing();
            endings.run(async move { upload.keep(&exchange, closing).await });
        }
        (self.exchange.clone(), self.stream.take())
    }

    /// Ends the wait without a response.
    pub(super) async fn failed(
        mut self,
        error: &UpstreamError,
        endings: &RequestEndings,
    ) -> ConnectionAbort {
        self.is_answered = true;
        let (exchange, upload, stream) = (
            self.exchange.clone(),
            self.upload.clone(),
            self.stream.take(),
        );
        let unauthorized = matches!(error, UpstreamError::Unauthorized(_));
        let (error, closing) = (error.to_string(), endings.closing());
        let (tell, told) = oneshot::channel();
        // It runs to its end even if the client disconnects meanwhile.
        endings.run(async move {
            upload.keep(&exchange, closing).await;
            let nothing = Ok(Vec::new());
            let (why, by) = if unauthorized {
                exchange.failed(HttpFailure::Unauthorized, &error, &nothing);
                (error, EndedBy::Server)
            } else if upload.is_broken() {
                let why = BROKEN.to_owned();
                exchange.failed(HttpFailure::ClientLeft, &why, &nothing);
                (why, EndedBy::Client)
            } else {
                let why = format!("the server did not answer: {error}");
                exchange.failed(HttpFailure::Broken, &why, &nothing);
                exchange.finding(why.clone());
                (why, EndedBy::Server)
            };
            if let Some(stream) = stream {
                stream.close(&why, by);
            }
            // The client may be gone.
            let _ = tell.send(ConnectionAbort(why));
        });
        let gone = |_| ConnectionAbort("the proxy was closed".to_owned());
        told.await.unwrap_or_else(gone)
    }

    /// Returns the kind of the response body, by its headers.
    pub(super) fn content(&self, headers: &HeaderMap) -> BodyKind {
        let encoding = text(headers, &CONTENT_ENCODING);
        if let Some(encoding) = encoding.filter(|name| name != "identity") {
            let detail = format!("unrequested content encoding `{encoding}`");
            self.exchange.finding(detail);
            return BodyKind::message();
        }
        let kind = text(headers, &CONTENT_TYPE).unwrap_or_default();
        if kind.starts_with("text/event-stream") {
            return BodyKind::events();
        }
        // The response to a POST is a message, whatever its content type.
        let wants_message = self.method == Method::POST && self.exchange.is_streamable();
        if wants_message || kind.starts_with("application/json") {
            return BodyKind::message();
        }
        BodyKind::other()
    }
}

impl Drop for ProxiedRequest {
    fn drop(&mut self) {
        if !self.is_answered {
            let why = "the client disconnected before the response";
            self.upload.abandon(&self.exchange);
            self.exchange
                .failed(HttpFailure::ClientLeft, why, &Ok(Vec::new()));
            if let Some(stream) = self.stream.take() {
                stream.close(why, EndedBy::Client);
            }
        }
    }
}

/// The requests whose rest is being recorded.
pub(super) struct RequestEndings {
    tasks: Mutex<JoinSet<()>>,
    closing: watch::Sender<bool>,
}

impl Default for RequestEndings {
    fn default() -> Self {
        Self {
            tasks: Mutex::default(),
            closing: watch::Sender::new(false),
        }
    }
}

impl RequestEndings {
    /// Ends all of them soon, and waits for that.
    pub(super) async fn close(&self) {
        self.closing.send_replace(true);
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        while tasks.join_next().await.is_some() {}
    }

    fn closing(&self) -> watch::Receiver<bool> {
        self.closing.subscribe()
    }

    fn run(&self, ending: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(ending);
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    Some(value.trim().to_ascii_lowercase())
}
