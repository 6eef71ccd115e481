//! The command line of the fixture.

use std::path::PathBuf;

use crate::mode::{HTTP_ONLY, Mode, Modes, STDIO_ONLY, TABLE};

/// The transport of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Stdio,
    Http(u16),
    Sse(u16),
}

/// The supported eras.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eras {
    Handshake,
    Stateless,
    Both,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Options {
    pub transport: Transport,
    pub eras: Eras,
    pub modes: Modes,
    /// The method whose responses the modes change; `*` is every method.
    pub on: String,
    /// How many requests the modes affect, from the first on.
    pub times: u64,
    pub log: Option<PathBuf>,
    /// The file with the shipped evals: a list of any JSON.
    pub evals: Option<PathBuf>,
    /// The file that counts listings; otherwise they are counted in the process.
    pub count: Option<PathBuf>,
    /// Whether the process was started by itself, with SIGTERM ignored.
    pub sigterm_ignored: bool,
}

impl Options {
    /// Parses the command line; `None` for help.
    pub fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Option<Self>, String> {
        let mut options = Self {
            transport: Transport::Stdio,
            eras: Eras::Both,
            modes: Modes::default(),
            on: "tools/call".to_owned(),
            times: u64::MAX,
            log: None,
            evals: None,
            count: None,
            sigterm_ignored: false,
        };
        while let Some(flag) = arguments.next() {
            match flag.as_str() {
                "--help" | "-h" => return Ok(None),
                "--sigterm-ignored" => {
                    options.sigterm_ignored = true;
                    continue;
                }
                _ => {}
            }
            let value = arguments
                .next()
                .ok_or_else(|| format!("`{flag}` needs a value"))?;
            options.set(&flag, value)?;
        }
        options.check_transport()?;
        Ok(Some(options))
    }

    /// Rejects modes that have no effect, because a test with them would prove nothing.
    fn check_transport(&self) -> Result<(), String> {
        let (foreign, place): (&[Mode], _) = match self.transport {
            Transport::Stdio => (&HTTP_ONLY, "stdio"),
            Transport::Http(_) | Transport::Sse(_) => (&STDIO_ONLY, "HTTP"),
        };
        let asked = |mode: Mode| foreign.contains(&mode) && self.modes.has(mode);
        match TABLE.iter().find(|(mode, ..)| asked(*mode)) {
            Some((_, name, ..)) => Err(format!("the mode `{name}` does nothing on {place}")),
            None => Ok(()),
        }
    }

    fn set(&mut self, flag: &str, value: String) -> Result<(), String> {
        let number = |text: &str| {
            text.parse()
                .map_err(|_| format!("`{text}` is not a number"))
        };
        let port = |text: &str| text.parse().map_err(|_| format!("`{text}` is not a port"));
        match flag {
            "--http" => self.transport = Transport::Http(port(&value)?),
            "--sse" => self.transport = Transport::Sse(port(&value)?),
            "--era" => {
                self.eras = match value.as_str() {
                    "handshake" => Eras::Handshake,
                    "stateless" => Eras::Stateless,
                    "both" => Eras::Both,
                    _ => return Err(format!("unknown era `{value}`")),
                }
            }
            "--mode" => self.modes.add(&value)?,
            "--on" => self.on = value,
            "--times" => self.times = number(&value)?,
            "--evals" => self.evals = Some(PathBuf::from(value)),
            "--count" => self.count = Some(PathBuf::from(value)),
            "--log" => self.log = Some(PathBuf::from(value)),
            _ => return Err(format!("unknown flag `{flag}`")),
        }
        Ok(())
    }
}

/// Returns the help text, with every mode.
pub fn help() -> String {
    let mut text = String::from(
        "An MCP server that misbehaves on demand.

usage: fixture-server [--http PORT|--sse PORT] [--era handshake|stateless|both]
                      [--mode MODE[=ARGUMENT]]… [--on METHOD] [--times N] [--log FILE]
                      [--evals FILE] [--count FILE]

  --http, --sse  listen on 127.0.0.1 (0 is any port); the URL is the first line on stdout
  --era          the supported protocol eras (both)
  --on           the method whose responses the modes change (tools/call); `*` is every method
  --times        change only the first N of them
  --log          append every received and sent message to FILE, as lines of JSON
  --evals        ship the evals of FILE, a JSON list of anything
  --count        count listings in FILE, so that `…-change-after` continues in the next process

modes:
",
    );
    for (_, name, argument, help) in TABLE {
        text.push_str(&format!("  {name}{argument}\n      {help}\n"));
    }
    text
}
