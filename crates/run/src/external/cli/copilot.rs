//! Copilot: `copilot` with the prompt on stdin and JSON lines as output.
//!
//! It does not ask before it calls a tool that its server declares read-only; the tap sees these
//! calls.

use std::path::PathBuf;

use proctor_core::suite::server::AllowedTools;
use proctor_record::event::{AgentClaimed, Claim};
use proctor_record::json;
use proctor_record::model::Usage;
use serde_json::{Map, Value, json};

use super::{AssignmentError, Cli, aliases, body, command, said, text};
use crate::external::{AgentReport, AgentServer, Assignment, Launch, ServerRoute};

/// After how many attempts Proctor stops waiting for its model, since retries become slower and
/// slower.
const ATTEMPTS: u64 = 2;

/// The file to which it writes its token usage.
fn usage_file(assignment: &Assignment) -> PathBuf {
    assignment.home.join("usage.json")
}

pub(super) fn prepare(assignment: &Assignment) -> Result<Launch, AssignmentError> {
    if let Some(word) = command(&assignment.prompt) {
        let (agent, word) = ("Copilot", word.to_owned());
        return Err(AssignmentError::Command { agent, word });
    }
    let access = &assignment.access;
    let servers = assignment.home.join("mcp.json");
    let mut env = assignment.environment.clone();
    let mut set = |name: &str, value: &str| {
        env.insert(name.to_owned(), value.to_owned());
    };
    if let Some(endpoint) = &access.endpoint {
        set("COPILOT_OFFLINE", "true");
        set("COPILOT_PROVIDER_BASE_URL", &endpoint.base);
        set("COPILOT_PROVIDER_API_KEY", &endpoint.key);
        set(
            "COPILOT_MODEL",
            access.model.as_deref().unwrap_or("default"),
        );
    }
    let mut args: Vec<String> = [
        "--output-format=json",
        "--disable-builtin-mcps",
        "--no-ask-user",
        "--no-custom-instructions",
        "--no-auto-update",
        "--no-remote",
        "--no-color",
        "--disable-client-telemetry",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--additional-mcp-config=@{}", servers.display()));
    args.push(format!(
        "--usage-output-file={}",
        usage_file(assignment).display()
    ));
    args.extend(permissions(assignment));
    if let (Some(model), None) = (&access.model, &access.endpoint) {
        args.push(format!("--model={model}"));
    }
    Ok(Launch {
        program: Cli::Copilot.program().to_owned(),
        args,
        env,
        files: vec![(servers, config(assignment).to_string())],
        stdin: Some(assignment.prompt.clone()),
    })
}

/// The names of its own tools and permissions. A server with such a name would enable them too.
const OWN: [&str; 34] = [
    "all",
    "apply_patch",
    "ask_user",
    "bash",
    "create",
    "edit",
    "exit_plan_mode",
    "glob",
    "grep",
    "list_agents",
    "list_bash",
    "list_powershell",
    "memory",
    "none",
    "powershell",
    "read",
    "read_agent",
    "read_bash",
    "read_powershell",
    "report_intent",
    "rg",
    "shell",
    "skill",
    "sql",
    "stop_bash",
    "stop_powershell",
    "store_memory",
    "task",
    "update_todo",
    "url",
    "view",
    "web_fetch",
    "web_search",
    "write",
];

/// Names for the servers that don't collide with its own tools.
fn names(servers: &[AgentServer]) -> Vec<String> {
    let own = |alias: String| {
        if OWN.contains(&alias.to_ascii_lowercase().as_str()) {
            format!("{alias}-server")
        } else {
            alias
        }
    };
    aliases(servers).into_iter().map(own).collect()
}

/// Makes only the servers' tools available, and allows the allowed ones.
fn permissions(assignment: &Assignment) -> Vec<String> {
    let mut words = Vec::new();
    for (server, alias) in assignment.servers.iter().zip(names(&assignment.servers)) {
        words.push(format!("--available-tools={alias}"));
        match &server.allowed {
            AllowedTools::All => words.push(format!("--allow-tool={alias}")),
            AllowedTools::Only(tools) => {
                let allow = |tool: &String| format!("--allow-tool={alias}({tool})");
                words.extend(tools.iter().map(allow));
            }
        }
    }
    if assignment.skills.is_some() {
        words.extend(["--available-tools=skill", "--allow-tool=skill"].map(str::to_owned));
    }
    if words.is_empty() {
        // An empty list would enable all of its own tools.
        words.push("--available-tools=none".to_owned());
    }
    words
}

fn config(assignment: &Assignment) -> Value {
    let mut servers = Map::new();
    for (server, alias) in assignment.servers.iter().zip(names(&assignment.servers)) {
        let headers = |headers: &[(String, String)]| -> Map<String, Value> {
            let pairs = headers.iter();
            pairs.map(|(k, v)| (k.clone(), v.as_str().into())).collect()
        };
        let way = match &server.way {
            ServerRoute::Stdio { program, args } => {
                json!({"type": "local", "command": program, "args": args, "tools": ["*"]})
            }
            ServerRoute::Http { url, headers: all } => {
                json!({"type": "http", "url": url, "headers": headers(all), "tools": ["*"]})
            }
            ServerRoute::Sse { url, headers: all } => {
                json!({"type": "sse", "url": url, "headers": headers(all), "tools": ["*"]})
            }
        };
        servers.insert(alias, way);
    }
    json!({"mcpServers": servers})
}

/// Parses the lines of `--output-format json`.
#[derive(Debug, Default)]
pub(crate) struct CopilotReader {
    report: AgentReport,
    usage: PathBuf,
    /// Running calls, by id.
    open: Vec<(String, AgentClaimed, bool)>,
    turns: u32,
    hopeless: Option<String>,
    is_over: bool,
}

impl CopilotReader {
    pub(super) fn new(assignment: &Assignment) -> Self {
        Self {
            usage: usage_file(assignment),
            ..Self::default()
        }
    }

    pub(super) fn line(&mut self, line: &Value) -> Vec<AgentClaimed> {
        let data = &line["data"];
        match text(line, "type") {
            Some("assistant.message") => {
                self.report.answer = text(data, "content").and_then(said);
            }
            Some("model.call_final_result") => {
                let went_well = text(data, "result") == Some("success");
                self.turns += u32::from(went_well);
                self.report.model_lost = !went_well;
            }
            Some("model.call_failure") => self.failure(data),
            Some("session.error") => {
                let message = text(data, "message").and_then(said);
                self.report.error = Some(message.unwrap_or_else(|| "it gave no reason".to_owned()));
            }
            Some("session.mcp_server_status_changed") if text(data, "status") == Some("failed") => {
                self.report
                    .unreached
                    .extend(text(data, "serverName").map(str::to_owned));
            }
            Some("tool.execution_start") => self.start(data),
            Some("tool.execution_complete") => return self.complete(data).into_iter().collect(),
            Some("result") => {
                self.is_over = true;
                return self.open.drain(..).map(|(_, claim, _)| claim).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    /// Handles a failed model request. It retries a few times, more and more slowly.
    fn failure(&mut self, data: &Value) {
        let is_network = text(data, "failureKind") == Some("transport");
        if is_network && data["retryAttempt"].as_u64() >= Some(ATTEMPTS) {
            let message = text(data, "errorMessage").and_then(said);
            self.hopeless =
                Some(message.unwrap_or_else(|| "its model can't be reached".to_owned()));
        }
    }

    fn start(&mut self, data: &Value) {
        let (Some(id), Some(tool)) = (text(data, "toolCallId"), text(data, "toolName")) else {
            return;
        };
        let claim = AgentClaimed {
            tool: tool.to_owned(),
            arguments: body(&data["arguments"]),
            status: Claim::Unknown,
            detail: None,
        };
        let is_of_server = text(data, "mcpServerName").is_some();
        self.open.push((id.to_owned(), claim, is_of_server));
    }

    fn complete(&mut self, data: &Value) -> Option<AgentClaimed> {
        let id = text(data, "toolCallId")?;
        let at = self.open.iter().position(|(open, ..)| open == id)?;
        let (_, mut claim, is_of_server) = self.open.remove(at);
        let error = &data["error"];
        claim.status = match (data["success"].as_bool(), text(error, "code")) {
            (Some(true), _) => Claim::Completed,
            (_, Some("denied")) => Claim::Denied,
            _ => Claim::Failed,
        };
        claim.detail = text(error, "message").map(str::to_owned);
        if claim.status == Claim::Denied && is_of_server {
            self.report.denied.push(claim.tool.clone());
        }
        Some(claim)
    }

    pub(super) fn hopeless(&self) -> Option<&str> {
        self.hopeless.as_deref()
    }

    /// The final report; `None` if there was no result.
    pub(super) fn end(mut self) -> Option<AgentReport> {
        if let Some(reason) = self.hopeless {
            self.report.error = Some(reason);
            self.report.model_lost = true;
            self.is_over = true;
        }
        let written = std::fs::read(&self.usage).unwrap_or_default();
        self.report.usage = json::from_slice(&written).ok().and_then(|all| usage(&all));
        self.report.turns = Some(self.turns);
        self.is_over.then_some(self.report)
    }
}

/// The usage of all models. The input includes cached tokens.
fn usage(all: &Value) -> Option<Usage> {
    let mut sum = Usage::default();
    for metrics in all["modelMetrics"].as_object()?.values() {
        let number = |key: &str| metrics["usage"].get(key).and_then(Value::as_u64);
        sum.add(&Usage {
            input: Some(number("inputTokens")?),
            output: Some(number("outputTokens")?),
            cached: number("cacheReadTokens"),
            cache_written: number("cacheWriteTokens"),
            reasoning: None,
        });
    }
    Some(sum).filter(|sum| sum.input.is_some())
}
