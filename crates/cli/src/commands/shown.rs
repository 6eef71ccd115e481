//! Writes a report to stdout and to files, for `check` and for `result show`.

use std::io::{self, BufWriter, Write};

use proctor_record::event::RunKind;
use proctor_report::terminal::{self, TerminalStyle};
use proctor_report::{Report, ReportError, evals, html, json, junit, markdown};

use super::target::Targets;
use crate::args::ReportFormat;
use crate::output;

/// Writes the report to stdout.
pub(super) fn show(report: &Report<'_>, format: ReportFormat) -> anyhow::Result<()> {
    match format {
        ReportFormat::Json => {
            let mut out = InertJson::new(BufWriter::new(io::stdout().lock()));
            write_json(report, &mut out).map_err(flattened)?;
            out.flush()?;
        }
        ReportFormat::Text => {
            let look = TerminalStyle {
                width: output::width(),
                colour: true,
            };
            output::report(&terminal::render(report, look)?)?;
        }
        ReportFormat::Markdown => output::result(&markdown::render(report, markdown::COMMENT))?,
    }
    Ok(())
}

/// Writes the result as one JSON document.
pub(super) fn write_json(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    match report.summary.plan.kind {
        RunKind::Evals => evals::write(report, out),
        RunKind::Suite | RunKind::Imported => json::write(report, out),
    }
}

/// Writes the report as HTML, and says so if the details of trials are left out.
pub(super) fn write_html(
    report: &Report<'_>,
    max_bytes: u64,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let written = html::write(report, max_bytes, out)?;
    if written.detailed < written.recorded {
        let text = format!(
            "note: the HTML report has the details of {} of {} trials, to stay below {max_bytes} bytes\n",
            written.detailed, written.recorded,
        );
        // If stderr is closed, there is no other place for a note.
        let _ = output::message(&text);
    }
    Ok(())
}

/// Writes the files of `--out`, `--junit` and `--report`, and returns the errors.
pub(super) fn write_files(targets: &Targets, report: &Report<'_>) -> Vec<anyhow::Error> {
    let out = targets.out.as_ref();
    let out = out.map(|target| target.write(|out| write_json(report, out)));
    let junit = targets.junit.as_ref();
    let junit = junit.map(|target| target.write(|out| junit::write(report, out)));
    let html = targets.report.as_ref();
    let html = html.map(|target| target.write(|out| write_html(report, html::MAX_BYTES, out)));
    [out, junit, html]
        .into_iter()
        .flatten()
        .filter_map(Result::err)
        .collect()
}

/// A writer of JSON in which no string is a command to a CI service.
pub(super) struct InertJson<W> {
    out: W,
    /// How many number signs came last, up to two. They are written with what follows them.
    held: usize,
}

impl<W: Write> InertJson<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, held: 0 }
    }

    /// Writes the number signs before a byte. Two before a bracket would be a command.
    fn release(&mut self, next: Option<u8>) -> io::Result<()> {
        let signs: &[u8] = match (std::mem::take(&mut self.held), next) {
            (2, Some(b'[')) => b"#\\u0023",
            (2, _) => b"##",
            (1, _) => b"#",
            (_, _) => b"",
        };
        self.out.write_all(signs)
    }
}

impl<W: Write> Write for InertJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'#') {
            let (rest, is_sign) = match part {
                [rest @ .., b'#'] => (rest, true),
                rest => (rest, false),
            };
            if let Some(first) = rest.first() {
                self.release(Some(*first))?;
                self.out.write_all(rest)?;
            }
            if is_sign && self.held == 2 {
                self.out.write_all(b"#")?;
            } else if is_sign {
                self.held += 1;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.release(None)?;
        self.out.flush()
    }
}

/// The error without its wrapper, so that [`output::is_broken_pipe`] recognizes it.
pub(super) fn flattened(error: ReportError) -> anyhow::Error {
    match error {
        ReportError::Write(error) => error.into(),
        ReportError::Record(error) => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_of_a_json_document_is_a_command_to_a_ci_service() {
        let json = r####"{"a":"##[error]x","b":"###[é","c":"#","d":"##"}"####;
        for size in 1..json.len() {
            let mut out = Vec::new();
            let mut writer = InertJson::new(&mut out);
            for part in json.as_bytes().chunks(size) {
                writer.write_all(part).unwrap();
            }
            writer.flush().unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(!text.contains("##["), "{size}: {text}");
            let read: serde_json::Value = serde_json::from_str(&text).unwrap();
            let whole: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(read, whole);
        }
    }
}
