//! An MCP client on bytes, for both eras of the protocol.
//!
//! Its main type is [`Client`]. A result stays raw JSON until a caller parses it, so the client
//! keeps it exactly as the server sent it. Several clients can share one connection, each with its
//! own record.

mod calls;
mod connect;
pub(crate) mod connection;
mod lists;
mod meta;
mod surface;
mod wire;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proctor_record::event::{Actor, FindingKind};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::watch;

pub use self::calls::CallResult;
pub use self::connect::{ConnectError, ConnectOptions};
use self::connection::{Connection, Owner};
pub use self::lists::{FullList, ListError, ListLimits};
use self::wire::{RequestWire, ResponseTimeout, WireError};
use crate::answers::ServerRequestReplies;
use crate::peer::{self, RequestFailure};
use crate::recorder::{ConnectionTap, Recorder};
use crate::rpc::RpcError;

/// One of the two forms of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// The client sends `initialize` first; protocol versions up to 2025-11-25.
    Handshake,
    /// Every request is self-contained; protocol version 2026-07-28.
    Stateless,
}

impl Era {
    pub fn word(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::Stateless => "stateless",
        }
    }
}

/// The time limits of a client.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// From the start of a server until it has introduced itself.
    pub connect: Duration,
    /// For the response to `server/discover`, which older servers may not send.
    pub probe: Duration,
    /// For a response; each progress notification restarts it.
    pub request: Duration,
    /// For a response, regardless of progress.
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

/// A server's description of itself.
#[derive(Debug, Clone)]
pub struct ServerIdentity {
    pub name: Option<String>,
    pub version: Option<String>,
    /// The negotiated protocol version.
    pub protocol: String,
    /// The era of the protocol version.
    pub era: Era,
    /// All declared capabilities, including unknown ones.
    pub capabilities: Map<String, Value>,
    /// The instructions that the server gives to models.
    pub instructions: Option<String>,
    /// The unmodified result of the handshake.
    pub raw: Box<RawValue>,
}

/// A connection to a server, or a share of one. Several tasks can use it at the same time.
pub struct Client {
    connection: Arc<Connection>,
    /// Closes the connection when dropped; `None` for a share.
    owner: Option<Owner>,
    /// Records the requests and responses of this client.
    tap: Arc<ConnectionTap>,
    /// The tools of the last `tools/list`.
    tools: Mutex<Option<Arc<lists::ListedTools>>>,
    /// The number of list changes before this client was attached.
    old_changes: u64,
}

/// Why a request has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    /// The server answered with a JSON-RPC error.
    #[error("the server answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    /// The server did not respond in time.
    #[error("no response within {}", proctor_record::duration::brief(*.after))]
    TimedOut {
        /// The time limit that was exceeded.
        after: Duration,
    },
    /// The response exceeds the size limit.
    #[error("the response is too large: {bytes} bytes")]
    TooLarge { bytes: u64 },
    /// The server has ended or closed the connection.
    #[error("{how}{}", stderr_part(.stderr))]
    Gone {
        /// How the server ended.
        how: String,
        /// The last lines of its stderr.
        stderr: String,
    },
    /// The server answered with an HTTP error status.
    #[error("the server answered with HTTP status {status}{}", peer::shown_body(.body))]
    Http {
        status: u16,
        /// The start of the response body.
        body: String,
    },
    /// There is no token that the server accepts.
    #[error("{0}")]
    Unauthorized(String),
    /// The network failed, or the response ended without an answer.
    #[error("{0}")]
    Broken(String),
    /// The response is malformed.
    #[error("{0}")]
    Malformed(String),
    /// The server requested input that the suite refuses.
    #[error("{0}")]
    InputRefused(String),
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

    /// Attaches another record to the same connection. Requests of the new handle, their responses
    /// and progress go into that record. Messages that the server sends on its own stay in the
    /// record of the connection, unless they are part of the response to a request of this handle;
    /// so do messages that arrive after this handle is closed. Noise and malformed lines can't be
    /// attributed, and stay there too.
    ///
    /// The connection and its process end with the client that opened them. Close a share before
    /// its record ends, so that its last messages, such as a cancellation, are in its own record.
    /// If a share is only dropped, they may go into the record of the connection.
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

    pub fn identity(&self) -> &ServerIdentity {
        &self.connection.identity
    }

    /// Returns the findings, each kind with its first example and its count.
    pub fn findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.tap.findings()
    }

    /// Returns the findings of the connection itself, without those of shares.
    pub fn connection_findings(&self) -> Vec<(FindingKind, String, u64)> {
        self.connection.peer.tap().findings()
    }

    /// Returns the replies to the server's own requests, with what they led to.
    pub fn replies(&self) -> &ServerRequestReplies {
        self.connection.peer.answers()
    }

    /// Adds a finding about the server.
    pub fn note(&self, kind: FindingKind, detail: impl Into<String>) {
        self.tap.finding(kind, detail);
    }

    /// Returns how often the server announced a changed list since this client was attached.
    pub fn list_changes(&self) -> u64 {
        self.connection.peer.changes() - self.old_changes
    }

    /// Returns a signal each time that lists of this connection may have changed.
    pub(crate) fn change_signals(&self) -> watch::Receiver<()> {
        self.connection.peer.change_signals()
    }

    /// Sends a request and waits for its result.
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
        let tools = self.listed_tools();
        let tool = params.get("name").and_then(Value::as_str).unwrap_or("");
        let listed = tools.as_ref().and_then(|tools| tools.get(tool));
        listed
            .map(|tool| tool.header_arguments().to_vec())
            .unwrap_or_default()
    }

    /// Closes the connection, and stops its process. Closing a share leaves the connection open.
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
            RequestFailure::Unauthorized(reason) => Self::Unauthorized(reason),
            other @ (RequestFailure::NoAnswer { .. } | RequestFailure::Broken(_)) => {
                Self::Broken(other.to_string())
            }
        }
    }
}
