//! Sentences about a whole run that the reports for people share.
//!
//! Names in them are as recorded: the renderer escapes the sentence.

use std::path::Path;
use std::time::Duration;

use proctor_core::causes::Cause;
use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::summary::{AgentTrials, CaseSummary, Summary};
use proctor_record::duration;
use proctor_record::event::{CheckPlace, PlannedAgent};
use proctor_record::verdict::Verdict;

use crate::{Report, ReportPart, words};

/// Which part of the run a report shows: how many trials, and the options that select them.
pub(crate) fn part(summary: &Summary, part: &ReportPart<'_>) -> String {
    let shown = words::thousands(summary.trials().count() as u64);
    let all = words::count(part.trials as u64, "trial");
    format!("{shown} of {all}, selected by `{}`", part.filter)
}

/// The pass rate of what a report shows. That of trials that were selected by their outcome says nothing.
pub(crate) fn trials_of(report: &Report<'_>) -> String {
    if report.part.is_some_and(|part| part.by_outcome) {
        words::count(report.summary.trials().count() as u64, "trial")
    } else {
        trials(report.summary)
    }
}

/// The pass rate: `6/11 trials passed (55%, 95% CI 28–79%)`.
fn trials(summary: &Summary) -> String {
    if summary.is_curtailed() {
        let counts = summary.counts();
        return format!(
            "{} of {} trials passed, curtailed by `--stop-when-decided`: not a pass rate",
            counts.passed,
            counts.counted()
        );
    }
    match summary.rate(None) {
        Some(rate) => format!(
            "{}/{} trials passed ({})",
            rate.tally.passed,
            rate.tally.counted,
            words::rate(&rate)
        ),
        None => "no trial has a verdict".to_owned(),
    }
}

/// The trials that the pass rate does not include, if any.
pub(crate) fn excluded(summary: &Summary) -> Option<String> {
    let counts = summary.counts();
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
    let apart = (!apart.is_empty()).then(|| apart.join(", "))?;
    if summary.is_curtailed() {
        return Some(apart);
    }
    Some(format!("{apart}: excluded from the pass rate"))
}

