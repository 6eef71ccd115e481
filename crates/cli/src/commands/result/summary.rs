//! `proctor result summary`: what needs attention in a run, from its index.

use std::env;

use proctor_core::coverage::CoverageCounter;
use proctor_core::gate::Gate;
use proctor_core::record::RunReader;
use proctor_core::summary::Summary;
use proctor_report::sheet::SheetStyle;
use proctor_report::summary::{RunSummary, document, render};

use super::run_folder;
use crate::args::{OutputFormat, SummaryArgs};
use crate::exit::Exit;
use crate::output;

/// The width if neither the terminal nor `COLUMNS` says one.
const WIDTH: usize = 100;

pub(crate) fn run(args: &SummaryArgs) -> anyhow::Result<Exit> {
    let run = RunReader::open(&run_folder(&args.run)?)?;
    let mut counter = CoverageCounter::default();
    let summary = Summary::observed(&run, |entry| counter.add(entry))?;
    let coverage = counter.finish(&run, &summary.servers)?;
    let gate = Gate::of(&summary);
    let shown = RunSummary {
        folder: run.folder(),
        summary: &summary,
        gate: &gate,
        coverage: &coverage,
    };
    match args.output.output {
        OutputFormat::Json => output::json(&document(&shown))?,
        OutputFormat::Text => output::result(&render(&shown, style(), args.all))?,
    }
    Ok(Exit::Ok)
}

/// The width and the characters of the terminal.
pub(super) fn style() -> SheetStyle {
    let columns = env::var("COLUMNS").ok();
    let columns = columns.and_then(|text| text.parse().ok());
    let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
    SheetStyle {
        width: columns.or_else(terminal).unwrap_or(WIDTH),
        colour: true,
        utf8: is_utf8(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| env::var(name).ok())),
    }
}

/// Whether the locale has UTF-8: the first of its variables that is set decides. If none is set, it has: most programs
/// in containers run so.
fn is_utf8(variables: [Option<String>; 3]) -> bool {
    let mut set = variables
        .into_iter()
        .flatten()
        .filter(|text| !text.is_empty());
    set.next().is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_of_the_locale_decides() {
        let check = |variables: [&str; 3], expected| {
            let set = variables.map(|text| Some(text.to_owned()));
            assert_eq!(is_utf8(set), expected, "{variables:?}");
        };
        check(["C", "", "en_US.UTF-8"], false);
        check(["", "C.utf8", "C"], true);
        check(["", "", "POSIX"], false);
        check(["", "", ""], true);
        assert!(is_utf8([None, None, None]));
    }
}
