//! Checks on a transcript, and their evaluation.
//!
//! Its main type is [`Check`]. A verdict has three values: if the record lacks the proof, a check can
//! neither pass nor fail, and an empty check is unknown, never a pass.

#![warn(
    clippy::wildcard_enum_match_arm,
    reason = "a new variant must not pass by default"
)]

mod calls;
mod duplicates;
mod fit;
mod order;
mod selection;
mod target;
#[cfg(test)]
mod tests;
mod totals;
mod turn;
mod unread;
mod usage;
mod wording;

use std::borrow::Cow;

use proctor_record::transcript::{CallKind, Transcript, UnreadMessage};
use proctor_record::verdict::Verdict;
use serde::{Deserialize, Serialize};

pub use self::selection::{ExpectedTools, SelectionCheck, SelectionMode};
pub use self::target::{NameMatcher, OrderEntry, OrderKind, SkillMatcher, Times, ToolMatcher};

/// One condition on a transcript.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Check {
    /// Every entry was called as often as it says.
    ToolsUsed(Vec<ToolMatcher>),
    /// At least one entry was called as often as it says.
    RequireAny(Vec<ToolMatcher>),
    /// No entry was called as often as it says.
    ToolsNotUsed(Vec<ToolMatcher>),
    /// There were at least this many tool calls.
    MinToolCalls(u64),
    /// There were at most this many tool calls.
    MaxToolCalls(u64),
    /// Every entry was read.
    ResourcesRead(Vec<NameMatcher>),
    /// No entry was read.
    ResourcesNotRead(Vec<NameMatcher>),
    /// Every entry was used.
    PromptsUsed(Vec<NameMatcher>),
    /// No entry was used.
    PromptsNotUsed(Vec<NameMatcher>),
    /// The entries were called in this order. Other calls may come between them.
    CallOrder(Vec<OrderEntry>),
    /// No tool was called twice with the same arguments.
    NoDuplicateCalls,
    /// The tool calls were these, one for one. An entry stands for as many calls as its
    /// `times.min` says, one by default; `times.max` allows more of them in [`CallsMode::Exact`].
    Calls {
        mode: CallsMode,
        list: Vec<ToolMatcher>,
    },
    /// Every entry was loaded.
    SkillsLoaded(Vec<SkillMatcher>),
    /// No entry was loaded.
    SkillsNotLoaded(Vec<SkillMatcher>),
    /// The model chose the expected tools in its first turn.
    Selection(Box<SelectionCheck>),
    /// No tool call of a selection trial reached a server.
    NotExecuted,
    /// A check on the calls of one turn of a conversation.
    OfTurn {
        /// The number of the turn; the prompt is turn 1.
        turn: u32,
        check: Box<Check>,
    },
}

/// How the calls must correspond to the list of [`Check::Calls`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum CallsMode {
    /// In any order, among other calls.
    Contains,
    /// In this order, among other calls.
    InOrder,
    /// In this order, without other calls.
    Exact,
}

impl CallsMode {
    /// The word that suite files use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Contains => "contains",
            Self::InOrder => "inOrder",
            Self::Exact => "exact",
        }
    }
}

/// The verdict of a check, with the calls that decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckResult {
    pub verdict: Verdict,
    /// The calls that satisfy or violate the check, or come nearest: `seq` numbers, ascending.
    pub evidence: Vec<u64>,
}

