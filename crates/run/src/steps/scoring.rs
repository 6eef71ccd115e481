//! The verdict that a script or an extension reports about the transcript.
//!
//! Its main type is [`ReportedVerdict`]. A report can make a check stricter, never more lenient: a
//! pass needs an exit code of 0 as well. A report that can't be read, or that names evidence that
//! does not exist, decides nothing. A score is only shown.

use std::collections::BTreeSet;

use proctor_record::event::Blame;
use proctor_record::json;
use proctor_record::verdict::Verdict;
use serde::Deserialize;
use serde_json::Value;

use super::ActionOutcome;

/// The maximum length of a reason in bytes.
const REASON: usize = 4096;

/// A verdict as a script reports it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct ReportedVerdict {
    verdict: VerdictWord,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    score: Option<f64>,
    #[serde(default)]
    evidence: Vec<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum VerdictWord {
    Pass,
    Fail,
    Unknown,
}

/// What the output of a script says.
#[derive(Debug, PartialEq)]
pub(super) enum ScriptReport {
    /// Nothing, so the exit code decides.
    Silent,
    Verdict(ReportedVerdict),
    /// A report that can't be used, and why.
    Unusable(String),
}

impl ScriptReport {
    /// Reads the last line of stdout. `is_cut` means that its start is missing.
    pub(super) fn read(stdout: &str, is_cut: bool) -> Self {
        let is_report = |line: &&str| line.starts_with('{') && line.contains("\"verdict\"");
        let lines: Vec<&str> = stdout.lines().map(str::trim).collect();
        let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
        let Some((last, before)) = lines.split_last() else {
            return Self::Silent;
        };
        if is_cut && before.is_empty() && last.ends_with('}') {
            return Self::Unusable("the last line of its output is too long".to_owned());
        }
        if before.iter().any(is_report) {
            let reason = "its verdict is not the last line of its output";
            return Self::Unusable(reason.to_owned());
        }
        if !is_report(last) {
            return Self::Silent;
        }
        let read = json::decode(last).map_err(|error| error.to_string());
        match read.and_then(ReportedVerdict::read) {
            Ok(verdict) => Self::Verdict(verdict),
            Err(error) => Self::Unusable(format!("its verdict is malformed: {error}")),
        }
    }
}

impl ReportedVerdict {
    pub(super) fn read(value: Value) -> Result<Self, String> {
        let verdict: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match verdict.score {
            Some(score) if !(0.0..=1.0).contains(&score) => {
                Err(format!("the score {score} is not between 0 and 1"))
            }
            _ => Ok(verdict),
        }
    }

    /// The outcome of a step that succeeded or not by its exit code, and reports this verdict.
    pub(super) fn judge(self, succeeded: bool, known: &BTreeSet<u64>, exit: &str) -> ActionOutcome {
        if let Some(seq) = self.evidence.iter().find(|seq| !known.contains(seq)) {
            return unusable(&format!(
                "its evidence {seq} is neither a call nor a turn of the transcript"
            ));
        }
        let said = self.reason.as_deref().unwrap_or_default().trim();
        let said = &said[..said.floor_char_boundary(REASON)];
        let or = |default: &str| match said {
            "" => default.to_owned(),
            said => said.to_owned(),
        };
        let verdict = match (self.verdict, succeeded) {
            (VerdictWord::Pass, true) => Verdict::Pass,
            (VerdictWord::Pass, false) => {
                return unusable(&format!("its verdict is pass, and it {exit}"));
            }
            (VerdictWord::Fail, _) => Verdict::fail(or("the script's verdict is fail")),
            (VerdictWord::Unknown, _) => Verdict::unknown(or("the script's verdict is unknown")),
        };
        let mut done = ActionOutcome::new(verdict);
        done.evidence = self.evidence;
        if let Some(score) = self.score {
            done.notes.push(format!("score {score}"));
            done.outputs.insert("score".to_owned(), score.to_string());
        }
        if self.verdict == VerdictWord::Pass && !said.is_empty() {
            done.notes.push(said.to_owned());
        }
        done
    }
}

/// The outcome of a report that can't be used.
pub(super) fn unusable(reason: &str) -> ActionOutcome {
    ActionOutcome::unknown(
        &format!("the script's report can't be used: {reason}"),
        Blame::Suite,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict for an output, an exit code of 0 or 1, and a transcript with the calls 3 and 7.
    fn verdict(stdout: &str, succeeded: bool) -> String {
        let done = match ScriptReport::read(stdout, false) {
            ScriptReport::Silent => return "silent".to_owned(),
            ScriptReport::Unusable(reason) => unusable(&reason),
            ScriptReport::Verdict(report) => {
                report.judge(succeeded, &BTreeSet::from([3, 7]), "exited with code 1")
            }
        };
        match done.verdict {
            Verdict::Pass => "pass".to_owned(),
            Verdict::Fail { reason } => format!("fail: {reason}"),
            Verdict::Unknown { .. } => "unknown".to_owned(),
        }
    }

    #[test]
    fn a_pass_needs_the_exit_code_and_the_report() {
        let check = |stdout: &str, succeeded: bool, expected: &str| {
            assert_eq!(verdict(stdout, succeeded), expected, "{stdout} {succeeded}");
        };
        check(r#"{"verdict": "pass"}"#, true, "pass");
        check(
            r#"{"verdict": "pass", "score": 0.2, "evidence": [3, 7]}"#,
            true,
            "pass",
        );
        check(r#"{"verdict": "pass"}"#, false, "unknown");
        check(r#"{"verdict": "fail", "reason": "no"}"#, true, "fail: no");
        check(
            r#"{"verdict": "fail", "score": 1}"#,
            true,
            "fail: the script's verdict is fail",
        );
        check(
            r#"{"verdict": "fail"}"#,
            false,
            "fail: the script's verdict is fail",
        );
        check(r#"{"verdict": "unknown"}"#, true, "unknown");
        check(r#"{"verdict": "unknown"}"#, false, "unknown");
    }

    #[test]
    fn malformed_lying_and_misplaced_reports_never_pass() {
        for stdout in [
            r#"{"verdict": "pass""#,
            r#"{"verdict": "PASS"}"#,
            r#"{"verdict": true}"#,
            r#"{"verdict": "pass", "score": 2}"#,
            r#"{"verdict": "pass", "score": -0.1}"#,
            r#"{"verdict": "pass", "score": "1"}"#,
            r#"{"verdict": "pass", "evidence": [4]}"#,
            r#"{"verdict": "pass", "evidence": [-3]}"#,
            r#"{"verdict": "pass", "evidence": "3"}"#,
            r#"{"verdict": "fail", "verdict": "pass"}"#,
            "{\"verdict\": \"fail\"}\ndone\n",
            "{\"verdict\": \"fail\"}\n{\"verdict\": \"pass\"}\n",
        ] {
            assert_eq!(verdict(stdout, true), "unknown", "{stdout}");
        }
        let cut = ScriptReport::read("aaaa\"}", true);
        assert!(matches!(cut, ScriptReport::Unusable(_)), "{cut:?}");
    }

    #[test]
    fn other_output_leaves_the_exit_code_to_decide() {
        for stdout in [
            "",
            "\n",
            "ok\n",
            "{\"status\": \"pass\"}\n",
            "the \"verdict\" is in\n",
        ] {
            assert_eq!(verdict(stdout, true), "silent", "{stdout}");
        }
        assert_eq!(
            verdict("log\n\n  {\"verdict\": \"pass\"}  \n\n", true),
            "pass"
        );
    }
}
