//! Decides which calls of an agent are allowed: those of allowed tools of the configured servers.
//!
//! Main type: [`Policy`]. Agents name a server's tool in different ways. The name is taken from a
//! field that the model can't influence, if the agent has one.

use proctor_core::suite::server::AllowedTools;
use serde_json::{Value, json};

use super::calls::AcpCall;
use super::dialect::Dialect;
use super::titles::Titles;
use crate::external::Assignment;
use crate::external::cli::aliases;

/// The permissions of an agent.
#[derive(Debug)]
pub(super) struct Policy {
    dialect: &'static Dialect,
    /// The servers, by the names that the agent uses.
    servers: Vec<(String, AllowedTools)>,
    /// The titles to match, for an agent that Proctor does not know.
    titles: Option<Titles>,
    /// The tool that loads skills, if it is allowed.
    skill_tool: Option<&'static str>,
}

/// The decision about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermissionDecision {
    /// An allowed tool of a server.
    Allowed,
    /// A tool of a server that is not allowed.
    Denied,
    /// Another tool, such as one of the agent's own, which are not under test.
    Foreign,
}

impl Policy {
    pub(super) fn new(
        dialect: &'static Dialect,
        assignment: &Assignment,
        skill_tool: Option<&'static str>,
    ) -> Self {
        let names = aliases(&assignment.servers).into_iter();
        let allowed = assignment.servers.iter().map(|s| s.allowed.clone());
        Self {
            dialect,
            servers: names.map(|name| fold(&name)).zip(allowed).collect(),
            titles: dialect.matches_titles.then(|| Titles::new(assignment)),
            skill_tool: skill_tool.filter(|_| assignment.skills.is_some()),
        }
    }

    /// Decides about a call.
    pub(super) fn rule(&self, call: &AcpCall) -> PermissionDecision {
        if self.skill_tool.is_some_and(|tool| call.name() == tool) {
            return PermissionDecision::Allowed;
        }
        if let Some(titles) = &self.titles {
            return titles.rule(call);
        }
        let mut ruling = PermissionDecision::Foreign;
        for (server, allowed) in &self.servers {
            let tool = (self.dialect.tool_of)(call, server);
            if let Some(tool) = tool.filter(|tool| !tool.is_empty()) {
                if allows(allowed, &tool) {
                    return PermissionDecision::Allowed;
                }
                ruling = PermissionDecision::Denied;
            }
        }
        ruling
    }

    /// Why a call is denied, if only its title identifies it.
    pub(super) fn why(&self, call: &AcpCall) -> Option<String> {
        Some(self.titles.as_ref()?.why(call))
    }
}

/// The answer to a permission request: one of the agent's options.
pub(super) fn outcome(ruling: PermissionDecision, options: &Value) -> Value {
    let kinds = match ruling {
        PermissionDecision::Allowed => ["allow_once", "allow_always"],
        PermissionDecision::Denied | PermissionDecision::Foreign => {
            ["reject_once", "reject_always"]
        }
    };
    let options: Vec<&Value> = options.as_array().into_iter().flatten().collect();
    let choice = kinds.iter().find_map(|kind| {
        let mut options = options.iter();
        options.find(|option| option["kind"].as_str() == Some(kind))
    });
    match choice.and_then(|option| option["optionId"].as_str()) {
        Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

/// Whether the request has an option to allow the call.
pub(super) fn can_allow(options: &Value) -> bool {
    outcome(PermissionDecision::Allowed, options)["outcome"]["optionId"].is_string()
}

/// The tool in arguments that name it beside its server.
pub(super) fn named(call: &AcpCall, server: &str) -> Option<String> {
    let input = call.input.as_ref()?;
    let tool = fold(input["tool"].as_str()?);
    let is_it = fold(input["server"].as_str()?) == server;
    (is_it && fold(&call.title) == format!("mcp_{server}_{tool}")).then_some(tool)
}

fn allows(allowed: &AllowedTools, tool: &str) -> bool {
    match allowed {
        AllowedTools::All => true,
        AllowedTools::Only(tools) => tools.iter().any(|allowed| fold(allowed) == tool),
    }
}

/// A name for comparison, since agents replace some characters.
pub(super) fn fold(name: &str) -> String {
    let is_plain = |c: &char| c.is_ascii_alphanumeric();
    let fold = |c: char| {
        Some(c)
            .filter(is_plain)
            .map_or('_', |c| c.to_ascii_lowercase())
    };
    name.chars().map(fold).collect()
}
