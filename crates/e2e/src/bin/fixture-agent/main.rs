//! An agent on stdio that speaks the Agent Client Protocol, written on bytes, without a model: it
//! calls one tool of its first server, and answers with the tool's output. With a mode it
//! misbehaves.
//!
//! `fixture-agent [--tool NAME] [--arguments JSON] [--title TEXT] [--note FILE] [MODE]`; [`mode`]
//! lists the modes. `--title` makes it request permission with this title, and it writes FILE when
//! it is told to stop.

mod mode;
mod server;

use std::io::{self, BufRead, StdinLock, Write};
use std::process::ExitCode;

use serde_json::{Value, json};

use crate::mode::Mode;
use crate::server::Server;

/// The options and state of the agent.
struct Agent {
    mode: Mode,
    tool: String,
    arguments: Value,
    title: Option<String>,
    note: Option<String>,
    stdin: StdinLock<'static>,
    servers: Vec<(String, Server)>,
    /// The id of its last request.
    number: u64,
}

fn main() -> ExitCode {
    let Some(mut agent) = Agent::told(std::env::args().skip(1)) else {
        let _ = io::stderr().write_all(
            b"usage: fixture-agent [--tool NAME] [--arguments JSON] [--title TEXT] [--note FILE] [MODE]\n",
        );
        return ExitCode::from(2);
    };
    match agent.run() {
        Ok(()) => {}
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error}");
            return ExitCode::FAILURE;
        }
    }
    if agent.mode == Mode::Stays {
        mode::stay();
    }
    ExitCode::SUCCESS
}

