//! What changed about a server since its surface lock was written.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a change affects clients and models that know the earlier surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChangeClass {
    /// Everything that worked before still works.
    Safe,
    /// A person should look at it: a model reads it, or Proctor can't prove that it is safe.
    Review,
    /// Something that worked before no longer works.
    Breaking,
}

impl ChangeClass {
    pub const ALL: [Self; 3] = [Self::Breaking, Self::Review, Self::Safe];

    pub fn word(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Review => "review",
            Self::Breaking => "breaking",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

/// One change of a surface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurfaceChange {
    pub class: ChangeClass,
    /// The changed part, such as `tools/git_log/arguments/max_count`.
    pub place: String,
    /// The change as a sentence.
    pub message: String,
    /// For a schema that accepts less: a value that was valid and no longer is. For an output schema: a
    /// result that is valid now and was not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<Value>,
}

/// A server was compared with its surface lock. In `run.jsonl`, after the server's `ServerSeen`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SurfaceCompared {
    /// The server, by its name in the suite.
    pub server: String,
    /// The SHA-256 of the lock file.
    pub lock_digest: String,
    pub changes: Vec<SurfaceChange>,
}
