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
    /// Reads the JSON object at the end of stdout. `is_cut` means that its start is missing. Text that looks like a
    /// report and can't be read as one decides nothing: its author did not mean the exit code to decide.
    pub(super) fn read(stdout: &str, is_cut: bool) -> Self {
        let stdout = stdout.trim();
        let unusable = |reason: &str| Self::Unusable(reason.to_owned());
        let (before, last) = split_last_object(stdout);
        if is_cut && before.trim().is_empty() && last.ends_with('}') {
            return unusable("the last line of its output is too long");
        }
        if before.lines().any(|line| names(line, "verdict")) {
            return unusable("its verdict is not at the end of its output");
        }
        let read = json::decode(last).map_err(|error| error.to_string());
        let is_object = last.starts_with('{');
        match read {
            Ok(Value::Object(report)) if report.contains_key("verdict") => {
                match ReportedVerdict::read(report.into()) {
                    Ok(verdict) => Self::Verdict(verdict),
                    Err(error) => Self::Unusable(format!("its verdict is malformed: {error}")),
                }
            }
            Ok(Value::Object(report)) if report.contains_key("score") => {
                unusable("its report has no `verdict`")
            }
            Err(error) if is_object && names(last, "verdict") => {
                Self::Unusable(format!("its verdict is malformed: {error}"))
            }
            Err(error) if is_object && names(last, "score") => {
                Self::Unusable(format!("its report is malformed: {error}"))
            }
            _ if names(last, "verdict") => unusable(
                "its output has a verdict, but does not end with a JSON object with the key `verdict`",
            ),
            _ => Self::Silent,
        }
    }
}

/// The JSON object that ends a text, with the text before it. If there is none, the last line.
fn split_last_object(text: &str) -> (&str, &str) {
    let last_line = text.rfind('\n').map_or(0, |at| at + 1);
    let is_end = |at: usize| {
        let rest = text[at..].trim_start();
        rest.starts_with('{') && json::decode(rest).is_ok()
    };
    let mut starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let at = if is_end(last_line) || !text.ends_with('}') {
        last_line
    } else if is_end(0) {
        0
    } else {
        starts.find(|at| is_end(*at)).unwrap_or(last_line)
    };
    (&text[..at], text[at..].trim())
}

/// Whether a line has a word as a key, however it is written: in JSON or another notation, in any case, in UTF-16, with
/// colours.
fn names(line: &str, word: &str) -> bool {
    const QUOTES: [char; 5] = ['"', '\'', '`', '“', '”'];
    let line = plain(line).to_ascii_lowercase();
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        let value = after.trim_start_matches(|c| c == '\\' || QUOTES.contains(&c));
        let value = value.trim_start();
        let is_first = || {
            let before = before.trim_end();
            before.is_empty() || before.ends_with(['{', ','])
        };
        (value.starts_with(':') || value.starts_with("=>"))
            && (before.ends_with(QUOTES) || is_first())
    })
}

/// A text without the escape sequences of terminals and the zero bytes of UTF-16.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => drop(chars.by_ref().find(char::is_ascii_alphabetic)),
            '\0' => {}
            c => plain.push(c),
        }
    }
    plain
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
            "{\n \"verdict\": \"fail\"\n}\n{\n \"verdict\": \"pass\"\n}\n",
            "{\n \"verdict\": \"fail\"\n}\ndone\n",
            "{\n \"verdict\": \"fail\",\n}\n",
            "{\n \"verdict\": \"fail\"\n",
            "{\n \"verdict\": \"fail\", \"verdict\": \"pass\"\n}\n",
            "{'verdict': 'fail'}",
            "{ verdict: 'fail' }",
            "{\n  verdict: 'fail'\n}",
            "{\"verdict\"=>\"fail\"}",
            "verdict: fail",
            "\u{feff}{\"verdict\": \"fail\"}",
            "{\0\"\0v\0e\0r\0d\0i\0c\0t\0\"\0:\0",
            "\u{1b}[1;39m{\n  \u{1b}[0m\u{1b}[34;1m\"verdict\"\u{1b}[0m\u{1b}[1;39m:\u{1b}[0m \"fail\"\n}",
            "result: {\"verdict\": \"fail\"}",
            "[{\"verdict\": \"fail\"}]",
            "{\"Verdict\": \"fail\"}",
            "{\"result\": {\"verdict\": \"fail\"}}",
            "\"{\\\"verdict\\\": \\\"fail\\\"}\"",
            "{\"score\": 0, \"reason\": \"no\"}",
            "{\n \"score\": 0\n}",
            "{'score': 0}",
        ] {
            assert_eq!(verdict(stdout, true), "unknown", "{stdout}");
        }
        let cut = ScriptReport::read("aaaa\"}", true);
        assert!(matches!(cut, ScriptReport::Unusable(_)), "{cut:?}");
    }

    #[test]
    fn a_report_may_span_lines() {
        let pretty = "{\n  \"verdict\": \"fail\",\n  \"reason\": \"say {\\\"verdict\\\": 1}\",\n  \"evidence\": [\n    3\n  ]\n}\n";
        let failed = "fail: say {\"verdict\": 1}";
        for before in ["", "log\n\n", "{\"level\": \"info\"}\n", "{\n}\n"] {
            assert_eq!(
                verdict(&format!("{before}{pretty}"), true),
                failed,
                "{before}"
            );
        }
        assert_eq!(
            verdict("log\r\n{\r\n\"verdict\": \"pass\"\r\n}\r\n", true),
            "pass"
        );
        assert_eq!(verdict("{\n\"verdict\": \"pass\"\n}", false), "unknown");
        let cut = format!("the end of a line\n{pretty}");
        assert!(matches!(
            ScriptReport::read(&cut, true),
            ScriptReport::Verdict(_)
        ));
    }

    #[test]
    fn other_output_leaves_the_exit_code_to_decide() {
        for stdout in [
            "",
            "\n",
            "ok\n",
            "{\"status\": \"pass\"}\n",
            "the \"verdict\" is in\n",
            "the verdict: fine\n",
            "[INFO] 3 rows [ok]\n",
            "{\n \"items\": [\n  {\n   \"score\": 3\n  }\n ]\n}\n",
            "{\"level\": \"info\"}\n{\"level\": \"info\"}\n",
            "fn f() {\n}\n",
        ] {
            assert_eq!(verdict(stdout, true), "silent", "{stdout}");
        }
        assert_eq!(
            verdict("log\n\n  {\"verdict\": \"pass\"}  \n\n", true),
            "pass"
        );
    }
}
