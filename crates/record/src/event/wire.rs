//! The events of connections to servers: opened, closed, and every message between.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ConnectionEnd, HttpFailure};

/// The number of a connection within its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ConnectionId(pub u32);

impl ConnectionId {
    /// No connection. Numbers start at 1.
    pub const NONE: Self = Self(0);
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionOpened {
    pub conn: ConnectionId,
    /// The server, by its name in the suite.
    pub server: String,
    pub actor: Actor,
    pub transport: WireKind,
    /// The command or URL, as written.
    pub target: String,
}

/// Who connects to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// An external agent, through the tap.
    Agent,
    Loop,
    /// A step of a case.
    Step,
    /// Proctor itself, before anything is run.
    Preflight,
    /// The user at the command line.
    Person,
    /// The agent, as the result file of another tool describes it. Such a file has no response times.
    Imported,
}

/// The transport of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WireKind {
    /// The stdin and stdout of a process.
    Stdio,
    Http,
    /// HTTP+SSE, the transport before streamable HTTP.
    Sse,
    /// The result file that the record was imported from does not name it.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionClosed {
    pub conn: ConnectionId,
    /// The reason as text: `exited with code 1`, `was closed`.
    pub reason: String,
    /// The end of the server's stderr.
    pub stderr: Option<String>,
    /// How it ended, as facts. Records of earlier versions don't have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<ConnectionEnd>,
}

/// A message, exactly as sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    pub conn: ConnectionId,
    /// On HTTP, the exchange that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exchange: Option<u64>,
    pub direction: Direction,
    pub body: Body,
}

/// The direction of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    ToServer,
    ToClient,
}

impl Direction {
    /// The word in a record.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ToServer => "toServer",
            Self::ToClient => "toClient",
        }
    }
}

/// The content of a message or text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Body {
    Text(String),
    /// Bytes that are not UTF-8.
    Base64(String),
    /// A file under `blobs/`, by its SHA-256.
    Blob {
        sha256: String,
        bytes: u64,
    },
    /// Too large to store.
    Cut {
        bytes: u64,
        /// The SHA-256 of the whole content.
        sha256: String,
    },
}

/// The head of an HTTP request or response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpHead {
    pub conn: ConnectionId,
    pub exchange: u64,
    /// A request goes to the server, a response to the client.
    pub direction: Direction,
    /// The method and URL of a request, or the status of a response.
    pub line: String,
    /// The headers, with secrets redacted.
    pub headers: BTreeMap<String, String>,
    /// Why the exchange ended early, if so; `line` describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<HttpFailure>,
}

impl HttpHead {
    /// The status of a response; `None` for a request, and for a line that is not a status line.
    pub fn status(&self) -> Option<u16> {
        if self.direction == Direction::ToServer || self.failure.is_some() {
            return None;
        }
        let code = self.line.split(' ').next()?;
        let is_status = code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit());
        code.parse().ok().filter(|_| is_status)
    }
}
