//! The findings of lint.
//!
//! Main functions: [`text`], [`github`] and [`document`], one per format. Texts of servers are escaped in each.

use proctor_core::lint::{LintFinding, LintSeverity};
use proctor_core::printable::printable;
use serde_json::{Value, json};

use crate::annotations::{data, property};
use crate::words;

/// The maximum number of annotations of one kind. GitHub shows ten.
const ANNOTATIONS: usize = 10;

/// The findings, for a terminal.
pub fn text(findings: &[LintFinding]) -> String {
    let mut out = String::new();
    let (shown, off): (Vec<_>, Vec<_>) = findings.iter().partition(|finding| finding.off.is_none());
    for finding in &shown {
        out.push_str(&format!(
            "{:<7}  {}  {}\n         {}\n",
            finding.rule.severity().word(),
            finding.rule.id(),
            printable(&place(finding)),
            printable(&finding.message)
        ));
    }
    if !shown.is_empty() {
        out.push('\n');
    }
    out.push_str(&tally(&shown));
    if !off.is_empty() {
        let off = words::count(off.len() as u64, "finding");
        out.push_str(&format!("; {off} switched off"));
    }
    out.push('\n');
    out
}

fn place(finding: &LintFinding) -> String {
    format!("{}/{}", finding.server, finding.place)
}

fn tally(shown: &[&LintFinding]) -> String {
    let counts = LintSeverity::ALL.into_iter().filter_map(|severity| {
        let of = shown
            .iter()
            .filter(|finding| finding.rule.severity() == severity);
        let count = of.count() as u64;
        (count > 0).then(|| words::count(count, severity.word()))
    });
    let counts: Vec<String> = counts.collect();
    if counts.is_empty() {
        return "no findings".to_owned();
    }
    counts.join(", ")
}

/// Annotations without a file: a server has no line.
pub fn github(findings: &[LintFinding]) -> String {
    let mut out = String::new();
    for (severity, kind) in [
        (LintSeverity::Error, "error"),
        (LintSeverity::Warning, "warning"),
        (LintSeverity::Note, "notice"),
    ] {
        let shown = findings.iter().filter(|finding| finding.off.is_none());
        let shown = shown.filter(|finding| finding.rule.severity() == severity);
        for finding in shown.take(ANNOTATIONS) {
            let title = format!("{}: {}", finding.rule.id(), place(finding));
            out.push_str(&format!(
                "::{kind} title={}::{}\n",
                property(&title),
                data(&finding.message)
            ));
        }
    }
    let shown: Vec<&LintFinding> = findings
        .iter()
        .filter(|finding| finding.off.is_none())
        .collect();
    out.push_str(&format!("{}\n", tally(&shown)));
    out
}

/// One finding as JSON.
pub fn finding(finding: &LintFinding) -> Value {
    let mut entry = json!({
        "rule": finding.rule.id(),
        "severity": finding.rule.severity().word(),
        "server": finding.server,
        "place": finding.place,
        "message": finding.message,
    });
    if let Some(reason) = &finding.off {
        entry["off"] = json!(reason);
    }
    entry
}

/// The findings as JSON.
pub fn document(findings: &[LintFinding]) -> Value {
    let count = |severity: LintSeverity| {
        let counted = findings.iter().filter(|finding| finding.off.is_none());
        counted
            .filter(|finding| finding.rule.severity() == severity)
            .count()
    };
    json!({
        "errors": count(LintSeverity::Error),
        "warnings": count(LintSeverity::Warning),
        "notes": count(LintSeverity::Note),
        "findings": findings.iter().map(finding).collect::<Vec<Value>>(),
    })
}
