//! The check `calls`: each expected call matches a tool call of its own.
//!
//! An entry that is expected `n` times takes `n` calls. First only certain matches are tried, then
//! also those that the record does not prove. If only these complete the list, the verdict is unknown.

mod explain;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use proctor_record::transcript::Transcript;

use super::fit::{CallFit, FitRank, ObservedToolCall, fit, rank, tool_calls};
use super::target::{Times, ToolMatcher};
use super::wording::listed;
use super::{CallsMode, CheckResult};
use crate::assignment::{in_order, maximum_matching};
use crate::matcher::Matcher;

pub(super) fn evaluate(
    mode: CallsMode,
    entries: &[ToolMatcher],
    transcript: &Transcript,
) -> CheckResult {
    for entry in entries {
        if let Some(why) = entry.times.contradiction() {
            return CheckResult::unknown(format!("{entry}: {why}"), Vec::new());
        }
    }
    let asks_for_nothing = entries.iter().all(|entry| entry.times.least() == 0);
    if entries.is_empty() || (mode != CallsMode::Exact && asks_for_nothing) {
        return CheckResult::nothing_to_check();
    }
    let calls = tool_calls(transcript);
    if let Some(taken) = certain(mode, entries, &calls) {
        return CheckResult::pass(taken);
    }
    let matrix = FitMatrix::new(entries, calls);
    if let Some(taken) = matrix.complete(mode, Certainty::Certain) {
        return CheckResult::pass(taken);
    }
    if matrix.complete(mode, Certainty::Possible).is_some() {
        return matrix.doubt();
    }
    explain::failure(&matrix, mode)
}

