//! `proctor result export`: packs a run into one file.

use anyhow::bail;
use proctor_core::pack::{self, PackError};
use proctor_report::ReportError;

use super::super::target::Target;
use super::source;
use crate::args::ExportArgs;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<Exit> {
    let source = source::open(&args.run)?;
    let target = Target::open(&args.pack)?;
    let exists = args.pack.symlink_metadata().is_ok();
    if exists && !args.force && matches!(target, Target::File(_)) {
        bail!("`{}` exists; `--force` replaces it", args.pack.display());
    }
    target.write(|out| {
        pack::write(source.run(), out).map_err(|error| match error {
            PackError::Record(error) => ReportError::Record(error),
            PackError::Write(error) => ReportError::Write(error),
            error => ReportError::Write(std::io::Error::other(error)),
        })
    })?;
    output::message(&format!("packed into `{}`\n", args.pack.display()))?;
    Ok(Exit::Ok)
}
