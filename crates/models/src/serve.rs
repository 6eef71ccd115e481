//! A script as a model on the network: what asks real providers can be run on rules instead.
//!
//! Its main type is [`ModelServer`]. It speaks all [formats](super::wire::Format), and keeps nothing
//! of a conversation: how far it has come is told by the question, so that several at once, and
//! questions that an agent asks for itself, do not disturb each other.

mod about;
mod answer;
mod fault;
mod heard;
mod route;
mod sample;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::{BodyExt, Limited};
use proctor_core::model::{ModelRequest, Reply, Usage};
use proctor_core::script::Script;
use serde_json::Value;

pub(super) use self::about::refusal;
use self::answer::ReplyBuilder;
pub(super) use self::route::{ApiRoute, CompletionRoute};
use super::wire::WireFormat;
use proctor_wire::proxy::door::refuse_page;
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::web::{ConnectionAbort, IncomingRequest, OutgoingResponse, Web};
use proctor_wire::worker;

/// The name of the model, where nobody asks for one by name.
const MODEL: &str = "scripted-1";

/// A script that is served until this is dropped.
#[derive(Debug)]
pub struct ModelServer {
    web: Web,
}

/// A question that was answered, for whoever watches.
#[derive(Debug, Clone, PartialEq)]
pub struct ServedRequest {
    /// In whose words it was asked; `None` if it was no question.
    pub format: Option<WireFormat>,
    /// The path.
    pub path: String,
    /// How many tool results the conversation held: how far it had come.
    pub results: usize,
    /// Whether the agent asked for itself, and not for the task.
    pub is_side_call: bool,
    /// What it got.
    pub said: ServedReply,
    /// What that took.
    pub usage: Usage,
    /// All of it, if it was a question that was understood.
    pub exchange: Option<Box<ModelExchange>>,
}

/// A question to the model, and what it replied.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelExchange {
    /// The question.
    pub request: ModelRequest,
    /// The reply, if there was one.
    pub reply: Option<Reply>,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServedReply {
    /// A text.
    Text(String),
    /// Calls of these tools, by the names on offer.
    Calls(Vec<String>),
    /// A fault that the script asks for.
    Fault(String),
    /// Something about models, such as their list.
    About(&'static str),
    /// Nothing: it was not understood, or the script has no answer to it.
    Nothing(String),
}

/// What a server needs to answer.
struct ModelServerState {
    script: Script,
    /// How many replies there were. They need names of their own, and nothing else depends on it.
    replies: AtomicU64,
    watch: Box<dyn Fn(&ServedRequest) + Send + Sync>,
}

impl ModelServer {
    /// Serves a script on a port of loopback, or on one that is free if it is 0. Must be called
    /// within a tokio runtime.
    pub async fn start(script: Script, port: u16) -> io::Result<Self> {
        Self::watched(script, port, |_| {}).await
    }

    /// The same, and tells of every question once it is answered.
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

    /// Where it is.
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
                Err(why) => about::refuse(about::served(ask.format), why),
            },
            ApiRoute::Count(format) => match read(request).await {
                Ok(body) => about::count(format, &body),
                Err(why) => about::refuse(about::served(format), why),
            },
            ApiRoute::Models(format) => about::models(format),
            ApiRoute::Model(format, id) => about::model(format, &id),
            ApiRoute::Greeting => about::greet(self.script.path()),
            ApiRoute::Unknown(format) => {
                let why = format!("`{} {path}` is not served", request.method());
                about::unknown(format, why)
            }
        };
        served.path = path;
        (self.watch)(&served);
        match answer {
            Some(answer) => Ok(answer),
            // It ends when the client has enough.
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

/// The body as JSON.
async fn read(request: IncomingRequest) -> Result<Value, String> {
    if let Some(encoding) = request.headers().get(http::header::CONTENT_ENCODING) {
        return Err(format!("a body in the encoding {encoding:?} can't be read"));
    }
    let body = Limited::new(request.into_body(), MAX_MESSAGE)
        .collect()
        .await;
    let body = body.map_err(|error| format!("the body can't be read: {error}"))?;
    worker::parse(&body.to_bytes()).map_err(|error| format!("the body is no JSON: {error}"))
}