/// The calls that the entries take, where one pass over the calls proves it: in order, each entry takes the next calls
/// that match; in exact mode with fixed numbers, the calls at its own place. `None` leaves the answer to [`FitMatrix`].
fn certain(
    mode: CallsMode,
    entries: &[ToolMatcher],
    calls: &[ObservedToolCall<'_>],
) -> Option<Vec<u64>> {
    let is_fixed = |entry: &ToolMatcher| most(entry.times) == entry.times.least();
    match mode {
        CallsMode::InOrder => {}
        CallsMode::Exact if entries.iter().all(is_fixed) => {}
        CallsMode::Exact | CallsMode::Contains => return None,
    }
    let mut rest = calls.iter();
    let mut taken = Vec::new();
    for entry in entries {
        let is_match = |tool: &&ObservedToolCall<'_>| fit(entry, **tool) == CallFit::Yes;
        for _ in 0..entry.times.least() {
            let tool = match mode {
                CallsMode::Exact => rest.next().filter(is_match),
                CallsMode::InOrder | CallsMode::Contains => rest.find(is_match),
            };
            taken.push(tool?.call.seq);
        }
    }
    (mode == CallsMode::InOrder || rest.next().is_none()).then_some(taken)
}

/// Which expected entry matches which call.
struct FitMatrix<'a> {
    entries: &'a [ToolMatcher],
    calls: Vec<ObservedToolCall<'a>>,
    /// The row of each entry. Equal entries share one.
    row_of: Vec<usize>,
    /// The class of each call. Calls that no entry can tell apart share one.
    classes: Vec<usize>,
    /// The match of each row and class; `None` if there is none.
    rows: Vec<Vec<Option<Certainty>>>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Certainty {
    Possible,
    Certain,
}

impl<'a> FitMatrix<'a> {
    fn new(entries: &'a [ToolMatcher], calls: Vec<ObservedToolCall<'a>>) -> Self {
        let certainty = |entry: &ToolMatcher, tool: &ObservedToolCall<'_>| match rank(entry, *tool)
        {
            FitRank::Yes => Some(Certainty::Certain),
            FitRank::Maybe => Some(Certainty::Possible),
            FitRank::OtherTool | FitRank::No(_) => None,
        };
        let classes = classes(entries, &calls);
        // The first call of each class.
        let mut firsts: Vec<&ObservedToolCall<'_>> = Vec::new();
        for (call, class) in calls.iter().zip(&classes) {
            if *class == firsts.len() {
                firsts.push(call);
            }
        }
        let mut rows: Vec<Vec<Option<Certainty>>> = Vec::new();
        let mut known: HashMap<String, usize> = HashMap::new();
        let row_of = entries.iter().map(|entry| {
            let row = *known.entry(written(entry)).or_insert(rows.len());
            if row == rows.len() {
                rows.push(firsts.iter().map(|tool| certainty(entry, tool)).collect());
            }
            row
        });
        Self {
            row_of: row_of.collect(),
            entries,
            calls,
            classes,
            rows,
        }
    }

    fn fits(&self, entry: usize, call: usize, certainty: Certainty) -> bool {
        self.rows[self.row_of[entry]][self.classes[call]] >= Some(certainty)
    }

    /// The calls that the entries take, if every entry gets what it needs.
    fn complete(&self, mode: CallsMode, certainty: Certainty) -> Option<Vec<u64>> {
        let taken = if mode == CallsMode::Exact {
            self.partitions(certainty)
                .then(|| (0..self.calls.len()).collect())?
        } else {
            let slots = self.slots(mode);
            let partners = self.assign(mode, &slots, certainty);
            partners.into_iter().collect::<Option<Vec<usize>>>()?
        };
        Some(taken.into_iter().map(|call| self.seq(call)).collect())
    }

    /// The entry of each slot. More slots than calls are never needed to see that
    /// calls are missing, however often an entry is expected.
    fn slots(&self, mode: CallsMode) -> Vec<usize> {
        let enough = self.calls.len() + 1;
        let up_to = |count: u64| usize::try_from(count).unwrap_or(usize::MAX).min(enough);
        let slots_of = |times: Times| match mode {
            CallsMode::Exact => up_to(most(times)),
            CallsMode::Contains | CallsMode::InOrder => up_to(times.least()),
        };
        self.entries
            .iter()
            .enumerate()
            .flat_map(|(entry, matcher)| std::iter::repeat_n(entry, slots_of(matcher.times)))
            .collect()
    }

    fn assign(&self, mode: CallsMode, slots: &[usize], certainty: Certainty) -> Vec<Option<usize>> {
        let accepts = |slot: usize, call: usize| self.fits(slots[slot], call, certainty);
        match mode {
            CallsMode::Contains => maximum_matching(slots.len(), self.calls.len(), accepts),
            CallsMode::InOrder | CallsMode::Exact => {
                in_order(slots.len(), self.calls.len(), accepts)
            }
        }
    }

    /// Whether the calls form one run per entry, each with a length that the entry allows.
    fn partitions(&self, certainty: Certainty) -> bool {
        let ends = self.calls.len() + 1;
        // reachable[j]: the entries so far can take exactly the first j calls.
        let mut reachable = vec![false; ends];
        reachable[0] = true;
        for (entry, matcher) in self.entries.iter().enumerate() {
            let clamp = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
            let (least, most) = (clamp(matcher.times.least()), clamp(most(matcher.times)));
            let mut reachable_before = vec![0_usize; ends + 1];
            for (at, yes) in reachable.iter().enumerate() {
                reachable_before[at + 1] = reachable_before[at] + usize::from(*yes);
            }
            let mut fitting = 0;
            let next = (0..ends).map(|end| {
                fitting = match end.checked_sub(1) {
                    Some(call) if self.fits(entry, call, certainty) => fitting + 1,
                    _ => 0,
                };
                let earliest = end - fitting.min(most);
                end.checked_sub(least)
                    .is_some_and(|latest| reachable_before[latest + 1] > reachable_before[earliest])
            });
            reachable = next.collect();
        }
        reachable[ends - 1]
    }

    fn doubt(&self) -> CheckResult {
        let mut evidence = Vec::new();
        let mut lines = Vec::new();
        for (entry, matcher) in self.entries.iter().enumerate() {
            for tool in &self.calls {
                if let CallFit::Maybe(why) = fit(matcher, *tool) {
                    let seq = tool.call.seq;
                    evidence.push(seq);
                    lines.push(format!(
                        "{}: call #{seq} may match, but {why}",
                        self.expected(entry)
                    ));
                }
            }
        }
        CheckResult::unknown(listed(lines, "\n"), evidence)
    }

    fn expected(&self, entry: usize) -> String {
        format!("expected call {} ({})", entry + 1, self.entries[entry])
    }

    fn seq(&self, call: usize) -> u64 {
        self.calls[call].call.seq
    }
}

/// Numbers the calls by what the entries read of them, in order of the first of each kind: by tool and arguments, or
/// each on its own if an entry reads its response.
fn classes(entries: &[ToolMatcher], calls: &[ObservedToolCall<'_>]) -> Vec<usize> {
    let reads_response = |entry: &ToolMatcher| {
        entry.result.is_some() || entry.is_error.is_some() || entry.max_duration.is_some()
    };
    if entries.iter().any(reads_response) {
        return (0..calls.len()).collect();
    }
    let mut known: HashMap<(&str, &str, Result<String, usize>), usize> = HashMap::new();
    let mut classes = Vec::with_capacity(calls.len());
    for (at, tool) in calls.iter().enumerate() {
        let arguments = match tool.arguments.read() {
            Ok(Some(arguments)) => Ok(arguments.to_string()),
            // Without arguments that can be compared, a call is a class of its own.
            Ok(None) | Err(_) => Err(at),
        };
        let next = known.len();
        let key = (tool.call.server.as_str(), tool.name, arguments);
        classes.push(*known.entry(key).or_insert(next));
    }
    classes
}

/// The entry as text, without how often it is expected: equal texts match the same calls.
fn written(entry: &ToolMatcher) -> String {
    format!(
        "{:?}",
        (
            &entry.target,
            entry.arguments.as_ref().map(Matcher::written),
            entry.result.as_ref().map(Matcher::written),
            entry.is_error,
            entry.max_duration,
        )
    )
}

/// The maximum number of calls for an entry in exact mode: without `max`, its minimum.
fn most(times: Times) -> u64 {
    times.max.unwrap_or_else(|| times.least())
}
