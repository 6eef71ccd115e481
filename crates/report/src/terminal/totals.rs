//! The last part of the report: totals, the gate, and the folder of the record.

use proctor_core::gate::{CaseVerdict, Gate, PassThreshold};
use proctor_core::printable::printable;
use proctor_core::summary::Summary;

use super::lines::Page;
use crate::sentences::failed_cleanup;
use crate::{Report, ReportPart, sentences, words};

/// The maximum number of reasons shown for a gate.
const REASONS: usize = 5;

pub(super) fn render(page: &mut Page, report: &Report<'_>) {
    let summary = report.summary;
    let counts = summary.counts();
    let is_selected = report.part.is_some_and(|part| part.by_outcome);
    if let Some(part) = &report.part {
        shown(page, summary, part);
    }
    trials(page, report);
    // A case of a shard has trials in other shards.
    let shard = sentences::shard(summary);
    if !is_selected && shard.is_none() {
        page.fact("Cases", &sentences::cases(summary));
    }
    // Several agents are in the table above.
    if let [agent] = &summary.plan.agents[..] {
        page.fact("Agent", &printable(&sentences::agent(agent)));
    }
    servers(page, summary);
    run_steps(page, summary);
    spent(page, summary);
    replayed(page, summary);
    if let Some(time) = words::time(summary.duration).filter(|_| report.part.is_none()) {
        page.fact("Time", &time);
    }
    if let Some(profile) = &summary.plan.profile {
        let shown = format!("{} ({})", profile.name, profile.file);
        page.fact("Profile", &printable(&shown));
    }
    gate(page, report);
    let folder = report.folder.display().to_string();
    let folder = printable(&folder);
    page.fact("Record", &folder);
    page.more(&format!("proctor result view {folder}"));
    let is_decided = summary.plan.stop_when_decided && !matches!(report.gate, Gate::Open { .. });
    let left = counts.cancelled + if is_decided { 0 } else { counts.not_run };
    if report.resumable && left > 0 {
        page.more(&format!("proctor check --resume {folder}"));
    } else if report.resumable && counts.errored > 0 {
        page.more(&format!("proctor check --retry-errors {folder}"));
    }
}

/// Says that the report is about a part of the run.
fn shown(page: &mut Page, summary: &Summary, part: &ReportPart<'_>) {
    page.fact("Shown", &printable(&sentences::part(summary, part)));
}

fn trials(page: &mut Page, report: &Report<'_>) {
    let summary = report.summary;
    page.fact("Trials", &sentences::trials_of(report));
    let lines = [sentences::excluded(summary), sentences::failed(summary)];
    for line in lines.iter().flatten() {
        page.more(line);
    }
    let retried = summary.trials().filter(|(_, _, t)| t.attempts > 1).count();
    if retried > 0 {
        let trials = words::count(retried as u64, "trial");
        page.more(&format!("{trials} retried"));
    }
    if summary.unplanned > 0 {
        let records = words::count(u64::from(summary.unplanned), "record");
        page.more(&format!("{records} of trials outside the plan"));
    }
    if summary.unknown_events > 0 {
        let events = words::count(summary.unknown_events, "event");
        let version = printable(&summary.started.proctor);
        page.more(&format!(
            "skipped {events} of Proctor {version} that this version does not know"
        ));
    }
}

fn servers(page: &mut Page, summary: &Summary) {
    let mut shown = Vec::new();
    for seen in &summary.servers {
        let version = seen
            .version
            .as_deref()
            .map_or(String::new(), |v| format!(" {v}"));
        shown.push(format!("{}{version}", seen.server));
    }
    for (server, found) in &summary.findings {
        let count = found.values().map(|kind| kind.count).sum();
        let count = words::count(count, "finding");
        shown.push(format!("{count} on {server}"));
    }
    if summary.plan.shared_servers {
        shown.push("shared by all trials".to_owned());
    }
    if !shown.is_empty() {
        page.fact("Servers", &printable(&shown.join(", ")));
    }
    for line in words::findings(summary) {
        page.more(&printable(&line));
    }
    for line in sentences::slow_starts(summary) {
        page.more(&printable(&line));
    }
}

