//! The checks `minToolCalls` and `maxToolCalls`.

use proctor_record::transcript::Transcript;

use super::CheckResult;
use super::fit::{ObservedToolCall, tool_calls};
use super::wording::{called, counted};

pub(super) fn at_least(least: u64, transcript: &Transcript) -> CheckResult {
    let calls = tool_calls(transcript);
    let needed = usize::try_from(least).unwrap_or(usize::MAX);
    if calls.len() >= needed {
        return CheckResult::pass(seqs(&calls[..needed]));
    }
    CheckResult::fail(reason("at least", least, &calls), seqs(&calls))
}

pub(super) fn at_most(most: u64, transcript: &Transcript) -> CheckResult {
    let calls = tool_calls(transcript);
    let allowed = usize::try_from(most).unwrap_or(usize::MAX);
    if calls.len() <= allowed {
        return CheckResult::pass(seqs(&calls));
    }
    CheckResult::fail(reason("at most", most, &calls), seqs(&calls[allowed..]))
}

fn reason(bound: &str, limit: u64, calls: &[ObservedToolCall<'_>]) -> String {
    format!(
        "expected {bound} {}, found {}; {}",
        counted(limit, "tool call"),
        calls.len(),
        called(calls)
    )
}

fn seqs(calls: &[ObservedToolCall<'_>]) -> Vec<u64> {
    calls.iter().map(|tool| tool.call.seq).collect()
}
