//! The report as GitHub Flavored Markdown, for job summaries, comments and issues.
//!
//! Main function: [`render`]. It is a function of the summary and reads no trial. Every text from outside
//! is inline code, so that it can't become an element, a link, a mention or a cell of a table.

pub(crate) mod code;
mod document;
mod rows;
mod selection;

use proctor_core::gate::Gate;
use proctor_record::event::{NotRunOutcome, PlannedAgent, ServerSeen};

use self::code::{code, reason};
use self::document::{Document, Section};
use crate::{Report, sentences, words};

/// The size for a comment or a check of GitHub, which refuses 65,536 characters.
pub const COMMENT: usize = 60_000;

/// The size for a job summary of GitHub, which drops one of more than 1 MiB.
pub const JOB_SUMMARY: usize = 900 * 1024;

/// The maximum number of agents, servers and gate reasons that the first lines name.
const NAMED: usize = 5;

/// Renders the report in at most `limit` bytes. What does not fit is left out row by row, and the document
/// says so.
pub fn render(report: &Report<'_>, limit: usize) -> String {
    let mut document = Document::new(limit, &head(report), &foot(report), &cut_note(report));
    if !is_selected(report) {
        document.add(rows::agents(report.summary));
        for table in selection::tables(report.summary) {
            document.add(table);
        }
    }
    document.add(rows::unmet(report));
    document.add(not_run(report));
    document.add(findings(report));
    document.add(rows::met(report));
    document.into_text()
}

/// The report of a run that did not start, so that a comment is never empty.
pub fn refused(name: &str, exit: u8, message: &str) -> String {
    let (name, message) = (code(name), reason(message));
    format!("### Proctor: {name} did not start\n\nExit code {exit}: {message}\n")
}

/// Whether the trials were selected by their outcome: then rates and verdicts of cases say nothing.
fn is_selected(report: &Report<'_>) -> bool {
    report.part.is_some_and(|part| part.by_outcome)
}

fn head(report: &Report<'_>) -> String {
    let summary = report.summary;
    let verdict = match (report.gate, report.part) {
        // The gate is that of the whole run.
        (_, Some(_)) => "part of the run",
        (Gate::Met, None) => "gate met",
        (Gate::Missed { .. }, None) => "gate missed",
        (Gate::Open { .. }, None) => "inconclusive",
    };
    let name = code(&summary.started.name);
    let mut facts = vec![sentences::trials_of(report)];
    if !is_selected(report) {
        facts.insert(0, format!("**{}**", sentences::cases(summary)));
    }
    facts.extend(sentences::excluded(summary));
    facts.extend(sentences::failed(summary));
    let mut out = format!("### Proctor: {verdict} in {name}\n\n{}\n\n", joined(&facts));
    if let Some(part) = &report.part {
        let (part, gate) = (
            reason(&sentences::part(summary, part)),
            sentences::gate(report),
        );
        out.push_str(&format!("Shown: {part}. Gate: {gate}.\n\n"));
    }
    out.push_str(&joined(&setting(report)));
    out.push_str("\n\n");
    // The rows of cases show the other reasons.
    if let Some(note) = report.note.filter(|_| report.part.is_none()) {
        let note = reason(note);
        out.push_str(&format!("Exit code {}: {note}\n\n", report.exit));
    }
    // The reasons that no row of a case shows.
    let is_whole = summary.plan.gates.is_some() || !summary.plan.known_failures.is_empty();
    if is_whole && report.part.is_none() {
        for why in report.gate.reasons().iter().take(NAMED) {
            out.push_str(&format!("- {}\n", reason(why)));
        }
        if !report.gate.reasons().is_empty() {
            out.push('\n');
        }
    }
    if let Some(failed) = sentences::failed_cleanup(summary).filter(|_| !is_whole) {
        out.push_str(&format!("{}\n\n", reason(failed)));
    }
    for changed in summary.changed_trials.iter().take(NAMED) {
        let trial = code(changed);
        out.push_str(&format!(
            "The record of the trial {trial} was changed after the trial ended.\n\n"
        ));
    }
    out
}

