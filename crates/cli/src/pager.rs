//! Shows long output through the user's pager, as git does: on a terminal only, with colours.
//!
//! Its main type is [`Pager`].

use std::io::{IsTerminal, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anstream::AutoStream;
use anstream::ColorChoice;

use crate::output;

/// Variables that name a pager, the first one first.
const VARIABLES: [&str; 2] = ["PROCTOR_PAGER", "PAGER"];

/// The options of `less` unless the user has set some: end if the text fits on one screen, show colours, and
/// leave the text on the screen.
const LESS: &str = "FRX";

/// Where text goes: to a pager, or to stdout.
pub(crate) struct Pager {
    child: Option<Child>,
    /// Whether Ctrl-C was pressed. It belongs to the pager; without it, Proctor would end before the pager.
    interrupted: Arc<AtomicBool>,
}

impl Pager {
    /// Starts the pager if stdout is a terminal and a pager is wanted and there.
    pub(crate) fn start(is_wanted: bool) -> Self {
        let interrupted = Arc::new(AtomicBool::new(false));
        let child = program()
            .filter(|_| is_wanted && std::io::stdout().is_terminal())
            .and_then(|program| spawn(&program));
        if child.is_some() {
            // Without the handler, Ctrl-C ends Proctor, and the pager a moment later.
            let flag = Arc::clone(&interrupted);
            let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, flag);
        }
        Self { child, interrupted }
    }

    /// Writes text. A pager that was left is a broken pipe.
    pub(crate) fn write(&mut self, text: &str) -> anyhow::Result<()> {
        let Some(input) = self.child.as_mut().and_then(|child| child.stdin.as_mut()) else {
            return output::result(text);
        };
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe).into());
        }
        let is_plain = AutoStream::choice(&std::io::stdout()) == ColorChoice::Never;
        if is_plain {
            write!(input, "{}", anstream::adapter::strip_str(text))?;
        } else {
            input.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

impl Drop for Pager {
    /// Waits until the user leaves the pager, also after an error.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // There is no other use for the pager's exit status.
            let _ = child.wait();
        }
    }
}

/// The pager's command line; `None` if the user wants none.
fn program() -> Option<String> {
    let set = VARIABLES.iter().find_map(|name| std::env::var(name).ok());
    let program = set.unwrap_or_else(|| "less".to_owned());
    let is_none = program.trim().is_empty() || program.trim() == "cat";
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    (!is_none && !is_dumb).then_some(program)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user's own program, on the user's terminal"
)]
fn spawn(program: &str) -> Option<Child> {
    let mut command = std::process::Command::new("/bin/sh");
    // A missing pager must not swallow the text: then it is copied as it is.
    let line = format!(
        "command -v {} >/dev/null 2>&1 || exec cat; exec {program}",
        first_word(program)
    );
    command.args(["-c", &line]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    command.spawn().ok()
}

/// The program of a command line.
fn first_word(program: &str) -> &str {
    program.split_whitespace().next().unwrap_or("less")
}
