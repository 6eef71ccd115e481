//! Sums the calls of all trials by server, kind and name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use proctor_record::index::{Attempt, CallTotals};
use proctor_record::transcript::CallKind;

use super::{CallUse, ItemCoverage};

/// The calls of one target so far.
#[derive(Debug, Default)]
struct TargetCalls {
    calls: u64,
    errors: u64,
    time: Duration,
    /// The cases, by number.
    cases: BTreeSet<u32>,
}

impl TargetCalls {
    fn add(&mut self, call: &CallTotals, case: Option<u32>) {
        self.calls += call.count;
        self.errors += call.errors;
        self.time += call.time;
        self.cases.extend(case);
    }
}

/// The targets of one server, by kind and name.
type Targets = [BTreeMap<String, TargetCalls>; 3];

#[derive(Debug, Default)]
pub(super) struct CallTally {
    servers: BTreeMap<String, Targets>,
    /// The number of each case.
    cases: HashMap<String, u32>,
    pub(super) other_calls: u64,
}

impl CallTally {
    pub(super) fn add(&mut self, attempt: &Attempt) {
        self.other_calls += attempt.other_calls;
        if attempt.calls.is_empty() {
            return;
        }
        let case = attempt.trial.as_ref().map(|trial| {
            let next = u32::try_from(self.cases.len()).unwrap_or(u32::MAX);
            match self.cases.get(&trial.case) {
                Some(number) => *number,
                None => *self.cases.entry(trial.case.clone()).or_insert(next),
            }
        });
        for call in &attempt.calls {
            // Nearly all names are known, so the key is cloned only for a new one.
            let targets = match self.servers.get_mut(&call.server) {
                Some(targets) => targets,
                None => self.servers.entry(call.server.clone()).or_default(),
            };
            let targets = &mut targets[slot(call.kind)];
            let target = match targets.get_mut(&call.name) {
                Some(target) => target,
                None => targets.entry(call.name.clone()).or_default(),
            };
            target.add(call, case);
        }
    }

    /// The names of all servers that were called.
    pub(super) fn servers(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    /// Removes the calls of a target.
    pub(super) fn take(&mut self, server: &str, kind: CallKind, name: &str) -> CallUse {
        let targets = self.servers.get_mut(server);
        let found = targets.and_then(|targets| targets[slot(kind)].remove(name));
        found.unwrap_or_default().into()
    }

    /// Removes the calls of all targets that fit.
    pub(super) fn take_all(
        &mut self,
        server: &str,
        kind: CallKind,
        fits: impl Fn(&str) -> bool,
    ) -> CallUse {
        let Some(targets) = self.servers.get_mut(server) else {
            return CallUse::default();
        };
        let mut sum = TargetCalls::default();
        for (_, target) in targets[slot(kind)].extract_if(.., |name, _| fits(name)) {
            sum.calls += target.calls;
            sum.errors += target.errors;
            sum.time += target.time;
            sum.cases.extend(target.cases);
        }
        sum.into()
    }

    /// Removes all remaining calls of a server.
    pub(super) fn take_rest(&mut self, server: &str) -> Vec<(CallKind, ItemCoverage)> {
        let targets = self.servers.remove(server).unwrap_or_default();
        let kinds = CallKind::ALL.into_iter().zip(targets);
        let items = kinds.flat_map(|(kind, targets)| {
            targets.into_iter().map(move |(name, target)| {
                let used = target.into();
                (kind, ItemCoverage { name, used })
            })
        });
        items.collect()
    }
}

impl From<TargetCalls> for CallUse {
    fn from(target: TargetCalls) -> Self {
        Self {
            calls: target.calls,
            errors: target.errors,
            time: target.time,
            unanswered: 0,
            cases: target.cases.len(),
        }
    }
}

/// The index of a kind in [`CallKind::ALL`].
fn slot(kind: CallKind) -> usize {
    match kind {
        CallKind::Tool => 0,
        CallKind::Resource => 1,
        CallKind::Prompt => 2,
    }
}
