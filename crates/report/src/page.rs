//! The data of the HTML report and of `proctor view`, complete: pages count, sort and filter it, and never see events.
//!
//! Main types: [`Overview`], a run with a row for each trial, and [`TrialPage`], one trial to read. Every rate, interval
//! and sentence about the run is computed here. Texts are as recorded: the page escapes them.

mod body;
mod columns;
mod facts;
mod heading;
mod items;
mod raw;
mod results;
mod selection;
mod servers;
mod strings;
mod timeline;
mod trial;

pub use self::body::{BODY_BYTES, PageBody};
pub use self::columns::TrialColumns;
pub use self::facts::TrialFacts;
pub use self::heading::{GatePage, RunPage};
pub use self::items::{CallPage, ItemKind, ResponsePage, TimelineItem};
pub use self::raw::{RawMessage, raw_messages};
pub use self::results::{
    AgentPage, CasePage, CausePage, CellPage, CellStatus, QuantilesPage, RatePage,
};
pub use self::selection::{SelectionPage, ToolScorePage};
pub use self::servers::{
    ArgumentPage, CoveragePage, FindingPage, OfferPage, ServerPage, UseKind, UsePage,
};
pub use self::trial::{
    AgentProgramPage, CheckPage, ConnectionPage, PhasePage, StepPage, TrialPage,
};

use proctor_core::causes;
use proctor_core::coverage::Coverage;
use proctor_core::summary::Counts;
use proctor_record::event::Outcome;
use proctor_record::record::RecordError;
use serde::Serialize;

use self::strings::Strings;
use crate::{Report, words};

/// The version of the page data. It increases if a field changes its meaning or is removed.
pub const PAGE_VERSION: u32 = 1;

/// The outcomes of trials. Columns hold their positions.
const OUTCOMES: [Option<Outcome>; 6] = [
    Some(Outcome::Passed),
    Some(Outcome::Failed),
    Some(Outcome::TimedOut),
    Some(Outcome::Errored),
    Some(Outcome::Cancelled),
    None,
];

/// A run: everything that its pages show besides the details of trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    pub version: u32,
    pub run: RunPage,
    pub gate: GatePage,
    /// The number of trials per outcome.
    pub counts: Counts,
    /// The pass rate; `None` if no trial counts.
    pub rate: Option<RatePage>,
    pub agents: Vec<AgentPage>,
    /// The cases, in the order of the plan.
    pub cases: Vec<CasePage>,
    /// The positions of the cases, worst first.
    pub worst_first: Vec<usize>,
    /// The causes of trials that did not pass, most frequent first.
    pub causes: Vec<CausePage>,
    /// The results of selection rows, for each agent that did any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub selection: Vec<SelectionPage>,
    pub coverage: CoveragePage,
    pub servers: Vec<ServerPage>,
    /// The words for the outcomes and the blames in the columns.
    pub outcomes: Vec<&'static str>,
    pub blames: Vec<&'static str>,
    /// The texts that columns name by their positions.
    pub strings: Vec<String>,
    /// Sets of texts, each with the positions of its strings.
    pub sets: Vec<Vec<usize>>,
    /// All planned trials: by case, then by agent, then by repeat. The order never changes, so a position in it names
    /// a trial.
    pub trials: TrialColumns,
}

impl Overview {
    /// The overview of a run. Reads the index, and no trial.
    pub fn load(report: &Report<'_>) -> Result<Self, RecordError> {
        let mut facts = TrialFacts::load(report.run)?;
        let coverage = facts.take_coverage(report.run, &report.summary.servers)?;
        Self::of(report, &facts, &coverage)
    }

    /// Like [`Overview::load`], with the arguments of all calls. Reads every trial with calls.
    pub fn with_arguments(report: &Report<'_>) -> Result<Self, RecordError> {
        let facts = TrialFacts::load(report.run)?;
        let (_, coverage) = Coverage::load(report.run)?;
        Self::of(report, &facts, &coverage)
    }

    /// The overview of a run whose index was read already.
    pub fn of(
        report: &Report<'_>,
        facts: &TrialFacts,
        coverage: &Coverage,
    ) -> Result<Self, RecordError> {
        let summary = report.summary;
        let mut strings = Strings::default();
        let grouped = causes::group(summary.trials());
        let trials = TrialColumns::of(summary, facts, &grouped, &mut strings);
        let (cases, worst_first) = results::cases(summary);
        let (strings, sets) = strings.into_lists();
        Ok(Self {
            version: PAGE_VERSION,
            run: heading::run(report),
            gate: heading::gate(report),
            counts: summary.counts(),
            rate: summary.rate(None).as_ref().map(RatePage::of),
            agents: results::agents(summary),
            cases,
            worst_first,
            causes: grouped.iter().map(CausePage::of).collect(),
            selection: SelectionPage::all(summary),
            coverage: servers::coverage(coverage),
            servers: servers::servers(report, coverage)?,
            outcomes: OUTCOMES.map(words::outcome).to_vec(),
            blames: columns::BLAMES.map(words::blame).to_vec(),
            strings,
            sets,
            trials,
        })
    }
}
