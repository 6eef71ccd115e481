//! The report as JUnit XML: a test suite for each agent, a test case for each trial.
//!
//! A failed or timed-out trial is a failure, an errored trial an error, and a cancelled or missing trial is
//! skipped. A failed trial of a known failure is skipped too, and an unexpected pass is a failure. Viewers show skipped tests as green, so an inconclusive run has an additional test case that is an
//! error. The document follows `junit-10.xsd`, the schema of Jenkins and pytest.

mod xml;

use std::io::{self, Write};
use std::time::Duration;

use proctor_core::causes::TrialRef;
use proctor_core::gate::CaseVerdict;
use proctor_core::summary::{AgentTrials, CaseSummary, Summary, TrialResult, TrialSummary};
use proctor_record::event::{Outcome, PlannedAgent};
use proctor_record::record::RecordError;

use self::xml::{Xml, legal};
use crate::{Report, ReportError, evidence, words};

/// The maximum size of the evidence in a test case, in bytes.
const EVIDENCE: usize = 8 * 1024;

/// The maximum number of trials with evidence; the others have only their reason.
const WITH_EVIDENCE: usize = 1000;

/// The maximum number of reasons for an unmet gate.
const REASONS: usize = 5;

/// The exit code for a run that can't be reported.
const INCONCLUSIVE: u8 = 3;

/// Writes the XML document.
pub fn write(report: &Report<'_>, out: &mut dyn Write) -> Result<(), ReportError> {
    write_all(&title(report), &[*report], &[], out)
}

