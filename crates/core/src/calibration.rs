//! Compares a judge with people: labels that people gave, and the judge's verdicts on the same answers.
//!
//! Main types: [`Label`], a line of the labels file, and [`Calibration`], the result. Unknown verdicts are
//! counted apart: they are neither right nor wrong.

#[cfg(test)]
mod tests;

use proctor_record::json;
use serde::{Deserialize, Serialize};

use crate::grading::is_blank;
use crate::statistics::Agreement;

/// The fewest labels of each kind that say something about a judge.
pub const FEWEST: u32 = 10;

/// An answer with the verdict of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The line in the file, from one.
    pub line: usize,
    pub id: Option<String>,
    pub criterion: LabelCriterion,
    /// The task that the agent had; may be empty.
    pub prompt: String,
    pub answer: String,
    pub human: HumanVerdict,
    /// A verdict of the judge that the file holds, with its reason.
    pub recorded: Option<JudgeVerdict>,
}

/// The criterion of a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelCriterion {
    Contains(String),
    Exact(String),
    Rubric(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HumanVerdict {
    Pass,
    Fail,
}

/// The verdict of the judge on a label, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgeVerdict {
    pub choice: JudgeChoice,
    /// The judge's own reason, or why it could not be asked; may be empty.
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JudgeChoice {
    Pass,
    Fail,
    Unknown,
    /// The judge could not be asked.
    #[serde(skip)]
    NoAnswer,
}

/// A line that is not a label.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct LabelError {
    pub line: usize,
    pub message: String,
}

/// A line as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelLine {
    id: Option<String>,
    contains: Option<String>,
    exact: Option<String>,
    rubric: Option<String>,
    prompt: Option<String>,
    answer: String,
    human: HumanVerdict,
    judge: Option<JudgeChoice>,
    reason: Option<String>,
}

/// Reads labels, one JSON object a line. Blank lines are skipped. Reports every wrong line.
pub fn parse(text: &str) -> Result<Vec<Label>, Vec<LabelError>> {
    let (mut labels, mut errors) = (Vec::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        // Some editors put a byte order mark at the start of a file.
        let line = line.trim_start_matches('\u{feff}');
        if line.trim().is_empty() {
            continue;
        }
        match label(line, index + 1) {
            Ok(label) => labels.push(label),
            Err(message) => errors.push(LabelError {
                line: index + 1,
                message,
            }),
        }
    }
    if errors.is_empty() {
        Ok(labels)
    } else {
        Err(errors)
    }
}

fn label(text: &str, line: usize) -> Result<Label, String> {
    // Serde would also read a list of values without their keys.
    if !text.trim_start().starts_with('{') {
        return Err("a label is a JSON object".to_owned());
    }
    let written: LabelLine = json::from_str(text).map_err(|error| shortened(&error))?;
    let criteria = [
        written.contains.map(LabelCriterion::Contains),
        written.exact.map(LabelCriterion::Exact),
        written.rubric.map(LabelCriterion::Rubric),
    ];
    let mut criteria = criteria.into_iter().flatten();
    let (Some(criterion), None) = (criteria.next(), criteria.next()) else {
        return Err("one of `contains`, `exact` and `rubric` is needed".to_owned());
    };
    if is_blank(criterion.text()) {
        return Err("the criterion is empty".to_owned());
    }
    let reason = written.reason.unwrap_or_default();
    let recorded = written.judge.map(|choice| JudgeVerdict { choice, reason });
    Ok(Label {
        line,
        id: written.id,
        criterion,
        prompt: written.prompt.unwrap_or_default(),
        answer: written.answer,
        human: written.human,
        recorded,
    })
}

/// The message of a JSON error without its line, which is always the first.
fn shortened(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _)) => format!("{message} (column {})", error.column()),
        None => text,
    }
}

impl LabelCriterion {
    pub fn text(&self) -> &str {
        match self {
            Self::Contains(text) | Self::Exact(text) | Self::Rubric(text) => text,
        }
    }

    /// The key in the labels file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Contains(_) => "contains",
            Self::Exact(_) => "exact",
            Self::Rubric(_) => "rubric",
        }
    }
}

/// A label with the judge's verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedLabel {
    pub label: Label,
    pub judge: JudgeVerdict,
}

/// How far a judge agrees with people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calibration {
    /// The definite verdicts.
    pub agreement: Agreement,
    /// The unknown verdicts on answers that people passed and failed.
    pub unknown: [u32; 2],
    /// The labels on which the judge and people differ.
    pub disagreements: Vec<JudgedLabel>,
    /// The labels whose verdict is unknown.
    pub unknown_labels: Vec<JudgedLabel>,
    /// The labels about which the judge could not be asked.
    pub failed: Vec<JudgedLabel>,
}

impl Calibration {
    pub fn of(judged: impl IntoIterator<Item = JudgedLabel>) -> Self {
        let mut found = Self::default();
        for one in judged {
            let agreement = &mut found.agreement;
            match (one.label.human, one.judge.choice) {
                (HumanVerdict::Pass, JudgeChoice::Pass) => agreement.both_pass += 1,
                (HumanVerdict::Fail, JudgeChoice::Fail) => agreement.both_fail += 1,
                (HumanVerdict::Pass, JudgeChoice::Fail) => {
                    agreement.only_people_pass += 1;
                    found.disagreements.push(one);
                }
                (HumanVerdict::Fail, JudgeChoice::Pass) => {
                    agreement.only_judge_passes += 1;
                    found.disagreements.push(one);
                }
                (human, JudgeChoice::Unknown) => {
                    found.unknown[usize::from(human == HumanVerdict::Fail)] += 1;
                    found.unknown_labels.push(one);
                }
                (_, JudgeChoice::NoAnswer) => found.failed.push(one),
            }
        }
        found
    }

    /// Why the numbers say little about the judge; `None` if they say enough.
    pub fn shortage(&self) -> Option<String> {
        let (passed, failed) = (self.agreement.people_pass(), self.agreement.people_fail());
        if let [first, ..] = &self.failed[..] {
            let (count, reason) = (self.failed.len(), &first.judge.reason);
            return Some(format!(
                "the judge gave no answer to {count} of the labels: {reason}"
            ));
        }
        (passed < FEWEST || failed < FEWEST).then(|| {
            format!(
                "too few labels: people passed {passed} and failed {failed} of the answers with a \
                 verdict; label at least {FEWEST} of each"
            )
        })
    }
}