impl Check {
    /// The check's key in a suite file, with its turn if it is about one.
    pub fn name(&self) -> Cow<'static, str> {
        if let Self::OfTurn { turn, check } = self {
            return format!("turn {turn}: {}", check.name()).into();
        }
        self.key().into()
    }

    /// The check's key in a suite file.
    fn key(&self) -> &'static str {
        match self {
            Self::OfTurn { check, .. } => check.key(),
            Self::ToolsUsed(_) => "toolsUsed",
            Self::RequireAny(_) => "requireAny",
            Self::ToolsNotUsed(_) => "toolsNotUsed",
            Self::MinToolCalls(_) => "minToolCalls",
            Self::MaxToolCalls(_) => "maxToolCalls",
            Self::ResourcesRead(_) => "resourcesRead",
            Self::ResourcesNotRead(_) => "resourcesNotRead",
            Self::PromptsUsed(_) => "promptsUsed",
            Self::PromptsNotUsed(_) => "promptsNotUsed",
            Self::CallOrder(_) => "callOrder",
            Self::NoDuplicateCalls => "noDuplicateCalls",
            Self::Calls { .. } => "calls",
            Self::SkillsLoaded(_) => "skillsLoaded",
            Self::SkillsNotLoaded(_) => "skillsNotLoaded",
            Self::Selection(_) => "selection",
            Self::NotExecuted => "notExecuted",
        }
    }

    /// A description of each entry, for reports.
    pub fn details(&self) -> Vec<String> {
        fn each<T: ToString>(entries: &[T]) -> Vec<String> {
            entries.iter().map(ToString::to_string).collect()
        }
        match self {
            Self::ToolsUsed(entries)
            | Self::RequireAny(entries)
            | Self::ToolsNotUsed(entries)
            | Self::Calls { list: entries, .. } => {
                entries.iter().map(ToolMatcher::describe).collect()
            }
            Self::MinToolCalls(count) | Self::MaxToolCalls(count) => vec![count.to_string()],
            Self::ResourcesRead(entries)
            | Self::ResourcesNotRead(entries)
            | Self::PromptsUsed(entries)
            | Self::PromptsNotUsed(entries) => each(entries),
            Self::CallOrder(entries) => each(entries),
            Self::NoDuplicateCalls | Self::NotExecuted => Vec::new(),
            Self::OfTurn { check, .. } => check.details(),
            Self::Selection(check) => check.details(),
            Self::SkillsLoaded(entries) | Self::SkillsNotLoaded(entries) => each(entries),
        }
    }

    /// All exact names in the check, in order. Before a run, Proctor compares them with the names
    /// that the servers list.
    pub fn exact_names(&self) -> Vec<OrderEntry> {
        fn exact<'a>(
            kind: OrderKind,
            entries: impl Iterator<Item = &'a NameMatcher>,
        ) -> Vec<OrderEntry> {
            let exact = entries.filter(|entry| entry.pattern.is_none());
            exact
                .filter_map(|entry| {
                    Some(OrderEntry {
                        kind,
                        server: entry.server.clone(),
                        name: entry.name.clone()?,
                    })
                })
                .collect()
        }
        match self {
            Self::ToolsUsed(entries)
            | Self::RequireAny(entries)
            | Self::ToolsNotUsed(entries)
            | Self::Calls { list: entries, .. } => {
                exact(OrderKind::Tool, entries.iter().map(|entry| &entry.target))
            }
            Self::ResourcesRead(entries) | Self::ResourcesNotRead(entries) => {
                exact(OrderKind::Resource, entries.iter())
            }
            Self::PromptsUsed(entries) | Self::PromptsNotUsed(entries) => {
                exact(OrderKind::Prompt, entries.iter())
            }
            Self::CallOrder(entries) => entries.clone(),
            Self::OfTurn { check, .. } => check.exact_names(),
            Self::MinToolCalls(_)
            | Self::MaxToolCalls(_)
            | Self::NoDuplicateCalls
            | Self::SkillsLoaded(_)
            | Self::SkillsNotLoaded(_)
            // Unknown names in a selection are errors, which the engine reports.
            | Self::Selection(_)
            | Self::NotExecuted => Vec::new(),
        }
    }

    /// The servers that the check names.
    pub fn servers(&self) -> Vec<&str> {
        match self {
            Self::ToolsUsed(entries)
            | Self::RequireAny(entries)
            | Self::ToolsNotUsed(entries)
            | Self::Calls { list: entries, .. } => {
                let servers = entries.iter().map(|entry| entry.target.server.as_str());
                servers.collect()
            }
            Self::ResourcesRead(entries)
            | Self::ResourcesNotRead(entries)
            | Self::PromptsUsed(entries)
            | Self::PromptsNotUsed(entries) => {
                entries.iter().map(|entry| entry.server.as_str()).collect()
            }
            Self::CallOrder(entries) => entries.iter().map(|entry| entry.server.as_str()).collect(),
            Self::Selection(check) => check.server.iter().map(String::as_str).collect(),
            Self::OfTurn { check, .. } => check.servers(),
            Self::MinToolCalls(_)
            | Self::MaxToolCalls(_)
            | Self::NoDuplicateCalls
            | Self::SkillsLoaded(_)
            | Self::SkillsNotLoaded(_)
            | Self::NotExecuted => Vec::new(),
        }
    }

    /// Whether the check holds for a transcript.
    pub fn evaluate(&self, transcript: &Transcript) -> CheckResult {
        // The check of a turn considers the unread messages of that turn only.
        if let Self::OfTurn { turn, check } = self {
            return turn::evaluate(*turn, check, transcript);
        }
        let result = self.evaluate_seen(transcript);
        let open = match result.verdict {
            Verdict::Pass => self.suffers_from_calls(),
            Verdict::Fail { .. } => self.gains_from_calls(),
            Verdict::Unknown { .. } => false,
        };
        let unread = transcript.unread.iter();
        let concerned: Vec<&UnreadMessage> = unread
            .filter(|message| open && self.may_concern(message))
            .collect();
        if concerned.is_empty() {
            return result;
        }
        unread::doubt(&concerned)
    }

    /// Whether a message that may be a call may be one that the check is about.
    fn may_concern(&self, message: &UnreadMessage) -> bool {
        let names = |kind: CallKind, mut entries: std::slice::Iter<'_, NameMatcher>| {
            entries.any(|entry| unread::may_match(message, kind, entry))
        };
        match self {
            Self::OfTurn { check, .. } => check.may_concern(message),
            Self::ToolsUsed(entries)
            | Self::RequireAny(entries)
            | Self::ToolsNotUsed(entries)
            | Self::Calls {
                mode: CallsMode::Contains | CallsMode::InOrder,
                list: entries,
            } => entries
                .iter()
                .any(|entry| unread::may_match(message, CallKind::Tool, &entry.target)),
            Self::MinToolCalls(_)
            | Self::MaxToolCalls(_)
            | Self::NoDuplicateCalls
            | Self::NotExecuted
            | Self::Calls {
                mode: CallsMode::Exact,
                ..
            } => unread::may_be(message, CallKind::Tool),
            Self::ResourcesRead(entries) | Self::ResourcesNotRead(entries) => {
                names(CallKind::Resource, entries.iter())
            }
            Self::PromptsUsed(entries) | Self::PromptsNotUsed(entries) => {
                names(CallKind::Prompt, entries.iter())
            }
            Self::CallOrder(entries) => entries
                .iter()
                .any(|entry| unread::may_be_entry(message, entry)),
            Self::SkillsLoaded(_) | Self::SkillsNotLoaded(_) | Self::Selection(_) => false,
        }
    }

    /// Whether one more call could turn a failure into a pass.
    fn gains_from_calls(&self) -> bool {
        match self {
            Self::OfTurn { check, .. } => check.gains_from_calls(),
            Self::ToolsUsed(_)
            | Self::RequireAny(_)
            | Self::MinToolCalls(_)
            | Self::ResourcesRead(_)
            | Self::PromptsUsed(_)
            | Self::CallOrder(_)
            | Self::Calls { .. } => true,
            Self::ToolsNotUsed(entries) => has_most(entries),
            Self::MaxToolCalls(_)
            | Self::ResourcesNotRead(_)
            | Self::PromptsNotUsed(_)
            | Self::NoDuplicateCalls
            | Self::SkillsLoaded(_)
            | Self::SkillsNotLoaded(_)
            | Self::Selection(_)
            | Self::NotExecuted => false,
        }
    }

    /// Whether one more call could turn a pass into a failure.
    fn suffers_from_calls(&self) -> bool {
        match self {
            Self::OfTurn { check, .. } => check.suffers_from_calls(),
            Self::ToolsNotUsed(_)
            | Self::MaxToolCalls(_)
            | Self::ResourcesNotRead(_)
            | Self::PromptsNotUsed(_)
            | Self::NoDuplicateCalls
            | Self::NotExecuted
            | Self::Calls {
                mode: CallsMode::Exact,
                ..
            } => true,
            Self::ToolsUsed(entries) | Self::RequireAny(entries) => has_most(entries),
            Self::MinToolCalls(_)
            | Self::ResourcesRead(_)
            | Self::PromptsUsed(_)
            | Self::CallOrder(_)
            | Self::Calls {
                mode: CallsMode::Contains | CallsMode::InOrder,
                ..
            }
            | Self::SkillsLoaded(_)
            | Self::SkillsNotLoaded(_)
            | Self::Selection(_) => false,
        }
    }

    fn evaluate_seen(&self, transcript: &Transcript) -> CheckResult {
        match self {
            Self::OfTurn { turn, check } => turn::evaluate(*turn, check, transcript),
            Self::ToolsUsed(entries) => usage::all(&usage::tools(entries, transcript)),
            Self::RequireAny(entries) => usage::any(&usage::tools(entries, transcript)),
            Self::ToolsNotUsed(entries) => usage::none(&usage::tools(entries, transcript)),
            Self::MinToolCalls(least) => totals::at_least(*least, transcript),
            Self::MaxToolCalls(most) => totals::at_most(*most, transcript),
            Self::ResourcesRead(entries) => usage::all(&usage::resources(entries, transcript)),
            Self::ResourcesNotRead(entries) => usage::none(&usage::resources(entries, transcript)),
            Self::PromptsUsed(entries) => usage::all(&usage::prompts(entries, transcript)),
            Self::PromptsNotUsed(entries) => usage::none(&usage::prompts(entries, transcript)),
            Self::CallOrder(entries) => order::evaluate(entries, transcript),
            Self::NoDuplicateCalls => duplicates::evaluate(transcript),
            Self::Calls { mode, list } => calls::evaluate(*mode, list, transcript),
            Self::SkillsLoaded(entries) => usage::skills(entries, transcript)
                .map_or_else(CheckResult::silent_about_skills, |counts| {
                    usage::all(&counts)
                }),
            Self::Selection(check) => check.evaluate(transcript),
            Self::NotExecuted => selection::not_executed(transcript),
            Self::SkillsNotLoaded(entries) => usage::skills(entries, transcript)
                .map_or_else(CheckResult::silent_about_skills, |counts| {
                    usage::none(&counts)
                }),
        }
    }
}

fn has_most(entries: &[ToolMatcher]) -> bool {
    entries.iter().any(|entry| entry.times.max.is_some())
}

impl CheckResult {
    fn new(verdict: Verdict, mut evidence: Vec<u64>) -> Self {
        evidence.sort_unstable();
        evidence.dedup();
        Self { verdict, evidence }
    }

    fn pass(evidence: Vec<u64>) -> Self {
        Self::new(Verdict::Pass, evidence)
    }

    fn fail(reason: impl Into<String>, evidence: Vec<u64>) -> Self {
        Self::new(Verdict::fail(reason), evidence)
    }

    fn unknown(reason: impl Into<String>, evidence: Vec<u64>) -> Self {
        Self::new(Verdict::unknown(reason), evidence)
    }

    fn nothing_to_check() -> Self {
        Self::unknown("nothing to check", Vec::new())
    }

    fn silent_about_skills() -> Self {
        Self::unknown(
            "this agent does not report which skills it loads",
            Vec::new(),
        )
    }
}
