//! The results of selection rows: how well each tool was chosen, and the confusion matrix.
//!
//! Main type: [`SelectionPage`].

use proctor_core::selection::{Choice, SelectionReport};
use proctor_core::summary::Summary;
use serde::Serialize;

use super::results::RatePage;
use crate::selection::{Labels, notes, percent, worst_first};

/// The selection results of one agent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelectionPage {
    /// The name as recorded.
    pub agent: String,
    /// The number of trials with a verdict.
    pub trials: u32,
    pub rate: Option<RatePage>,
    /// The tools, those with the most mistakes first; "no call" counts as one.
    pub tools: Vec<ToolScorePage>,
    /// What was expected or chosen, in the order of `tools`. An invented name is the last.
    pub choices: Vec<String>,
    /// The positions of an expected and a chosen one in `choices`, with the number of trials.
    pub confusion: Vec<(usize, usize, u32)>,
    /// What the matrix does not show, in sentences.
    pub notes: Vec<String>,
}

/// How well one tool was chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolScorePage {
    pub name: String,
    pub hits: u32,
    pub false_hits: u32,
    pub misses: u32,
    /// As a percentage; `–` if it was never chosen.
    pub precision: String,
    /// As a percentage; `–` if it was never expected.
    pub recall: String,
}

impl SelectionPage {
    /// The results of each agent that did selection rows.
    pub(super) fn all(summary: &Summary) -> Vec<Self> {
        SelectionReport::of(summary).iter().map(Self::of).collect()
    }

    fn of(report: &SelectionReport) -> Self {
        let labels = Labels::of(report);
        let scores = worst_first(report);
        let mut choices: Vec<&Choice> = scores.iter().map(|score| &score.choice).collect();
        if report
            .confusion
            .keys()
            .any(|(_, chosen)| *chosen == Choice::Invented)
        {
            choices.push(&Choice::Invented);
        }
        let position = |wanted: &Choice| choices.iter().position(|choice| *choice == wanted);
        let pairs = report
            .confusion
            .iter()
            .filter_map(|((expected, chosen), count)| {
                Some((position(expected)?, position(chosen)?, *count))
            });
        Self {
            agent: report.agent.clone(),
            trials: report.trials,
            rate: report.rate.as_ref().map(RatePage::of),
            confusion: pairs.collect(),
            tools: scores
                .iter()
                .map(|score| ToolScorePage {
                    name: labels.label(&score.choice),
                    hits: score.hits,
                    false_hits: score.false_hits,
                    misses: score.misses,
                    precision: percent(score.precision()),
                    recall: percent(score.recall()),
                })
                .collect(),
            choices: choices.iter().map(|choice| labels.label(choice)).collect(),
            notes: notes(report),
        }
    }
}
