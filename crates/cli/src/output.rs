//! Writes to stdout and stderr. No other module prints.

use std::borrow::Cow;
use std::io::{self, Write};

use proctor_core::printable::printable;
use proctor_record::redact::Redactor;
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
/// The width of text if stdout is not a terminal.
const WIDTH: usize = 100;

/// Writes a result to stdout.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(inert(text, in_ci()).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a report for people to stdout.
pub(crate) fn report(text: &str) -> anyhow::Result<()> {
    result(&drawable(text))
}

/// The text with plain characters for signs of our own, if the locale has no UTF-8.
pub(crate) fn drawable(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_utf8() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(plain(text))
    }
}

/// Whether the locale has UTF-8: the first of its variables that is set decides. Without any, logs and terminals
/// show it.
pub(crate) fn is_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    has_utf8(&names.map(|name| std::env::var(name).unwrap_or_default()))
}

fn has_utf8(variables: &[String; 3]) -> bool {
    let mut set = variables.iter().filter(|value| !value.is_empty());
    set.next().is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

/// The text with plain characters for signs of our own.
fn plain(text: &str) -> String {
    let mut out = text.to_owned();
    for (sign, plain) in [
        ("…", "..."),
        ("→", "->"),
        ("×", "x"),
        ("–", "-"),
        ("−", "-"),
        ("·", "-"),
        ("≥", ">="),
        ("µ", "u"),
    ] {
        out = out.replace(sign, plain);
    }
    out
}

/// Writes a result as one JSON document to stdout.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    result(&inert_json(&proctor_record::json::spelled(&text)))
}

/// JSON in which no string is a command to a CI service. It is the same value.
pub(crate) fn inert_json(json: &str) -> String {
    // In JSON, two number signs are always part of a string.
    json.replace("##[", "#\\u0023[")
}

/// Writes commands to the CI service to stdout, as the result that the user asked for.
pub(crate) fn ci_result(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes commands to the CI service that runs this process.
pub(crate) fn ci_commands(text: &str) {
    // If stderr is closed, nobody reads the log.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Writes a message to stderr. A closed stderr is not an error: there is no other place to report it.
#[expect(
    clippy::unnecessary_wraps,
    reason = "callers handle results and messages alike"
)]
pub(crate) fn message(text: &str) -> anyhow::Result<()> {
    let text = inert(text, in_ci());
    let stderr = io::stderr();
    // At once: a stream that removes the colours writes each part between them.
    let _ = match anstream::AutoStream::choice(&stderr) {
        anstream::ColorChoice::Never => {
            let plain = anstream::adapter::strip_str(&text).to_string();
            stderr.lock().write_all(plain.as_bytes())
        }
        _ => stderr.lock().write_all(text.as_bytes()),
    };
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
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (line, ""),
        };
        out.push_str(&printable(line.strip_suffix('\r').unwrap_or(line)));
        out.push_str(end);
    }
    out
}

/// The number of columns for text: of `COLUMNS`, of the terminal, or else 100.
pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok();
    let columns = columns.and_then(|columns| columns.trim().parse().ok());
    columns.filter(|columns| *columns > 0).unwrap_or_else(|| {
        terminal_size::terminal_size().map_or(WIDTH, |(width, _)| width.0.into())
    })
}

/// Whether the output goes to the log of a CI service that takes commands from it.
fn in_ci() -> bool {
    ["GITHUB_ACTIONS", "TF_BUILD"]
        .iter()
        .any(|name| std::env::var_os(name).is_some())
}

/// Breaks everything that would be a command to a CI service: `::` at the start of a line and, as GitHub
/// takes it, `##[` anywhere.
fn inert(text: &str, in_ci: bool) -> Cow<'_, str> {
    if !in_ci || !(text.contains("::") || text.contains("##[")) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("::") {
            out.push('\\');
        }
        out.push_str(&line.replace("##[", "##\\["));
    }
    Cow::Owned(out)
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
        let text = "a\n::error::x\n  ##[section]y\nz ##[error]z ##[x]\n \t::stop-commands::t";
        assert_eq!(inert(text, false), text);
        assert_eq!(
            inert(text, true),
            "a\n\\::error::x\n  ##\\[section]y\nz ##\\[error]z ##\\[x]\n\\ \t::stop-commands::t"
        );
        assert_eq!(printable_lines("a\r\n\x1b[1m"), "a\n\\u{1b}[1m");
    }

    #[test]
    fn without_utf8_signs_are_plain() {
        assert_eq!(plain("a → b… 2× −1 · c"), "a -> b... 2x -1 - c");
    }

    #[test]
    fn the_first_variable_of_the_locale_decides() {
        let check = |variables: [&str; 3], expected| {
            let set = variables.map(str::to_owned);
            assert_eq!(has_utf8(&set), expected, "{variables:?}");
        };
        check(["C", "", "en_US.UTF-8"], false);
        check(["", "C.utf8", "C"], true);
        check(["", "", "POSIX"], false);
        check(["", "", "de_DE.ISO-8859-1"], false);
        check(["", "", ""], true);
    }

    #[test]
    fn json_without_commands_is_the_same_value() {
        let value = serde_json::json!({"a": "##[error]x ###[y]", "#": ["##["]});
        let text = inert_json(&value.to_string());
        assert!(!text.contains("##["), "{text}");
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read, value);
    }
}
