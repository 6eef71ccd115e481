//! Matches permission requests of custom agents to tools by their titles.
//!
//! Its main type is [`Titles`]. A title is compared as a whole: a part never grants anything, and
//! an ambiguous title is allowed only if all matching tools are.

use proctor_core::suite::server::AllowedTools;
use proctor_record::hint::listed;

use super::calls::AcpCall;
use super::policy::{PermissionDecision, named};
use crate::external::Assignment;
use crate::external::cli::aliases;

/// How many tools a message names.
const NAMED: usize = 5;

/// How much of a title a message shows.
const SHOWN: usize = 200;

/// The servers of an agent, with the tools that titles may refer to.
#[derive(Debug)]
pub(super) struct Titles(Vec<TitleServer>);

#[derive(Debug)]
struct TitleServer {
    /// The server's name in the agent's configuration.
    alias: String,
    allowed: AllowedTools,
    /// The tools that it listed before the run, and the allowed ones.
    tools: Vec<String>,
}

/// What a title refers to.
enum TitleMeaning<'a> {
    /// One of these tools, each with its server.
    Tools(Vec<(&'a TitleServer, &'a str)>),
    /// An unknown tool of one of these servers.
    Unheard(Vec<&'a TitleServer>),
    /// No tool of a server.
    Nothing,
    /// The agent's own tool, by the kind of the request.
    Own(&'a str),
}

impl Titles {
    pub(super) fn new(assignment: &Assignment) -> Self {
        let aliases = aliases(&assignment.servers).into_iter();
        let servers = aliases.zip(&assignment.servers).map(|(alias, offered)| {
            let mut tools = offered.tools.clone();
            if let AllowedTools::Only(allowed) = &offered.allowed {
                tools.extend(allowed.iter().cloned());
            }
            tools.sort_unstable();
            tools.dedup();
            TitleServer {
                alias,
                allowed: offered.allowed.clone(),
                tools,
            }
        });
        Self(servers.collect())
    }

    /// Decides about a call.
    pub(super) fn rule(&self, call: &AcpCall) -> PermissionDecision {
        match self.meaning(call) {
            TitleMeaning::Tools(tools) if tools.iter().all(|(s, tool)| s.allows(tool)) => {
                PermissionDecision::Allowed
            }
            // The server may have added a tool since it was listed.
            TitleMeaning::Unheard(servers) if servers.iter().all(|s| s.allows_all()) => {
                PermissionDecision::Allowed
            }
            TitleMeaning::Tools(_) | TitleMeaning::Unheard(_) => PermissionDecision::Denied,
            TitleMeaning::Nothing | TitleMeaning::Own(_) => PermissionDecision::Foreign,
        }
    }

    /// Why a call is denied, and which titles are accepted.
    pub(super) fn why(&self, call: &AcpCall) -> String {
        let end = call.title.floor_char_boundary(SHOWN);
        let denied = format!("Proctor denied permission for `{}`", &call.title[..end]);
        let why = match self.meaning(call) {
            TitleMeaning::Tools(tools) => self.why_not(&tools),
            TitleMeaning::Unheard(_) | TitleMeaning::Nothing => {
                let accepted = self.accepted();
                format!("the title does not match an allowed tool; {accepted}")
            }
            TitleMeaning::Own(kind) => format!(
                "the kind `{kind}` stands for the agent's own tools; ask for MCP tools with the kind `other`"
            ),
        };
        format!("{denied}: {why}")
    }

    /// Why a call that refers to one of these tools is denied.
    fn why_not(&self, tools: &[(&TitleServer, &str)]) -> String {
        let names = |tools: &[(&TitleServer, &str)]| {
            let names = tools.iter().map(|(server, tool)| server.title(tool));
            let names: Vec<String> = names.collect();
            listed(names.iter().map(String::as_str))
        };
        let (allowed, denied): (Vec<_>, Vec<_>) =
            tools.iter().partition(|(server, tool)| server.allows(tool));
        match (allowed.first(), denied.is_empty()) {
            (_, true) => "the request has no option to allow it".to_owned(),
            (None, false) => {
                let accepted = self.accepted();
                format!(
                    "this means {}, which is not allowed; {accepted}",
                    names(tools)
                )
            }
            (Some((server, tool)), false) => {
                // Naming the server does not help if one server has two tools with similar names.
                let is_same = tools.iter().all(|(other, _)| other.alias == server.alias);
                let hint = if is_same {
                    String::new()
                } else {
                    format!("; name the server in it, as in `{}`", server.title(tool))
                };
                let (all, denied) = (names(tools), names(&denied));
                format!("the title is ambiguous between {all}, and {denied} is not allowed{hint}")
            }
        }
    }

    /// The accepted titles, by examples.
    fn accepted(&self) -> String {
        let all = self.0.iter().flat_map(|server| {
            let tools = server.tools.iter().filter(|tool| server.allows(tool));
            tools.map(move |tool| (server, tool.as_str()))
        });
        let all: Vec<(&TitleServer, &str)> = all.collect();
        let Some((server, first)) = all.first() else {
            return "no tool is allowed".to_owned();
        };
        let names = listed(all.iter().take(NAMED).map(|(_, tool)| *tool));
        let more = match all.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let example = server.title(first);
        format!("accepted titles: {names}{more}, alone or with the server, as in `{example}`")
    }

    fn meaning<'a>(&'a self, call: &'a AcpCall) -> TitleMeaning<'a> {
        let title = fold(call.title.trim());
        let (mut tools, mut unheard) = (Vec::new(), Vec::new());
        for server in &self.0 {
            let alias = fold(&server.alias);
            // The model has no influence on these.
            let by_input = named(call, &alias);
            let (mut qualified, mut bare) = (by_input.into_iter().collect::<Vec<_>>(), None);
            if is_harmless(call) {
                qualified.extend(behind_server(&alias, &title));
                bare = Some(title.clone());
            }
            let before = tools.len();
            for tool in &server.tools {
                let tool_folded = fold(tool);
                if qualified.iter().chain(&bare).any(|one| *one == tool_folded) {
                    tools.push((server, tool.as_str()));
                }
            }
            if tools.len() == before && qualified.iter().any(|one| !one.is_empty()) {
                unheard.push(server);
            }
        }
        match (&call.kind, tools.is_empty(), unheard.is_empty()) {
            (_, false, _) => TitleMeaning::Tools(tools),
            (_, true, false) => TitleMeaning::Unheard(unheard),
            (Some(kind), true, true) if !is_harmless(call) => TitleMeaning::Own(kind),
            _ => TitleMeaning::Nothing,
        }
    }
}

impl TitleServer {
    /// A title that names a tool and its server.
    fn title(&self, tool: &str) -> String {
        format!("{}/{tool}", self.alias)
    }

    fn allows(&self, tool: &str) -> bool {
        match &self.allowed {
            AllowedTools::All => true,
            AllowedTools::Only(tools) => tools.iter().any(|allowed| allowed == tool),
        }
    }

    fn allows_all(&self) -> bool {
        self.allowed == AllowedTools::All
    }
}

/// The tools that a title names together with a server, in all forms that agents are known to use.
fn behind_server(server: &str, title: &str) -> Vec<String> {
    let prefixes = ["mcp__{}__", "mcp_{}_", "{}___", "{}__", "{}_"];
    let by_prefix = prefixes
        .iter()
        .filter_map(|prefix| title.strip_prefix(&prefix.replace("{}", server)));
    let by_suffix = title.strip_suffix(&format!("__{server}_mcp_server_"));
    by_prefix.chain(by_suffix).map(str::to_owned).collect()
}

/// Whether the kind of a call fits a server's tool. The title of a command or an edit can be any
/// text, and so equal a tool's name.
pub(super) fn is_harmless(call: &AcpCall) -> bool {
    !matches!(
        call.kind.as_deref(),
        Some("execute" | "edit" | "delete" | "move" | "switch_mode")
    )
}

/// A title for comparison without case and ASCII punctuation, since agents write `get_sum` for
/// `get-sum`, and `/`, `.` or `: ` after a server.
fn fold(name: &str) -> String {
    let fold = |c: char| match c {
        c if c.is_ascii_alphanumeric() => c.to_ascii_lowercase(),
        c if c.is_ascii() => '_',
        c => c,
    };
    name.chars().map(fold).collect()
}
