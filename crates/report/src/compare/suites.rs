//! The comparisons of several suites: a line for each, then each of them.
//!
//! Its main type is [`SuitesComparison`].

use proctor_core::compare::ComparisonAnswer;
use proctor_core::printable::printable;
use serde_json::{Value, json};

use super::{CompareReport, json as document, markdown, text};
use crate::markdown::COMMENT;
use crate::markdown::code::code;
use crate::sheet::SheetStyle;
use crate::words;

/// Suites that are compared, and those that only one side has.
#[derive(Debug)]
pub struct SuitesComparison<'a> {
    pub suites: Vec<ComparedSuite<'a>>,
    /// The suites that only the base has: nothing shows whether they are worse.
    pub missing: Vec<String>,
    /// The suites that only the new side has.
    pub added: Vec<String>,
    /// The exit code of the command.
    pub exit: u8,
}

/// A suite of both sides.
#[derive(Debug)]
pub struct ComparedSuite<'a> {
    pub report: CompareReport<'a>,
    /// Whether Holm's correction over all suites leaves no regression of it.
    pub is_corrected: bool,
}

impl ComparedSuite<'_> {
    fn answer(&self) -> &'static str {
        match self.report.comparison.answer {
            ComparisonAnswer::Regression if self.is_corrected => {
                "no regression shown after Holm's correction"
            }
            ComparisonAnswer::Regression => "regression",
            ComparisonAnswer::NoRegressionShown => "no regression shown",
            ComparisonAnswer::Inconclusive { .. } => "inconclusive",
        }
    }
}

impl SuitesComparison<'_> {
    /// The comparison of each suite below its name, then a line for each.
    pub fn text(&self, style: SheetStyle) -> String {
        let mut out = String::new();
        for suite in &self.suites {
            out.push_str(&format!("== {}\n\n", printable(suite.report.suite)));
            out.push_str(&text::render(&suite.report, style));
            out.push('\n');
        }
        for (name, answer) in self.lines() {
            out.push_str(&format!("{}: {answer}\n", printable(name)));
        }
        let suites = words::count(self.suites.len() as u64, "suite");
        out.push_str(&format!("{suites} compared; exit code {}\n", self.exit));
        out
    }

    /// The same as Markdown, in at most 60,000 bytes. Suites that don't fit are only in the list.
    pub fn markdown(&self) -> String {
        let mut out = String::new();
        for (name, answer) in self.lines() {
            out.push_str(&format!("- {}: {answer}\n", code(name)));
        }
        let mut left_out = 0;
        for suite in &self.suites {
            let section = markdown::render(&suite.report);
            if out.len() + section.len() + 100 <= COMMENT {
                out.push_str(&format!("\n{section}"));
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            let suites = words::count(left_out, "suite");
            out.push_str(&format!("\n… the details of {suites} are left out\n"));
        }
        out
    }

    /// One document, with the document of each suite.
    pub fn json(&self) -> Value {
        let suites = self.suites.iter().map(|suite| {
            let mut value = document::value(&suite.report);
            value["isCorrected"] = json!(suite.is_corrected);
            value
        });
        json!({
            "version": 1,
            "exit": self.exit,
            "suites": suites.collect::<Vec<_>>(),
            "missing": self.missing,
            "added": self.added,
        })
    }

    /// The name and the answer of each suite.
    fn lines(&self) -> Vec<(&str, &'static str)> {
        let compared = self.suites.iter();
        let compared = compared.map(|suite| (suite.report.suite, suite.answer()));
        let missing = self.missing.iter();
        let missing = missing.map(|name| (name.as_str(), "inconclusive: NEW has no run of it"));
        let added = self.added.iter();
        let added = added.map(|name| (name.as_str(), "new, not compared"));
        compared.chain(missing).chain(added).collect()
    }
}
