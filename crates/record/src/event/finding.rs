//! The protocol problems on a connection.

use serde::{Deserialize, Serialize};

use super::ConnectionId;

/// A protocol problem on a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub conn: ConnectionId,
    pub kind: FindingKind,
    pub detail: String,
    /// How often it occurred, if occurrences were counted.
    pub count: u64,
}

/// The detail of a noise finding without content; a finding with content is shown first.
pub const BLANK_LINE: &str = "a blank line";

/// The kind of a protocol problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A line on stdout that is not a message: a banner, a log line, a blank line.
    Noise,
    /// A message that is not valid JSON or JSON-RPC.
    Malformed,
    /// A message with both a result and an error.
    ResultAndError,
    /// A response whose id matches no request.
    UnknownId,
    /// A second response to the same request.
    DuplicateAnswer,
    /// A response after the request was cancelled or timed out.
    LateAnswer,
    /// A message larger than the limit.
    TooLarge,
    /// Messages that Proctor dropped because they came too fast.
    Dropped,
    /// A list that never ended, repeated itself or was too long.
    Pagination,
    /// The tools changed after they were listed.
    ToolsChanged,
    /// A result that violates the protocol in another way.
    Protocol,
    /// A rejected connection attempt.
    Refused,
    /// An implausible token count of a model, not of a server. Its connection is
    /// [`ConnectionId::NONE`].
    AbsurdUsage,
    /// A message of the client that is invalid or that servers may read differently. The server is
    /// not to blame.
    ClientMessage,
    /// A call without a JSON-RPC response.
    Unanswered,
}

impl FindingKind {
    /// Whether the server caused the finding. It is not responsible for messages of the client,
    /// rejected connections and reports of models.
    pub fn is_about_server(self) -> bool {
        match self {
            Self::Refused | Self::ClientMessage | Self::AbsurdUsage => false,
            Self::Noise
            | Self::Malformed
            | Self::ResultAndError
            | Self::UnknownId
            | Self::DuplicateAnswer
            | Self::LateAnswer
            | Self::TooLarge
            | Self::Dropped
            | Self::Pagination
            | Self::ToolsChanged
            | Self::Protocol
            | Self::Unanswered => true,
        }
    }
}