/// The trials that failed or timed out, if any, with their blames.
pub(crate) fn failed(summary: &Summary) -> Option<String> {
    let counts = summary.counts();
    if counts.failed + counts.timed_out == 0 {
        return None;
    }
    let timed_out = match counts.timed_out {
        0 => String::new(),
        count => format!(", {count} timed out"),
    };
    let blame = blames(summary, false);
    Some(format!("{} failed{timed_out}{blame}", counts.failed))
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

/// The steps of the run's own setup and cleanup, such as `setup seed passed (2s)`.
pub(crate) fn run_steps(summary: &Summary) -> Vec<String> {
    let steps = summary.steps.iter().map(|step| {
        let time = words::time(Duration::from_micros(step.duration));
        let time = time.map_or(String::new(), |time| format!(" ({time})"));
        let result = match &step.verdict {
            Verdict::Pass => format!("passed{time}"),
            Verdict::Fail { reason } => format!("failed{time}: {}", one_line(reason)),
            Verdict::Unknown { reason } => format!("inconclusive{time}: {}", one_line(reason)),
        };
        format!("{} {} {result}", step.phase, step.id)
    });
    steps.collect()
}

/// A server that takes longer to start is worth a note.
const SLOW_START: Duration = Duration::from_secs(3);

/// Programs that fetch or resolve a package before they start it.
const FETCHING: [&str; 6] = ["npx", "bunx", "pnpx", "uvx", "pipx", "docker"];

/// The servers that took long to start, each with a hint.
pub(crate) fn slow_starts(summary: &Summary) -> Vec<String> {
    let config = summary.plan.config.as_ref();
    let program = |name: &str| {
        let mut servers = config?.servers.iter();
        let command = servers
            .find(|server| server.name == name)?
            .command
            .as_ref()?;
        Path::new(command).file_name()?.to_str()
    };
    let slow = summary.servers.iter().filter_map(|seen| {
        let time = Duration::from_micros(seen.started_in?);
        let hint = match program(&seen.server).filter(|program| FETCHING.contains(program)) {
            Some(program) => format!("install it instead of starting it with `{program}`"),
            None if summary.plan.shared_servers => return None,
            None => "every trial waits for it".to_owned(),
        };
        let shown = duration::brief(time);
        (time > SLOW_START).then(|| format!("`{}` took {shown} to start: {hint}", seen.server))
    });
    slow.collect()
}

/// Why the cleanup of the run failed, if it did.
pub(crate) fn failed_cleanup(summary: &Summary) -> Option<&str> {
    summary.ended.as_ref()?.failed_cleanup.as_deref()
}

fn one_line(text: &str) -> String {
    text.lines().collect::<Vec<_>>().join(" ")
}

/// How many cases passed: `7 of 9 cases met their pass rule`.
pub(crate) fn cases(summary: &Summary) -> String {
    let (mut all, mut met, mut known) = (0_u64, 0_u64, 0_u64);
    for (case, trials) in summary.cells() {
        all += 1;
        let verdict = trials.verdict(&case.case);
        met += u64::from(verdict == CaseVerdict::Met);
        known += u64::from(verdict == CaseVerdict::KnownFailure);
    }
    let known = match known {
        0 => String::new(),
        known => format!(", {}", words::count(known, "known failure")),
    };
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
    format!("{met} of {all} {noun} {verb}{known}")
}

/// The answer of the gate, and how many trials keep it from one.
pub(crate) fn gate(report: &Report<'_>) -> String {
    if report.part.is_some() {
        return gate_of_part(report.gate);
    }
    if let Some(shard) = shard(report.summary) {
        return format!("not evaluated: {shard}, and the gate belongs to the merged run");
    }
    match report.gate {
        Gate::Met => "met".to_owned(),
        Gate::Missed { .. } => "missed".to_owned(),
        Gate::Open { .. } => inconclusive(report.summary),
    }
}

/// Which shard of a run this is; `None` if it is a whole run.
pub(crate) fn shard(summary: &Summary) -> Option<String> {
    let shard = summary.plan.shard.as_ref()?;
    Some(format!("shard {} of {}", shard.index?, shard.count))
}

/// Says that the gate is that of the whole run.
pub(crate) fn gate_of_part(gate: &Gate) -> String {
    let word = match gate {
        Gate::Met => "met",
        Gate::Missed { .. } => "missed",
        Gate::Open { .. } => "inconclusive",
    };
    format!("not evaluated for a part; the gate of the whole run is {word}")
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

/// Whether the trials of a case that did not run could not change an answer (`--stop-when-decided`).
pub(crate) fn is_decided(report: &Report<'_>, case: &CaseSummary, agent: &AgentTrials) -> bool {
    let is_open = |gate: &Gate| matches!(gate, Gate::Open { .. });
    let has_verdict = agent.verdict(&case.case) != CaseVerdict::Open;
    report.summary.plan.stop_when_decided && (has_verdict || !is_open(report.gate))
}

/// Why the command has its exit code.
pub(crate) fn exit_reason<'a>(report: &Report<'a>) -> &'a str {
    match (report.note, report.gate) {
        (Some(note), _) => note,
        (None, Gate::Met) => "the gate is met",
        (None, Gate::Missed { .. }) => "the gate is missed",
        (None, Gate::Open { .. }) => "the gate is inconclusive",
    }
}

/// How many trials of a case passed: `4/5`. Those that a filter left out count.
pub(crate) fn passed(trials: &AgentTrials) -> String {
    let standing = trials.standing();
    let all = standing.passed + standing.not_passed + standing.open;
    format!("{}/{all}", standing.passed)
}

/// The check with the line where it is written, and the reason: `toolsUsed (eval.yaml:18): no call fits`.
pub(crate) fn cause(cause: &Cause<'_>) -> String {
    let Some(check) = cause.check else {
        return cause.reason.clone();
    };
    let mut places = cause
        .trials
        .iter()
        .map(|(case, ..)| case.case.place_of(check));
    // Checks of several cases may be written at different lines.
    let first = places.next().flatten();
    let is_same = |place: Option<&CheckPlace>| {
        let both = place.zip(first);
        both.is_some_and(|(a, b)| (&a.path, a.line) == (&b.path, b.line))
    };
    match first.filter(|_| places.all(is_same)) {
        Some(CheckPlace { path, line, .. }) => format!("{check} ({path}:{line}): {}", cause.reason),
        None => cause.text(),
    }
}

/// An agent with its model, which is named once: the name of an agent may contain it.
pub(crate) fn agent(agent: &PlannedAgent) -> String {
    match &agent.model {
        Some(model) if !agent.name.contains(model.as_str()) => {
            format!("{} ({model})", agent.name)
        }
        Some(_) | None => agent.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_of_an_agent_is_named_once() {
        let check = |name: &str, model: Option<&str>, expected: &str| {
            let planned = PlannedAgent {
                name: name.to_owned(),
                model: model.map(str::to_owned),
            };
            assert_eq!(agent(&planned), expected);
        };
        check("codex", None, "codex");
        check("codex", Some("openai:gpt-5"), "codex (openai:gpt-5)");
        check(
            "llm-agent (openai:gpt-5)",
            Some("openai:gpt-5"),
            "llm-agent (openai:gpt-5)",
        );
    }
}
