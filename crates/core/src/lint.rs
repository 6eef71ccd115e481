//! Lint: what makes the tools of a server hard to use or unsafe for a model.
//!
//! Main function: [`lint`]. It reads what servers list, and never calls a tool.

mod names;
mod rule;
mod schemas;
mod texts;
mod weight;

use serde_json::Value;

use proctor_record::event::Surface;
use proctor_record::json;

pub use self::rule::{LintRule, LintSeverity};

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    pub rule: LintRule,
    pub server: String,
    /// The part of the surface, such as `tools/git_log/arguments/max_count`.
    pub place: String,
    pub message: String,
    /// Why the rule is switched off here, if it is.
    pub off: Option<String>,
}

/// A rule that a user switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SwitchedOffRule {
    pub rule: LintRule,
    pub reason: String,
    /// The tool for which it is switched off; `None` for all.
    pub tool: Option<String>,
}

/// A server and what it lists.
#[derive(Debug, Clone)]
pub struct LintedServer {
    pub name: String,
    pub surface: Surface,
}

/// A tool with its server.
struct LintedTool<'a> {
    server: &'a str,
    name: String,
    value: Value,
}

impl LintedTool<'_> {
    fn place(&self) -> String {
        format!("tools/{}", self.name)
    }

    fn description(&self) -> &str {
        let description = self.value.get("description").and_then(Value::as_str);
        description.unwrap_or_default().trim()
    }
}

/// The findings of all servers, the most severe first.
pub fn lint(servers: &[LintedServer], off: &[SwitchedOffRule]) -> Vec<LintFinding> {
    let mut found = Findings::default();
    let mut tools = Vec::new();
    for server in servers {
        for raw in &server.surface.tools {
            let tool: Option<Value> = json::from_str(raw.get()).ok();
            let name = tool.as_ref().and_then(|tool| tool.get("name")?.as_str());
            match (name.map(str::to_owned), tool) {
                (Some(name), Some(value)) => tools.push(LintedTool {
                    server: &server.name,
                    name,
                    value,
                }),
                _ => found.add(
                    LintRule::RefusedName,
                    &server.name,
                    "tools",
                    "the server lists a tool without a name",
                ),
            }
        }
        texts::surface(server, &mut found);
    }
    for tool in &tools {
        names::tool(tool, &mut found);
        texts::tool(tool, &mut found);
        schemas::tool(tool, &mut found);
        weight::tool(tool, &mut found);
    }
    names::all(&tools, &mut found);
    texts::all(&tools, &mut found);
    weight::all(&tools, &mut found);
    let mut found = found.0;
    for finding in &mut found {
        let switched = off.iter().find(|off| off.covers(finding));
        finding.off = switched.map(|off| off.reason.clone());
    }
    found.sort_by_key(|finding| finding.rule.severity());
    found
}

impl SwitchedOffRule {
    fn covers(&self, finding: &LintFinding) -> bool {
        let is_tool = |tool: &String| {
            let rest = finding.place.strip_prefix("tools/");
            let rest = rest.and_then(|rest| rest.strip_prefix(tool.as_str()));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.rule == finding.rule && self.tool.as_ref().is_none_or(is_tool)
    }
}

#[derive(Default)]
struct Findings(Vec<LintFinding>);

impl Findings {
    fn add(&mut self, rule: LintRule, server: &str, place: &str, message: impl Into<String>) {
        self.0.push(LintFinding {
            rule,
            server: server.to_owned(),
            place: place.to_owned(),
            message: message.into(),
            off: None,
        });
    }
}
