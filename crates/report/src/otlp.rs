//! A run as OpenTelemetry traces in OTLP JSON, one trial per line.
//!
//! Main function: [`write()`]. Each line is a `TracesData` object, as collectors read it from files and accept
//! it at `/v1/traces`. A trial is a trace: the span of its agent, with a span for each model request and each
//! MCP request below it, and an event for each check. Names follow the semantic conventions for `GenAI`, MCP and
//! tests; Proctor's own attributes begin with `proctor.`. Contents of messages are not exported. The ids
//! depend only on the run, so a second export does not duplicate anything.

mod attributes;
mod model_spans;
mod spans;

use std::io::Write;

use jiff::Timestamp;
use proctor_record::event::RunStarted;
use proctor_record::fold::{FoldOptions, fold_trial};
use proctor_record::record::TrialFile;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use self::attributes::Attributes;
use self::spans::TrialTrace;
use crate::{Report, ReportError};

/// Writes a line for each trial that has ended.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    let resource = resource(&report.summary.started);
    for (case, agent, trial) in report.summary.trials() {
        let Some(result) = &trial.result else {
            continue;
        };
        let Some(file) = report.trial_file(trial) else {
            continue;
        };
        let options = FoldOptions {
            text_bytes: 0,
            ..FoldOptions::default()
        };
        let folded = fold_trial(report.run, &file, &options)?;
        let trace = TrialTrace {
            report,
            case,
            agent,
            trial,
            result,
            folded: &folded,
            clock: Clock::of(&report.summary.started),
            ids: Ids::of(&report.summary.started, &file),
        };
        let spans = trace.spans(&file)?;
        let line = json!({ "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{
                "scope": { "name": "proctor", "version": report.summary.started.proctor },
                "spans": spans,
            }],
        }] });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// What the traces come from.
fn resource(started: &RunStarted) -> Value {
    let mut all = Attributes::default();
    all.text("service.name", "proctor");
    all.text("service.version", &started.proctor);
    if let Some(context) = &started.context {
        all.optional("vcs.ref.head.revision", context.commit.as_deref());
        all.optional("vcs.ref.head.name", context.branch.as_deref());
        all.optional("cicd.pipeline.run.url.full", context.job_url.as_deref());
    }
    all.into_value()
}

/// Turns the times of a record into those of a trace.
#[derive(Debug, Clone, Copy)]
struct Clock {
    start: i128,
}

impl Clock {
    fn of(started: &RunStarted) -> Self {
        let start = started.started.parse::<Timestamp>();
        Self {
            start: start.map_or(0, Timestamp::as_nanosecond),
        }
    }

    /// The nanoseconds since 1970 of a time in microseconds since the run started.
    fn nanos(self, at: u64) -> String {
        (self.start + i128::from(at) * 1000).max(0).to_string()
    }
}

/// The ids of a trace and its spans.
#[derive(Debug)]
struct Ids {
    trace: String,
}

impl Ids {
    fn of(started: &RunStarted, file: &TrialFile) -> Self {
        let parts = [&started.started, &started.name, file.file_name()];
        Self {
            trace: hex(parts.join("\n").as_bytes(), 16),
        }
    }

    /// The id of the span of the event with this number; the trial itself is zero.
    fn span(&self, seq: u64) -> String {
        hex(format!("{}\n{seq}", self.trace).as_bytes(), 8)
    }
}

/// The start of a hash, as hexadecimal digits.
fn hex(text: &[u8], bytes: usize) -> String {
    data_encoding::HEXLOWER.encode(&Sha256::digest(text)[..bytes])
}
