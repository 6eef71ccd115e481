//! The evidence for the outcome of a trial: its reason, the checks that did not pass, and their calls,
//! quotes and outputs.
//!
//! Its main type is [`EvidenceLine`]. All text is escaped and the number of lines is limited; the renderer
//! limits their length.

mod calls;

use std::collections::BTreeSet;

use proctor_core::printable::printable;
use proctor_core::summary::{TrialResult, UnmetCheck};
use proctor_record::decision::calls_in_error;
use proctor_record::event::{Actor, Blame, CheckEvaluated, CheckId, Outcome, Phase, PlannedCase};
use proctor_record::fold::{ClippedText, FoldedTrial, StepDone};
use proctor_record::hint::listed;
use proctor_record::transcript::Call;
use proctor_record::verdict::Verdict;

use self::calls::made;
pub(crate) use self::calls::{answer, describe, is_error, request};

/// The maximum number of checks, and of calls, notes and lines of output for each.
const SHOWN: usize = 5;

/// A line of evidence, indented below its trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvidenceLine {
    /// The level of indentation, from 1.
    pub(crate) depth: usize,
    /// The escaped text.
    pub(crate) text: String,
    pub(crate) layout: Layout,
}

/// What becomes of a line that is too long for a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Wrap,
    Cut,
    /// A call, whose answer gets lines of its own: long arguments must not hide it.
    Call {
        /// Where the answer begins, in bytes.
        answer: usize,
        /// Whether the answer is an error, of which nothing is cut.
        is_error: bool,
    },
}

/// The evidence for the outcome of a trial.
pub(crate) fn lines(
    case: &PlannedCase,
    result: &TrialResult,
    folded: &FoldedTrial,
) -> Vec<EvidenceLine> {
    let mut out = EvidenceLines(Vec::new());
    let work = &folded.work;
    let open: Vec<&CheckEvaluated> = work
        .checks
        .iter()
        .filter(|check| check.verdict != Verdict::Pass)
        .collect();
    let verdicts = open.iter().map(|check| &check.verdict);
    let mut verdicts = verdicts.chain(work.steps.iter().map(|step| &step.verdict));
    let reason = result.reason.as_deref();
    let reason = reason.filter(|reason| !verdicts.any(|verdict| says(reason, verdict)));
    if let Some(reason) = reason {
        out.wrapped(1, reason);
    }
    for check in open.iter().take(SHOWN) {
        out.check(check, case, folded);
    }
    out.more(1, open.len(), "check");
    out.steps(&open, &work.steps);
    if result.blame == Some(Blame::Server) {
        out.stderr(folded, reason.unwrap_or_default());
    }
    if result.outcome != Outcome::Passed {
        out.errors(result, &open, folded);
    }
    if matches!(result.outcome, Outcome::Failed | Outcome::TimedOut) {
        if open.iter().all(|check| check.evidence.is_empty()) {
            out.cut(1, &made(&folded.transcript.calls));
        }
        if let Some(answer) = &work.answer {
            out.cut(1, &format!("answer: {}", first_line(answer)));
        }
    }
    if let Some(folder) = &work.kept_folder {
        out.wrapped(1, &format!("folder kept: {folder}"));
    }
    out.0
}

/// The evidence in the summary, without reading the trial.
pub(crate) fn brief(result: &TrialResult) -> Vec<EvidenceLine> {
    let mut out = EvidenceLines(Vec::new());
    if let Some(reason) = &result.reason {
        out.wrapped(1, reason);
    }
    if let Some(UnmetCheck { check, verdict }) = result.decisive.as_deref()
        && let Verdict::Fail { reason } | Verdict::Unknown { reason } = verdict
        && result.reason.as_ref() != Some(reason)
    {
        out.wrapped(1, &format!("{check}: {reason}"));
    }
    out.cut(
        1,
        "more evidence is in the record, which is too large to read now",
    );
    out.0
}

struct EvidenceLines(Vec<EvidenceLine>);

impl EvidenceLines {
    fn wrapped(&mut self, depth: usize, text: &str) {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        for line in lines.by_ref().take(SHOWN) {
            self.push(depth, line, Layout::Wrap);
        }
        self.more(depth, SHOWN + lines.count(), "line");
    }

    fn cut(&mut self, depth: usize, text: &str) {
        self.push(depth, text, Layout::Cut);
    }

    fn push(&mut self, depth: usize, text: &str, layout: Layout) {
        let text = printable(text).into_owned();
        self.0.push(EvidenceLine {
            depth,
            text,
            layout,
        });
    }

