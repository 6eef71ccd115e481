//! The results of selection rows: precision and recall of each tool, and what was chosen in its
//! place. `core` computes them; the renderers of a run add them to their own.

use std::collections::BTreeMap;

use proctor_core::printable::printable;
use proctor_core::selection::{Choice, SelectionReport, ToolScore};
use proctor_core::summary::Summary;
use serde_json::{Value, json};

use crate::words;

/// The maximum number of tools, names and rows that a text lists.
const LISTED: usize = 20;

/// The names of choices: a tool has its server's name in front if another server has the same tool.
pub(crate) struct Labels(BTreeMap<String, u32>);

impl Labels {
    pub(crate) fn of(report: &SelectionReport) -> Self {
        let mut servers: BTreeMap<String, u32> = BTreeMap::new();
        for score in &report.tools {
            if let Choice::Tool(name) = &score.choice {
                *servers.entry(name.tool.clone()).or_default() += 1;
            }
        }
        Self(servers)
    }

    pub(crate) fn label(&self, choice: &Choice) -> String {
        match choice {
            Choice::Tool(name) if self.0.get(&name.tool).is_some_and(|count| *count > 1) => {
                format!("{}.{}", name.server, name.tool)
            }
            Choice::Tool(name) => name.tool.clone(),
            Choice::Invented => "(invented name)".to_owned(),
            Choice::NoCall => "(no call)".to_owned(),
        }
    }
}

/// The report as lines of text, for people.
pub(crate) fn lines(summary: &Summary) -> Vec<String> {
    let reports = SelectionReport::of(summary);
    let is_alone = reports.len() == 1;
    let mut lines = Vec::new();
    for report in &reports {
        let rate = report.rate.as_ref().map_or(String::new(), |rate| {
            format!(", pass rate {}", words::rate(rate))
        });
        let agent = if is_alone {
            String::new()
        } else {
            format!(" of {}", printable(&report.agent))
        };
        let trials = words::count(u64::from(report.trials), "trial");
        lines.push(format!("Selection{agent}: {trials}{rate}"));
        table(report, &mut lines);
        lines.extend(notes(report).into_iter().map(|note| format!("  {note}")));
        lines.push(String::new());
    }
    lines
}

fn table(report: &SelectionReport, lines: &mut Vec<String>) {
    let labels = Labels::of(report);
    let scores = worst_first(report);
    let shown = &scores[..scores.len().min(LISTED)];
    let label = |score: &ToolScore| printable(&labels.label(&score.choice)).into_owned();
    let width = shown.iter().map(|score| label(score).chars().count());
    let width = width.max().unwrap_or(0).max(4);
    let head = format!("  {:width$}  precision  recall  chosen instead", "tool");
    lines.push(head);
    for score in shown {
        let name = label(score);
        let gap = " ".repeat(width - name.chars().count().min(width));
        let line = format!(
            "  {name}{gap}  {:>9}  {:>6}  {}",
            percent(score.precision()),
            percent(score.recall()),
            printable(&instead(score, &labels))
        );
        lines.push(line.trim_end().to_owned());
    }
    if scores.len() > shown.len() {
        lines.push(format!("  … and {} more tools", scores.len() - shown.len()));
    }
}

/// The tools with the most mistakes first.
pub(crate) fn worst_first(report: &SelectionReport) -> Vec<&ToolScore> {
    let mut scores: Vec<&ToolScore> = report.tools.iter().collect();
    scores.sort_by_key(|score| std::cmp::Reverse(score.misses + score.false_hits));
    scores
}

/// `git_log 3, (no call) 1`.
fn instead(score: &ToolScore, labels: &Labels) -> String {
    let one = |(choice, count): &(Choice, u32)| format!("{} {count}", labels.label(choice));
    let all: Vec<String> = score.stolen_by.iter().map(one).collect();
    all.join(", ")
}

pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// What the table does not show: rows without a call, invented names, wrong arguments.
pub(crate) fn notes(report: &SelectionReport) -> Vec<String> {
    let mut notes = Vec::new();
    let named = |all: &BTreeMap<String, u32>| {
        let one = |(name, count): (&String, &u32)| match count {
            1 => printable(name).into_owned(),
            count => format!("{} ({count} times)", printable(name)),
        };
        let mut names: Vec<String> = all.iter().take(LISTED).map(one).collect();
        if all.len() > LISTED {
            names.push(format!("and {} more", all.len() - LISTED));
        }
        names.join(", ")
    };
    if !report.unanswered.is_empty() {
        notes.push(format!(
            "answered without a call: {}",
            named(&report.unanswered)
        ));
    }
    if !report.invented.is_empty() {
        notes.push(format!("invented names: {}", named(&report.invented)));
    }
    if report.wrong_arguments > 0 {
        let trials = words::count(u64::from(report.wrong_arguments), "trial");
        notes.push(format!("right tool, wrong arguments: {trials}"));
    }
    notes
}

/// The report as JSON: one object per agent; `None` if the run has no selection rows.
pub(crate) fn document(summary: &Summary) -> Option<Value> {
    let reports = SelectionReport::of(summary);
    if reports.is_empty() {
        return None;
    }
    Some(reports.iter().map(of_agent).collect())
}

fn of_agent(report: &SelectionReport) -> Value {
    let count = |(choice, count): &(Choice, u32)| {
        let mut out = choice_value(choice);
        out["count"] = json!(count);
        out
    };
    let tool = |score: &ToolScore| {
        let mut out = choice_value(&score.choice);
        out["hits"] = json!(score.hits);
        out["falseHits"] = json!(score.false_hits);
        out["misses"] = json!(score.misses);
        out["precision"] = json!(score.precision());
        out["recall"] = json!(score.recall());
        out["chosenInstead"] = score.stolen_by.iter().map(count).collect();
        out
    };
    let pair = |((expected, chosen), count): (&(Choice, Choice), &u32)| {
        json!({
            "expected": choice_value(expected),
            "chosen": choice_value(chosen),
            "count": count,
        })
    };
    json!({
        "agent": report.agent,
        "trials": report.trials,
        "rate": report.rate.as_ref().map(words::rate_document),
        "tools": report.tools.iter().map(tool).collect::<Vec<_>>(),
        "confusion": report.confusion.iter().map(pair).collect::<Vec<_>>(),
        "answeredWithoutCall": report.unanswered,
        "inventedNames": report.invented,
        "wrongArguments": report.wrong_arguments,
    })
}

fn choice_value(choice: &Choice) -> Value {
    match choice {
        Choice::Tool(name) => json!({"kind": "tool", "server": name.server, "tool": name.tool}),
        Choice::Invented => json!({"kind": "invented"}),
        Choice::NoCall => json!({"kind": "noCall"}),
    }
}
