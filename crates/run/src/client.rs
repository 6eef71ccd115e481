//! An MCP client on bytes, for both eras of the protocol.
//!
//! Its main type is [`Client`]. It keeps what a server says as the server said it: a result is raw
//! JSON until somebody asks for more.

pub mod answers;
mod calls;
mod connect;
mod lists;
mod meta;
pub(crate) mod peer;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::event::FindingKind;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio::time::Instant;

pub use self::calls::CallResult;
pub use self::connect::{ConnectError, ConnectOptions};
pub use self::lists::{Caps, ListError, Listed};
use self::peer::{Ended, Failure, Peer, Waiting};
use crate::process::Process;
use crate::rpc::{self, RpcError};
use crate::transport::{Labels, Link};

/// Which of the two forms of the protocol a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// `initialize` first; up to 2025-11-25.
    Handshake,
    /// Every request stands alone; 2026-07-28.
    Stateless,
}

impl Era {
    /// The era in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Stateless => "stateless",
        }
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the start of a server until it has said what it is.
    pub connect: Duration,
    /// For the answer to `server/discover`, which older servers may not give.
    pub probe: Duration,
    /// For an answer, counted again whenever the server reports progress.
    pub request: Duration,
    /// For an answer, whatever the server reports.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_mins(1),
            probe: Duration::from_secs(10),
            request: Duration::from_mins(1),
            total: Duration::from_mins(10),
        }
    }
}

/// What a server said of itself.
#[derive(Debug, Clone)]
pub struct Identity {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The version of the protocol that is spoken.
    pub protocol: String,
    /// The era that this version belongs to.
    pub era: Era,
    /// What it can do, unknown things included.
    pub capabilities: Map<String, Value>,
    /// What it tells models about itself.
    pub instructions: Option<String>,
    /// The answer that all of this was in, untouched.
    pub raw: Box<RawValue>,
}

/// A connection to a server.
pub struct Client {
    peer: Arc<Peer>,
    link: Link,
    /// Held while the connection lasts, so that the process does.
    process: tokio::sync::Mutex<Option<Process>>,
    identity: Identity,
    timeouts: Timeouts,
    /// The tools as they were last listed.
    tools: Mutex<Option<lists::Tools>>,
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error.
    #[error("the server answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    /// No answer in time.
    #[error("no answer within {}", proctor_core::duration::brief(*.after))]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// An answer that is too large to be taken in.
    #[error("the answer is larger than is taken in: {bytes} bytes")]
    TooLarge {
        /// Its length.
        bytes: u64,
    },
    /// The server is gone.
    #[error("{how}{}", stderr_part(.stderr))]
    Gone {
        /// How it went.
        how: String,
        /// The end of what it wrote to its stderr.
        stderr: String,
    },
    /// The network, or HTTP, refused.
    #[error("{0}")]
    Refused(String),
    /// An answer that makes no sense.
    #[error("{0}")]
    Nonsense(String),
}

fn stderr_part(stderr: &str) -> String {
    match stderr.trim_end() {
        "" => String::new(),
        text => format!("; the end of its stderr:\n{text}"),
    }
}

impl Client {
    /// What the server said of itself.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What was not as it should be, each sort with its last example and how often.
    pub fn findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.peer.tap().findings()
    }

    /// How often the server said that one of its lists changed.
    pub fn list_changes(&self) -> u64 {
        self.peer.changes()
    }

    /// Asks for something.
    pub async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Box<RawValue>, CallError> {
        let wire = Wire {
            peer: &self.peer,
            link: &self.link,
            era: self.identity.era,
        };
        let headers = match self.identity.era {
            Era::Handshake => Vec::new(),
            Era::Stateless => meta::headers(method, &params, &self.header_arguments(&params)),
        };
        let patience = Patience {
            idle: self.timeouts.request.min(self.timeouts.total),
            total: self.timeouts.total,
        };
        match wire.request(method, params, headers, patience).await {
            Ok(result) => Ok(result),
            Err(WireError::Failed(failure)) => Err(failure.into()),
            Err(WireError::TimedOut(after)) => Err(CallError::TimedOut { after }),
            Err(WireError::Gone) => Err(self.gone().await),
        }
    }

    fn header_arguments(&self, params: &Map<String, Value>) -> Vec<meta::HeaderArgument> {
        let tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let tool = params.get("name").and_then(Value::as_str).unwrap_or("");
        let listed = tools.as_ref().and_then(|tools| tools.get(tool));
        listed
            .map(|tool| tool.header_arguments.clone())
            .unwrap_or_default()
    }

    /// How the server went, with what it wrote before.
    async fn gone(&self) -> CallError {
        let mut process = self.process.lock().await;
        let (how, stderr) = connect::farewell(process.as_mut(), &self.peer).await;
        CallError::Gone { how, stderr }
    }

    /// Ends the connection, and the process with it.
    pub async fn close(self) {
        let Self {
            peer,
            link,
            process,
            ..
        } = self;
        connect::close(peer, link, process.into_inner()).await;
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Rpc(error) => Self::Rpc(error),
            Failure::TooLarge { bytes } => Self::TooLarge { bytes },
            other => Self::Refused(other.to_string()),
        }
    }
}

