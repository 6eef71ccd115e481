//! The file format of `knownFailures` in an eval file: the cases that are expected to fail.

use jiff::civil::Date;
use proctor_record::event::PlannedKnownFailure;
use proctor_record::problem::{Code, Problem};
use serde_json::{Value, json};

use crate::builtin_agent::BuiltinAgent;
use crate::decode::{Context, Decode, Definitions, LooseText, RequiredKey, record};
use crate::document::Node;

use super::Case;

record! {
    /// A case that is expected to fail. It still runs, and its failure does not miss the gate.
    pub struct KnownFailureFile {
        /// The name or id of the case. `*` matches any text.
        "case" => case: RequiredKey<FilledText>,
        /// The agent that fails the case, with or without its model. By default every agent.
        "agent" => agent: Option<FilledText>,
        /// Why the case fails, such as the address of an issue.
        "reason" => reason: RequiredKey<FilledText>,
        /// The last day on which the entry counts (UTC), as `YYYY-MM-DD`.
        "until" => until: Option<DayFile>,
    }
}

/// A text with more than white space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledText(pub String);

impl Decode for FilledText {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = LooseText::decode(node, cx)?.0.trim().to_owned();
        if text.is_empty() {
            cx.report(node.span, Problem::error(Code::Value, "the text is empty"));
            return None;
        }
        Some(Self(text))
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let mut schema = LooseText::schema(definitions);
        // Of the types that a text may have, only a string can be empty.
        schema["pattern"] = r"\S".into();
        schema
    }
}

/// A day of the calendar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayFile(pub String);

impl Decode for DayFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = LooseText::decode(node, cx)?.0;
        // A day that is written with other digits could not be compared as text.
        let day = Date::strptime("%Y-%m-%d", &text).ok();
        if day.is_some_and(|day| day.to_string() == text) {
            return Some(Self(text));
        }
        let problem = Problem::error(Code::Value, format!("invalid date `{text}`"));
        cx.report(
            node.span,
            problem.hint("write a day that exists as YYYY-MM-DD, such as `2026-12-31`"),
        );
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
    }
}

impl KnownFailureFile {
    /// The entry as a run records it; `None` if a required key is missing, which was reported.
    pub fn resolve(&self) -> Option<PlannedKnownFailure> {
        Some(PlannedKnownFailure {
            case: self.case.get()?.0.clone(),
            agent: self.agent.as_ref().map(|agent| agent.0.clone()),
            reason: self.reason.get()?.0.clone(),
            until: self.until.as_ref().map(|day| day.0.clone()),
            unmatched: false,
        })
    }
}

/// Whether an entry matches no case, or names an agent that is neither among these nor built in. A run with
/// `--agent` may select any built-in agent.
pub fn is_unmatched<'a>(
    known: &PlannedKnownFailure,
    cases: &[Case],
    agents: impl IntoIterator<Item = &'a str>,
) -> bool {
    let mut cases = cases.iter();
    let has_case = cases.any(|case| known.is_about(&case.name, &case.id.0));
    let has_agent = agents.into_iter().any(|name| known.is_of(name))
        || BuiltinAgent::names().any(|name| known.is_of(name));
    !has_case || !has_agent
}
