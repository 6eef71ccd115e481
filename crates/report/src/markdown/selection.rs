//! The tables of selection rows: precision and recall of each tool.

use proctor_core::selection::{SelectionReport, ToolScore};
use proctor_core::summary::Summary;

use super::code::{code, reason};
use super::document::Section;
use crate::selection::{Labels, notes, percent, worst_first};
use crate::words;

/// A table of tools for each agent that did selection rows.
pub(super) fn tables(summary: &Summary) -> Vec<Section> {
    let reports = SelectionReport::of(summary);
    let is_alone = reports.len() == 1;
    let table = |report: &SelectionReport| {
        let labels = Labels::of(report);
        let agent = if is_alone {
            String::new()
        } else {
            format!(" of {}", code(&report.agent))
        };
        let rate = report.rate.as_ref().map_or(String::new(), |rate| {
            format!(", pass rate {}", words::rate(rate))
        });
        let trials = words::count(u64::from(report.trials), "trial");
        let mut before = format!("**Selection{agent}**: {trials}{rate}\n\n");
        for note in notes(report) {
            before.push_str(&format!("{}\n\n", reason(&note)));
        }
        before.push_str(
            "| tool | precision | recall | expected and chosen | chosen instead |\n\
             |---|---|---|---|---|\n",
        );
        let row = |score: &&ToolScore| {
            let instead = score
                .stolen_by
                .iter()
                .map(|(choice, count)| format!("{} {count}", code(&labels.label(choice))));
            let instead: Vec<String> = instead.collect();
            format!(
                "| {} | {} | {} | {} | {} |\n",
                code(&labels.label(&score.choice)),
                percent(score.precision()),
                percent(score.recall()),
                score.hits,
                instead.join(", ")
            )
        };
        Section {
            before,
            rows: worst_first(report).iter().map(row).collect(),
            noun: "tool",
            after: "\n",
        }
    };
    reports.iter().map(table).collect()
}
