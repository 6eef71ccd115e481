//! What several fuzz targets share: a scratch folder, text in chunks, and a trial without events.

use std::fs;
use std::path::PathBuf;

use proctor_core::check::{Check, NameMatcher, Times, ToolMatcher};
use proctor_record::event::{Outcome, TrialEnded};
use proctor_record::fold::{Fold, FoldOptions, FoldedTrial};
use proctor_core::grading::{CaseChecks, Grading, JudgeGrade, NextCheck, StepGrade};
use proctor_core::matcher::Matcher;
use proctor_record::verdict::Verdict;

/// A folder of this process that is empty, in memory if the system has such a place.
pub fn scratch(name: &str) -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let root = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let folder = root
        .join(format!("proctor-fuzz-{}", std::process::id()))
        .join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a scratch folder");
    folder
}

/// The bytes in pieces of lengths that depend on `seed`, some of them empty.
pub fn chunks(mut bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let mut state = u32::from(seed) | 0x100;
    let mut found = Vec::new();
    while !bytes.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let length = (state >> 24) as usize % 12;
        let (chunk, rest) = bytes.split_at(length.min(bytes.len()));
        found.push(chunk);
        bytes = rest;
    }
    found
}

/// The two parts of an input, at the first line feed.
pub fn halves(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((&bytes[..at], &bytes[at + 1..]))
}

/// A trial in which nothing happened.
pub fn silent_trial() -> FoldedTrial {
    Fold::new(FoldOptions::for_checks()).finish()
}

/// The end of a trial without an answer whose steps and judge all pass.
pub fn graded_generously(checks: CaseChecks<'_>, folded: &FoldedTrial) -> TrialEnded {
    let mut grading = Grading::new(checks, folded, "");
    loop {
        match grading.next_check() {
            NextCheck::Shipped => {
                return TrialEnded {
                    outcome: Outcome::Errored,
                    reason: None,
                    blame: None,
                };
            }
            NextCheck::Assertion => {
                grading.evaluate();
            }
            NextCheck::Step(step) => {
                let grade = StepGrade {
                    verdict: Verdict::Pass,
                    blame: None,
                    goes_on: true,
                    evidence: Vec::new(),
                    notes: Vec::new(),
                };
                grading.step(step, grade);
            }
            NextCheck::Judge(step) => {
                let grade = JudgeGrade {
                    verdict: Verdict::Pass,
                    evidence: Vec::new(),
                    notes: Vec::new(),
                };
                grading.judged(step, grade);
            }
            NextCheck::End(ended) => return ended,
        }
    }
}

/// A check that a tool was called, with this condition on its arguments.
pub fn tool_used(arguments: Option<Matcher>) -> Check {
    Check::ToolsUsed(vec![ToolMatcher {
        target: NameMatcher {
            server: "s".to_owned(),
            name: None,
            pattern: None,
        },
        arguments,
        result: None,
        is_error: None,
        max_duration: None,
        times: Times::default(),
    }])
}
