//! The report as JUnit XML: a test suite for each agent, a test case for each trial.
//!
//! A failed or timed-out trial is a failure, an errored trial an error, and a cancelled or missing trial is
//! skipped. Viewers show skipped tests as green, so an inconclusive run has an additional test case that is an
//! error.

use std::io::{self, Write};

use proctor_core::event::Outcome;
use proctor_core::printable::printable;
use proctor_core::record::RecordError;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialResult, TrialSummary};
use quick_junit::{NonSuccessKind, SerializeError, TestCase, TestCaseStatus, TestSuite};

use crate::{Report, ReportError, evidence, words};

/// The maximum size of the evidence in a test case, in bytes.
const EVIDENCE: usize = 8 * 1024;

/// The maximum number of trials with evidence; the others have only their reason.
const WITH_EVIDENCE: usize = 1000;

/// The maximum number of reasons for an unmet gate.
const REASONS: usize = 5;

/// Writes the XML document.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    let summary = report.summary;
    let title = title(report);
    let mut document = quick_junit::Report::new(xml(&title));
    document.set_time(summary.duration);
    let mut explained = 0;
    for (index, agent) in summary.plan.agents.iter().enumerate() {
        let mut name = title.clone();
        if summary.plan.agents.len() > 1 {
            name = format!("{name} ({})", agent.name);
        }
        let mut suite = TestSuite::new(xml(&name));
        for case in &summary.cases {
            let Some(trials) = case.agents.get(index) else {
                continue;
            };
            for trial in &trials.trials {
                suite.add_test_case(test(report, case, trials, trial, &mut explained)?);
            }
        }
        let findings = words::findings(summary);
        if index == 0 && !findings.is_empty() {
            suite.set_system_out(xml_lines(&findings));
        }
        document.add_test_suite(suite);
    }
    if let Some(test) = run(report) {
        let mut suite = TestSuite::new(xml(&format!("{} (run)", summary.started.name)));
        suite.add_test_case(test);
        document.add_test_suite(suite);
    }
    document.serialize(out).map_err(unserialized)
}

/// The name of the run, and the filter if only a part of it is shown.
fn title(report: &Report<'_>) -> String {
    let name = &report.summary.started.name;
    match &report.part {
        Some(part) => format!("{name} (part: {})", part.filter),
        None => name.clone(),
    }
}

/// A test case for the run itself, if it is inconclusive and no trial shows why.
fn run(report: &Report<'_>) -> Option<TestCase> {
    let counts = report.summary.counts();
    let is_shown = counts.failed + counts.timed_out + counts.errored > 0;
    let reason = match report.note {
        _ if report.exit <= 1 => return None,
        Some(note) => note.to_owned(),
        None if is_shown => return None,
        None => shortened(report.gate.reasons()),
    };
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_type(format!("exit {}", report.exit));
    status.set_message(xml(&reason));
    let mut test = TestCase::new("run", status);
    test.set_classname(xml(&report.summary.plan.suite));
    Some(test)
}

/// The first reasons, and the number of the others.
fn shortened(reasons: &[String]) -> String {
    let mut text = reasons[..reasons.len().min(REASONS)].join("; ");
    if reasons.len() > REASONS {
        text.push_str(&format!("; and {} more", reasons.len() - REASONS));
    }
    text
}

fn test(
    report: &Report<'_>,
    case: &CaseSummary,
    agent: &AgentTrials,
    trial: &TrialSummary,
    explained: &mut usize,
) -> Result<TestCase, RecordError> {
    let mut name = case.case.name.clone();
    if case.case.runs > 1 {
        name = format!("{name} [{}/{}]", trial.repeat, case.case.runs);
    }
    let mut test = TestCase::new(xml(&name), status(trial));
    test.set_classname(xml(&case.case.path));
    test.add_property(("case", xml(&case.case.id).as_str()));
    test.add_property(("agent", xml(&agent.agent).as_str()));
    let Some(result) = &trial.result else {
        return Ok(test);
    };
    test.set_time(result.duration);
    if let Some(blame) = result.blame {
        test.add_property(("blame", words::blame(blame)));
    }
    if result.outcome != Outcome::Passed && *explained < WITH_EVIDENCE {
        *explained += 1;
        if let Some(text) = explanation(report, result)? {
            test.set_system_out(text);
        }
    }
    Ok(test)
}

fn status(trial: &TrialSummary) -> TestCaseStatus {
    let Some(result) = &trial.result else {
        let mut status = TestCaseStatus::skipped();
        status.set_message("not run");
        return status;
    };
    let mut status = match result.outcome {
        Outcome::Passed => return TestCaseStatus::success(),
        Outcome::Failed | Outcome::TimedOut => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Errored => TestCaseStatus::non_success(NonSuccessKind::Error),
        Outcome::Cancelled => TestCaseStatus::skipped(),
    };
    let word = words::outcome(Some(result.outcome));
    status.set_type(match result.blame {
        Some(blame) => format!("{word}, {}", words::blame(blame)),
        None => word.to_owned(),
    });
    status.set_message(xml(result.reason.as_deref().unwrap_or(word)));
    status
}

fn explanation(report: &Report<'_>, result: &TrialResult) -> Result<Option<String>, RecordError> {
    let Some(folded) = report.fold(result)? else {
        return Ok(None);
    };
    let mut text = String::new();
    for line in evidence::lines(result, &folded) {
        let line = format!("{}{}\n", "  ".repeat(line.depth - 1), xml(&line.text));
        if text.len() + line.len() > EVIDENCE {
            let room = line.floor_char_boundary(EVIDENCE - text.len());
            text.push_str(&line[..room]);
            text.push_str("…\n");
            break;
        }
        text.push_str(&line);
    }
    Ok(Some(text))
}

fn xml_lines(lines: &[String]) -> String {
    lines.iter().map(|line| xml(line) + "\n").collect()
}

/// Escapes characters that are invisible or illegal in XML.
fn xml(text: &str) -> String {
    let shown = printable(text);
    if !shown.contains(is_illegal) {
        return shown.into_owned();
    }
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        if is_illegal(c) {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a printable character is illegal in XML.
fn is_illegal(c: char) -> bool {
    matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn unserialized(error: SerializeError) -> ReportError {
    ReportError::Write(io::Error::other(error))
}
