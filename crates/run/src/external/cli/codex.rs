//! Codex: `codex exec`, with the prompt on stdin and JSON lines as output.
//!
//! Every server is `required`: otherwise Codex silently starts without slow servers.

use std::fmt::Write as _;

use proctor_core::suite::server::AllowedTools;
use proctor_record::event::{AgentClaimed, Claim};
use proctor_record::model::Usage;
use serde_json::Value;

use super::{AssignmentError, Cli, aliases, body, said, text};
use crate::external::{AgentReport, Assignment, Launch, ServerRoute};

/// The variable that holds the key.
const KEY: &str = "PROCTOR_MODEL_KEY";

/// How often it may wait for the network before Proctor gives up, since it never stops itself.
const MOST_WAITS: u32 = 2;

pub(super) fn prepare(assignment: &Assignment) -> Result<Launch, AssignmentError> {
    let mut env = assignment.environment.clone();
    if let Some(endpoint) = &assignment.access.endpoint {
        env.insert(KEY.to_owned(), endpoint.key.clone());
    }
    let words = [
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--ephemeral",
        "-",
    ];
    Ok(Launch {
        program: Cli::Codex.program().to_owned(),
        args: words.map(str::to_owned).to_vec(),
        env,
        files: vec![(
            assignment.home.join(".codex/config.toml"),
            config(assignment)?,
        )],
        stdin: Some(assignment.prompt.clone()),
    })
}

fn config(assignment: &Assignment) -> Result<String, AssignmentError> {
    let mut all = String::new();
    let mut line = |text: String| {
        all.push_str(&text);
        all.push('\n');
    };
    let access = &assignment.access;
    if let Some(model) = &access.model {
        line(format!("model = {}", quoted(model)));
    }
    if access.endpoint.is_some() {
        line("model_provider = \"proctor\"".to_owned());
    }
    // It can ask no user, and has only the tools of the servers.
    line("approval_policy = \"never\"\nsandbox_mode = \"read-only\"".to_owned());
    line("web_search = \"disabled\"".to_owned());
    line("[features]".to_owned());
    let switched_off = "shell_tool unified_exec multi_agent goals apps plugins hooks";
    for feature in switched_off.split(' ') {
        line(format!("{feature} = false"));
    }
    if let Some(endpoint) = &access.endpoint {
        line("[model_providers.proctor]\nname = \"proctor\"".to_owned());
        line(format!("base_url = {}", quoted(&endpoint.base)));
        line(format!("env_key = \"{KEY}\"\nwire_api = \"responses\""));
        line("request_max_retries = 2\nstream_max_retries = 2".to_owned());
    }
    for (server, alias) in assignment.servers.iter().zip(aliases(&assignment.servers)) {
        line(format!("[mcp_servers.{alias}]"));
        line(way(&server.name, &server.way)?);
        line("required = true\nstartup_timeout_sec = 60".to_owned());
        match &server.allowed {
            AllowedTools::All => line("default_tools_approval_mode = \"approve\"".to_owned()),
            AllowedTools::Only(tools) => {
                line("default_tools_approval_mode = \"prompt\"".to_owned());
                for tool in tools {
                    line(format!("[mcp_servers.{alias}.tools.{}]", quoted(tool)));
                    line("approval_mode = \"approve\"".to_owned());
                }
            }
        }
    }
    Ok(all)
}

fn way(name: &str, way: &ServerRoute) -> Result<String, AssignmentError> {
    Ok(match way {
        ServerRoute::Stdio { program, args } => {
            let args: Vec<String> = args.iter().map(|arg| quoted(arg)).collect();
            format!(
                "command = {}\nargs = [{}]",
                quoted(&program.to_string_lossy()),
                args.join(", ")
            )
        }
        ServerRoute::Http { url, headers } => {
            let mut text = format!("url = {}", quoted(url));
            if !headers.is_empty() {
                let pair = |(name, value): &(String, String)| {
                    format!("{} = {}", quoted(name), quoted(value))
                };
                let pairs: Vec<String> = headers.iter().map(pair).collect();
                let _ = write!(text, "\nhttp_headers = {{ {} }}", pairs.join(", "));
            }
            text
        }
        ServerRoute::Sse { .. } => {
            return Err(AssignmentError::Sse {
                agent: "Codex",
                server: name.to_owned(),
            });
        }
    })
}

