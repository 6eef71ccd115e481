//! Explains a failed `calls` check: the best partial assignment, and what is missing.

use proctor_record::json::brief;

use super::{Certainty, FitMatrix};
use crate::check::fit::{CallFit, FitRank, fit, rank};
use crate::check::wording::{called, label, listed, numbers};
use crate::check::{CallsMode, CheckResult};

pub(super) fn failure(matrix: &FitMatrix<'_>, mode: CallsMode) -> CheckResult {
    let partial = PartialAssignment::best(matrix, mode);
    let mut evidence = Vec::new();
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for entry in 0..matrix.entries.len() {
        let taken = &partial.taken_by[entry];
        let seqs: Vec<u64> = taken.iter().map(|call| matrix.seq(*call)).collect();
        let least = matrix.entries[entry].times.least();
        if (seqs.len() as u64) < least {
            let (nearest, seq) = partial.nearest(matrix, entry);
            evidence.extend(seq);
            let progress = if least == 1 {
                String::new()
            } else {
                format!("found {} of {least}; ", seqs.len())
            };
            missing.push(format!("{}: {progress}{nearest}", matrix.expected(entry)));
        } else if !seqs.is_empty() {
            found.push(format!("{}: {}", matrix.expected(entry), numbers(&seqs)));
        }
    }
    if mode == CallsMode::Exact {
        for call in partial.unexpected() {
            evidence.push(matrix.seq(call));
            missing.push(format!("unexpected {}", describe(matrix, call)));
        }
    }
    let mut parts = vec![listed(missing, "\n")];
    if !found.is_empty() {
        parts.push(listed(found, "\n"));
    }
    CheckResult::fail(parts.join("\n"), evidence)
}

/// The best assignment of calls to entries, possibly incomplete.
struct PartialAssignment {
    taken_by: Vec<Vec<usize>>,
    owner_of: Vec<Option<usize>>,
}

impl PartialAssignment {
    fn best(matrix: &FitMatrix<'_>, mode: CallsMode) -> Self {
        let slots = matrix.slots(mode);
        let mut partial = Self {
            taken_by: vec![Vec::new(); matrix.entries.len()],
            owner_of: vec![None; matrix.calls.len()],
        };
        let partners = matrix.assign(mode, &slots, Certainty::Possible);
        for (slot, call) in partners.into_iter().enumerate() {
            if let Some(call) = call {
                partial.taken_by[slots[slot]].push(call);
                partial.owner_of[call] = Some(slots[slot]);
            }
        }
        partial
    }

    fn unexpected(&self) -> impl Iterator<Item = usize> {
        let owners = self.owner_of.iter().enumerate();
        owners
            .filter(|(_, owner)| owner.is_none())
            .map(|(call, _)| call)
    }

    /// The nearest call for an entry that lacks one, preferably a call that no entry has.
    fn nearest(&self, matrix: &FitMatrix<'_>, entry: usize) -> (String, Option<u64>) {
        let candidate = |call: usize| {
            let owner = self.owner_of[call];
            if owner == Some(entry) {
                return None;
            }
            let distance = match rank(&matrix.entries[entry], matrix.calls[call]) {
                FitRank::OtherTool => return None,
                FitRank::Yes | FitRank::Maybe => 0,
                FitRank::No(distance) => distance,
            };
            Some((owner.is_some(), distance, call))
        };
        let nearest = (0..matrix.calls.len())
            .filter_map(candidate)
            .min_by_key(|(taken, distance, _)| (*taken, *distance));
        let nearest = nearest.map(|(_, _, call)| (self.described(matrix, entry, call), call));
        match nearest {
            Some((text, call)) => (text, Some(matrix.seq(call))),
            None if self.taken_by[entry].is_empty() => {
                (format!("never called; {}", called(&matrix.calls)), None)
            }
            None => ("no other call matches".to_owned(), None),
        }
    }

    /// Why the nearest call does not count.
    fn described(&self, matrix: &FitMatrix<'_>, entry: usize, call: usize) -> String {
        let seq = matrix.seq(call);
        match (
            fit(&matrix.entries[entry], matrix.calls[call]),
            self.owner_of[call],
        ) {
            (CallFit::No(miss), _) => format!("nearest is call #{seq}: {}", miss.reason),
            (CallFit::Yes | CallFit::Maybe(_) | CallFit::OtherTool, Some(owner)) => {
                let owner = owner + 1;
                format!("call #{seq} matches, but is already assigned to expected call {owner}")
            }
            (CallFit::Yes | CallFit::Maybe(_) | CallFit::OtherTool, None) => {
                format!("call #{seq} matches, but not at this position")
            }
        }
    }
}

fn describe(matrix: &FitMatrix<'_>, call: usize) -> String {
    let tool = matrix.calls[call];
    let name = label(&tool.call.server, tool.name);
    let seq = tool.call.seq;
    match tool.arguments.read() {
        Ok(Some(arguments)) => format!("call #{seq} ({name} with {})", brief(arguments)),
        Ok(None) | Err(_) => format!("call #{seq} ({name})"),
    }
}
