//! The commit and the CI job that a run belongs to.

use serde::{Deserialize, Serialize};

/// The commit and the CI job that a run belongs to, as far as files and variables show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceContext {
    /// The commit's full hash.
    pub commit: Option<String>,
    /// The branch, absent with a detached HEAD outside CI.
    pub branch: Option<String>,
    /// Whether the working folder differs from the commit; absent if unknown.
    pub dirty: Option<bool>,
    /// The URL of the pull or merge request, or its number if CI provides only that.
    pub pull_request: Option<String>,
    /// The URL of the CI job.
    pub job_url: Option<String>,
}