/// Writes one XML document about several runs, and about those that can't be reported.
pub fn write_all(
    name: &str,
    reports: &[Report<'_>],
    errors: &[String],
    out: &mut dyn Write,
) -> Result<(), ReportError> {
    let mut all = TestCounts::default();
    for report in reports {
        for (index, _) in report.summary.plan.agents.iter().enumerate() {
            all.add(TestCounts::of(report.summary, index));
        }
        all.add(TestCounts::of_run(run_error(report).as_deref()));
    }
    for error in errors {
        all.add(TestCounts::of_run(Some(error)));
    }
    let time = reports.iter().map(|report| report.summary.duration).sum();
    let mut xml = Xml::new(out)?;
    xml.open("testsuites", &all.totals(name, time))?;
    let mut explained = 0;
    for report in reports {
        let summary = report.summary;
        for (index, agent) in summary.plan.agents.iter().enumerate() {
            agent_suite(&mut xml, report, index, agent, &mut explained)?;
        }
        if let Some(reason) = run_error(report) {
            let (title, class) = (title(report), &summary.plan.suite);
            error_suite(&mut xml, &title, class, report.exit, &reason)?;
        }
    }
    for error in errors {
        error_suite(&mut xml, name, name, INCONCLUSIVE, error)?;
    }
    xml.close("testsuites")?;
    Ok(xml.end()?)
}

/// Writes a document about a run that did not start: one error, so that a CI service that reads only the
/// document shows it.
pub fn write_error(name: &str, exit: u8, reason: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Xml::new(out)?;
    let all = TestCounts::of_run(Some(reason));
    xml.open("testsuites", &all.totals(name, Duration::ZERO))?;
    error_suite(&mut xml, name, name, exit, reason)?;
    xml.close("testsuites")?;
    xml.end()
}

/// The numbers of tests, which stand before the tests.
#[derive(Default, Clone, Copy)]
struct TestCounts {
    all: usize,
    skipped: usize,
    errors: usize,
    failures: usize,
}

impl TestCounts {
    /// The trials of one agent.
    fn of(summary: &Summary, agent: usize) -> Self {
        let mut tests = Self::default();
        for (case, trials) in summary
            .cases
            .iter()
            .filter_map(|case| Some((case, case.agents.get(agent)?)))
        {
            for trial in &trials.trials {
                tests.all += 1;
                match trial
                    .outcome()
                    .map(|outcome| element(case, trials, outcome))
                {
                    Some(None) => {}
                    Some(Some(TestElement::Failure)) => tests.failures += 1,
                    Some(Some(TestElement::Error)) => tests.errors += 1,
                    Some(Some(TestElement::Skipped)) | None => tests.skipped += 1,
                }
            }
        }
        tests
    }

    /// The test case for the run itself, if there is one.
    fn of_run(error: Option<&str>) -> Self {
        let count = usize::from(error.is_some());
        Self {
            all: count,
            errors: count,
            ..Self::default()
        }
    }

    fn add(&mut self, other: Self) {
        self.all += other.all;
        self.skipped += other.skipped;
        self.errors += other.errors;
        self.failures += other.failures;
    }

    /// The attributes of the whole document. The schema has no number of skipped tests here.
    fn totals(self, name: &str, time: Duration) -> [(&'static str, String); 5] {
        [
            ("name", name.to_owned()),
            ("tests", self.all.to_string()),
            ("failures", self.failures.to_string()),
            ("errors", self.errors.to_string()),
            ("time", seconds(time)),
        ]
    }

    /// The attributes of a test suite.
    fn attributes(self, name: String) -> [(&'static str, String); 5] {
        [
            ("name", name),
            ("tests", self.all.to_string()),
            ("skipped", self.skipped.to_string()),
            ("errors", self.errors.to_string()),
            ("failures", self.failures.to_string()),
        ]
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64())
}

/// Writes the trials of an agent.
fn agent_suite(
    xml: &mut Xml<'_>,
    report: &Report<'_>,
    index: usize,
    agent: &PlannedAgent,
    explained: &mut usize,
) -> Result<(), ReportError> {
    let summary = report.summary;
    let mut name = title(report);
    if summary.plan.agents.len() > 1 {
        name = format!("{name} ({})", agent.name);
    }
    xml.open(
        "testsuite",
        &TestCounts::of(summary, index).attributes(name),
    )?;
    xml.open("properties", &[])?;
    let mut properties = vec![("agent", agent.name.clone())];
    properties.extend(agent.model.clone().map(|model| ("model", model)));
    for (name, value) in properties {
        xml.empty("property", &[("name", name.to_owned()), ("value", value)])?;
    }
    xml.close("properties")?;
    for case in &summary.cases {
        let Some(trials) = case.agents.get(index) else {
            continue;
        };
        for trial in &trials.trials {
            test(xml, report, (case, trials, trial), explained)?;
        }
    }
    let findings = words::findings(summary);
    if index == 0 && !findings.is_empty() {
        xml.text("system-out", &findings)?;
    }
    Ok(xml.close("testsuite")?)
}

/// Writes a test suite with one error, for the run itself.
fn error_suite(
    xml: &mut Xml<'_>,
    name: &str,
    class: &str,
    exit: u8,
    reason: &str,
) -> io::Result<()> {
    let counts = TestCounts::of_run(Some(reason));
    xml.open("testsuite", &counts.attributes(format!("{name} (run)")))?;
    let attributes = [("name", "run".to_owned()), ("classname", class.to_owned())];
    xml.open("testcase", &attributes)?;
    let attributes = [
        ("message", reason.to_owned()),
        ("type", format!("exit {exit}")),
    ];
    xml.empty("error", &attributes)?;
    xml.close("testcase")?;
    xml.close("testsuite")
}

/// The name of the run, and the filter if only a part of it is shown.
fn title(report: &Report<'_>) -> String {
    let name = &report.summary.started.name;
    match &report.part {
        Some(part) => format!("{name} (part: {})", part.filter),
        None => name.clone(),
    }
}

/// The error of the run itself, if it did not succeed and no trial shows why.
fn run_error(report: &Report<'_>) -> Option<String> {
    let agents = 0..report.summary.plan.agents.len();
    let is_shown = agents.into_iter().any(|agent| {
        let tests = TestCounts::of(report.summary, agent);
        tests.failures + tests.errors > 0
    });
    match report.note {
        _ if report.exit == 0 || (report.exit == 1 && is_shown) => None,
        Some(note) => Some(note.to_owned()),
        None if is_shown => None,
        None => Some(shortened(report.gate.reasons())),
    }
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
    xml: &mut Xml<'_>,
    report: &Report<'_>,
    (case, trials, trial): TrialRef<'_>,
    explained: &mut usize,
) -> Result<(), ReportError> {
    let mut name = case.case.name.clone();
    if case.case.runs > 1 {
        name = format!("{name} [{}/{}]", trial.repeat, case.case.runs);
    }
    let mut attributes = vec![("name", name), ("classname", case.case.path.clone())];
    let Some(result) = &trial.result else {
        xml.open("testcase", &attributes)?;
        xml.empty("skipped", &[("message", "not run".to_owned())])?;
        return Ok(xml.close("testcase")?);
    };
    attributes.push(("time", seconds(result.duration())));
    let Some(element) = element(case, trials, result.outcome) else {
        return Ok(xml.empty("testcase", &attributes)?);
    };
    xml.open("testcase", &attributes)?;
    xml.empty(element.name(), &status(case, trials, result))?;
    if *explained < WITH_EVIDENCE {
        *explained += 1;
        if let Some(lines) = explanation(report, case, trial, result)? {
            xml.text("system-out", &lines)?;
        }
    }
    Ok(xml.close("testcase")?)
}

/// What a test case contains if it did not simply pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TestElement {
    Failure,
    Error,
    Skipped,
}

impl TestElement {
    fn name(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Skipped => "skipped",
        }
    }
}

/// The element for an outcome; none if the trial passed and the case was not expected to fail.
fn element(case: &CaseSummary, trials: &AgentTrials, outcome: Outcome) -> Option<TestElement> {
    let is_known = trials.verdict(&case.case) == CaseVerdict::KnownFailure;
    match outcome {
        Outcome::Passed if trials.unexpected_pass(&case.case).is_some() => {
            Some(TestElement::Failure)
        }
        Outcome::Passed => None,
        Outcome::Failed | Outcome::TimedOut if is_known => Some(TestElement::Skipped),
        Outcome::Failed | Outcome::TimedOut => Some(TestElement::Failure),
        Outcome::Errored => Some(TestElement::Error),
        Outcome::Cancelled => Some(TestElement::Skipped),
    }
}

/// The reason, and the outcome with its blame.
fn status(
    case: &CaseSummary,
    trials: &AgentTrials,
    result: &TrialResult,
) -> [(&'static str, String); 2] {
    let known = trials.known_failure.as_deref().unwrap_or_default();
    if let (Outcome::Passed, Some(_)) = (result.outcome, trials.unexpected_pass(&case.case)) {
        let message = format!("unexpected pass; known failure: {known}");
        return [("message", message), ("type", "unexpected pass".to_owned())];
    }
    if element(case, trials, result.outcome) == Some(TestElement::Skipped)
        && result.outcome != Outcome::Cancelled
    {
        let message = format!("known failure: {known}");
        return [("message", message), ("type", "known failure".to_owned())];
    }
    let word = words::outcome(Some(result.outcome));
    let kind = match result.blame {
        Some(blame) => format!("{word}, {}", words::blame(blame)),
        None => word.to_owned(),
    };
    let message = result.reason.as_deref().unwrap_or(word);
    [("message", message.to_owned()), ("type", kind)]
}

/// The evidence, line by line, up to the maximum size.
fn explanation(
    report: &Report<'_>,
    case: &CaseSummary,
    trial: &TrialSummary,
    result: &TrialResult,
) -> Result<Option<Vec<String>>, RecordError> {
    let Some(folded) = report.fold(trial)? else {
        return Ok(None);
    };
    let mut room = EVIDENCE;
    let mut lines = Vec::new();
    for line in evidence::lines(&case.case, result, &folded) {
        let line = format!("{}{}", "  ".repeat(line.depth - 1), legal(&line.text));
        if line.len() + 1 > room {
            lines.push(format!("{}…", &line[..line.floor_char_boundary(room)]));
            break;
        }
        room -= line.len() + 1;
        lines.push(line);
    }
    Ok(Some(lines))
}
