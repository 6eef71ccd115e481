//! The shard of a run, as its plan records it.

use serde::{Deserialize, Serialize};

/// A run that several machines execute. All its shards record the same plan; only `index` differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedShard {
    /// The number of this shard, from one; absent in a merged run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u32>,
    /// The number of shards.
    pub count: u32,
    /// The name of the run that the shards belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The SHA-256 of the plan, equal for all shards of a run.
    #[serde(default)]
    pub plan_hash: String,
}
