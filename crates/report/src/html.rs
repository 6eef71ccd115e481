//! The HTML report: one file that opens from disk and asks the network for nothing.
//!
//! Main function: [`write()`]. The file holds the page, an index with a row for each trial, and the details of trials in
//! blocks behind it, so that the first page is drawn before the details are read. Data is deflated base64 in script
//! elements that no browser runs: no text of a record is part of the HTML.

mod assets;
mod blocks;
mod order;

use std::io::{self, Write};

use serde::Serialize;

pub use self::assets::{PageSource, document_start, policy, script, served_page, style};
use self::blocks::{deflated, encoded};
use self::order::{DetailOrder, detail_order};
use crate::page::{Overview, TrialFacts, TrialPage};
use crate::{Report, ReportError};

/// The default limit of a file in bytes: what most mail servers accept.
pub const MAX_BYTES: u64 = 25_000_000;

/// How many trials share a block. More would shrink the file by little and make a trial slower to open.
const BLOCK: usize = 32;

/// How many timeline items of a trial the file holds.
const ITEMS: usize = 500;

/// The end of the file, which tells a reader that nothing is missing.
const END: &str =
    "<script type=\"application/octet-stream\" id=\"end\"></script>\n</body>\n</html>\n";

/// What a written file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HtmlContents {
    /// The length of the file.
    pub bytes: u64,
    /// The number of trials whose details are in the file.
    pub detailed: usize,
    /// The number of trials that have details.
    pub recorded: usize,
}

/// The data of the first pages.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EmbeddedIndex<'a> {
    overview: &'a Overview,
    /// For each trial, its position among the details; `None` if it has no record.
    positions: &'a [Option<usize>],
    block_size: usize,
}

/// The data of a report about a run that did not start.
#[derive(Serialize)]
struct RefusedIndex<'a> {
    refused: RefusedRun<'a>,
}

/// Why a run did not start.
#[derive(Serialize)]
struct RefusedRun<'a> {
    name: &'a str,
    exit: u8,
    message: &'a str,
}

/// Writes the report. Details that don't fit into `max_bytes` are left out: first those of trials that passed like
/// another one, last those that did not pass. A file of a large run may exceed the limit even without details.
pub fn write(
    report: &Report<'_>,
    max_bytes: u64,
    out: &mut dyn Write,
) -> Result<HtmlContents, ReportError> {
    let mut out = CountingWriter { out, bytes: 0 };
    let overview = Overview::with_arguments(report)?;
    let facts = TrialFacts::load(report.run)?;
    let order = detail_order(report.summary, &facts);
    let index = EmbeddedIndex {
        overview: &overview,
        positions: &order.positions,
        block_size: BLOCK,
    };
    page(&mut out, &index)?;
    let detailed = details(report, &order, max_bytes, &mut out)?;
    out.write_all(END.as_bytes())?;
    Ok(HtmlContents {
        bytes: out.bytes,
        detailed,
        recorded: order.trials.len(),
    })
}

/// Writes a report about a run that did not start, so that the report of an earlier run does not stay in its place.
pub fn write_error(name: &str, exit: u8, message: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut out = CountingWriter { out, bytes: 0 };
    let refused = RefusedIndex {
        refused: RefusedRun {
            name,
            exit,
            message,
        },
    };
    page(&mut out, &refused)?;
    out.write_all(END.as_bytes())
}

/// Writes everything before the details.
fn page(out: &mut CountingWriter<'_>, index: &impl Serialize) -> io::Result<()> {
    out.write_all(document_start(PageSource::Embedded).as_bytes())?;
    data(out, "index", &deflated(index)?)?;
    out.write_all(b"<script>")?;
    out.write_all(script().as_bytes())?;
    out.write_all(b"</script>\n")
}

/// Writes the blocks that fit, and returns the number of trials in them.
fn details(
    report: &Report<'_>,
    order: &DetailOrder<'_>,
    max_bytes: u64,
    out: &mut CountingWriter<'_>,
) -> Result<usize, ReportError> {
    let mut written = 0;
    for (number, trials) in order.trials.chunks(BLOCK).enumerate() {
        let id = format!("d{number}");
        let used = out.bytes + (element_len(&id) + END.len()) as u64;
        let room = max_bytes.saturating_sub(used);
        let pages = trials
            .iter()
            .map(|trial| TrialPage::load(report, trial.case, &trial.file, 0, ITEMS));
        let block = blocks::block(pages, room)?;
        if block.trials == 0 {
            break;
        }
        data(out, &id, &block.deflated)?;
        written += block.trials;
        if block.trials < trials.len() {
            break;
        }
    }
    Ok(written)
}

/// Writes data that a browser does not run.
fn data(out: &mut CountingWriter<'_>, id: &str, deflated: &[u8]) -> io::Result<()> {
    write!(out, "{}", element_start(id))?;
    encoded(deflated, out)?;
    out.write_all(b"</script>\n")
}

fn element_start(id: &str) -> String {
    format!("<script type=\"application/octet-stream\" id=\"{id}\">")
}

fn element_len(id: &str) -> usize {
    element_start(id).len() + "</script>\n".len()
}

/// A writer that counts.
struct CountingWriter<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
