//! An MCP server that misbehaves on demand.
//!
//! It is written on bytes, without an MCP or HTTP library, so that it can break every rule of the
//! protocol.

mod catalog;
mod channel;
mod count;
mod evals;
mod exchange;
mod http;
mod legacy_sse;
mod listener;
mod lock;
mod message;
mod meta;
mod mode;
mod options;
mod payload;
mod process;
mod server;
mod session;
mod spoilt_http;
mod stdio;
mod streamable;
mod tools;
mod witness;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use crate::count::Count;
use crate::evals::Evals;
use crate::mode::Mode;
use crate::options::{Options, Transport};
use crate::payload::Payload;
use crate::server::Server;
use crate::witness::Witness;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let options = match Options::parse(arguments.iter().cloned()) {
        Ok(Some(options)) => options,
        Ok(None) => {
            let shown = io::stdout().write_all(options::help().as_bytes());
            return if shown.is_ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
        }
        Err(problem) => {
            process::complain(&format!("error: {problem}\nhint: --help lists the modes\n"));
            return ExitCode::from(2);
        }
    };
    if options.modes.has(Mode::IgnoresSigterm) && !options.sigterm_ignored {
        process::restart_without_sigterm(&arguments);
    }
    start(&options);
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::complain(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

/// Applies the modes of the start.
fn start(options: &Options) {
    let modes = &options.modes;
    if let Some(text) = modes.argument(Mode::Stderr) {
        process::complain(&format!("{text}\n"));
    }
    if modes.has(Mode::SpawnsChildren) {
        process::spawn_children(modes.argument(Mode::SpawnsChildren).unwrap_or("/dev/null"));
    }
    if let Some(pause) = modes.number(Mode::SlowStart, 1000) {
        sleep(Duration::from_millis(pause));
    }
    if let Some(bytes) = modes.number(Mode::StderrFlood, 0) {
        const LINE: &str = "fixture: all is well, and there is much to tell about it: xxxxx\n";
        let lines = Payload::repeat(LINE, bytes / LINE.len() as u64);
        // A closed stderr does not stop the server.
        let _ = lines.write_to(&mut io::stderr());
    }
    if let Some(code) = modes.number(Mode::ExitBeforeHandshake, 3) {
        process::exit(code, "before the handshake");
    }
}

fn run(options: Options) -> io::Result<()> {
    let witness = Witness::open(options.log.as_deref())?;
    let transport = options.transport;
    let evals = Evals::read(&options).map_err(io::Error::other)?;
    let count = Count::open(options.count.as_deref())?;
    let server = Arc::new(Server::new(options, witness, evals, count));
    match transport {
        Transport::Stdio => stdio::serve(&server),
        Transport::Http(port) => streamable::serve(&server, port),
        Transport::Sse(port) => legacy_sse::serve(&server, port),
    }
}
