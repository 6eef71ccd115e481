//! The entries of checks: tools, resources, prompts, skills.

use std::fmt;
use std::time::Duration;

use proctor_record::json::brief;
use serde::Serialize;

use crate::matcher::Matcher;
use crate::pattern::Pattern;

/// A server with an exact name, a pattern (either may match), or anything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NameMatcher {
    /// The server, by its name in the suite.
    pub server: String,
    /// The exact tool, URI or prompt.
    pub name: Option<String>,
    /// A pattern for it.
    pub pattern: Option<Pattern>,
}

/// A tool, and the conditions on its calls.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolMatcher {
    pub target: NameMatcher,
    /// A matcher for its arguments; a call without arguments has `{}`.
    pub arguments: Option<Matcher>,
    /// A matcher for its whole result: `content`, `structuredContent`, `isError`.
    pub result: Option<Matcher>,
    /// Whether it must have ended in an error, of the tool or of the protocol.
    pub is_error: Option<bool>,
    /// The maximum duration of the call.
    pub max_duration: Option<Duration>,
    /// The required number of such calls.
    pub times: Times,
}

/// A number of calls, by default at least one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Times {
    pub min: Option<u64>,
    pub max: Option<u64>,
}

/// One place in an order of calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OrderEntry {
    pub kind: OrderKind,
    /// The server, by its name in the suite.
    pub server: String,
    /// The exact tool, URI or prompt.
    pub name: String,
}

/// The type of call of an [`OrderEntry`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum OrderKind {
    Tool,
    Resource,
    Prompt,
}

/// A skill: an exact name, a pattern (either may match), or any.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SkillMatcher {
    pub name: Option<String>,
    /// A pattern for it.
    pub pattern: Option<Pattern>,
}

impl NameMatcher {
    /// Whether the entry names this.
    pub fn matches(&self, server: &str, name: &str) -> bool {
        self.server == server && either(self.name.as_deref(), self.pattern.as_ref(), name)
    }
}

impl SkillMatcher {
    /// Whether the entry names this skill.
    pub fn matches(&self, name: &str) -> bool {
        either(self.name.as_deref(), self.pattern.as_ref(), name)
    }
}

fn either(exact: Option<&str>, pattern: Option<&Pattern>, name: &str) -> bool {
    match (exact, pattern) {
        (None, None) => true,
        (exact, pattern) => {
            exact.is_some_and(|exact| exact == name)
                || pattern.is_some_and(|pattern| pattern.is_match(name))
        }
    }
}

impl Times {
    /// The minimum: one by default, zero if no calls are allowed.
    pub fn least(self) -> u64 {
        self.min
            .unwrap_or_else(|| self.max.map_or(1, |max| max.min(1)))
    }

    pub fn most(self) -> u64 {
        self.max.unwrap_or(u64::MAX)
    }

    /// The message if no count can satisfy both bounds.
    pub(super) fn contradiction(self) -> Option<String> {
        (self.least() > self.most()).then(|| {
            format!(
                "`times` requires at least {} and at most {} calls",
                self.least(),
                self.most()
            )
        })
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count| if count == 1 { "call" } else { "calls" };
        match (self.least(), self.max) {
            (least, None) => write!(f, "at least {least} {}", plural(least)),
            (0, Some(most)) => write!(f, "at most {most} {}", plural(most)),
            (least, Some(most)) if least == most => write!(f, "exactly {most} {}", plural(most)),
            (least, Some(most)) => write!(f, "{least} to {most} calls"),
        }
    }
}

impl fmt::Display for NameMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ", self.server)?;
        write_either(self.name.as_deref(), self.pattern.as_ref(), f)
    }
}

impl fmt::Display for SkillMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_either(self.name.as_deref(), self.pattern.as_ref(), f)
    }
}

fn write_either(
    exact: Option<&str>,
    pattern: Option<&Pattern>,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    match (exact, pattern) {
        (None, None) => f.write_str("(any)"),
        (Some(name), None) => write!(f, "`{name}`"),
        (None, Some(pattern)) => write!(f, "`/{}/`", pattern.as_str()),
        (Some(name), Some(pattern)) => write!(f, "`{name}` or `/{}/`", pattern.as_str()),
    }
}

impl ToolMatcher {
    /// The entry with its `times`, if it has any.
    pub fn describe(&self) -> String {
        if self.times == Times::default() {
            return self.to_string();
        }
        format!("{self}, {}", self.times)
    }
}

impl fmt::Display for ToolMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.target)?;
        if let Some(arguments) = &self.arguments {
            write!(f, " with {}", brief(arguments.written()))?;
        }
        if let Some(result) = &self.result {
            write!(f, " giving {}", brief(result.written()))?;
        }
        match self.is_error {
            Some(true) => f.write_str(" ending in an error")?,
            Some(false) => f.write_str(" ending without an error")?,
            None => {}
        }
        if let Some(limit) = self.max_duration {
            write!(f, " within {limit:?}")?;
        }
        Ok(())
    }
}

impl fmt::Display for OrderEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}` `{}`", self.kind, self.server, self.name)
    }
}

impl fmt::Display for OrderKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Resource => "resource",
            Self::Prompt => "prompt",
        })
    }
}
