//! Annotations on GitHub: the cases that did not meet their pass rule, at the lines of their checks.
//!
//! Main function: [`render`]. Its lines are commands to GitHub's runner; every text from outside is escaped,
//! so that it stays in the message of its own command.

use std::path::Path;

use proctor_core::gate::CaseVerdict;
use proctor_core::printable::printable;
use proctor_core::summary::{AgentTrials, CaseSummary, TrialResult};
use proctor_record::event::{Outcome, PlannedCase};

use crate::{Report, sentences, words};

/// The maximum number of annotations. GitHub shows ten of each kind for a step.
const SHOWN: usize = 10;

/// The maximum number of characters of a reason.
const REASON: usize = 500;

/// Renders the commands, cases that missed their pass rule before inconclusive ones. `root` is the folder of
/// the repository: paths must be relative to it.
pub fn render(report: &Report<'_>, root: Option<&Path>) -> String {
    let cells = |wanted: CaseVerdict| {
        let cells = report.summary.cells();
        cells.filter(move |(case, trials)| trials.verdict(&case.case) == wanted)
    };
    let missed = cells(CaseVerdict::Missed).map(|cell| ("error", cell));
    let open = cells(CaseVerdict::Open).map(|cell| ("warning", cell));
    let shown = missed.chain(open).take(SHOWN);
    shown
        .map(|(kind, (case, trials))| annotation(report, kind, case, trials, root))
        .collect()
}

fn annotation(
    report: &Report<'_>,
    kind: &str,
    case: &CaseSummary,
    trials: &AgentTrials,
    root: Option<&Path>,
) -> String {
    let planned = &case.case;
    let decisive = decisive(trials);
    let (path, line) = place(planned, decisive);
    let path = root.map_or(path, |root| relative(path, root));
    let line = line.map_or(String::new(), |line| format!(",line={line}"));
    let agent = if report.summary.plan.agents.len() > 1 {
        format!(" by {}", trials.agent)
    } else {
        String::new()
    };
    let passed = sentences::passed(trials);
    let title = format!("{}{agent}: {passed} trials passed", planned.name);
    let why = match (trials.unexpected_pass(planned), decisive) {
        (Some(known), _) => format!("unexpected pass; known failure: {}", shortened(known)),
        (None, Some(result)) => {
            let word = words::outcome(Some(result.outcome));
            let reason = result.reason.as_deref().unwrap_or("no reason recorded");
            format!("{word}: {}", shortened(reason))
        }
        (None, None) => "not run".to_owned(),
    };
    format!(
        "::{kind} file={}{line},title={}::{}\n",
        property(path),
        property(&title),
        data(&why)
    )
}

/// The first trial that failed, or else the first that did not pass.
fn decisive(trials: &AgentTrials) -> Option<&TrialResult> {
    let results = || trials.trials.iter().filter_map(|t| t.result.as_ref());
    let is_failed = |result: &&TrialResult| match result.outcome {
        Outcome::Failed | Outcome::TimedOut => true,
        Outcome::Passed | Outcome::Errored | Outcome::Cancelled => false,
    };
    let is_open = |result: &&TrialResult| result.outcome != Outcome::Passed;
    results()
        .find(is_failed)
        .or_else(|| results().find(is_open))
}

/// The place of the decisive check, or the file of the case.
fn place<'a>(case: &'a PlannedCase, result: Option<&TrialResult>) -> (&'a str, Option<u32>) {
    let check = result.and_then(|result| result.decisive.as_ref());
    match check.and_then(|unmet| case.place_of(&unmet.check)) {
        Some(place) => (&place.path, Some(place.line)),
        None => (&case.path, None),
    }
}

fn relative<'a>(path: &'a str, root: &Path) -> &'a str {
    let inside = Path::new(path).strip_prefix(root).ok();
    inside.and_then(Path::to_str).unwrap_or(path)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The data of a command. Line breaks are part of it, `%` is its escape.
pub(crate) fn data(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| printable(line).replace('%', "%25"))
        .collect();
    // The runner looks for this older form of commands anywhere in a line.
    lines.join("%0A").replace("##[", "##\\[")
}

/// A property of a command, which ends at a comma or a colon.
pub(crate) fn property(text: &str) -> String {
    let text = printable(text).replace('%', "%25");
    let text = text.replace(':', "%3A").replace(',', "%2C");
    text.replace("##[", "##\\[")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_stay_in_their_command() {
        assert_eq!(data("a\n::error::b % ##[x]"), "a%0A::error::b %25 ##\\[x]");
        assert_eq!(
            property("a,line=1::b\n##[x]%"),
            "a%2Cline=1%3A%3Ab\\n##\\[x]%25"
        );
        assert_eq!(relative("/w/repo/a.yaml", Path::new("/w/repo")), "a.yaml");
        assert_eq!(relative("b/a.yaml", Path::new("/w/repo")), "b/a.yaml");
    }
}
