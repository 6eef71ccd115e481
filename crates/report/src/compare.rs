//! Renders the comparison of two runs: for a terminal, as Markdown, as JSON.
//!
//! Its main type is [`CompareReport`]. The three answers have the same words everywhere.

pub mod json;
pub mod markdown;
pub mod suites;
pub mod text;

use proctor_core::compare::sentence;
use proctor_core::compare::{
    CellPair, Comparison, RunFacts, SpendingChange, ToolChange, ToolChangeKind, ToolsChange,
};

use crate::words;

/// Everything that a rendered comparison shows.
#[derive(Debug)]
pub struct CompareReport<'a> {
    pub comparison: &'a Comparison,
    /// The name of the suite of the new run.
    pub suite: &'a str,
    pub new: &'a RunFacts,
    pub spending: SpendingChange,
    pub tools: ToolsChange,
}

impl<'a> CompareReport<'a> {
    pub fn new(
        comparison: &'a Comparison,
        suite: &'a str,
        base: &'a RunFacts,
        new: &'a RunFacts,
    ) -> Self {
        Self {
            comparison,
            suite,
            new,
            spending: RunFacts::spending(comparison, base, new),
            tools: RunFacts::tools_change(base, new),
        }
    }

    /// Why a case that got worse does not pass.
    fn reason(&self, cell: &CellPair) -> Option<&str> {
        self.new.reason(&cell.id, &cell.agent)
    }

    /// The name of a case, with its agent if there are several.
    fn name(&self, cell: &CellPair) -> String {
        if self.comparison.pairing.agents.len() > 1 {
            format!("{}/{}", cell.agent, cell.name)
        } else {
            cell.name.clone()
        }
    }

    /// Tokens, cost, duration and tools in both runs, as far as they are known.
    fn changes(&self) -> Vec<(&'static str, String)> {
        let SpendingChange {
            tokens,
            cost_usd,
            median,
        } = self.spending;
        let mut lines = Vec::new();
        if let (Some(base), Some(new)) = (tokens.base, tokens.new) {
            let relative = relative(tokens.relative());
            let (base, new) = (whole(base), whole(new));
            lines.push(("Tokens", format!("{base} → {new} per trial{relative}")));
        }
        if let (Some(base), Some(new)) = (cost_usd.base, cost_usd.new) {
            let relative = relative(cost_usd.relative());
            let (base, new) = (words::cost(Some(base)), words::cost(Some(new)));
            lines.push(("Cost", format!("{base} → {new} per trial{relative}")));
        }
        if let (Some(base), Some(new)) = (median.base, median.new) {
            let brief = |seconds| {
                let time = std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default();
                proctor_record::duration::brief(time)
            };
            lines.push(("Median", format!("{} → {}", brief(base), brief(new))));
        }
        let weight = self.tools.weight;
        if let (Some(base), Some(new)) = (weight.base, weight.new) {
            let (base, new) = (words::thousands(base), words::thousands(new));
            lines.push(("Tools", format!("schemas of about {base} → {new} tokens")));
        }
        lines
    }
}

fn tool_change(change: &ToolChange) -> &'static str {
    match change.kind {
        ToolChangeKind::Added => "added",
        ToolChangeKind::Removed => "removed",
        ToolChangeKind::Description => "description changed",
        ToolChangeKind::Schema => "input schema changed",
        ToolChangeKind::DescriptionAndSchema => "description and input schema changed",
    }
}

fn whole(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a mean of counts"
    )]
    let number = number.round().max(0.0) as u64;
    words::thousands(number)
}

/// ` (+12%)`, or nothing if it is unknown.
fn relative(share: Option<f64>) -> String {
    share.map_or(String::new(), |share| {
        format!(" ({}%)", sentence::signed(share * 100.0))
    })
}
