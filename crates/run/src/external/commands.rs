//! Runs any program by command line templates.
//!
//! A template is shell text from the agent file. Values such as the prompt, URLs, and names of
//! servers and tools are passed in environment variables, and the command only refers to them. So
//! no part of a value is ever executed.

mod shell;

use proctor_core::suite::agent::Commands;
use proctor_core::suite::go_template::{
    FieldValue, GoTemplate, RenderedPiece, TemplateUse, TextOrigin,
};
use proctor_core::suite::server::AllowedTools;
use serde_json::{Map, Value, json};

use self::shell::Value as Slot;
use super::cli::AssignmentError;
use super::{AgentReport, AgentServer, Assignment, Launch, ServerRoute};

/// The longest text that Linux accepts in one variable or argument: 32 pages.
const LONGEST: usize = 128 << 10;

const PROMPT: &str = "PROCTOR_PROMPT";

/// How much of a command's output is its answer: the end.
const ANSWER: usize = 4 << 20;

/// Whether an agent takes URLs instead of files.
pub(crate) fn wants_url(commands: &Commands) -> bool {
    let written = commands.mcp_server.as_deref().unwrap_or_default();
    GoTemplate::parse(written, TemplateUse::McpServer).is_ok_and(|template| template.uses("URL"))
}

/// The program to start for an assignment.
pub(crate) fn prepare(
    commands: &Commands,
    assignment: &Assignment,
) -> Result<Launch, AssignmentError> {
    let prompt = &assignment.prompt;
    if prompt.contains('\0') {
        return Err(AssignmentError::Nul("the prompt"));
    }
    let servers = servers(commands, assignment)?;
    let tools = tools(commands, assignment)?;
    let pieces =
        template(&commands.run_prompt, TemplateUse::RunPrompt)?.render(&mut |field| match field {
            "Prompt" => FieldValue::Text(vec![RenderedPiece::new(prompt, TextOrigin::Prompt)]),
            "McpServerFileArgs" => FieldValue::Text(servers.clone()),
            "AllowedToolArgs" => FieldValue::Text(tools.clone()),
            _ => FieldValue::Truth(commands.skip_permissions),
        });
    let mut command = CommandLine::default();
    command.prompt(prompt);
    for piece in pieces {
        command.piece(piece);
    }
    let rendered = shell::render(&command.slots)?;
    let mut env = assignment.environment.clone();
    for (name, value) in command.variables {
        // Only one of the two forms of a quoted value is used, and the other may be too long.
        if name != PROMPT && !rendered.contains(&format!("${{{name}}}")) {
            continue;
        }
        if value.contains('\0') {
            return Err(AssignmentError::Nul("the name of a server or a tool"));
        }
        let limit = LONGEST - name.len() - "=\0".len();
        if value.len() > limit {
            let bytes = value.len();
            return Err(AssignmentError::TooLong { bytes, limit });
        }
        env.insert(name, value);
    }
    Ok(Launch {
        program: "sh".to_owned(),
        args: vec!["-c".to_owned(), rendered],
        env,
        files: files(assignment),
        stdin: None,
    })
}

/// Parses a template of an agent file. The loader has already refused invalid ones.
fn template(text: &str, usage: TemplateUse) -> Result<GoTemplate, AssignmentError> {
    GoTemplate::parse(text, usage).map_err(|faults| {
        let first = faults.into_iter().next();
        AssignmentError::Template(first.map_or_else(String::new, |fault| {
            format!("is invalid: {}", fault.message)
        }))
    })
}

/// A command that is being built.
#[derive(Default)]
struct CommandLine {
    slots: Vec<Slot>,
    variables: Vec<(String, String)>,
}

impl CommandLine {
    /// Passes the prompt under a fixed name.
    fn prompt(&mut self, prompt: &str) {
        self.variables.push((PROMPT.to_owned(), prompt.to_owned()));
    }

    /// Adds a piece: the author's text unchanged, everything else as a reference.
    fn piece(&mut self, piece: RenderedPiece) {
        let is_prompt = piece.origin == TextOrigin::Prompt;
        let slot = match (piece.origin, piece.quoted) {
            (TextOrigin::Author, _) => Slot::Text(piece.text),
            (_, true) => Slot::Quoted {
                quoted: self.variable(piece.written()),
                plain: self.variable(piece.text),
                is_prompt,
            },
            (TextOrigin::Prompt, false) => Slot::Prompt(self.variable(piece.text)),
            (TextOrigin::Value, false) => Slot::Variable(self.variable(piece.text)),
        };
        self.slots.push(slot);
    }

