//! A client of a stdio MCP server that knows three requests.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::mode::CallWait;

/// A running server.
pub struct Server {
    /// Its description in `session/new`.
    told: Value,
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    number: u64,
}

impl Server {
    /// Starts a server as `session/new` describes it, and lists its tools.
    pub fn start(told: &Value) -> io::Result<Self> {
        let args = told["args"].as_array().into_iter().flatten();
        let mut child = Command::new(told["command"].as_str().unwrap_or_default())
            .args(args.filter_map(Value::as_str))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("no pipes"));
        };
        let mut server = Self {
            told: told.clone(),
            child,
            stdin,
            stdout: BufReader::new(stdout),
            number: 0,
        };
        let client = json!({"name": "fixture-agent", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        server.ask("initialize", &params)?;
        server.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        server.ask("tools/list", &json!({}))?;
        Ok(server)
    }

    /// Calls a tool, and returns the first text of its result.
    pub fn call(mut self, tool: &str, arguments: &Value, waits: CallWait) -> io::Result<String> {
        let params = json!({"name": tool, "arguments": arguments});
        let answer = match waits {
            CallWait::Always => self.ask("tools/call", &params)?,
            CallWait::Carelessly => {
                let answer = self.ask("tools/call", &params).unwrap_or_default();
                self.leave();
                answer
            }
            CallWait::Not => {
                self.request("tools/call", &params)?;
                self.leave();
                Value::Null
            }
            CallWait::Twice => match self.ask("tools/call", &params) {
                Ok(answer) => answer,
                Err(_) => Self::start(&self.told)?.ask("tools/call", &params)?,
            },
            CallWait::Until(reason) => {
                let id = self.request("tools/call", &params)?;
                let params = json!({"requestId": id, "reason": reason});
                let method = "notifications/cancelled";
                self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
                Value::Null
            }
        };
        let text = &answer["result"]["content"][0]["text"];
        Ok(text.as_str().unwrap_or("nothing").to_owned())
    }

    /// Closes both streams, and kills the server process without waiting.
    fn leave(mut self) {
        drop(self.stdin);
        drop(self.stdout);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn ask(&mut self, method: &str, params: &Value) -> io::Result<Value> {
        let id = self.request(method, params)?;
        loop {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 {
                return Err(io::Error::other("the server has gone"));
            }
            let message: Value = serde_json::from_str(&line).map_err(io::Error::other)?;
            if message["id"].as_u64() == Some(id) && message["method"].is_null() {
                return Ok(message);
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> io::Result<u64> {
        self.number += 1;
        let id = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        Ok(id)
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        self.stdin.write_all(format!("{message}\n").as_bytes())?;
        self.stdin.flush()
    }
}
