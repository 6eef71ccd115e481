//! The shard that the flags and the engine assign to this process.

use anyhow::bail;
use proctor_core::shard::{self, RUN_ID_VARIABLES};
use proctor_core::suite::Environment;
use proctor_run::engine::options::ShardOption;

use crate::args::{CheckArgs, ShardArg};

/// The shard of `--shard`; `None` without the flag.
pub(super) fn option(
    args: &CheckArgs,
    environment: &Environment,
) -> anyhow::Result<Option<ShardOption>> {
    let shard = match args.shard {
        None => return Ok(None),
        Some(ShardArg::Shard(shard)) => shard,
        Some(ShardArg::Auto) => shard::detect(environment)?,
    };
    let run_id = args.run_id.clone().or_else(|| shard::run_id(environment));
    if let (None, Some(name)) = (&run_id, unusable(environment)) {
        bail!("`{name}` does not hold a usable run id; name the run with `--run-id`");
    }
    Ok(Some(ShardOption { shard, run_id }))
}

/// A variable that is set to a text which can't name a run.
fn unusable(environment: &Environment) -> Option<&'static str> {
    let is_set = |name: &&&str| {
        environment
            .get(**name)
            .is_some_and(|value| !value.is_empty())
    };
    RUN_ID_VARIABLES.iter().find(is_set).copied()
}
