//! How connections, HTTP exchanges and the folders of trials end, as facts from which verdicts are derived.
//!
//! The main type is [`ConnectionEnd`]. The texts next to these facts are for people only.

use serde::{Deserialize, Serialize};

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionEnd {
    /// Who ended it, as far as Proctor saw: both sides may leave at the same time.
    pub by: EndedBy,
    /// How the server's process ended; absent if Proctor did not start one for this connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessEnd>,
    /// Whether Proctor sent the process a signal before it ended. Closing its stdin doesn't count.
    #[serde(default, skip_serializing_if = "is_false")]
    pub signalled: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes by reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

impl ConnectionEnd {
    /// An end without a process.
    pub fn by(by: EndedBy) -> Self {
        Self {
            by,
            process: None,
            signalled: false,
        }
    }

    /// How the process ended, if it did so before Proctor sent it a signal.
    pub fn own_end(&self) -> Option<ProcessEnd> {
        self.process.filter(|_| !self.signalled)
    }
}

/// Who ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EndedBy {
    /// The server exited, closed its stdout, or broke the connection.
    Server,
    /// The client closed its side or disconnected.
    Client,
    Proctor,
}

/// How a server's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
    /// The system did not report how.
    Unknown,
}

impl std::fmt::Display for ProcessEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exited with code {code}"),
            Self::Signalled(signal) => write!(f, "was killed by signal {signal}"),
            Self::Unknown => f.write_str("ended for an unknown reason"),
        }
    }
}

/// Why an HTTP exchange ended before its response was complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HttpFailure {
    /// The server could not be reached, or the connection broke.
    Broken,
    /// The client's timeout expired.
    TimedOut,
    /// The client disconnected before the response was complete.
    ClientLeft,
    /// Proctor could not get a token that the server accepts.
    Unauthorized,
}

/// The folder of a trial, at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialFolder {
    /// The absolute path on the machine of the run.
    pub path: String,
    /// Whether the folder was left in place. It may have been removed since.
    pub kept: bool,
    /// Why Proctor could not remove it, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
