//! Claude Code: `claude -p`, with the prompt on stdin and JSON lines as output.
//!
//! Its tools are never deferred, and it waits for slow servers: otherwise their tools would be
//! missing from the first model request.

use proctor_core::suite::server::AllowedTools;
use proctor_record::event::{AgentClaimed, Claim};
use proctor_record::model::Usage;
use serde_json::{Map, Value, json};

use super::{Cli, aliases, body, never_a_command, plain, said, text};
use crate::external::{AgentReport, Assignment, Launch, ServerRoute};

/// The number of retries of a model request. Without a limit, an outage takes minutes.
const RETRIES: &str = "2";

pub(super) fn prepare(assignment: &Assignment) -> Launch {
    let Assignment { access, home, .. } = assignment;
    let servers = home.join("mcp.json");
    let settings = home.join("settings.json");
    let mut env = assignment.environment.clone();
    let mut set = |name: &str, value: &str| {
        env.insert(name.to_owned(), value.to_owned());
    };
    set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    set("CLAUDE_CODE_MAX_RETRIES", RETRIES);
    // Otherwise `@/etc/passwd` in a prompt would be read and sent to the model.
    set("CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1");
    set("ENABLE_TOOL_SEARCH", "false");
    set("MCP_CONNECTION_NONBLOCKING", "0");
    if let Some(endpoint) = &access.endpoint {
        set("ANTHROPIC_BASE_URL", &endpoint.base);
        set("ANTHROPIC_API_KEY", &endpoint.key);
    }
    let mut args: Vec<String> = ["-p", "--output-format", "stream-json", "--verbose"]
        .map(str::to_owned)
        .to_vec();
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    add(&[
        "--mcp-config",
        &servers.to_string_lossy(),
        "--strict-mcp-config",
    ]);
    add(&["--settings", &settings.to_string_lossy()]);
    // Its own tools are off: it works only through the servers.
    if assignment.skills.is_some() {
        add(&["--tools", "Skill,Read"]);
    } else {
        add(&["--tools", "", "--disable-slash-commands"]);
    }
    if let Some(model) = &access.model {
        add(&["--model", model]);
    }
    if let Some(turns) = assignment.max_turns {
        add(&["--max-turns", &turns.to_string()]);
    }
    Launch {
        program: Cli::ClaudeCode.program().to_owned(),
        args,
        env,
        files: vec![
            (servers, config(assignment).to_string()),
            (settings, permissions(assignment).to_string()),
        ],
        stdin: Some(never_a_command(&assignment.prompt)),
    }
}

fn config(assignment: &Assignment) -> Value {
    let mut servers = Map::new();
    for (server, alias) in assignment.servers.iter().zip(aliases(&assignment.servers)) {
        let headers = |headers: &[(String, String)]| -> Map<String, Value> {
            let pairs = headers.iter();
            pairs.map(|(k, v)| (k.clone(), v.as_str().into())).collect()
        };
        let way = match &server.way {
            ServerRoute::Stdio { program, args } => {
                json!({"type": "stdio", "command": program, "args": args, "env": {}})
            }
            ServerRoute::Http { url, headers: all } => {
                json!({"type": "http", "url": url, "headers": headers(all)})
            }
            ServerRoute::Sse { url, headers: all } => {
                json!({"type": "sse", "url": url, "headers": headers(all)})
            }
        };
        servers.insert(alias, way);
    }
    json!({"mcpServers": servers})
}

/// The allowed tools and nothing else: requests that would need a permission are denied.
fn permissions(assignment: &Assignment) -> Value {
    let mut allow = Vec::new();
    for (server, alias) in assignment.servers.iter().zip(aliases(&assignment.servers)) {
        match &server.allowed {
            AllowedTools::All => allow.push(format!("mcp__{alias}")),
            AllowedTools::Only(tools) => {
                let name = |tool: &String| format!("mcp__{alias}__{}", plain(tool));
                allow.extend(tools.iter().map(name));
            }
        }
    }
    if let Some(skills) = &assignment.skills {
        allow.push("Skill".to_owned());
        allow.push(format!("Read(./{skills}/**)"));
    }
    json!({"permissions": {"allow": allow, "defaultMode": "dontAsk"}})
}

/// Parses the lines of `--output-format stream-json`.
#[derive(Debug, Default)]
pub(crate) struct ClaudeCodeReader {
    report: AgentReport,
    /// Calls without a result so far, by id.
    open: Vec<(String, AgentClaimed)>,
    refused: Vec<String>,
    has_result: bool,
}

