//! Stands in for stores in a build without the feature `store`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use proctor_core::suite::Environment;
use proctor_run::engine::options::ShardOption;
use proctor_run::engine::{PreparedRun, RunInProgress};

use crate::args::CheckArgs;

const ABSENT: &str = "this `proctor` was built without stores (the cargo feature `store`)";

/// Has no values: there is no store to open.
pub(super) enum ShardStore {}

pub(super) enum ShardUploads {}

impl ShardStore {
    pub(super) fn open(
        args: &CheckArgs,
        _: Option<&ShardOption>,
        _: &Environment,
    ) -> anyhow::Result<Option<Self>> {
        match args.store {
            Some(_) => bail!(ABSENT),
            None => Ok(None),
        }
    }

    pub(super) fn restore(&mut self, _: &mut PreparedRun) -> anyhow::Result<()> {
        match *self {}
    }

    pub(super) fn start(self, _: &mut RunInProgress) -> anyhow::Result<ShardUploads> {
        match self {}
    }
}

impl ShardUploads {
    pub(super) fn finish(self) -> bool {
        match self {}
    }
}

/// The URL of a run in a store, if that is what the user named.
pub(super) fn url(named: &Path) -> Option<&str> {
    let text = named.to_str()?;
    text.contains("://").then_some(text)
}

pub(super) fn fetch(_: &str) -> anyhow::Result<Vec<PathBuf>> {
    bail!(ABSENT)
}
