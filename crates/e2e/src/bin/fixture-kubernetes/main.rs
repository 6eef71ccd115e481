//! A replacement for Kubernetes: an MCP server with the tools of the Kubernetes examples, and the
//! part of `kubectl` that their steps use, on a cluster in a file.
//!
//! `fixture-kubernetes FILE` serves MCP on stdin and stdout, in the handshake era. If it is called
//! as `kubectl`, it runs a command on the cluster in the file `FIXTURE_CLUSTER`; unknown commands
//! are errors.

mod cluster;
mod kubectl;
mod path;
mod server;
mod tools;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [name, command @ ..] if name.ends_with("kubectl") => kubectl(command),
        [_, file] => server::serve(Path::new(file), io::stdin().lock(), io::stdout().lock())
            .map_err(|error| error.to_string()),
        _ => Err("usage: fixture-kubernetes FILE".to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let _ = writeln!(io::stderr(), "error: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn kubectl(command: &[&str]) -> Result<(), String> {
    let file = std::env::var_os("FIXTURE_CLUSTER").ok_or("FIXTURE_CLUSTER is not set")?;
    let text = kubectl::run(Path::new(&file), command)?;
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| error.to_string())
}
