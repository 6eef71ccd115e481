//! The report as one JSON document: the format of mcpchecker's result file, plus an object `proctor` at
//! the top and in each entry.
//!
//! It is written trial by trial, so that memory does not grow with their number. It contains trials that did
//! not run too: without them, the list would look complete.

mod agent_output;
pub(crate) mod entry;
pub(crate) mod history;
mod tokens;

use std::collections::BTreeMap;
use std::io::Write;

use proctor_core::gate::{CaseVerdict, Gate};
use proctor_core::summary::{AgentSummary, Counts, Summary};
use proctor_record::event::{
    PlannedAgent, RunConfig, RunKind, ServerSeen, Surface, TimeoutConfig, WireKind,
};
use proctor_record::fold::ModelActivity;
use proctor_record::json;
use proctor_record::model::Usage;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::{Report, ReportError, ReportPart, selection, words};

/// Writes the document, with a line feed at the end.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    document(report, None, out)
}

/// Writes the document; with `only`, the trials of that agent (by its index) without the objects `proctor`.
pub(crate) fn document(
    report: &Report<'_>,
    only: Option<usize>,
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let tools = tools(report)?;
    let agent = only.unwrap_or_default();
    let summary = summary(report.summary, agent, &tools);
    write!(out, "{{\"summary\":{summary}")?;
    if only.is_none() {
        write!(out, ",\n\"proctor\":{}", ours(report))?;
    }
    out.write_all(b",\n\"results\":[")?;
    let only = only.and_then(|agent| report.summary.plan.agents.get(agent));
    let trials = report.summary.trials();
    let trials = trials.filter(|(_, trials, _)| only.is_none_or(|only| trials.agent == only.name));
    for (index, (case, agent, trial)) in trials.enumerate() {
        let folded = report.fold(trial)?;
        let separator: &[u8] = if index == 0 { b"\n" } else { b",\n" };
        out.write_all(separator)?;
        let run = entry::RunEntry {
            started: &report.summary.started.started,
            folder: report
                .summary
                .plan
                .config
                .as_ref()
                .map(|config| config.folder.as_str()),
            schema_tokens: tools.values().map(tokens::of_value).sum(),
            is_imported: report.summary.plan.kind == RunKind::Imported,
        };
        let mut entry = entry::value(case, agent, trial, folded.as_ref(), &run);
        if only.is_some() {
            entry::strip(&mut entry);
        }
        write!(out, "{entry}")?;
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

/// The tools of each server, as a JSON array, if the record has them.
fn tools(report: &Report<'_>) -> Result<BTreeMap<String, Value>, ReportError> {
    let mut all = BTreeMap::new();
    for seen in &report.summary.servers {
        let Some(body) = seen.surface.as_ref().or(seen.tool_list.as_ref()) else {
            continue;
        };
        let Some(bytes) = report.run.body_bytes(body)? else {
            continue;
        };
        let list = if seen.surface.is_some() {
            let surface = json::from_slice::<Surface>(&bytes).ok();
            surface.map(|surface| {
                surface
                    .tools
                    .iter()
                    .filter_map(|tool| described(tool))
                    .collect()
            })
        } else {
            json::from_slice::<Value>(&bytes).ok()
        };
        all.extend(list.map(|list| (seen.server.clone(), list)));
    }
    Ok(all)
}

/// The fields of a tool that result files contain.
fn described(tool: &RawValue) -> Option<Value> {
    let tool: Value = json::from_str(tool.get()).ok()?;
    let kept = ["name", "description", "inputSchema"];
    let kept = kept
        .into_iter()
        .filter_map(|key| Some((key, tool.get(key)?.clone())));
    Some(kept.collect())
}

/// The configuration of the run in mcpchecker's format, as far as the record has it. The format has one
/// agent, by its index.
fn summary(summary: &Summary, agent: usize, tools: &BTreeMap<String, Value>) -> Value {
    let runs = summary.cases.iter().map(|case| case.case.runs).max();
    let known = RunConfig::default();
    let config = summary.plan.config.as_ref().unwrap_or(&known);
    let mut out = json!({
        "evals": {
            "names": summary.cases.iter().map(|case| &case.case.name).collect::<Vec<_>>(),
            "taskSets": config.task_sets,
        },
        "mcpServers": servers(summary, config, tools),
        "parallelWorkers": config.workers.max(1),
        "runs": runs.unwrap_or(0),
    });
    if let Some(agent) = config.agents.get(agent) {
        out["agent"] = json!(agent);
    } else if let Some(agent) = summary.plan.agents.get(agent) {
        let mut agent = self::agent(agent);
        agent["type"] = Value::from("");
        out["agent"] = agent;
    }
    match (&config.judge, &summary.plan.judge) {
        (Some(judge), _) => out["judge"] = json!(judge),
        (None, Some(judge)) => out["judge"] = json!({ "model": judge }),
        (None, None) => {}
    }
    if config.timeouts != TimeoutConfig::default() {
        out["timeout"] = json!(config.timeouts);
    }
    if !config.skills.is_empty() {
        let skill = |path: &String| json!({ "type": "path", "path": path });
        out["skills"] = config.skills.iter().map(skill).collect();
    }
    out
}

fn servers(summary: &Summary, config: &RunConfig, tools: &BTreeMap<String, Value>) -> Vec<Value> {
    let kind = |name: &String| match summary.transports.get(name) {
        Some(WireKind::Stdio) => "stdio",
        Some(WireKind::Http | WireKind::Sse) => "http",
        Some(WireKind::Unknown) | None => "",
    };
    let mut names: Vec<&String> = summary.servers.iter().map(|seen| &seen.server).collect();
    names.extend(summary.transports.keys());
    names.extend(config.servers.iter().map(|server| &server.name));
    names.sort_unstable();
    names.dedup();
    let one = |name: &String| {
        let configured = config.servers.iter().find(|server| server.name == *name);
        let mut out = match configured {
            Some(server) => json!(server),
            None => json!({ "name": name, "type": kind(name) }),
        };
        if let Some(list) = tools.get(name) {
            out["tools"] = list.clone();
        }
        out
    };
    names.into_iter().map(one).collect()
}

fn agent(agent: &PlannedAgent) -> Value {
    let mut out = json!({ "name": agent.name });
    if let Some(model) = &agent.model {
        out["model"] = Value::from(model.as_str());
    }
    out
}

/// The top-level object `proctor`.
fn ours(report: &Report<'_>) -> Value {
    let summary = report.summary;
    let folder = report.folder;
    let mut out = json!({
        "run": {
            "id": report.run.folder().file_name().map(|name| name.to_string_lossy()),
            "folder": folder.to_string_lossy(),
            "name": summary.started.name,
            "suite": summary.plan.suite,
            "started": summary.started.started,
            "durationMs": millis(summary.duration),
            "ended": summary.ended,
            "sharedServers": summary.plan.shared_servers,
            "unplannedTrials": summary.unplanned,
            "unknownEvents": summary.unknown_events,
        },
        "versions": { "proctor": summary.started.proctor, "record": summary.started.record },
        "gate": gate(report.gate),
        "exit": { "code": report.exit, "note": report.note },
        "trials": counts(summary.counts()),
        "cases": cases(summary),
        "rate": summary.rate(None).as_ref().map(words::rate_document),
        "curtailed": summary.is_curtailed(),
        "profile": summary.plan.profile,
        "agents": agents(summary),
        "judge": summary.plan.judge,
        "servers": summary.servers.iter().map(seen).collect::<Vec<_>>(),
        "findings": summary.findings,
        "warnings": summary.plan.warnings,
        "usage": { "agent": activity(&summary.agent), "judge": activity(&summary.judge) },
    });
    if !summary.steps.is_empty() {
        out["steps"] = json!(summary.steps);
    }
    // A selection by outcome would make every rate meaningless.
    if let Some(selection) = selection::document(summary)
        && !report.part.is_some_and(|part| part.by_outcome)
    {
        out["selection"] = selection;
    }
    if let Some(part) = &report.part {
        restrict(&mut out, report, part);
    }
    out
}

/// Moves the results of the whole run out of a document about a part of it, so that a script can't mistake them.
fn restrict(out: &mut Value, report: &Report<'_>, part: &ReportPart<'_>) {
    let (gate, exit) = (out["gate"].take(), out["exit"].take());
    out["part"] = json!({
        "filter": part.filter,
        "trials": report.summary.trials().count(),
        "wholeRun": { "trials": part.trials, "gate": gate, "exit": exit },
    });
    if part.by_outcome {
        for key in ["rate", "cases"] {
            out[key] = Value::Null;
        }
        for agent in out["agents"].as_array_mut().into_iter().flatten() {
            for key in ["rate", "passesAlone", "missesAlone"] {
                agent[key] = Value::Null;
            }
        }
    }
}

/// The identity of a server; its tools are in the summary.
fn seen(seen: &ServerSeen) -> Value {
    json!(ServerSeen {
        tool_list: None,
        surface: None,
        ..seen.clone()
    })
}

/// The results and usage of each agent.
fn agents(summary: &Summary) -> Vec<Value> {
    let both = summary.plan.agents.iter().zip(summary.by_agent());
    let one = |(planned, found): (&PlannedAgent, AgentSummary<'_>)| {
        let mut out = agent(planned);
        out["rate"] = json!(found.rate.as_ref().map(words::rate_document));
        out["trials"] = counts(found.counts);
        out["turns"] = json!(found.turns);
        out["tokens"] = json!(usage(&found.usage));
        out["unmeteredReplies"] = json!(found.unmetered);
        out["costUsd"] = json!(found.cost_usd);
        out["medianMs"] = json!(found.median.map(millis));
        out["passesAlone"] = json!(found.alone);
        out["missesAlone"] = json!(found.missed_alone);
        out
    };
    both.map(one).collect()
}

fn gate(gate: &Gate) -> Value {
    let answer = match gate {
        Gate::Met => "met",
        Gate::Missed { .. } => "missed",
        Gate::Open { .. } => "open",
    };
    json!({ "answer": answer, "reasons": gate.reasons() })
}

fn counts(counts: Counts) -> Value {
    json!({
        "total": counts.total(),
        "passed": counts.passed,
        "failed": counts.failed,
        "timedOut": counts.timed_out,
        "errored": counts.errored,
        "cancelled": counts.cancelled,
        "notRun": counts.not_run,
    })
}

/// The number of cases that meet their pass rule, counted per agent.
fn cases(summary: &Summary) -> Value {
    let (mut met, mut missed, mut open, mut known) = (0, 0, 0, 0);
    for (case, trials) in summary.cells() {
        *match trials.verdict(&case.case) {
            CaseVerdict::Met => &mut met,
            CaseVerdict::Missed => &mut missed,
            CaseVerdict::Open => &mut open,
            CaseVerdict::KnownFailure => &mut known,
        } += 1;
    }
    let total = met + missed + open + known;
    let mut out = json!({ "total": total, "met": met, "missed": missed, "open": open });
    if !summary.plan.known_failures.is_empty() {
        out["knownFailures"] = json!(known);
    }
    out
}

/// The usage of models; `null` is unknown.
fn activity(activity: &ModelActivity) -> Value {
    json!({
        "models": activity.models,
        "turns": activity.turns,
        "failures": activity.failures,
        "tokens": usage(&activity.usage),
        "unmeteredReplies": activity.unmetered,
        "costUsd": activity.cost_usd,
        "replayed": activity.replayed,
        "drifted": activity.drifted,
    })
}

fn usage(usage: &Usage) -> Map<String, Value> {
    json!(usage).as_object().cloned().unwrap_or_default()
}

/// Converts to milliseconds, rounded to microseconds.
pub(crate) fn millis(duration: std::time::Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn milliseconds_are_written_with_the_digits_that_were_measured() {
        for (micros, written) in [
            (82_632, "82.632"),
            (1_583_948, "1583.948"),
            (90_300, "90.3"),
            (0, "0.0"),
            (86_400_000_001, "86400000.001"),
        ] {
            let shown = json!(millis(Duration::from_micros(micros)));
            assert_eq!(shown.to_string(), written);
        }
    }
}
