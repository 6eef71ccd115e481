//! The head of a run: what was run, whether it holds, and what to know before reading on.
//!
//! Main types: [`RunPage`] and [`GatePage`].

use proctor_core::gate::Gate;
use proctor_core::overview::Answer;
use proctor_record::duration;
use proctor_record::event::{NotRunOutcome, RunKind, SourceContext};
use serde::Serialize;

use crate::{Report, sentences, summary, words};

/// What was run, when and by whom.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunPage {
    /// The name of the run's folder.
    pub id: String,
    /// The path of the run's folder or file, as the user knows it.
    pub folder: String,
    pub name: String,
    pub suite: String,
    pub kind: RunKind,
    /// The start by the wall clock, in RFC 3339.
    pub started: String,
    /// The duration in microseconds.
    pub duration: u64,
    /// Whether the run ended. Without an end it is still running, or was killed.
    pub is_finished: bool,
    /// The commit and the CI job.
    pub context: Option<SourceContext>,
    /// The version of Proctor that recorded it.
    pub proctor: String,
    pub command: Vec<String>,
    pub judge: Option<String>,
    /// What to read below the title, such as `40 cases × 5 trials`.
    pub facts: Vec<String>,
    /// The tokens of agents and judges, such as `52,000 in, 1,500 out`.
    pub tokens: String,
    /// What agents and judges cost.
    pub cost: String,
    /// Sentences about the whole run, such as the trials that the pass rate excludes.
    pub notes: Vec<String>,
    /// The evals that servers ship and that did not run, each with its reason.
    pub not_run: Vec<String>,
    /// The warnings about the suite's files.
    pub warnings: Vec<String>,
}

/// Whether the run succeeded.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatePage {
    pub answer: Answer,
    /// The answer as reports say it, such as `inconclusive: 2 trials have no verdict`.
    pub sentence: String,
    /// How many cases meet their pass rule.
    pub cases: String,
    /// The pass rate, such as `6/11 trials passed (55%, 95% CI 28–79%)`.
    pub trials: String,
    /// The cases and conditions that are not met.
    pub reasons: Vec<String>,
    /// The exit code of the command, and why.
    pub exit: u8,
    pub exit_reason: String,
    /// Whether the run may be shown as a success: the gate is met, which needs the end of the run, and its exit code is 0.
    pub is_good: bool,
}

pub(super) fn run(report: &Report<'_>) -> RunPage {
    let summary = report.summary;
    let started = &summary.started;
    let id = report.run.folder().file_name();
    RunPage {
        id: id.map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        folder: report.folder.to_string_lossy().into_owned(),
        name: started.name.clone(),
        suite: summary.plan.suite.clone(),
        kind: summary.plan.kind,
        started: started.started.clone(),
        duration: u64::try_from(summary.duration.as_micros()).unwrap_or(u64::MAX),
        is_finished: summary.ended.is_some(),
        context: started.context.clone(),
        proctor: started.proctor.clone(),
        command: started.command.clone(),
        judge: summary.plan.judge.clone(),
        facts: facts(report),
        tokens: spent(report, words::tokens),
        cost: spent(report, |a| words::cost(a.cost_usd)),
        notes: notes(report),
        not_run: not_run(report),
        warnings: warnings(report),
    }
}

pub(super) fn gate(report: &Report<'_>) -> GatePage {
    let answer = match report.gate {
        Gate::Met => Answer::Met,
        Gate::Missed { .. } => Answer::Missed,
        Gate::Open { .. } => Answer::Inconclusive,
    };
    GatePage {
        answer,
        sentence: sentences::gate(report),
        cases: sentences::cases(report.summary),
        trials: sentences::trials_of(report),
        reasons: report.gate.reasons().to_vec(),
        exit: report.exit,
        exit_reason: sentences::exit_reason(report).to_owned(),
        is_good: answer == Answer::Met && report.exit == 0,
    }
}

fn facts(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let mut facts = vec![
        summary::planned(summary),
        summary::started(&summary.started.started),
        duration::brief(summary.duration),
    ];
    if let Some(context) = &summary.started.context {
        facts.extend(source(context));
    }
    facts
}

/// The commit, as `main@62cd0e2`, with a star if the folder differs from it.
fn source(context: &SourceContext) -> Option<String> {
    let commit = context.commit.as_deref()?;
    let short: String = commit.chars().take(7).collect();
    let star = if context.dirty == Some(true) { "*" } else { "" };
    Some(match &context.branch {
        Some(branch) => format!("{branch}@{short}{star}"),
        None => format!("{short}{star}"),
    })
}

fn notes(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let mut notes = Vec::new();
    if summary.ended.is_none() {
        notes.push("The run is not finished: it is still running, or was killed".to_owned());
    }
    notes.extend(
        report
            .note
            .map(|note| format!("The run stopped early: {note}")),
    );
    notes.extend(
        sentences::run_steps(summary)
            .iter()
            .map(|step| format!("Run {step}")),
    );
    notes.extend(sentences::slow_starts(summary));
    notes.extend(sentences::excluded(summary));
    let retried = summary.trials().filter(|(_, _, t)| t.attempts > 1).count();
    if retried > 0 {
        notes.push(format!("{} retried", words::count(retried as u64, "trial")));
    }
    if summary.unplanned > 0 {
        let records = words::count(u64::from(summary.unplanned), "record");
        notes.push(format!("{records} of trials outside the plan"));
    }
    if summary.unknown_events > 0 {
        let events = words::count(summary.unknown_events, "event");
        let version = &summary.started.proctor;
        notes.push(format!(
            "skipped {events} of Proctor {version} that this version does not know"
        ));
    }
    notes
}

/// What agents used, and judges if there were any.
fn spent(
    report: &Report<'_>,
    shown: impl Fn(&proctor_record::fold::ModelActivity) -> String,
) -> String {
    let (agent, judge) = (&report.summary.agent, &report.summary.judge);
    if judge.turns == 0 {
        shown(agent)
    } else {
        format!("agent {}; judge {}", shown(agent), shown(judge))
    }
}

fn not_run(report: &Report<'_>) -> Vec<String> {
    let listed = report.listed.iter().map(|skipped| {
        let outcome = match skipped.outcome {
            NotRunOutcome::Skipped => "skipped",
            NotRunOutcome::Invalid => "invalid",
        };
        let eval = skipped.eval_id.as_deref().unwrap_or("(no id)");
        format!("{}/{eval}: {outcome}: {}", skipped.server, skipped.reason)
    });
    listed.collect()
}

fn warnings(report: &Report<'_>) -> Vec<String> {
    let warnings = report.summary.plan.warnings.iter().map(|warning| {
        let place = match (&warning.path, warning.line) {
            (Some(path), Some(line)) => format!("{path}:{line}: "),
            (Some(path), None) => format!("{path}: "),
            (None, _) => String::new(),
        };
        format!("{place}{}", warning.message)
    });
    warnings.collect()
}
