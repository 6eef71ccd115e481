//! The command line of the fixture.

use std::path::PathBuf;

use crate::mode::{HTTP_ONLY, Mode, Modes, STDIO_ONLY, TABLE};

/// How the client reaches the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Stdio,
    Http(u16),
    Sse(u16),
}

/// Which protocol versions the server speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Eras {
    Handshake,
    Stateless,
    Both,
}

/// What the fixture was told to be.
#[derive(Debug)]
pub struct Options {
    pub transport: Transport,
    pub eras: Eras,
    pub modes: Modes,
    /// The method whose answers the modes spoil; `*` is every method.
    pub on: String,
    /// How many requests the modes spoil, counted from the first.
    pub times: u64,
    pub log: Option<PathBuf>,
    /// The evals that are shipped: a list of anything.
    pub evals: Option<PathBuf>,
    /// Where listings are counted, if not in the process alone.
    pub count: Option<PathBuf>,
    /// The process was started by itself, with SIGTERM ignored.
    pub sigterm_ignored: bool,
}

impl Options {
    /// `None` if help was asked for.
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

    /// Refuses modes that would do nothing, and so prove nothing.
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

/// The help text, with every mode.
pub fn help() -> String {
    let mut text = String::from(
        "An MCP server that misbehaves on demand.

usage: fixture-server [--http PORT|--sse PORT] [--era handshake|stateless|both]
                      [--mode MODE[=ARGUMENT]]… [--on METHOD] [--times N] [--log FILE]
                      [--evals FILE] [--count FILE]

  --http, --sse  listen on 127.0.0.1 (0 is any port); the URL is the first line on stdout
  --era          the protocol versions that are spoken (both)
  --on           the method whose answers the modes spoil (tools/call); `*` is every method
  --times        spoil only the first N of them
  --log          append every message that came or went to FILE, as lines of JSON
  --evals        ship the evals of FILE, a JSON list of anything
  --count        count listings in FILE, so that `…-change-after` goes on in the next process

modes:
",
    );
    for (_, name, argument, help) in TABLE {
        text.push_str(&format!("  {name}{argument}\n      {help}\n"));
    }
    text
}
