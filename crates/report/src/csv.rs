//! A run as tables of comma-separated values: one row per trial, call or check.
//!
//! Main function: [`write()`]. The columns `run`, `case_id`, `agent` and `trial` identify a trial in every
//! table. Unknown values are empty cells. Rows are written trial by trial, so memory does not grow with their
//! number.

mod cells;
mod selection;

use std::collections::BTreeSet;
use std::io::Write;

use proctor_core::summary::{AgentTrials, CaseSummary, ModelSpending, TrialResult, TrialSummary};
use proctor_record::event::{CheckEvaluated, CheckId};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::model::Usage;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use proctor_record::verdict::Verdict;
use serde_json::Value;

use self::cells::Cells;
use crate::json::history::timestamp;
use crate::json::millis;
use crate::{Report, ReportError, words};

/// One of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// A row per planned trial, also of those that did not run.
    Trials,
    /// A row per call of an agent.
    Calls,
    /// A row per evaluated check.
    Checks,
    /// A row per tool that selection rows expect, or that a model chose for one.
    Tools,
    /// A row per pair of an expected and a chosen tool.
    Confusion,
}

impl Table {
    /// The tables of every run.
    pub const ALL: [Self; 3] = [Self::Trials, Self::Calls, Self::Checks];

    /// The tables of a run with selection rows.
    pub const OF_SELECTION: [Self; 2] = [Self::Tools, Self::Confusion];

    pub fn name(self) -> &'static str {
        match self {
            Self::Trials => "trials",
            Self::Calls => "calls",
            Self::Checks => "checks",
            Self::Tools => "tools",
            Self::Confusion => "confusion",
        }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Trials => &[
                "suite",
                "model",
                "attempt",
                "attempts",
                "outcome",
                "blame",
                "check",
                "reason",
                "started",
                "duration_ms",
                "turns",
                "input_tokens",
                "output_tokens",
                "cached_tokens",
                "reasoning_tokens",
                "cost_usd",
                "judge_input_tokens",
                "judge_output_tokens",
                "judge_cost_usd",
                "calls",
                "calls_in_error",
                "findings",
                "difficulty",
            ],
            Self::Calls => &[
                "call",
                "server",
                "kind",
                "name",
                "started",
                "duration_ms",
                "outcome",
                "error_code",
                "error",
                "arguments",
                "result_bytes",
            ],
            Self::Checks => &["check", "kind", "verdict", "reason", "evidence"],
            // Rows of these are not about a trial.
            Self::Tools | Self::Confusion => &[],
        }
    }
}

/// The columns that identify a trial.
const KEYS: [&str; 5] = ["run", "case_id", "case", "agent", "trial"];

/// Writes a table with its header.
pub fn write(report: &Report<'_>, table: Table, out: &mut dyn Write) -> Result<(), ReportError> {
    let folder = report.run.folder().file_name().unwrap_or_default();
    let labels = match table {
        Table::Trials => labels(report),
        Table::Calls | Table::Checks => BTreeSet::new(),
        Table::Tools => {
            return selection::write_tools(report.summary, &folder.to_string_lossy(), out);
        }
        Table::Confusion => {
            return selection::write_confusion(report.summary, &folder.to_string_lossy(), out);
        }
    };
    let mut cells = Cells::default();
    for column in KEYS.iter().chain(table.columns()) {
        cells.text(column);
    }
    for label in &labels {
        cells.text(&format!("label.{label}"));
    }
    cells.end(out)?;
    for (case, agent, trial) in report.summary.trials() {
        let row = Row {
            report,
            case,
            agent,
            trial,
        };
        let read = row.fold(table)?;
        match (table, &read) {
            (Table::Trials, read) => row.trial(&mut cells, read.as_ref(), &labels, out)?,
            (Table::Calls, Some(read)) => row.calls(&mut cells, read, out)?,
            (Table::Checks, Some(read)) => row.checks(&mut cells, read, out)?,
            (Table::Calls | Table::Checks, None) | (Table::Tools | Table::Confusion, _) => {}
        }
    }
    Ok(())
}

/// The keys of all labels.
fn labels<'a>(report: &Report<'a>) -> BTreeSet<&'a str> {
    let cases = report.summary.cases.iter();
    let keys = cases.flat_map(|case| case.case.labels.keys());
    keys.map(String::as_str).collect()
}

/// A trial whose rows are written.
struct Row<'a> {
    report: &'a Report<'a>,
    case: &'a CaseSummary,
    agent: &'a AgentTrials,
    trial: &'a TrialSummary,
}

