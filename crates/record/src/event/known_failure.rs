//! Known failures: cases that are expected to fail, as a run was started with them.

use serde::{Deserialize, Serialize};

/// A case that is expected to fail.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedKnownFailure {
    /// The name or id of the case; `*` matches any text.
    pub case: String,
    /// The agent, with or without its model; `*` matches any text. Absent means every agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub reason: String,
    /// The last day on which the entry counts, as `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether it matches no case of the whole suite, or names an unknown agent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unmatched: bool,
}

impl PlannedKnownFailure {
    /// Whether the entry is about this case, by its name or id.
    pub fn is_about(&self, name: &str, id: &str) -> bool {
        matches(&self.case, name) || matches(&self.case, id)
    }

    /// Whether the entry is about this agent.
    pub fn is_of(&self, agent: &str) -> bool {
        let is_name = |own: &str| {
            let model = agent.strip_prefix(own);
            matches(own, agent) || model.is_some_and(|model| model.starts_with(" ("))
        };
        self.agent.as_deref().is_none_or(is_name)
    }

    /// Whether the entry had expired when a run started. The start time is UTC.
    pub fn is_expired(&self, started: &str) -> bool {
        let day = started.get(..10).unwrap_or(started);
        self.until.as_deref().is_some_and(|until| until < day)
    }
}

/// Whether a text matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut left) = text.strip_prefix(first) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_text_and_nothing_else_does() {
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        };
        check("list", "list", true);
        // A name is not a part of a name: it would hide the failures of another case.
        check("list", "list-pods", false);
        check("list", "relist", false);
        check("list*", "list-pods", true);
        check("*pods", "list-pods", true);
        check("*-*", "list-pods", true);
        check("l*t*s", "list-pods", true);
        check("l*t*x", "list-pods", false);
        check("*", "", true);
        check("a*a", "a", false);
        check("a*a", "aa", true);
        check("a.c", "abc", false);
        check("", "list", false);
        check("*é*", "café au lait", true);
        check("list**s", "list-pods", true);
    }

    #[test]
    fn an_agent_is_meant_with_or_without_its_model() {
        let check = |own: Option<&str>, agent: &str, expected: bool| {
            let entry = PlannedKnownFailure {
                agent: own.map(str::to_owned),
                ..PlannedKnownFailure::default()
            };
            assert_eq!(entry.is_of(agent), expected, "{own:?} {agent}");
        };
        check(None, "codex", true);
        check(Some("codex"), "codex", true);
        check(Some("codex"), "codex-next", false);
        check(Some("llm-agent"), "llm-agent (openai:gpt-5)", true);
        check(
            Some("llm-agent (openai:gpt-5)"),
            "llm-agent (openai:gpt-5)",
            true,
        );
        check(
            Some("llm-agent (openai:gpt-4)"),
            "llm-agent (openai:gpt-5)",
            false,
        );
        check(Some("llm-agent*"), "llm-agent (openai:gpt-5)", true);
    }

    #[test]
    fn the_last_day_still_counts() {
        let entry = |until: Option<&str>| PlannedKnownFailure {
            until: until.map(str::to_owned),
            ..PlannedKnownFailure::default()
        };
        let started = "2026-11-16T23:59:59Z";
        assert!(!entry(Some("2026-11-16")).is_expired(started));
        assert!(!entry(Some("2027-01-01")).is_expired(started));
        assert!(entry(Some("2026-11-15")).is_expired(started));
        assert!(!entry(None).is_expired(started));
    }
}
