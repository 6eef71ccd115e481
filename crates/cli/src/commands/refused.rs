//! Documents about a run that did not start: what reads `-o json`, `--out`, `--junit` or `--report` gets one too, so that a
//! missing file never looks like an empty result.
//!
//! Main function: [`report`].

use anyhow::Error;
use proctor_report::{ReportError, html, junit, markdown};
use serde_json::{Value, json};

use super::known_secrets;
use super::target::Targets;
use crate::args::{ReportFormat, RunArgs};
use crate::exit::{Exit, ReportedExit};
use crate::output;

/// A run that did not start, for a reason that stderr has already.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct RefusedRun {
    pub(super) exit: Exit,
    pub(super) message: String,
    /// The problems of the suite's files.
    pub(super) problems: Vec<Value>,
    /// Whether stdout has a document already.
    pub(super) is_documented: bool,
}

/// Ends a command whose run did not start: shows the error and writes the documents that the flags ask for.
pub(super) fn report(flags: &RunArgs, name: &str, error: Error) -> Error {
    if output::is_broken_pipe(&error) || error.is::<ReportedExit>() {
        return error;
    }
    let redactor = known_secrets();
    let refused = match error.downcast::<RefusedRun>() {
        Ok(refused) => refused,
        Err(error) => {
            output::error(&error, &redactor);
            let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
            RefusedRun {
                exit: Exit::Usage,
                message: redactor.text(&causes.join(": ")).into_owned(),
                problems: Vec::new(),
                is_documented: false,
            }
        }
    };
    for error in write(flags, name, &refused) {
        output::error(&error, &redactor);
    }
    ReportedExit(refused.exit).into()
}

/// Writes the documents, and returns the errors.
fn write(flags: &RunArgs, name: &str, refused: &RefusedRun) -> Vec<Error> {
    let exit = refused.exit.code();
    let document = json!({
        "proctor": {
            "exit": { "code": exit, "note": refused.message },
            "problems": refused.problems,
        },
        "results": [],
    });
    let mut errors = Vec::new();
    if !refused.is_documented {
        let written = match flags.output.output {
            ReportFormat::Text => Ok(()),
            ReportFormat::Json => output::json(&document),
            ReportFormat::Markdown => {
                output::result(&markdown::refused(name, exit, &refused.message))
            }
        };
        errors.extend(written.err());
    }
    // A target that can't be written may be the reason itself.
    let (out, junit) = (flags.out.as_deref(), flags.junit.as_deref());
    let Ok(targets) = Targets::resolve(out, junit, flags.report.as_deref()) else {
        return errors;
    };
    let out = targets.out.map(|target| {
        target.write(|out| {
            writeln!(out, "{document}")?;
            Ok::<(), ReportError>(())
        })
    });
    let junit = targets.junit.map(|target| {
        target.write(|out| Ok(junit::write_error(name, exit, &refused.message, out)?))
    });
    let html = targets.report.map(|target| {
        target.write(|out| Ok(html::write_error(name, exit, &refused.message, out)?))
    });
    errors.extend(
        [out, junit, html]
            .into_iter()
            .flatten()
            .filter_map(Result::err),
    );
    errors.retain(|error| !output::is_broken_pipe(error));
    errors
}