/// What ran: agents, servers, commit and time.
fn setting(report: &Report<'_>) -> Vec<String> {
    let summary = report.summary;
    let agents = &summary.plan.agents;
    let agent = |agent: &PlannedAgent| code(&sentences::agent(agent));
    let mut facts = vec![format!("agent {}", few(agents, agent))];
    let server = |seen: &ServerSeen| match &seen.version {
        Some(version) => code(&format!("{} {version}", seen.server)),
        None => code(&seen.server),
    };
    if !summary.servers.is_empty() {
        facts.push(format!("server {}", few(&summary.servers, server)));
    }
    facts.extend(
        summary
            .plan
            .judge
            .as_ref()
            .map(|j| format!("judge {}", code(j))),
    );
    if let Some(context) = &summary.started.context {
        let commit = context.commit.as_deref().map(|commit| {
            let short: String = commit.chars().take(10).collect();
            format!("@{short}")
        });
        let branch = context.branch.as_deref().unwrap_or_default();
        let source = format!("{branch}{}", commit.unwrap_or_default());
        if !source.is_empty() {
            facts.push(code(&source));
        }
    }
    let started = summary.started.started.parse::<jiff::Timestamp>();
    facts.push(match started {
        Ok(started) => started.strftime("%Y-%m-%d %H:%M UTC").to_string(),
        Err(_) => code(&summary.started.started),
    });
    facts
}

/// The first items, and the number of the others.
fn few<T>(items: &[T], shown: impl Fn(&T) -> String) -> String {
    let mut texts: Vec<String> = items.iter().take(NAMED).map(shown).collect();
    if items.len() > NAMED {
        texts.push(format!("and {} more", items.len() - NAMED));
    }
    texts.join(", ")
}

fn joined(facts: &[String]) -> String {
    facts.join(" · ")
}

/// The shipped evals that did not run.
fn not_run(report: &Report<'_>) -> Section {
    let rows = report.listed.iter().map(|eval| {
        let word = match eval.outcome {
            NotRunOutcome::Invalid => "invalid",
            NotRunOutcome::Skipped => "skipped",
        };
        let id = eval.eval_id.as_deref().unwrap_or("(no id)");
        let (id, server, why) = (code(id), code(&eval.server), reason(&eval.reason));
        format!("- {word}: {id} of {server}: {why}\n")
    });
    Section {
        before: "#### Evals that did not run\n\n".to_owned(),
        rows: rows.collect(),
        noun: "eval",
        after: "\n",
    }
}

fn findings(report: &Report<'_>) -> Section {
    let mut rows = Vec::new();
    for (server, kinds) in &report.summary.findings {
        for (kind, found) in kinds {
            let (count, kind) = (words::thousands(found.count), words::finding(*kind));
            let (server, example) = (code(server), reason(&found.example));
            rows.push(format!("- {server}: {count}× {kind}, such as {example}\n"));
        }
    }
    Section {
        before: "#### Protocol problems\n\n".to_owned(),
        rows,
        noun: "problem",
        after: "\n",
    }
}

fn foot(report: &Report<'_>) -> String {
    let summary = report.summary;
    let (agent, judge) = (&summary.agent, &summary.judge);
    let mut facts = vec![
        format!("tokens {}", words::tokens(agent)),
        format!("cost {}", words::cost(agent.cost_usd)),
    ];
    if judge.turns > 0 {
        facts.push(format!("judge: tokens {}", words::tokens(judge)));
        facts.push(format!("cost {}", words::cost(judge.cost_usd)));
    }
    if report.part.is_none() {
        facts.extend(words::time(summary.duration).map(|time| format!("time {time}")));
        facts.push(format!("exit code {}", report.exit));
    }
    let view = code(&format!("proctor result view {}", report.folder.display()));
    format!("{}\n\n{view}\n", joined(&facts))
}

/// The line that says that rows are missing.
fn cut_note(report: &Report<'_>) -> String {
    let show = code(&format!("proctor result show {}", report.folder.display()));
    format!("This report is cut to the size that its reader takes. {show} shows all of it.\n\n")
}