impl Row<'_> {
    /// Reads a trial, as far as a table needs it.
    fn fold(&self, table: Table) -> Result<Option<FoldedTrial>, ReportError> {
        let defaults = FoldOptions::default();
        let options = match table {
            Table::Trials => FoldOptions {
                payload_bytes: 0,
                text_bytes: 0,
                ..defaults
            },
            Table::Calls | Table::Checks | Table::Tools | Table::Confusion => defaults,
        };
        let file = self.report.trial_file(self.trial);
        let folded = file.map(|file| fold_trial(self.report.run, &file, &options));
        Ok(folded.transpose()?)
    }

    fn keys(&self, cells: &mut Cells) {
        let folder = self.report.run.folder().file_name();
        cells.text(&folder.unwrap_or_default().to_string_lossy());
        cells.text(&self.case.case.id);
        cells.text(&self.case.case.name);
        cells.text(&self.agent.agent);
        cells.number(self.trial.repeat);
    }

    fn trial(
        &self,
        cells: &mut Cells,
        folded: Option<&FoldedTrial>,
        labels: &BTreeSet<&str>,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        let summary = self.report.summary;
        let result = self.trial.result.as_ref();
        let planned = summary.plan.agents.iter();
        let mut planned = planned.filter(|planned| planned.name == self.agent.agent);
        self.keys(cells);
        cells.text(&summary.plan.suite);
        cells.optional_text(planned.next().and_then(|agent| agent.model.as_deref()));
        cells.optional(result.map(|result| result.attempt));
        cells.number(self.trial.attempts);
        cells.text(words::outcome(self.trial.outcome()));
        cells.optional_text(result.and_then(|result| result.blame).map(words::blame));
        let decisive = result.and_then(|result| result.decisive.as_ref());
        cells.optional_text(decisive.map(|check| check.check.as_str()));
        cells.optional_text(result.and_then(|result| result.reason.as_deref()));
        let began = folded.map(|folded| folded.work.began_at);
        let began = began.map(|at| timestamp(&summary.started.started, at));
        cells.optional_text(began.as_deref());
        cells.optional(result.map(|result| millis(result.duration())));
        cells.optional(result.map(|result| result.agent().turns));
        let spent = |spent: Option<&ModelSpending>| spent.map_or_else(Usage::default, |s| s.usage);
        let agent = result.map(TrialResult::agent);
        let usage = spent(agent);
        for count in [usage.input, usage.output, usage.cached, usage.reasoning] {
            cells.optional(count);
        }
        cells.optional(agent.and_then(|agent| agent.cost_usd));
        let judge = result.map(TrialResult::judge).filter(|j| j.turns > 0);
        let usage = spent(judge);
        cells.optional(usage.input);
        cells.optional(usage.output);
        cells.optional(judge.and_then(|judge| judge.cost_usd));
        cells.optional(folded.map(|folded| folded.transcript.calls.len()));
        let in_error = |folded: &FoldedTrial| folded.in_error.iter().filter(|is| **is).count();
        cells.optional(folded.map(in_error));
        cells.optional(folded.map(|folded| folded.findings.len()));
        cells.optional_text(self.case.case.difficulty.as_deref());
        for label in labels {
            cells.optional_text(self.case.case.labels.get(*label).map(String::as_str));
        }
        Ok(cells.end(out)?)
    }

    fn calls(
        &self,
        cells: &mut Cells,
        folded: &FoldedTrial,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        for (call, at) in folded.transcript.calls.iter().zip(&folded.made_at) {
            self.keys(cells);
            cells.number(call.seq);
            cells.text(&call.server);
            let (kind, name, arguments) = match &call.request {
                CallRequest::Tool { name, arguments } => ("tool", name, Some(arguments)),
                CallRequest::Prompt { name, arguments } => ("prompt", name, Some(arguments)),
                CallRequest::Resource { uri } => ("resource", uri, None),
            };
            cells.text(kind);
            cells.text(name);
            cells.text(&timestamp(&self.report.summary.started.started, *at));
            cells.optional(call.duration.map(millis));
            answer(cells, call);
            let arguments = arguments.and_then(|arguments| arguments.read().ok().flatten());
            cells.optional_text(arguments.map(Value::to_string).as_deref());
            cells.optional(result_bytes(&call.answer));
            cells.end(out)?;
        }
        Ok(())
    }

    fn checks(
        &self,
        cells: &mut Cells,
        folded: &FoldedTrial,
        out: &mut dyn Write,
    ) -> Result<(), ReportError> {
        for check in &folded.work.checks {
            self.keys(cells);
            self::check(cells, check);
            cells.end(out)?;
        }
        Ok(())
    }
}

fn check(cells: &mut Cells, check: &CheckEvaluated) {
    let (verdict, reason) = match &check.verdict {
        Verdict::Pass => ("pass", None),
        Verdict::Fail { reason } => ("fail", Some(reason.as_str())),
        Verdict::Unknown { reason } => ("unknown", Some(reason.as_str())),
    };
    cells.text(&check.check);
    cells.optional_text(check.id.as_ref().map(CheckId::kind));
    cells.text(verdict);
    cells.optional_text(reason);
    let evidence: Vec<String> = check.evidence.iter().map(u64::to_string).collect();
    cells.text(&evidence.join(" "));
}

/// The columns `outcome`, `error_code` and `error`.
fn answer(cells: &mut Cells, call: &Call) {
    let (outcome, code, error) = match &call.answer {
        CallOutcome::None => ("no-answer", None, None),
        CallOutcome::Error { code, message } => ("error", Some(*code), Some(message.clone())),
        CallOutcome::Result(payload) => match payload.read() {
            Err(unread) => ("unread", None, Some(format!("the result {unread}"))),
            Ok(value) => match value.filter(|value| value["isError"].as_bool() == Some(true)) {
                Some(value) => ("tool-error", None, content(value)),
                None => ("ok", None, None),
            },
        },
    };
    cells.text(outcome);
    cells.optional(code);
    cells.optional_text(error.as_deref());
}

/// The first text of a tool's result.
fn content(result: &Value) -> Option<String> {
    let mut parts = result["content"].as_array()?.iter();
    let text = parts.find_map(|part| part["text"].as_str());
    text.map(str::to_owned)
}

fn result_bytes(answer: &CallOutcome) -> Option<u64> {
    match answer {
        CallOutcome::Result(Payload::Value(value)) => Some(value.to_string().len() as u64),
        CallOutcome::Result(Payload::Cut { bytes } | Payload::Omitted { bytes }) => Some(*bytes),
        CallOutcome::Result(Payload::Absent | Payload::Unreadable { .. })
        | CallOutcome::Error { .. }
        | CallOutcome::None => None,
    }
}
