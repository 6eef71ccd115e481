//! The last part of the report: totals, the gate, and the folder of the record.

use proctor_core::duration;
use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::printable::printable;
use proctor_core::summary::{Counts, Summary};

use super::lines::Page;
use crate::{Report, ReportPart, words};

/// The maximum number of reasons shown for a gate.
const REASONS: usize = 5;

pub(super) fn render(page: &mut Page, report: &Report<'_>) {
    let summary = report.summary;
    let counts = summary.counts();
    if let Some(part) = &report.part {
        shown(page, summary, part);
    }
    trials(page, report, counts);
    if !report.part.is_some_and(|part| part.by_outcome) {
        cases(page, summary);
    }
    servers(page, summary);
    spent(page, summary);
    replayed(page, summary);
    if report.part.is_none() {
        page.fact("Time", &duration::brief(summary.duration));
    }
    gate(page, report);
    let folder = report.folder.display().to_string();
    let folder = printable(&folder);
    page.fact("Record", &folder);
    page.more(&format!("proctor result view {folder}"));
    if report.resumable && counts.cancelled + counts.not_run > 0 {
        page.more(&format!("proctor check --resume {folder}"));
    } else if report.resumable && counts.errored > 0 {
        page.more(&format!("proctor check --retry-errors {folder}"));
    }
}

/// Says that the report is about a part of the run.
fn shown(page: &mut Page, summary: &Summary, part: &ReportPart<'_>) {
    let (shown, all) = (summary.trials().count() as u64, part.trials as u64);
    let filter = printable(part.filter);
    let all = words::count(all, "trial");
    let shown = words::thousands(shown);
    page.fact(
        "Shown",
        &format!("{shown} of {all}, selected by `{filter}`"),
    );
}

fn trials(page: &mut Page, report: &Report<'_>, counts: Counts) {
    let summary = report.summary;
    let is_selected = report.part.is_some_and(|part| part.by_outcome);
    let text = match summary.rate(None) {
        // The rate of trials that were selected by their outcome says nothing.
        _ if is_selected => words::count(u64::from(counts.total()), "trial"),
        Some(rate) => format!(
            "{}/{} trials passed ({})",
            rate.tally.passed,
            rate.tally.counted,
            words::rate(&rate)
        ),
        None => "no trial has a verdict".to_owned(),
    };
    page.fact("Trials", &text);
    let mut apart = Vec::new();
    for (count, word) in [
        (counts.errored, "errored"),
        (counts.cancelled, "cancelled"),
        (counts.not_run, "not run"),
    ] {
        if count > 0 {
            let blame = if word == "errored" {
                blames(summary, true)
            } else {
                String::new()
            };
            apart.push(format!("{count} {word}{blame}"));
        }
    }
    if !apart.is_empty() {
        page.more(&format!(
            "{}: excluded from the pass rate",
            apart.join(", ")
        ));
    }
    if counts.failed + counts.timed_out > 0 {
        let blame = blames(summary, false);
        let timed_out = match counts.timed_out {
            0 => String::new(),
            count => format!(", {count} timed out"),
        };
        page.more(&format!("{} failed{timed_out}{blame}", counts.failed));
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

/// Formats the blames of failed or errored trials: ` (blame: infra 2, judge 1)`.
fn blames(summary: &Summary, is_error: bool) -> String {
    let mut shown: Vec<String> = summary
        .blames()
        .iter()
        .filter(|((_, error), _)| *error == is_error)
        .map(|((blame, _), count)| format!("{} {count}", words::blame(*blame)))
        .collect();
    match summary.unclear(is_error) {
        0 => {}
        count => shown.push(format!("unclear {count}")),
    }
    if shown.is_empty() {
        String::new()
    } else {
        format!(" (blame: {})", shown.join(", "))
    }
}

fn cases(page: &mut Page, summary: &Summary) {
    let (mut all, mut met) = (0_u64, 0_u64);
    for (case, trials) in summary.cells() {
        all += 1;
        met += u64::from(trials.verdict(&case.case) == CaseVerdict::Met);
    }
    let noun = if summary.plan.agents.len() > 1 {
        "case × agent pairs"
    } else {
        "cases"
    };
    let has_rules = summary.cases.iter().any(|case| case.case.pass.is_some());
    let verb = if has_rules {
        "met their pass rule"
    } else {
        "passed"
    };
    page.fact("Cases", &format!("{met} of {all} {noun} {verb}"));
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

/// Says how many trials keep the gate from an answer. Without any, the reasons say why.
fn inconclusive(summary: &Summary) -> String {
    let cells = summary.cells();
    let open = cells.filter(|(case, agent)| agent.verdict(&case.case) == CaseVerdict::Open);
    match open.map(|(_, agent)| agent.standing().open).sum() {
        0 => "inconclusive".to_owned(),
        1 => "inconclusive: 1 trial has no verdict".to_owned(),
        count => format!("inconclusive: {count} trials have no verdict"),
    }
}

fn gate(page: &mut Page, report: &Report<'_>) {
    if report.part.is_some() {
        let word = match report.gate {
            Gate::Met => "met",
            Gate::Missed { .. } => "missed",
            Gate::Open { .. } => "inconclusive",
        };
        page.fact(
            "Gate",
            &format!("not evaluated for a part; the gate of the whole run is {word}"),
        );
        return;
    }
    let text = match report.gate {
        Gate::Met => "met".to_owned(),
        Gate::Missed { .. } => "missed".to_owned(),
        Gate::Open { .. } => inconclusive(report.summary),
    };
    page.fact("Gate", &text);
    let reasons = report.gate.reasons();
    for reason in reasons.iter().take(REASONS) {
        page.more(&printable(reason));
    }
    if reasons.len() > REASONS {
        let more = words::count((reasons.len() - REASONS) as u64, "more case");
        page.more(&format!("… and {more}"));
    }
    let why = match (report.note, report.gate) {
        (Some(note), _) => printable(note).into_owned(),
        (None, Gate::Met) => "the gate is met".to_owned(),
        (None, Gate::Missed { .. }) => "the gate is missed".to_owned(),
        (None, Gate::Open { .. }) => "the gate is inconclusive".to_owned(),
    };
    page.fact("Exit", &format!("{}: {why}", report.exit));
}