impl Agent {
    fn told(mut words: impl Iterator<Item = String>) -> Option<Self> {
        let mut agent = Self {
            mode: Mode::Good,
            tool: "echo".to_owned(),
            arguments: json!({"text": "hi"}),
            title: None,
            note: None,
            stdin: io::stdin().lock(),
            servers: Vec::new(),
            number: 0,
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--tool" => agent.tool = words.next()?,
                "--arguments" => agent.arguments = serde_json::from_str(&words.next()?).ok()?,
                "--title" => agent.title = Some(words.next()?),
                "--note" => agent.note = Some(words.next()?),
                name => agent.mode = Mode::named(name)?,
            }
        }
        Some(agent)
    }

    fn run(&mut self) -> io::Result<()> {
        if self.mode == Mode::Garbage {
            write_raw(b"Welcome!\n\n[INFO] starting\n\xff\xfe\x00\n{\"jsonrpc\":\n\"text\"\n")?;
        }
        while let Some(message) = self.receive()? {
            let id = message["id"].clone();
            match message["method"].as_str() {
                Some("initialize") if self.mode == Mode::Deaf => {}
                Some("initialize") => self.answer(&id, &self.greeting())?,
                Some("session/new") if self.mode == Mode::NeedsLogin => {
                    let error = json!({"code": -32000, "message": "Authentication required"});
                    send(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                }
                Some("session/new") => {
                    self.connect(&message["params"]["mcpServers"])?;
                    self.answer(&id, &json!({"sessionId": "s-1"}))?;
                }
                Some("session/prompt") => self.work(&id)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn greeting(&self) -> Value {
        let version = if self.mode == Mode::Newer { 2 } else { 1 };
        let http = self.mode != Mode::StdioOnly;
        json!({
            "protocolVersion": version,
            "agentCapabilities": {"mcpCapabilities": {"http": http, "sse": false}},
            "authMethods": [{"id": "browser", "name": "Log in"}],
        })
    }

    fn connect(&mut self, servers: &Value) -> io::Result<()> {
        for told in servers.as_array().into_iter().flatten() {
            let name = told["name"].as_str().unwrap_or_default().to_owned();
            if told["command"].is_string() && self.mode != Mode::Forgetful {
                self.servers.push((name, Server::start(told)?));
            }
        }
        Ok(())
    }

    /// Handles a prompt.
    fn work(&mut self, prompt: &Value) -> io::Result<()> {
        match self.mode {
            Mode::Dies => {
                self.say("I am about to")?;
                let _ = io::stderr().write_all(b"the agent's engine fell off\n");
                std::process::exit(3);
            }
            Mode::Silent | Mode::Stubborn => {
                self.update(&json!({"sessionUpdate": "plan", "entries": []}))?;
                return self.idle();
            }
            Mode::Garbage => {
                write_raw(b"thinking...\n{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n[]\n7\n")?;
            }
            Mode::LongLine => {
                let line = vec![b'x'; 64 << 20];
                write_raw(&line)?;
                write_raw(b"\n")?;
            }
            Mode::Curious => self.ask_for_everything()?,
            Mode::Wordless => return self.finish(prompt, "end_turn"),
            Mode::Refuses => {
                self.say("I would rather not.")?;
                return self.finish(prompt, "refusal");
            }
            Mode::OutOfTurns => return self.finish(prompt, "max_turn_requests"),
            Mode::Fails => {
                let error = json!({"code": -32603, "message": "the model is on holiday"});
                return send(&json!({"jsonrpc": "2.0", "id": prompt, "error": error}));
            }
            _ => {}
        }
        let result = self.call()?;
        self.thinks("That will do.")?;
        self.say("The tool said: ")?;
        self.say(&result)?;
        self.finish(prompt, "end_turn")
    }

    /// Calls the tool, if it gets permission.
    fn call(&mut self) -> io::Result<String> {
        let server = self.servers.first().map(|(name, _)| name.clone());
        let title = self.title.clone();
        let title =
            title.unwrap_or_else(|| format!("{}/{}", server.unwrap_or_default(), self.tool));
        self.say("I will call a tool.")?;
        self.update(
            &json!({"sessionUpdate": "tool_call", "toolCallId": "c-1", "title": title,
            "kind": "other", "status": "pending", "rawInput": self.arguments}),
        )?;
        let options = json!([
            {"optionId": "no", "name": "No", "kind": "reject_once"},
            {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
        ]);
        let call = json!({"toolCallId": "c-1", "title": title, "kind": "other"});
        let params = json!({"sessionId": "s-1", "toolCall": call, "options": options});
        let answer = self.ask("session/request_permission", &params)?;
        let is_allowed = answer["result"]["outcome"]["optionId"] == "yes";
        let waits = self.mode.about_answers();
        let has_server = is_allowed && !self.servers.is_empty();
        let server = has_server.then(|| self.servers.remove(0));
        let (status, result) = match server {
            Some((_, server)) => {
                let result = server.call(&self.tool, &self.arguments, waits)?;
                ("completed", result)
            }
            None => ("failed", "nothing, I was not allowed".to_owned()),
        };
        let content = json!([{"type": "content", "content": {"type": "text", "text": result}}]);
        self.update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "c-1",
            "status": status, "content": content}),
        )?;
        Ok(result)
    }

    /// Requests what Proctor's client refuses.
    fn ask_for_everything(&mut self) -> io::Result<()> {
        let session = json!({"sessionId": "s-1", "path": "/etc/passwd", "command": "id"});
        for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create"] {
            let answer = self.ask(method, &session)?;
            if answer["error"]["code"].is_null() {
                return Err(io::Error::other(format!("{method} was not refused")));
            }
        }
        let call = json!({"toolCallId": "c-0", "title": "rm -rf /", "kind": "execute"});
        let options = json!([{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]);
        let params = json!({"sessionId": "s-1", "toolCall": call, "options": options});
        let answer = self.ask("session/request_permission", &params)?;
        match answer["result"]["outcome"]["outcome"].as_str() {
            Some("cancelled") => Ok(()),
            other => Err(io::Error::other(format!("a command was {other:?}"))),
        }
    }

    /// Reads its input and does nothing else.
    fn idle(&mut self) -> io::Result<()> {
        while let Some(message) = self.receive()? {
            if let ("session/cancel", Some(note)) =
                (message["method"].as_str().unwrap_or(""), &self.note)
            {
                std::fs::write(note, message["params"]["sessionId"].to_string())?;
            }
        }
        if self.mode == Mode::Stubborn {
            mode::stay();
        }
        Ok(())
    }

    fn say(&self, text: &str) -> io::Result<()> {
        let content = json!({"type": "text", "text": text});
        self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}))
    }

    fn thinks(&self, text: &str) -> io::Result<()> {
        let content = json!({"type": "text", "text": text});
        self.update(&json!({"sessionUpdate": "agent_thought_chunk", "content": content}))
    }

    #[expect(clippy::unused_self, reason = "the agent is the sender")]
    fn update(&self, update: &Value) -> io::Result<()> {
        let params = json!({"sessionId": "s-1", "update": update});
        send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
    }

    fn finish(&self, prompt: &Value, reason: &str) -> io::Result<()> {
        self.answer(prompt, &json!({"stopReason": reason}))
    }

    #[expect(clippy::unused_self, reason = "the agent is the sender")]
    fn answer(&self, id: &Value, result: &Value) -> io::Result<()> {
        send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }

    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        self.number += 1;
        let id = format!("a-{}", self.number);
        send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        while let Some(message) = self.receive()? {
            if message["id"] == id.as_str() {
                return Ok(message);
            }
        }
        Err(io::Error::other("no response"))
    }

    fn receive(&mut self) -> io::Result<Option<Value>> {
        let mut line = String::new();
        if self.stdin.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        serde_json::from_str(&line)
            .map(Some)
            .map_err(io::Error::other)
    }
}

fn send(message: &Value) -> io::Result<()> {
    write_raw(format!("{message}\n").as_bytes())
}

fn write_raw(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}
