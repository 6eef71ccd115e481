//! Renders a problem: message, place, source line and hint.
//!
//! Files may contain any characters, so everything is escaped. The marks are below the escaped text.

use std::fmt::Write;

use anstyle::{AnsiColor, Style};
use proctor_core::printable::{printable, push_printable};
use proctor_record::problem::{Excerpt, Problem, Severity};
use unicode_width::UnicodeWidthStr;

const ERROR: Style = AnsiColor::BrightRed.on_default().bold();
const WARNING: Style = AnsiColor::BrightYellow.on_default().bold();
const FRAME: Style = AnsiColor::BrightBlue.on_default().bold();
const HINT: Style = AnsiColor::BrightCyan.on_default().bold();
const BOLD: Style = Style::new().bold();

/// Renders a problem with styles, which the output removes if it is not a terminal.
pub(crate) fn render(problem: &Problem) -> String {
    let (style, word) = match problem.severity {
        Severity::Error => (ERROR, "error"),
        Severity::Warning => (WARNING, "warning"),
    };
    let mut out = format!(
        "{style}{word}{style:#}{BOLD}: {}{BOLD:#}\n",
        printable(&problem.message)
    );
    // Writing to a string can't fail.
    let _ = draw_place(problem, style, &mut out);
    if let Some(hint) = &problem.hint {
        let _ = writeln!(out, "{HINT}hint{HINT:#}: {}", printable(hint));
    }
    out
}

fn draw_place(problem: &Problem, style: Style, out: &mut String) -> std::fmt::Result {
    let Some(path) = &problem.path else {
        return Ok(());
    };
    let path = path.display().to_string();
    let path = printable(&path);
    let Some(place) = &problem.place else {
        return writeln!(out, "  {FRAME}-->{FRAME:#} {path}");
    };
    let (before, marked, after) = split(place);
    let line = place.line.to_string();
    let gap = " ".repeat(line.len());
    writeln!(
        out,
        "{gap} {FRAME}-->{FRAME:#} {path}:{line}:{}",
        place.column
    )?;
    writeln!(out, "{gap} {FRAME}|{FRAME:#}")?;
    writeln!(
        out,
        "{FRAME}{line} |{FRAME:#} {}",
        format!("{before}{marked}{after}").trim_end()
    )?;
    let indent = " ".repeat(before.width());
    let marks = "^".repeat(marked.width().max(1));
    writeln!(
        out,
        "{gap} {FRAME}|{FRAME:#} {indent}{style}{marks}{style:#}"
    )
}

/// The source line, split into the part before, at and after the problem.
fn split(place: &Excerpt) -> (String, String, String) {
    let start = place.column - 1 - place.skipped;
    let end = place.end_column - 1 - place.skipped;
    let (mut before, mut marked, mut after) = (String::new(), String::new(), String::new());
    if place.skipped > 0 {
        before.push('…');
    }
    for (at, c) in (0..).zip(place.text.chars()) {
        let part = match at {
            at if at < start => &mut before,
            at if at < end => &mut marked,
            _ => &mut after,
        };
        // Four columns, as most editors show it.
        if c == '\t' {
            part.push_str("    ");
        } else {
            push_printable(part, c);
        }
    }
    (before, marked, after)
}
