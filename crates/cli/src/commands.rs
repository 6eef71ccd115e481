//! The commands, one module each, and what they share.

pub(crate) mod agents;
mod attended;
mod browser;
pub(crate) mod call;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod evals;
pub(crate) mod extensions;
pub(crate) mod init;
pub(crate) mod judge;
pub(crate) mod lint;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod man;
pub(crate) mod model;
pub(crate) mod record;
mod refused;
pub(crate) mod result;
pub(crate) mod schema;
mod session;
pub(crate) mod show;
mod shown;
pub(crate) mod sources;
mod stops;
#[cfg(feature = "store")]
mod store;
#[cfg(not(feature = "store"))]
#[path = "commands/no_store.rs"]
mod store;
mod survey;
mod target;
pub(crate) mod tools;
pub(crate) mod validate;
pub(crate) mod view;
pub(crate) mod viewer;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use proctor_core::suite::Environment;
pub(crate) use proctor_record::hint::counted;
use proctor_record::problem::{Problems, Severity};
use proctor_record::redact::Redactor;
use proctor_run::engine::{Engine, EngineError, PreparedRun};

use self::attended::InteractiveHost;
use self::refused::RefusedRun;
use self::stops::StopSignals;
use crate::args::{OutputFormat, ReportFormat};
use crate::exit::{Exit, ReportedExit};
use crate::snippet;
use crate::threads;

/// The environment variables that are valid UTF-8.
fn environment() -> Environment {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The engine with the environment of this process; this executable is also its guard.
fn engine() -> anyhow::Result<Engine> {
    let program =
        std::env::current_exe().context("can't determine the path of the proctor executable")?;
    let command = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
    Ok(Engine::new(environment(), program).with_command(command.collect()))
}

/// Prepares a run until Ctrl-C. Fails with [`RefusedRun`] or [`ReportedExit`] if the run does not start.
fn prepare_with(
    host: &InteractiveHost,
    format: ReportFormat,
    preparing: impl Future<Output = Result<PreparedRun, EngineError>>,
) -> anyhow::Result<PreparedRun> {
    until_stopped(preparing)?.map_err(|error| refused(host, format, error))
}

/// Prepares runs until Ctrl-C, which is the error.
fn until_stopped<T>(preparing: impl Future<Output = T>) -> anyhow::Result<T> {
    let runtime = threads::one_worker()?;
    let prepared = runtime.block_on(async {
        let mut stops = StopSignals::listen().context("can't listen for signals")?;
        tokio::select! {
            prepared = preparing => anyhow::Ok(Some(prepared)),
            () = stops.next() => Ok(None),
        }
    });
    // Guards end the processes; the runtime waits for them while it shuts down.
    runtime.shutdown_timeout(Duration::from_secs(5));
    prepared?.ok_or_else(|| ReportedExit(Exit::Interrupted).into())
}

/// Shows why a run does not start.
fn refused(host: &InteractiveHost, format: ReportFormat, error: EngineError) -> anyhow::Error {
    let mut message = host.redacted(&error.to_string());
    let mut problems = Vec::new();
    let mut is_documented = false;
    match &error {
        EngineError::InvalidFile {
            file,
            problems: found,
        } => {
            message = format!("{}: {}", file.display(), tally(found));
            let mut errors = found.iter().filter(|p| p.severity == Severity::Error);
            if let Some(first) = errors.next() {
                let line = first.place.as_ref().map(|place| place.line);
                let line = line.map_or(String::new(), |line| format!(" (line {line})"));
                message.push_str(&format!("; first: {}{line}", first.message));
            }
            let found = found.iter().filter_map(|p| serde_json::to_value(p).ok());
            problems.extend(found);
        }
        EngineError::NothingSelected { .. } => is_documented = format == ReportFormat::Json,
        EngineError::Usage(_)
        | EngineError::Unusable { .. }
        | EngineError::Missing(_)
        | EngineError::NothingToRerun(_)
        | EngineError::NoEvals { .. }
        | EngineError::NoConsent { .. }
        | EngineError::Refused
        | EngineError::Changed(_)
        | EngineError::Unreachable(_)
        | EngineError::Record(_) => {}
    }
    let format = match format {
        ReportFormat::Json => OutputFormat::Json,
        ReportFormat::Text | ReportFormat::Markdown => OutputFormat::Text,
    };
    match host.refuse(error, Some(format)) {
        Ok(exit) => RefusedRun {
            exit,
            message,
            problems,
            is_documented,
        }
        .into(),
        Err(error) => error,
    }
}

/// A redactor for the secrets of the environment, for messages before any server is known.
pub(crate) fn known_secrets() -> Redactor {
    Redactor::from_environment(&environment())
}

/// Renders all problems with their source lines.
fn drawn(problems: &Problems) -> String {
    let mut out = String::new();
    for problem in problems {
        out.push_str(&snippet::render(problem));
        out.push('\n');
    }
    if problems.dropped() > 0 {
        let more = counted(problems.dropped(), "more problem");
        out.push_str(&format!("… and {more}\n\n"));
    }
    out
}

/// `1 error, 2 warnings`, or `no problems`.
fn tally(problems: &Problems) -> String {
    let parts: Vec<String> = [
        (problems.errors(), "error"),
        (problems.warnings(), "warning"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| counted(count, word))
    .collect();
    if parts.is_empty() {
        return "no problems".to_owned();
    }
    let files: BTreeSet<_> = problems.iter().map(|problem| &problem.path).collect();
    let files = match files.len() {
        0 | 1 => String::new(),
        several => format!(" in {several} files"),
    };
    format!("{}{files}", parts.join(", "))
}