/// A TOML string, which is like a JSON string except for one control character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Parses `codex exec --json`.
#[derive(Debug, Default)]
pub(crate) struct CodexReader {
    report: AgentReport,
    /// The latest error, which may have been temporary.
    complaint: Option<String>,
    /// How often it reported that it waits for the network.
    waits: u32,
    hopeless: Option<String>,
    is_over: bool,
}

impl CodexReader {
    pub(super) fn line(&mut self, line: &Value) -> Vec<AgentClaimed> {
        match text(line, "type") {
            Some("item.completed") => return self.item(&line["item"]),
            Some("turn.completed") => {
                self.is_over = true;
                self.report.usage = usage(&line["usage"]);
            }
            Some("turn.failed") => {
                self.is_over = true;
                let message = text(&line["error"], "message").and_then(said);
                let message = message.or_else(|| self.complaint.take());
                // A turn fails if the model can't be asked; failures of tools are reported to the
                // model.
                self.report.model_lost = true;
                self.report.error = Some(message.unwrap_or_else(|| "its turn failed".to_owned()));
            }
            Some("error") => self.complain(text(line, "message").unwrap_or_default()),
            _ => {}
        }
        Vec::new()
    }

    fn complain(&mut self, message: &str) {
        self.complaint = said(message);
        if message.contains("waiting for network") {
            self.waits += 1;
        }
        if self.waits >= MOST_WAITS {
            self.hopeless = Some(message.to_owned());
        }
    }

    fn item(&mut self, item: &Value) -> Vec<AgentClaimed> {
        self.waits = 0;
        match text(item, "type") {
            Some("agent_message") => {
                self.report.answer = text(item, "text").and_then(said);
                Vec::new()
            }
            Some("mcp_tool_call") => vec![self.call(item)],
            Some("command_execution" | "file_change" | "web_search") => {
                let kind = text(item, "type").unwrap_or_default();
                vec![AgentClaimed {
                    tool: kind.to_owned(),
                    arguments: body(item),
                    status: Claim::Unknown,
                    detail: None,
                }]
            }
            _ => Vec::new(),
        }
    }

    fn call(&mut self, item: &Value) -> AgentClaimed {
        let name = |key: &str| text(item, key).unwrap_or_default();
        let tool = format!("{}.{}", name("server"), name("tool"));
        let detail = text(&item["error"], "message").map(str::to_owned);
        let is_denied = |detail: &String| detail.contains("requires approval");
        let status = match (text(item, "status"), &detail) {
            (_, Some(detail)) if is_denied(detail) => Claim::Denied,
            (Some("completed"), _) => Claim::Completed,
            (Some("failed"), _) => Claim::Failed,
            _ => Claim::Unknown,
        };
        if status == Claim::Denied {
            self.report.denied.push(tool.clone());
        }
        AgentClaimed {
            tool,
            arguments: body(&item["arguments"]),
            status,
            detail,
        }
    }

    pub(super) fn hopeless(&self) -> Option<&str> {
        self.hopeless.as_deref()
    }

    /// The final report; `None` if there was no result.
    pub(super) fn end(mut self) -> Option<AgentReport> {
        if self.hopeless.is_some() {
            self.report.model_lost = true;
            self.report.error = self.hopeless;
            return Some(self.report);
        }
        self.is_over.then_some(self.report)
    }
}

/// The usage of all turns. Codex does not report the number of model requests.
fn usage(usage: &Value) -> Option<Usage> {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    Some(Usage {
        input: Some(number("input_tokens")?),
        output: Some(number("output_tokens")?),
        cached: number("cached_input_tokens"),
        cache_written: number("cache_write_input_tokens"),
        reasoning: number("reasoning_output_tokens"),
    })
}
