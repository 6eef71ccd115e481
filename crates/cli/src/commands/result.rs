//! `proctor result`: recorded runs, listed, shown and converted.

mod conversation;
mod convert;
mod coverage;
mod diff;
mod export;
mod list;
mod merge;
mod regrade;
pub(super) mod source;
mod summary;
mod verify;

use std::path::{Path, PathBuf};

use proctor_core::runs;
use proctor_report::sheet::SheetStyle;
use proctor_run::engine::runs::RUNS;

use super::show;
use crate::args::ResultCommand;
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(command: &ResultCommand) -> anyhow::Result<Exit> {
    match command {
        ResultCommand::List(args) => list::run(args),
        ResultCommand::Summary(args) => summary::run(args),
        ResultCommand::Show(args) => show::run(args),
        ResultCommand::Coverage(args) => coverage::run(args),
        ResultCommand::View(args) => conversation::run(args),
        ResultCommand::Diff(args) => diff::run(args),
        ResultCommand::Verify(args) => verify::run(args),
        ResultCommand::Regrade(args) => regrade::run(args),
        ResultCommand::Export(args) => export::run(args),
        ResultCommand::Convert(args) => convert::run(args),
        ResultCommand::Merge(args) => merge::run(args),
    }
}

/// The width and the characters of the terminal.
fn sheet_style() -> SheetStyle {
    SheetStyle {
        width: output::width(),
        colour: true,
        utf8: output::is_utf8(),
    }
}

/// The folder of the run that the user named, for commands that continue a run. Commands that only read use
/// [`source::open`], which also reads packs and result files.
pub(super) fn run_folder(run: &Path) -> anyhow::Result<PathBuf> {
    Ok(runs::resolve(Path::new(RUNS), run)?)
}
