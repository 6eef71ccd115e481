//! Any program, by templates of its command line.
//!
//! A template is text for a shell, by the hand of whoever wrote the agent file. What is put into it is
//! not: the prompt, addresses, and names of servers and tools are handed over in variables of the
//! environment, and the command only refers to them. So nothing in them is ever executed.

mod shell;
mod template;

use proctor_core::suite::agent::Commands;
use proctor_core::suite::server::AllowedTools;
use serde_json::{Map, Value, json};

use self::shell::Value as Slot;
use self::template::{Part, parts};
use super::cli::Unfit;
use super::{Assignment, Launch, Offered, Told, Way};

/// The longest text that a system hands over in one variable or argument: 32 pages.
const LONGEST: usize = 128 << 10;

/// The variable that holds the prompt.
const PROMPT: &str = "PROCTOR_PROMPT";

/// How much of what a command writes is its answer: the end.
const ANSWER: usize = 4 << 20;

/// Whether an agent wants addresses instead of files.
pub(crate) fn wants_url(commands: &Commands) -> bool {
    let template = commands.mcp_server.as_deref().unwrap_or_default();
    parts(template).any(|part| part == Part::Field("URL"))
}

/// What is started for an assignment.
pub(crate) fn prepare(commands: &Commands, assignment: &Assignment) -> Result<Launch, Unfit> {
    let prompt = &assignment.prompt;
    if prompt.contains('\0') {
        return Err(Unfit::Nul("the prompt"));
    }
    let limit = LONGEST - PROMPT.len() - "=\0".len();
    if prompt.len() > limit {
        let bytes = prompt.len();
        return Err(Unfit::TooLong { bytes, limit });
    }
    let mut command = Command::default();
    command.fill(&commands.run_prompt, &mut |command, field| match field {
        "Prompt" => command.slots.push(Slot::Prompt(PROMPT.to_owned())),
        "McpServerFileArgs" => command.servers(commands, assignment),
        "AllowedToolArgs" => command.tools(commands, assignment),
        _ => {}
    });
    let mut env = assignment.environment.clone();
    env.insert(PROMPT.to_owned(), prompt.clone());
    for (name, value) in command.variables {
        if value.contains('\0') {
            return Err(Unfit::Nul("the name of a server or a tool"));
        }
        env.insert(name, value);
    }
    Ok(Launch {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), shell::render(&command.slots)?],
        env,
        files: files(assignment),
        stdin: None,
    })
}

/// A command that is being put together.
#[derive(Default)]
struct Command {
    slots: Vec<Slot>,
    variables: Vec<(String, String)>,
}

impl Command {
    /// Adds a template, and what its fields stand for.
    fn fill(&mut self, template: &str, field: &mut dyn FnMut(&mut Self, &str)) {
        for part in parts(template) {
            match part {
                Part::Text(text) => self.slots.push(Slot::Text(text.to_owned())),
                Part::Field(name) => field(self, name),
            }
        }
    }

    /// Adds a value that the command refers to.
    fn value(&mut self, value: &str) {
        let name = format!("PROCTOR_VALUE_{}", self.variables.len() + 1);
        self.slots.push(Slot::Variable(name.clone()));
        self.variables.push((name, value.to_owned()));
    }

    fn text(&mut self, text: &str) {
        self.slots.push(Slot::Text(text.to_owned()));
    }

    fn servers(&mut self, commands: &Commands, assignment: &Assignment) {
        let Some(template) = &commands.mcp_server else {
            return;
        };
        for (at, server) in assignment.servers.iter().enumerate() {
            if at > 0 {
                self.text(" ");
            }
            self.fill(template, &mut |command, field| match field {
                "File" => command.value(&file(assignment, at)),
                "URL" => match &server.way {
                    Way::Http { url, .. } | Way::Sse { url, .. } => command.value(url),
                    Way::Stdio { .. } => {}
                },
                _ => {}
            });
        }
    }

    fn tools(&mut self, commands: &Commands, assignment: &Assignment) {
        let Some(template) = &commands.allowed_tools else {
            return;
        };
        let tools = assignment.servers.iter().flat_map(|server| {
            let tools: &[String] = match &server.allowed {
                AllowedTools::Only(tools) => tools,
                AllowedTools::All => &[],
            };
            tools.iter().map(move |tool| (&server.name, tool))
        });
        for (at, (server, tool)) in tools.enumerate() {
            if at > 0 {
                self.text(&commands.separator);
            }
            self.fill(template, &mut |command, field| match field {
                "ServerName" => command.value(server),
                "ToolName" => command.value(tool),
                _ => {}
            });
        }
    }
}

/// The path of the file of a server.
fn file(assignment: &Assignment, at: usize) -> String {
    let name = format!("mcp-{}.json", at + 1);
    assignment.home.join(name).to_string_lossy().into_owned()
}

/// A file for each server, with that server alone.
fn files(assignment: &Assignment) -> Vec<(std::path::PathBuf, String)> {
    let servers = assignment.servers.iter().enumerate();
    let one = |(at, server): (usize, &Offered)| {
        let mut servers = Map::new();
        servers.insert(server.name.clone(), config(&server.way));
        let config = json!({"mcpServers": servers}).to_string();
        (file(assignment, at).into(), config)
    };
    servers.map(one).collect()
}

fn config(way: &Way) -> Value {
    let map = |headers: &[(String, String)]| -> Map<String, Value> {
        let pairs = headers.iter();
        pairs.map(|(k, v)| (k.clone(), v.as_str().into())).collect()
    };
    match way {
        Way::Stdio { program, args } => {
            json!({"type": "stdio", "command": program, "args": args, "env": {}})
        }
        Way::Http { url, headers } => json!({"type": "http", "url": url, "headers": map(headers)}),
        Way::Sse { url, headers } => json!({"type": "sse", "url": url, "headers": map(headers)}),
    }
}

/// Takes what a command writes for its answer.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    lines: std::collections::VecDeque<String>,
    bytes: usize,
    /// What is said beside an error that the command ends with.
    pub(super) note: String,
}

impl Reader {
    /// One that says this beside an error.
    pub(super) fn noting(note: String) -> Self {
        Self {
            note,
            ..Self::default()
        }
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > ANSWER && self.lines.len() > 1 {
            let first = self.lines.pop_front().unwrap_or_default();
            self.bytes -= first.len() + 1;
        }
    }

    pub(super) fn end(self) -> Told {
        let lines: Vec<String> = self.lines.into();
        let answer = lines.join("\n").trim().to_owned();
        Told {
            answer: Some(answer).filter(|answer| !answer.is_empty()),
            ..Told::default()
        }
    }
}

#[cfg(test)]
mod tests;
