//! Why the tool calls were not the expected ones: the best partial assignment, and what spoils it.

use super::{Certainty, FitMatrix};
use crate::check::fit::{CallFit, fit};
use crate::check::wording::{called, label, listed, numbers};
use crate::check::{CallsMode, CheckResult};
use crate::json::brief;

pub(super) fn failure(board: &FitMatrix<'_>, mode: CallsMode) -> CheckResult {
    let partial = PartialAssignment::best(board, mode);
    let mut evidence = Vec::new();
    let mut missing = Vec::new();
    let mut found = Vec::new();
    for entry in 0..board.entries.len() {
        let taken = &partial.taken_by[entry];
        let seqs: Vec<u64> = taken.iter().map(|call| board.seq(*call)).collect();
        let least = board.entries[entry].times.least();
        if (seqs.len() as u64) < least {
            let (nearest, seq) = partial.nearest(board, entry);
            evidence.extend(seq);
            let progress = if least == 1 {
                String::new()
            } else {
                format!("found {} of {least}; ", seqs.len())
            };
            missing.push(format!("{}: {progress}{nearest}", board.expected(entry)));
        } else if !seqs.is_empty() {
            found.push(format!("{}: {}", board.expected(entry), numbers(&seqs)));
        }
    }
    if mode == CallsMode::Exact {
        for call in partial.unexpected() {
            evidence.push(board.seq(call));
            missing.push(format!("unexpected {}", describe(board, call)));
        }
    }
    let mut parts = vec![listed(missing, "\n")];
    if !found.is_empty() {
        parts.push(listed(found, "\n"));
    }
    CheckResult::fail(parts.join("\n"), evidence)
}

/// Which entry takes which calls, as far as that goes.
struct PartialAssignment {
    taken_by: Vec<Vec<usize>>,
    owner_of: Vec<Option<usize>>,
}

impl PartialAssignment {
    fn best(board: &FitMatrix<'_>, mode: CallsMode) -> Self {
        let slots = board.slots(mode);
        let mut partial = Self {
            taken_by: vec![Vec::new(); board.entries.len()],
            owner_of: vec![None; board.calls.len()],
        };
        let partners = board.assign(mode, &slots, Certainty::Possible);
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

    /// What comes nearest to an entry that lacks a call; rather something that no entry has.
    fn nearest(&self, board: &FitMatrix<'_>, entry: usize) -> (String, Option<u64>) {
        let candidate = |call: usize| {
            let owner = self.owner_of[call];
            let seq = board.seq(call);
            let (distance, text) = match (fit(&board.entries[entry], board.calls[call]), owner) {
                _ if owner == Some(entry) => return None,
                (CallFit::OtherTool, _) => return None,
                (CallFit::Yes | CallFit::Maybe(_), Some(owner)) => {
                    let owner = owner + 1;
                    (0, format!("call #{seq} fits, but is expected call {owner}"))
                }
                (CallFit::Yes | CallFit::Maybe(_), None) => {
                    (0, format!("call #{seq} fits, but not in this place"))
                }
                (CallFit::No(miss), _) => (
                    miss.distance,
                    format!("nearest is call #{seq}: {}", miss.reason),
                ),
            };
            Some((owner.is_some(), distance, seq, text))
        };
        let nearest = (0..board.calls.len())
            .filter_map(candidate)
            .min_by_key(|(taken, distance, ..)| (*taken, *distance));
        match nearest {
            Some((_, _, seq, text)) => (text, Some(seq)),
            None if self.taken_by[entry].is_empty() => {
                (format!("never called; {}", called(&board.calls)), None)
            }
            None => ("no other call fits".to_owned(), None),
        }
    }
}

fn describe(board: &FitMatrix<'_>, call: usize) -> String {
    let tool = board.calls[call];
    let name = label(&tool.call.server, tool.name);
    let seq = tool.call.seq;
    match tool.arguments.read() {
        Ok(Some(arguments)) => format!("call #{seq} ({name} with {})", brief(arguments)),
        Ok(None) | Err(_) => format!("call #{seq} ({name})"),
    }
}
