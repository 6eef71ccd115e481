//! A byte-exact tee on stdio: `fixture-tee FILE -- COMMAND…` runs the command, and writes what goes in
//! to `FILE.in` and what comes out to `FILE.out`. Stderr is passed on untouched.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::thread;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, dashes, command @ ..] = arguments.as_slice() else {
        return usage();
    };
    if dashes != "--" || command.is_empty() {
        return usage();
    }
    match run(file, command) {
        Ok(code) => code,
        Err(error) => {
            complain(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

fn run(file: &str, command: &[String]) -> io::Result<ExitCode> {
    let (sent, received) = (
        File::create(format!("{file}.in"))?,
        File::create(format!("{file}.out"))?,
    );
    let mut child = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(stdin) = child.stdin.take() {
        // Not joined: after the command has ended, it may wait for input that never comes.
        thread::spawn(move || copy(io::stdin(), stdin, sent));
    }
    if let Some(stdout) = child.stdout.take() {
        copy(stdout, io::stdout(), received)?;
    }
    let code = child
        .wait()?
        .code()
        .and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Copies bytes as they arrive, to the file first, so that it holds everything that a reader has
/// seen.
fn copy(mut from: impl Read, mut to: impl Write, mut file: File) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        file.write_all(&buffer[..read])?;
        to.write_all(&buffer[..read])?;
        to.flush()?;
    }
}

fn usage() -> ExitCode {
    complain("usage: fixture-tee FILE -- COMMAND…\n");
    ExitCode::from(2)
}

fn complain(text: &str) {
    // Stderr is the last place to report it.
    let _ = io::stderr().write_all(text.as_bytes());
}