    /// Stores a text in a variable and returns the variable's name.
    fn variable(&mut self, value: String) -> String {
        if let Some((name, _)) = self.variables.iter().find(|(_, known)| *known == value) {
            return name.clone();
        }
        let name = format!("PROCTOR_VALUE_{}", self.variables.len());
        self.variables.push((name.clone(), value));
        name
    }
}

/// The command line arguments for the servers.
fn servers(
    commands: &Commands,
    assignment: &Assignment,
) -> Result<Vec<RenderedPiece>, AssignmentError> {
    let Some(written) = &commands.mcp_server else {
        return Ok(Vec::new());
    };
    let template = template(written, TemplateUse::McpServer)?;
    let mut pieces = Vec::new();
    for (at, server) in assignment.servers.iter().enumerate() {
        if at > 0 {
            pieces.push(RenderedPiece::new(" ", TextOrigin::Author));
        }
        pieces.extend(template.render(&mut |field| {
            let value = match (field, &server.way) {
                ("File", _) => file(assignment, at),
                (_, ServerRoute::Http { url, .. } | ServerRoute::Sse { url, .. }) => url.clone(),
                (_, ServerRoute::Stdio { .. }) => return FieldValue::Text(Vec::new()),
            };
            FieldValue::Text(vec![RenderedPiece::new(value, TextOrigin::Value)])
        }));
    }
    Ok(pieces)
}

/// The command line arguments for the allowed tools.
fn tools(
    commands: &Commands,
    assignment: &Assignment,
) -> Result<Vec<RenderedPiece>, AssignmentError> {
    let Some(written) = &commands.allowed_tools else {
        return Ok(Vec::new());
    };
    let template = template(written, TemplateUse::AllowedTools)?;
    let tools = assignment.servers.iter().flat_map(|server| {
        let tools: &[String] = match &server.allowed {
            AllowedTools::Only(tools) => tools,
            AllowedTools::All => &[],
        };
        tools.iter().map(move |tool| (&server.name, tool))
    });
    let mut pieces = Vec::new();
    for (at, (server, tool)) in tools.enumerate() {
        if at > 0 {
            pieces.push(RenderedPiece::new(&commands.separator, TextOrigin::Author));
        }
        pieces.extend(template.render(&mut |field| {
            let value = if field == "ServerName" { server } else { tool };
            FieldValue::Text(vec![RenderedPiece::new(value, TextOrigin::Value)])
        }));
    }
    Ok(pieces)
}

/// The path of a server's config file.
fn file(assignment: &Assignment, at: usize) -> String {
    let name = format!("mcp-{}.json", at + 1);
    assignment.home.join(name).to_string_lossy().into_owned()
}

/// One config file per server.
fn files(assignment: &Assignment) -> Vec<(std::path::PathBuf, String)> {
    let servers = assignment.servers.iter().enumerate();
    let one = |(at, server): (usize, &AgentServer)| {
        let mut servers = Map::new();
        servers.insert(server.name.clone(), config(&server.way));
        let config = json!({"mcpServers": servers}).to_string();
        (file(assignment, at).into(), config)
    };
    servers.map(one).collect()
}

fn config(way: &ServerRoute) -> Value {
    let map = |headers: &[(String, String)]| -> Map<String, Value> {
        let pairs = headers.iter();
        pairs.map(|(k, v)| (k.clone(), v.as_str().into())).collect()
    };
    match way {
        ServerRoute::Stdio { program, args } => {
            json!({"type": "stdio", "command": program, "args": args, "env": {}})
        }
        ServerRoute::Http { url, headers } => {
            json!({"type": "http", "url": url, "headers": map(headers)})
        }
        ServerRoute::Sse { url, headers } => {
            json!({"type": "sse", "url": url, "headers": map(headers)})
        }
    }
}

/// Takes a command's output as its answer.
#[derive(Debug, Default)]
pub(crate) struct CommandReader {
    lines: std::collections::VecDeque<String>,
    bytes: usize,
    /// A note to add to the error if the command fails.
    pub(super) note: String,
}

impl CommandReader {
    /// A reader that adds this note to errors.
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

    pub(super) fn end(self) -> AgentReport {
        let lines: Vec<String> = self.lines.into();
        let answer = lines.join("\n").trim().to_owned();
        AgentReport {
            answer: Some(answer).filter(|answer| !answer.is_empty()),
            ..AgentReport::default()
        }
    }
}

#[cfg(test)]
mod tests;