    fn call(&mut self, depth: usize, call: &Call) {
        let request = printable(&request(call)).into_owned();
        let layout = Layout::Call {
            answer: request.len() + 1,
            is_error: is_error(&call.answer),
        };
        self.push(depth, &describe(call), layout);
    }

    fn more(&mut self, depth: usize, all: usize, noun: &str) {
        if all > SHOWN {
            let more = crate::words::count((all - SHOWN) as u64, &format!("more {noun}"));
            self.cut(depth, &format!("… and {more}"));
        }
    }

    fn check(&mut self, check: &CheckEvaluated, case: &PlannedCase, folded: &FoldedTrial) {
        let step = verify_step(check, &folded.work.steps);
        let place = check.id.as_ref().and_then(|id| case.place(id));
        let mut facts = Vec::from_iter(step.map(|step| step.kind.clone()));
        facts.extend(place.map(|place| format!("{}:{}", place.path, place.line)));
        let facts = match facts.join(", ") {
            facts if facts.is_empty() => facts,
            facts => format!(" ({facts})"),
        };
        let output = step.and_then(|step| step.output.as_ref());
        let answer = match &check.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Fail { reason } => without_output(reason, output).to_owned(),
            Verdict::Unknown { reason } => format!("unknown: {}", without_output(reason, output)),
        };
        self.wrapped(1, &format!("{}{facts}: {answer}", check.check));
        let evidence: BTreeSet<u64> = check.evidence.iter().copied().collect();
        let calls = folded.transcript.calls.iter();
        let decisive: Vec<&Call> = calls.filter(|call| evidence.contains(&call.seq)).collect();
        for call in decisive.iter().take(SHOWN) {
            self.call(2, call);
        }
        self.more(2, decisive.len(), "call");
        for note in check.notes.iter().take(SHOWN) {
            self.wrapped(2, note);
        }
        self.more(2, check.notes.len(), "note");
        // The notes already have the judge's reply.
        let is_judge = step.is_some_and(|step| step.kind == "llmJudge");
        if let Some(output) = output.filter(|_| !is_judge) {
            self.tail(2, output);
        }
    }

    /// Steps that did not pass and are not checks, such as those of the setup.
    fn steps(&mut self, open: &[&CheckEvaluated], steps: &[StepDone]) {
        let is_check = |step: &StepDone| {
            step.phase == Phase::Grade && open.iter().any(|check| is_of(check, step))
        };
        let failed: Vec<&StepDone> = steps
            .iter()
            .filter(|step| step.verdict != Verdict::Pass && !is_check(step))
            .collect();
        for step in failed.iter().take(SHOWN) {
            let reason = match &step.verdict {
                Verdict::Pass => "",
                Verdict::Fail { reason } | Verdict::Unknown { reason } => {
                    without_output(reason, step.output.as_ref())
                }
            };
            let text = format!("{} step {} ({}): {reason}", step.phase, step.id, step.kind);
            self.wrapped(1, &text);
            if let Some(output) = &step.output {
                self.tail(2, output);
            }
        }
        self.more(1, failed.len(), "step");
    }

    /// The failed calls that no check shows, and the calls of tools that don't exist.
    fn errors(&mut self, result: &TrialResult, open: &[&CheckEvaluated], folded: &FoldedTrial) {
        let shown: BTreeSet<u64> = open
            .iter()
            .flat_map(|c| c.evidence.iter().copied())
            .collect();
        let all: Vec<&Call> = calls_in_error(&folded.transcript)
            .filter(|call| !shown.contains(&call.seq))
            .collect();
        // If the agent is to blame, the calls without an answer are in the reason.
        if result.blame != Some(Blame::Agent) && !all.is_empty() {
            self.cut(1, "failed calls:");
            for call in all.iter().take(SHOWN) {
                self.call(2, call);
            }
            self.more(2, all.len(), "call");
        }
        let invented = &folded.work.invented;
        if !invented.is_empty() {
            let names = listed(invented.iter().map(String::as_str));
            self.wrapped(
                1,
                &format!("the model called tools that don't exist: {names}"),
            );
        }
    }

    /// The last lines of stderr of the agent's servers, unless the reason above quotes them.
    fn stderr(&mut self, folded: &FoldedTrial, reason: &str) {
        let mut shown = 0;
        for closed in &folded.work.closed {
            let opened = folded.work.connections.get(&closed.conn);
            let stderr = closed.stderr.as_deref().unwrap_or_default();
            let Some(opened) = opened.filter(|opened| {
                matches!(opened.actor, Actor::Agent | Actor::Loop)
                    && !last_lines(stderr).iter().all(|line| reason.contains(line))
            }) else {
                continue;
            };
            if shown == SHOWN {
                break;
            }
            shown += 1;
            self.wrapped(1, &format!("server {} {}", opened.server, closed.reason));
            self.last_lines(2, stderr);
        }
    }

    fn tail(&mut self, depth: usize, text: &ClippedText) {
        let end = if text.left_out == 0 {
            &text.head
        } else {
            &text.tail
        };
        self.last_lines(depth, end);
    }

    fn last_lines(&mut self, depth: usize, text: &str) {
        for line in last_lines(text) {
            self.cut(depth, &format!("| {line}"));
        }
    }
}

