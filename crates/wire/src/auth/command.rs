//! A program that prints a token.
//!
//! Its main type is [`TokenCommand`]. It runs under a guard with the environment of a server. Its
//! output is never shown.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use proctor_contain::process::{Process, ProcessExit, Spawn};
use proctor_core::suite::server::command_line;
use proctor_record::redact::{Redactor, SharedSecrets};
use tokio::io::AsyncReadExt;

use super::endpoint::Grant;
use super::{AuthError, ProgramOptions};

/// How long the program may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long the program may take to exit after its output has ended.
const EXIT: Duration = Duration::from_secs(5);
/// The maximum length of its output.
const MAX_OUTPUT: u64 = 64 << 10;

pub(super) struct TokenCommand {
    spawn: Spawn,
    shown: String,
}

impl TokenCommand {
    pub(super) fn new(
        command: &str,
        args: &[String],
        env: &BTreeMap<String, String>,
        folder: &Path,
        options: ProgramOptions<'_>,
    ) -> Self {
        let spawn = Spawn::server(command, args, folder, options.guard);
        Self {
            spawn: spawn.with_environment(options.inherited, env, options.pass),
            // Its arguments may hold secrets.
            shown: command_line([command]),
        }
    }

    /// Runs the program, and reads the token from its output.
    pub(super) async fn run(&self, secrets: &SharedSecrets) -> Result<Grant, AuthError> {
        let process = self.spawn.clone().start();
        let mut process = process.map_err(|error| AuthError::Command {
            command: self.shown.clone(),
            problem: format!("can't be started: {error}"),
        })?;
        process.stdin = None;
        let Ok((output, exit)) = tokio::time::timeout(TIMEOUT, finish(&mut process)).await else {
            let set = proctor_record::duration::brief(TIMEOUT);
            return Err(self.failed(&format!("printed no token within {set}")));
        };
        let text = String::from_utf8_lossy(&output);
        let text = text.trim();
        if exit != ProcessExit::Exited(0) {
            // Its stderr may repeat what it printed.
            let printed = text.split(|c: char| c.is_whitespace() || "\"{},:=".contains(c));
            let printed = printed.map(|word| ("output".to_owned(), word.to_owned()));
            let stderr = process.stderr_tail(&Redactor::new(printed).sharing(secrets));
            let stderr = proctor_record::decision::last_words(&stderr);
            return Err(self.failed(&format!("{exit}{stderr}")));
        }
        let grant = if text.starts_with('{') {
            Grant::parse(text.as_bytes())
        } else {
            Ok(Grant::new(
                text.strip_prefix("Bearer ").unwrap_or(text),
                None,
            ))
        };
        grant.map_err(|problem| self.failed(&format!("printed JSON that {problem}")))
    }

    fn failed(&self, problem: &str) -> AuthError {
        AuthError::Command {
            command: self.shown.clone(),
            problem: problem.to_owned(),
        }
    }
}

/// Reads the output of a program until it exits.
async fn finish(process: &mut Process) -> (Vec<u8>, ProcessExit) {
    let mut output = Vec::new();
    if let Some(stdout) = process.stdout.take() {
        // A longer output is no token, whatever ends the reading.
        let _ = stdout.take(MAX_OUTPUT).read_to_end(&mut output).await;
    }
    (output, process.stopped(EXIT).await)
}