/// What is needed to make a request, before there is a client and after.
struct Wire<'a> {
    peer: &'a Arc<Peer>,
    link: &'a Link,
    era: Era,
}

/// How long an answer is waited for.
#[derive(Clone, Copy)]
struct Patience {
    /// Without a word of progress.
    idle: Duration,
    /// In all.
    total: Duration,
}

enum WireError {
    Failed(Failure),
    TimedOut(Duration),
    Gone,
}

impl Wire<'_> {
    async fn request(
        &self,
        method: &str,
        mut params: Map<String, Value>,
        headers: Vec<(String, String)>,
        patience: Patience,
    ) -> Result<Box<RawValue>, WireError> {
        if self.peer.ended().is_some() {
            return Err(WireError::Gone);
        }
        let waiting = self.peer.expect();
        let id = waiting.id;
        let capabilities = self.peer.answers().capabilities();
        meta::add(&mut params, self.era, id, capabilities);
        let params = to_raw_value(&params).ok();
        let message = rpc::request(id, method, params.as_deref());
        let labels = Labels {
            id: Some(id),
            headers,
        };
        let mut flight = Flight {
            wire: self,
            id,
            exchange: None,
            // A request that opens a connection can't be cancelled.
            cancellable: !["initialize", "server/discover"].contains(&method),
        };
        match self.link.send(self.peer, message, &labels).await {
            Ok(exchange) => flight.exchange = exchange,
            Err(_) => return Err(WireError::Gone),
        }
        let outcome = wait(waiting, patience).await;
        if !matches!(outcome, Err(WireError::TimedOut(_))) {
            flight.cancellable = false;
        }
        outcome
    }
}

async fn wait(
    mut waiting: Waiting,
    Patience {
        idle: patience,
        total,
    }: Patience,
) -> Result<Box<RawValue>, WireError> {
    let started = Instant::now();
    let mut idle = started + patience;
    loop {
        tokio::select! {
            biased;
            answer = &mut waiting.answer => {
                return match answer {
                    Ok(Ok(result)) => Ok(result),
                    Ok(Err(failure)) => Err(WireError::Failed(failure)),
                    Err(_) => Err(WireError::Gone),
                };
            }
            Ok(()) = waiting.progress.changed() => {
                idle = *waiting.progress.borrow() + patience;
            }
            () = tokio::time::sleep_until(idle.min(started + total)) => {
                return Err(WireError::TimedOut(started.elapsed()));
            }
        }
    }
}

/// A request on its way. Whoever stops to wait, for whatever reason, tells the server.
struct Flight<'a> {
    wire: &'a Wire<'a>,
    id: u64,
    exchange: Option<JoinHandle<()>>,
    cancellable: bool,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let Self { wire, id, .. } = *self;
        wire.peer.give_up(id);
        // Closing the exchange is how the stateless era cancels.
        if let Some(exchange) = &self.exchange {
            exchange.abort();
        }
        let told = matches!(wire.link, Link::Http(_)) && wire.era == Era::Stateless;
        if self.cancellable && !told {
            let params = format!(r#"{{"requestId":{id},"reason":"no answer in time"}}"#);
            let params = RawValue::from_string(params).ok();
            let message = rpc::notification("notifications/cancelled", params.as_deref());
            wire.link.send_soon(wire.peer, message);
        }
    }
}

/// Why the connection ended, in words.
fn ending(ended: Option<Ended>) -> String {
    match ended {
        Some(Ended::Stuck) => "the server does not read what it is sent".to_owned(),
        Some(Ended::Broken(why)) => format!("the connection broke: {why}"),
        Some(Ended::Closed) | None => "the server closed the connection".to_owned(),
    }
}