/// The last lines of an output that are shown.
fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN)..].to_vec()
}

/// Whether a reason contains that of a verdict, so that it is not shown twice.
fn says(reason: &str, verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Pass => false,
        Verdict::Fail { reason: why } | Verdict::Unknown { reason: why } => reason.contains(why),
    }
}

/// A reason without the lines of the output, which is shown below it.
fn without_output<'a>(reason: &'a str, output: Option<&ClippedText>) -> &'a str {
    let (Some((first, rest)), Some(output)) = (reason.split_once('\n'), output) else {
        return reason;
    };
    let is_quote = |line: &str| output.head.contains(line) || output.tail.contains(line);
    if rest.lines().all(is_quote) {
        first
    } else {
        reason
    }
}

/// The verify step of a check, if it has one.
pub(crate) fn verify_step<'a>(
    check: &CheckEvaluated,
    steps: &'a [StepDone],
) -> Option<&'a StepDone> {
    let mut steps = steps.iter().filter(|step| step.phase == Phase::Grade);
    steps.find(|step| is_of(check, step))
}

fn is_of(check: &CheckEvaluated, step: &StepDone) -> bool {
    check.id.as_ref().and_then(CheckId::step) == Some(&step.id)
}

/// The first line of a text, with an ellipsis if there are more.
fn first_line(text: &ClippedText) -> String {
    let mut lines = text.head.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("(empty)");
    if lines.next().is_some() || text.left_out > 0 {
        format!("{} …", first.trim_end())
    } else {
        first.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(add: impl FnOnce(&mut EvidenceLines)) -> Vec<String> {
        let mut lines = EvidenceLines(Vec::new());
        add(&mut lines);
        lines.0.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn a_long_text_is_shortened_to_a_few_lines() {
        let text = "a\n\n".repeat(100);
        let expected = ["a", "a", "a", "a", "a", "… and 95 more lines"];
        assert_eq!(shown(|lines| lines.wrapped(1, &text)), expected);
        assert_eq!(shown(|lines| lines.wrapped(1, "a\nb")), ["a", "b"]);
    }

    #[test]
    fn an_answer_of_several_lines_ends_in_an_ellipsis() {
        let check = |head: &str, left_out, expected: &str| {
            let text = ClippedText {
                head: head.to_owned(),
                left_out,
                tail: String::new(),
            };
            assert_eq!(first_line(&text), expected);
        };
        check("one", 0, "one");
        check("\n\none\n\n", 0, "one");
        check("one \ntwo", 0, "one …");
        check("one", 7, "one …");
        check(" \n", 0, "(empty)");
    }

    #[test]
    fn an_output_is_not_shown_twice() {
        let output = ClippedText {
            head: "one\ntwo\nthree".to_owned(),
            left_out: 5,
            tail: "eight\nnine".to_owned(),
        };
        let check = |reason: &str, expected: &str| {
            assert_eq!(without_output(reason, Some(&output)), expected);
            assert_eq!(without_output(reason, None), reason);
        };
        check("it failed", "it failed");
        check("it failed; its end:\nght\nnine", "it failed; its end:");
        check("it failed:\nand ten", "it failed:\nand ten");
    }

    #[test]
    fn the_end_of_an_output_is_shown() {
        let text = |left_out| ClippedText {
            head: "1\n2\n3\n4\n5\n6\n".to_owned(),
            left_out,
            tail: "7\n8".to_owned(),
        };
        let whole = shown(|lines| lines.tail(1, &text(0)));
        assert_eq!(whole, ["| 2", "| 3", "| 4", "| 5", "| 6"]);
        assert_eq!(shown(|lines| lines.tail(1, &text(9))), ["| 7", "| 8"]);
    }
}
