//! An MCP client on bytes, for both eras of the protocol.
//!
//! Its main type is [`Client`]. It keeps what a server says as the server said it: a result is raw
//! JSON until somebody asks for more. One connection can serve several clients, each with a record
//! of its own.

mod calls;
mod connect;
pub(crate) mod connection;
mod lists;
mod meta;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use proctor_core::event::{Actor, FindingKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub use self::calls::CallResult;
pub use self::connect::{ConnectError, ConnectOptions};
use self::connection::{Connection, Owner};
pub use self::lists::{FullList, ListError, ListLimits};
use self::wire::{RequestWire, ResponseTimeout, WireError};
use crate::peer::{self, RequestFailure};
use crate::recorder::{ConnectionTap, Recorder};
use crate::rpc::RpcError;

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
pub struct ServerIdentity {
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

/// A connection to a server, or a share in one. Many tasks may use it at the same time.
pub struct Client {
    connection: Arc<Connection>,
    /// What the connection ends with; nothing for a share.
    owner: Option<Owner>,
    /// Where what it asks and is answered goes.
    tap: Arc<ConnectionTap>,
    /// The tools as they were last listed here.
    tools: Mutex<Option<lists::Tools>>,
    /// The changes before it was there.
    old_changes: u64,
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error.
    #[error("the server answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    /// No answer in time.
    #[error("no response within {}", proctor_core::duration::brief(*.after))]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// An answer that is too large to be taken in.
    #[error("the response is too large: {bytes} bytes")]
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
    /// The server answered with an HTTP status that is no success.
    #[error("the server answered with HTTP status {status}{}", peer::shown_body(.body))]
    Http {
        /// The status.
        status: u16,
        /// The start of the body.
        body: String,
    },
    /// The network broke, or the response ended without an answer.
    #[error("{0}")]
    Broken(String),
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
    fn new(connection: Connection) -> Self {
        let connection = Arc::new(connection);
        Self {
            tap: connection.peer.tap().clone(),
            owner: Some(Owner(connection.clone())),
            connection,
            tools: Mutex::default(),
            old_changes: 0,
        }
    }

    /// The same connection, for another record: what this handle asks and is answered goes there,
    /// and progress. What the server says unasked stays in the record of the connection, unless it
    /// says it in the response to a request of this handle; so does what comes after this handle
    /// was closed. Noise and lines that make no sense can't be attributed, and stay there too.
    ///
    /// The connection, and its process, end with the client that opened them. A share is best closed
    /// before its record ends, which then has its last words, such as a cancellation; of one that is
    /// only dropped they may be in the record of the connection.
    #[must_use]
    pub fn attach(&self, recorder: &Recorder, actor: Actor) -> Self {
        let peer = &self.connection.peer;
        Self {
            connection: self.connection.clone(),
            owner: None,
            tap: peer.attach(recorder, actor),
            tools: Mutex::default(),
            old_changes: peer.changes(),
        }
    }

    /// What the server said of itself.
    pub fn identity(&self) -> &ServerIdentity {
        &self.connection.identity
    }

    /// What was not as it should be, each sort with its first example and how often.
    pub fn findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.tap.findings()
    }

    /// What was not as it should be on the connection itself, whoever shares it.
    pub fn connection_findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.connection.peer.tap().findings()
    }

    /// Notes that the server did something that it should not.
    pub fn note(&self, kind: FindingKind, detail: impl Into<String>) {
        self.tap.finding(kind, detail);
    }

    /// How often the server said that one of its lists changed, since this client is there.
    pub fn list_changes(&self) -> u64 {
        self.connection.peer.changes() - self.old_changes
    }

    /// Asks for something.
    pub async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
    ) -> Result<Box<RawValue>, CallError> {
        let Connection {
            peer,
            link,
            identity,
            timeouts,
            ..
        } = &*self.connection;
        let wire = RequestWire {
            peer,
            link,
            tap: &self.tap,
            era: identity.era,
        };
        let headers = match identity.era {
            Era::Handshake => Vec::new(),
            Era::Stateless => meta::headers(method, &params, &self.header_arguments(&params)),
        };
        let patience = ResponseTimeout {
            idle: timeouts.request.min(timeouts.total),
            total: timeouts.total,
        };
        match wire.request(method, params, headers, patience).await {
            Ok(result) => Ok(result),
            Err(WireError::Failed(failure)) => Err(failure.into()),
            Err(WireError::TimedOut(after)) => Err(CallError::TimedOut { after }),
            Err(WireError::Gone) => {
                let (how, stderr) = self.connection.farewell().await;
                Err(CallError::Gone { how, stderr })
            }
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

    /// Ends the connection, and the process with it. A share ends for itself alone.
    pub async fn close(self) {
        match &self.owner {
            Some(Owner(connection)) => connection.close().await,
            None => self.connection.leave(&self.tap).await,
        }
    }
}

impl From<RequestFailure> for CallError {
    fn from(failure: RequestFailure) -> Self {
        match failure {
            RequestFailure::Rpc(error) => Self::Rpc(error),
            RequestFailure::TooLarge { bytes } => Self::TooLarge { bytes },
            RequestFailure::Http { status, body } => Self::Http { status, body },
            other @ (RequestFailure::NoAnswer { .. } | RequestFailure::Broken(_)) => {
                Self::Broken(other.to_string())
            }
        }
    }
}