impl ClaudeCodeReader {
    pub(super) fn line(&mut self, line: &Value) -> Vec<AgentClaimed> {
        match (text(line, "type"), text(line, "subtype")) {
            (Some("system"), Some("init")) => self.init(line),
            (Some("system"), Some("permission_denied")) => {
                self.refused
                    .extend(text(line, "tool_use_id").map(str::to_owned));
            }
            (Some("assistant"), _) => self.assistant(line),
            (Some("user"), _) => return self.results(line),
            (Some("result"), subtype) => {
                self.result(line, subtype);
                // These calls have no result.
                return self.open.drain(..).map(|(_, claim)| claim).collect();
            }
            _ => {}
        }
        Vec::new()
    }

    fn init(&mut self, line: &Value) {
        let servers = line["mcp_servers"].as_array().into_iter().flatten();
        let lost = servers
            .filter(|server| !matches!(text(server, "status"), Some("connected" | "pending")));
        let names = lost.filter_map(|server| Some(text(server, "name")?.to_owned()));
        self.report.unreached.extend(names);
    }

    fn assistant(&mut self, line: &Value) {
        if line["is_api_error_message"] == Value::Bool(true) {
            self.report.model_lost = true;
        }
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            let (Some("tool_use"), Some(id), Some(tool)) =
                (text(block, "type"), text(block, "id"), text(block, "name"))
            else {
                continue;
            };
            let claim = AgentClaimed {
                tool: tool.to_owned(),
                arguments: body(&block["input"]),
                status: Claim::Unknown,
                detail: None,
            };
            self.open.push((id.to_owned(), claim));
        }
    }

    fn results(&mut self, line: &Value) -> Vec<AgentClaimed> {
        let mut claims = Vec::new();
        for block in line["message"]["content"].as_array().into_iter().flatten() {
            let Some(id) = text(block, "tool_use_id") else {
                continue;
            };
            let Some(at) = self.open.iter().position(|(open, _)| open == id) else {
                continue;
            };
            let (_, mut claim) = self.open.remove(at);
            let is_error = block["is_error"] == Value::Bool(true);
            claim.status = match is_error {
                true if self.refused.iter().any(|refused| refused == id) => Claim::Denied,
                true => Claim::Failed,
                false => Claim::Completed,
            };
            claim.detail = is_error.then(|| words(&block["content"]));
            claims.push(claim);
        }
        claims
    }

    fn result(&mut self, line: &Value, subtype: Option<&str>) {
        self.has_result = true;
        self.report.usage = usage(&line["usage"]);
        let turns = line["num_turns"].as_u64();
        self.report.turns = turns.and_then(|turns| turns.try_into().ok());
        for denial in line["permission_denials"].as_array().into_iter().flatten() {
            let tool = text(denial, "tool_name").unwrap_or_default();
            if tool.starts_with("mcp__") {
                self.report.denied.push(tool.to_owned());
            }
        }
        let said_last = text(line, "result").and_then(said);
        // The subtype of an outage is `success`.
        if line["is_error"] != Value::Bool(true) {
            // An answer without a model is not work: Claude Code ran a command that it found in
            // the prompt.
            if turns == Some(0) {
                let words = said_last.as_deref().unwrap_or("nothing");
                self.report.error =
                    Some(format!("it never called its model, and answered: {words}"));
            }
            self.report.answer = said_last;
        } else if subtype == Some("error_max_turns") {
            self.report.out_of_turns = true;
        } else {
            let errors = line["errors"].as_array().into_iter().flatten();
            let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
            let error = said_last.or_else(|| said(&errors.join("; ")));
            let error = error.unwrap_or_else(|| subtype.unwrap_or("it gave no reason").to_owned());
            self.report.model_lost |= text(line, "terminal_reason") == Some("api_error")
                || error.starts_with("API Error")
                || error.contains("API key");
            self.report.error = Some(error);
        }
    }

    /// The final report; `None` if there was no result line.
    pub(super) fn end(self) -> Option<AgentReport> {
        self.has_result.then_some(self.report)
    }
}

fn words(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        other => {
            let blocks = other.as_array().into_iter().flatten();
            let texts: Vec<&str> = blocks.filter_map(|block| text(block, "text")).collect();
            texts.join("\n")
        }
    }
}

fn usage(usage: &Value) -> Option<Usage> {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64);
    let (cached, written) = (
        number("cache_read_input_tokens"),
        number("cache_creation_input_tokens"),
    );
    Some(Usage {
        // Its input excludes cached tokens.
        input: Some(number("input_tokens")? + cached.unwrap_or(0) + written.unwrap_or(0)),
        output: Some(number("output_tokens")?),
        cached,
        cache_written: written,
        reasoning: usage["output_tokens_details"]["thinking_tokens"].as_u64(),
    })
}
