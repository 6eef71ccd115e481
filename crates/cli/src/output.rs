//! Writes to stdout and stderr. No other module prints.

use std::io::{self, Write};

use proctor_core::printable::printable;
use proctor_core::redact::Redactor;
use serde::Serialize;

use crate::args::ColorArg;

/// Sets whether stdout and stderr have colours. By default they have if they are terminals, `NO_COLOR` is not
/// set and the terminal supports them, or if `CLICOLOR_FORCE` is set.
pub(crate) fn set_colours(when: ColorArg) {
    let choice = match when {
        ColorArg::Auto => anstream::ColorChoice::Auto,
        ColorArg::Always => anstream::ColorChoice::Always,
        ColorArg::Never => anstream::ColorChoice::Never,
    };
    choice.write_global();
}

/// Writes a result to stdout.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a result as one JSON document to stdout.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    result(&proctor_core::json::spelled(&text))
}

/// Writes a message to stderr. A closed stderr is not an error: there is no other place to report it.
#[expect(
    clippy::unnecessary_wraps,
    reason = "callers handle results and messages alike"
)]
pub(crate) fn message(text: &str) -> anyhow::Result<()> {
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
    Ok(())
}

/// Writes an error with its causes to stderr.
pub(crate) fn error(error: &anyhow::Error, redactor: &Redactor) {
    let shown = |text: String| printable(&redactor.text(&text)).into_owned();
    let mut text = format!("error: {}\n", shown(error.to_string()));
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  caused by: {}\n", shown(cause.to_string())));
    }
    // If stderr is closed, there is no other place to report it.
    let _ = message(&text);
}

/// The message for a panic, redacted: a panic may quote data with secrets.
pub(crate) fn bug(what: &str, redactor: &Redactor) -> String {
    let what = printable_lines(&redactor.text(what));
    format!("error: this is a bug in Proctor: {what}\n")
}

/// Escapes each line of a text from outside.
pub(crate) fn printable_lines(text: &str) -> String {
    let in_ci = ["GITHUB_ACTIONS", "TF_BUILD"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    lines(text, in_ci)
}

/// Escapes lines; in the log of a CI service, also lines that would be commands to it.
fn lines(text: &str, in_ci: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        let start = line.trim_start();
        if in_ci && (start.starts_with("::") || start.starts_with("##[")) {
            out.push('\\');
        }
        out.push_str(&printable(line.strip_suffix('\r').unwrap_or(line)));
        out.push_str(end);
    }
    out
}

/// Whether the reader of stdout closed the pipe.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_gives_no_secret_away() {
        let secret = ("KEY".to_owned(), "hunter2-hunter2".to_owned());
        let text = bug(
            "panicked at x.rs:1:2:\nno hunter2-hunter2\x1b",
            &Redactor::new([secret]),
        );
        let expected =
            "error: this is a bug in Proctor: panicked at x.rs:1:2:\nno [redacted:KEY]\\u{1b}\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_line_from_outside_is_no_command_to_a_ci_service() {
        let text = "a\n::error::x\n  ##[section]y\r\n\x1b[1m";
        assert_eq!(
            lines(text, false),
            "a\n::error::x\n  ##[section]y\n\\u{1b}[1m"
        );
        assert_eq!(
            lines(text, true),
            "a\n\\::error::x\n\\  ##[section]y\n\\u{1b}[1m"
        );
    }
}
