//! Serves a script as a model over HTTP, so that clients of real providers can run on rules.
//!
//! The main type is [`ModelServer`]. It supports all [formats](super::wire::WireFormat) and stores
//! no conversation: each request holds its whole history, so concurrent conversations and side
//! calls don't affect each other.

mod answer;
mod fault;
mod metadata;
mod route;
mod sample;
mod visible;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt, Limited};
use proctor_core::script::Script;
use proctor_record::model::{ModelRequest, Reply, Usage};
use serde_json::Value;

use self::answer::ReplyBuilder;
pub(super) use self::metadata::refusal;
pub(super) use self::route::{ApiRoute, CompletionRoute};
use super::wire::WireFormat;
use proctor_wire::proxy::door::refuse_page;
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::web::{ConnectionAbort, IncomingRequest, OutgoingResponse, Web};
use proctor_wire::worker;

/// The name of the model, if the request names none.
const MODEL: &str = "scripted-1";

/// A running model server. Dropping it stops the server.
#[derive(Debug)]
pub struct ModelServer {
    web: Web,
}

/// The log entry of one request.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedRequest {
    /// The format of the request; `None` if the path belongs to no API.
    pub format: Option<WireFormat>,
    pub path: String,
    /// The number of tool results in the conversation, which shows its progress.
    pub results: usize,
    /// Whether the agent sent the request for itself, not for the task.
    pub is_side_call: bool,
    pub said: ServedReply,
    pub usage: Usage,
    /// The parsed request and its reply, if it could be parsed.
    pub exchange: Option<Box<ModelExchange>>,
}

/// A request to the model and its reply.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelExchange {
    pub request: ModelRequest,
    pub reply: Option<Reply>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedReply {
    Text(String),
    /// Calls of these tools, by the names that the agent offers.
    Calls(Vec<String>),
    /// A fault that the script simulates.
    Fault(String),
    /// Information about models, such as their list.
    About(&'static str),
    /// No reply: the request was malformed, or the script has no reply.
    Nothing(String),
}

/// The state of a server.
struct ModelServerState {
    script: Script,
    /// The number of replies so far, used only for their ids.
    replies: AtomicU64,
    watch: Box<dyn Fn(&ServedRequest) + Send + Sync>,
}

impl ModelServer {
    /// Serves a script on a loopback port; 0 means any free port. Must be called within a tokio
    /// runtime.
    pub async fn start(script: Script, port: u16) -> io::Result<Self> {
        Self::watched(script, port, |_| {}).await
    }

    /// Like [`Self::start`], and reports every request after its response.
    pub async fn watched(
        script: Script,
        port: u16,
        watch: impl Fn(&ServedRequest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let serving = Arc::new(ModelServerState {
            script,
            replies: AtomicU64::new(0),
            watch: Box::new(watch),
        });
        let serve = move |request: IncomingRequest| {
            let serving = serving.clone();
            async move { serving.serve(request).await }
        };
        Ok(Self {
            web: Web::start(port, serve).await?,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.web.address()
    }
}

impl ModelServerState {
    async fn serve(&self, request: IncomingRequest) -> Result<OutgoingResponse, ConnectionAbort> {
        if let Some(refused) = refuse_page(&request) {
            return Ok(refused);
        }
        let path = request.uri().path().to_owned();
        let route = ApiRoute::of(request.method(), request.uri());
        let (answer, mut served) = match route {
            ApiRoute::Ask(ask) => match read(request).await {
                Ok(body) => self.answering().ask(&ask, &body).await,
                Err(why) => metadata::refuse(metadata::served(ask.format), why),
            },
            ApiRoute::Count(format) => match read(request).await {
                Ok(body) => metadata::count(format, &body),
                Err(why) => metadata::refuse(metadata::served(format), why),
            },
            ApiRoute::Models(format) => metadata::models(format),
            ApiRoute::Model(format, id) => metadata::model(format, &id),
            ApiRoute::Greeting => metadata::greet(self.script.path()),
            ApiRoute::Unknown(format) => {
                let why = format!("unknown path: `{} {path}`", request.method());
                metadata::unknown(format, why)
            }
        };
        served.path = path;
        (self.watch)(&served);
        match answer {
            Some(answer) => Ok(answer),
            // It ends when the client disconnects.
            None => std::future::pending().await,
        }
    }

    fn answering(&self) -> ReplyBuilder<'_> {
        let number = self.replies.fetch_add(1, Ordering::Relaxed) + 1;
        ReplyBuilder {
            script: &self.script,
            id: format!("scripted{number}"),
        }
    }
}

/// Reads the body as JSON.
async fn read(request: IncomingRequest) -> Result<Value, String> {
    if let Some(encoding) = request.headers().get(http::header::CONTENT_ENCODING) {
        return Err(format!("unsupported content encoding {encoding:?}"));
    }
    let body = Limited::new(request.into_body(), MAX_MESSAGE)
        .collect()
        .await;
    let body = body.map_err(|error| format!("can't read the body: {error}"))?;
    worker::parse(&body.to_bytes()).map_err(|error| format!("the body is not JSON: {error}"))
}
