//! The choice of tools in a model's first turn, and the proof that no tool was called.

use proctor_record::event::ToolName;
use proctor_record::excerpt::excerpt;
use proctor_record::hint::listed;
use proctor_record::transcript::{ChosenTool, Payload, Transcript};
use serde::Serialize;

use super::CheckResult;
use super::fit::{CallFit, fit_matcher, tool_calls};
use crate::matcher::Matcher;

/// The tools that a model should choose for a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SelectionCheck {
    /// The server of the tools; `None` if their names are unique among all servers.
    pub server: Option<String>,
    pub expect: ExpectedTools,
    /// Tools that must not be chosen.
    pub not: Vec<String>,
    /// A matcher for the arguments of expected tools.
    pub arguments: Option<Matcher>,
    pub mode: SelectionMode,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ExpectedTools {
    /// The model must answer without a call.
    None,
    /// At least one of these tools must be chosen.
    AnyOf(Vec<String>),
}

/// Whether the turn may have other calls besides the expected ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum SelectionMode {
    /// Every call must be an expected one, with matching arguments.
    Exact,
    /// Other calls are allowed, unless they are forbidden. One expected call must match.
    Contains,
}

impl SelectionMode {
    /// The word that files use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Contains => "contains",
        }
    }
}

impl SelectionCheck {
    /// The expected tools; empty if no call is expected.
    pub fn expected(&self) -> &[String] {
        match &self.expect {
            ExpectedTools::None => &[],
            ExpectedTools::AnyOf(tools) => tools,
        }
    }

    /// Whether a chosen tool is one of these names.
    fn is_one_of(&self, call: &ChosenTool, names: &[String]) -> bool {
        let server = call.server.as_deref();
        let is_of_server = match &self.server {
            Some(wanted) => server == Some(wanted.as_str()),
            None => server.is_some(),
        };
        is_of_server && names.contains(&call.tool)
    }

    /// The name of a chosen tool for messages, with its server if that is not the expected one.
    fn shown(&self, call: &ChosenTool) -> String {
        match (&self.server, &call.server) {
            (Some(wanted), Some(server)) if wanted != server => format!("{server}.{}", call.tool),
            _ => call.tool.clone(),
        }
    }

    pub(super) fn details(&self) -> Vec<String> {
        let mut details = vec![match &self.expect {
            ExpectedTools::None => "no call".to_owned(),
            ExpectedTools::AnyOf(tools) => tools.join(" or "),
        }];
        if !self.not.is_empty() {
            details.push(format!("not {}", self.not.join(", ")));
        }
        if let Some(arguments) = &self.arguments {
            details.push(format!(
                "arguments {}",
                proctor_record::json::brief(arguments.written())
            ));
        }
        details
    }

    pub(super) fn evaluate(&self, transcript: &Transcript) -> CheckResult {
        let Some(selection) = &transcript.selection else {
            return CheckResult::unknown(
                "the record does not show which tools the model chose",
                Vec::new(),
            );
        };
        self.judge(&selection.calls)
    }

    fn judge(&self, calls: &[ChosenTool]) -> CheckResult {
        let fail = |reason: String| CheckResult::fail(reason, Vec::new());
        let listing = |calls: &[&ChosenTool]| {
            let names: Vec<String> = calls.iter().map(|call| self.shown(call)).collect();
            listed(names.iter().map(String::as_str))
        };
        let invented: Vec<&ChosenTool> = calls.iter().filter(|c| c.server.is_none()).collect();
        if !invented.is_empty() {
            let names = listing(&invented);
            return fail(format!("the model called {names}, which no server offers"));
        }
        let all: Vec<&ChosenTool> = calls.iter().collect();
        let ExpectedTools::AnyOf(expected) = &self.expect else {
            return match &all[..] {
                [] => CheckResult::pass(Vec::new()),
                calls => fail(format!("expected no call, found {}", listing(calls))),
            };
        };
        let wanted = expected.iter().map(String::as_str);
        let wanted = listed(wanted).replace(", ", " or ");
        if all.is_empty() {
            return fail(format!(
                "expected a call of {wanted}; the model answered without a call"
            ));
        }
        let is_forbidden = |call: &&&ChosenTool| self.is_one_of(call, &self.not);
        let forbidden: Vec<&ChosenTool> = all.iter().filter(is_forbidden).copied().collect();
        if !forbidden.is_empty() {
            let names = listing(&forbidden);
            return fail(format!(
                "the model called {names}, which must not be chosen"
            ));
        }
        let (hits, others): (Vec<&ChosenTool>, Vec<&ChosenTool>) = all
            .into_iter()
            .partition(|call| self.is_one_of(call, expected));
        if hits.is_empty() || (self.mode == SelectionMode::Exact && !others.is_empty()) {
            return fail(format!("expected {wanted}, found {}", listing(&others)));
        }
        self.judge_arguments(&hits)
    }

    /// Whether arguments match. A call whose arguments are not an object can't be made.
    fn fit(&self, arguments: &Payload) -> CallFit {
        match arguments {
            Payload::Unreadable { reason } => CallFit::no(format!(
                "its arguments are not a JSON object: {}",
                excerpt(reason)
            )),
            Payload::Absent | Payload::Value(_) | Payload::Cut { .. } | Payload::Omitted { .. } => {
                fit_matcher(self.arguments.as_ref(), arguments)
            }
        }
    }

    fn judge_arguments(&self, hits: &[&ChosenTool]) -> CheckResult {
        let (mut missed, mut doubt) = (None, None);
        let mut passed = false;
        for call in hits {
            match self.fit(&call.arguments) {
                CallFit::Yes => passed = true,
                CallFit::Maybe(why) => {
                    doubt.get_or_insert(format!("`{}`: {why}", call.tool));
                }
                CallFit::No(miss) => {
                    missed.get_or_insert(format!("`{}`: {}", call.tool, miss.reason));
                }
                CallFit::OtherTool => {}
            }
        }
        let is_enough = match self.mode {
            SelectionMode::Exact => missed.is_none() && doubt.is_none(),
            SelectionMode::Contains => passed,
        };
        match (is_enough, missed, doubt) {
            (true, ..) => CheckResult::pass(Vec::new()),
            (false, Some(reason), _) if self.mode == SelectionMode::Exact => {
                CheckResult::fail(reason, Vec::new())
            }
            (false, _, Some(reason)) => CheckResult::unknown(reason, Vec::new()),
            (false, Some(reason), None) => CheckResult::fail(reason, Vec::new()),
            (false, None, None) => CheckResult::nothing_to_check(),
        }
    }
}

/// Whether no tool call reached a server.
pub(super) fn not_executed(transcript: &Transcript) -> CheckResult {
    let Some(selection) = &transcript.selection else {
        return CheckResult::unknown(
            "the record does not show which tools the model chose",
            Vec::new(),
        );
    };
    let mut withheld = selection.withheld.clone();
    let reached = tool_calls(transcript).into_iter().filter(|tool| {
        let is_same = |one: &ToolName| one.server == tool.call.server && one.tool == tool.name;
        // Each answer of Proctor stands for one call.
        match withheld.iter().position(is_same) {
            Some(at) => {
                withheld.remove(at);
                false
            }
            None => true,
        }
    });
    let (seqs, names): (Vec<u64>, Vec<&str>) =
        reached.map(|tool| (tool.call.seq, tool.name)).unzip();
    if seqs.is_empty() {
        return CheckResult::pass(Vec::new());
    }
    let reason = format!("the call of {} reached the server", listed(names));
    CheckResult::fail(reason, seqs)
}