/// Shows the steps of the run's own setup and cleanup.
fn run_steps(page: &mut Page, summary: &Summary) {
    for (at, line) in sentences::run_steps(summary).iter().enumerate() {
        match at {
            0 => page.fact("Run steps", &printable(line)),
            _ => page.more(&printable(line)),
        }
    }
}

fn spent(page: &mut Page, summary: &Summary) {
    let (agent, judge) = (&summary.agent, &summary.judge);
    let tokens = words::tokens(agent);
    let cost = words::cost(agent.cost_usd);
    if judge.turns == 0 {
        page.fact("Tokens", &tokens);
        page.fact("Cost", &cost);
        return;
    }
    let judged = words::tokens(judge);
    page.fact("Tokens", &format!("agent {tokens}; judge {judged}"));
    let judged = words::cost(judge.cost_usd);
    page.fact("Cost", &format!("agent {cost}; judge {judged}"));
}

/// Shows how many model replies were replayed.
fn replayed(page: &mut Page, summary: &Summary) {
    let (agent, judge) = (&summary.agent, &summary.judge);
    let replies = agent.replayed + judge.replayed;
    if replies == 0 {
        return;
    }
    let replies = words::count(u64::from(replies), "reply").replace("replys", "replies");
    let run = summary.plan.replay.as_deref().unwrap_or("a record");
    page.fact(
        "Replayed",
        &format!("{replies} from {}, at no cost", printable(run)),
    );
    match agent.drifted + judge.drifted {
        0 => {}
        1 => page.more("1 model request differs from the recorded one"),
        more => page.more(&format!(
            "{more} model requests differ from the recorded ones"
        )),
    }
}

/// The cases with a verdict, each as `name 3/5, needs 4/5`. Why they failed is in the report already.
fn cells(summary: &Summary, wanted: CaseVerdict) -> Vec<String> {
    let several = summary.plan.agents.len() > 1;
    let cells = summary.cells();
    let cells = cells.filter(|(case, trials)| trials.verdict(&case.case) == wanted);
    let shown = cells.map(|(case, trials)| {
        let standing = trials.standing();
        let mut text = case.case.name.clone();
        if several {
            text.push_str(&format!(" by {}", trials.agent));
        }
        text.push_str(&format!(" {}", sentences::passed(trials)));
        if case.case.pass.is_some() {
            text.push_str(&format!(", needs {}", PassThreshold::of(case.case.pass)));
        }
        if standing.open > 0 {
            text.push_str(&format!(", {} without a verdict", standing.open));
        }
        text
    });
    shown.collect()
}

fn gate(page: &mut Page, report: &Report<'_>) {
    page.fact("Gate", &sentences::gate(report));
    if report.part.is_some() {
        return;
    }
    if sentences::shard(report.summary).is_some() {
        page.more("run `proctor result merge` when all shards have ended");
        page.fact("Exit", &exit(report));
        return;
    }
    let cells = match report.gate {
        Gate::Met => Vec::new(),
        Gate::Missed { .. } => cells(report.summary, CaseVerdict::Missed),
        Gate::Open { .. } => cells(report.summary, CaseVerdict::Open),
    };
    // Without a case, or with gates on rates, the reason is that of the whole run.
    let is_whole = cells.is_empty()
        || !report.summary.changed_trials.is_empty()
        || failed_cleanup(report.summary).is_some()
        || report.summary.plan.shard.is_some()
        || report.summary.plan.gates.is_some()
        || !report.summary.plan.known_failures.is_empty();
    let reasons = if is_whole {
        report.gate.reasons().to_vec()
    } else {
        cells
    };
    for reason in reasons.iter().take(REASONS) {
        page.more(&printable(reason));
    }
    if reasons.len() > REASONS {
        let more = words::count((reasons.len() - REASONS) as u64, "more case");
        page.more(&format!("… and {more}"));
    }
    page.fact("Exit", &exit(report));
}

fn exit(report: &Report<'_>) -> String {
    let why = printable(sentences::exit_reason(report));
    format!("{}: {why}", report.exit)
}
