//! Asks an agent's program once for its version; a program that fails to print it is broken.
//!
//! Programs of agent files that speak ACP get an `initialize` instead, since their version option
//! is unknown.

use std::path::Path;
use std::time::Duration;

use proctor_core::suite::Environment;
use proctor_record::decision::last_words;
use proctor_record::duration::brief;
use proctor_record::redact::Redactor;
use tokio::io::AsyncReadExt;

use super::{Acp, Adapter, ExternalAgent, acp};
use proctor_contain::process::{GRACE, ProcessExit, Spawn};

/// The timeout of the version command.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The maximum length of a version.
const LONGEST: usize = 200;

/// The version that a program reports, `None` if it can't be asked or has none, or why the program
/// is broken.
pub(super) type ProgramVersion = Result<Option<String>, String>;

impl ExternalAgent {
    /// The version that the agent reports, if any.
    pub(crate) async fn version(
        &self,
        env: &Environment,
        folder: &Path,
        guard: &Path,
    ) -> Option<&str> {
        let asking = self.version.get_or_init(async || {
            let Some(question) = self.question() else {
                return Ok(None);
            };
            ask(question, env, folder, guard, TIMEOUT).await.map(Some)
        });
        asking.await.as_ref().ok()?.as_deref()
    }

    /// Whether the program can be started without a task.
    pub(super) fn can_be_checked(&self) -> bool {
        self.question().is_some() || self.custom_acp().is_some()
    }

    /// Starts the program without a task, and returns its version or why it is broken.
    pub(super) async fn checked(
        &self,
        env: &Environment,
        folder: &Path,
        guard: &Path,
    ) -> &Result<Option<String>, String> {
        if let Some(acp) = self.custom_acp() {
            let greeting = self.version.get_or_init(async || {
                let greeted = acp::greet(acp, env, folder, guard);
                let greeted = tokio::time::timeout(TIMEOUT, greeted).await;
                greeted.unwrap_or_else(|_| {
                    Err(format!(
                        "it did not answer `initialize` within {}",
                        brief(TIMEOUT)
                    ))
                })
            });
            return greeting.await;
        }
        self.version(env, folder, guard).await;
        self.version.get().unwrap_or(&Ok(None))
    }

    fn custom_acp(&self) -> Option<Acp<'_>> {
        match self.adapter()? {
            Adapter::Acp(acp @ Acp::Program { .. }) => Some(acp),
            _ => None,
        }
    }

    /// The command that prints the version.
    fn question(&self) -> Option<VersionCommand> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let (program, args, is_free) = match self.adapter()? {
            Adapter::Cli(cli) => (cli.program().to_owned(), words(&["--version"]), false),
            Adapter::Acp(acp) => (acp.program().to_owned(), words(acp.version()?), false),
            Adapter::Commands(commands) => {
                let command = commands.version.as_deref()?;
                ("sh".to_owned(), words(&["-c", command]), true)
            }
        };
        Some(VersionCommand {
            program,
            args,
            is_free,
        })
    }
}

/// The version that a program prints with `--version`, or why it is broken.
pub(crate) async fn program_version(
    program: &str,
    env: &Environment,
    folder: &Path,
    guard: &Path,
) -> Result<String, String> {
    let question = VersionCommand {
        program: program.to_owned(),
        args: vec!["--version".to_owned()],
        is_free: false,
    };
    ask(question, env, folder, guard, TIMEOUT).await
}

/// A command that prints a version.
struct VersionCommand {
    program: String,
    args: Vec<String>,
    /// Whether any text is accepted: `getVersion` of an agent file may print `nightly`.
    is_free: bool,
}

impl VersionCommand {
    /// The command as a user would type it.
    fn shown(&self) -> String {
        match (&self.args[..], self.is_free) {
            ([_, command], true) => format!("`{command}`"),
            (args, _) => format!("`{} {}`", self.program, args.join(" ")),
        }
    }
}

/// Runs a program and finds the version in its output.
async fn ask(
    question: VersionCommand,
    env: &Environment,
    folder: &Path,
    guard: &Path,
    timeout: Duration,
) -> Result<String, String> {
    let shown = question.shown();
    let spawn = Spawn {
        program: question.program.into(),
        args: question.args.iter().map(Into::into).collect(),
        env: env.clone(),
        folder: folder.to_owned(),
        guard: guard.to_owned(),
        grace: GRACE,
    };
    let redactor = Redactor::from_environment(env);
    let run = tokio::time::timeout(timeout, run(spawn, &redactor)).await;
    let hung = |_| Err(format!("{shown} timed out after {}", brief(timeout)));
    let (ended, printed, stderr) = run.unwrap_or_else(hung)?;
    if ended != ProcessExit::Exited(0) {
        return Err(format!("{shown} {ended}{}", last_words(&stderr)));
    }
    found(&printed, question.is_free).map_err(|why| format!("{shown} {why}"))
}

/// Runs a program, and returns its exit, the start of its output, and its stderr.
async fn run(spawn: Spawn, redactor: &Redactor) -> Result<(ProcessExit, Vec<u8>, String), String> {
    let mut process = spawn.start().map_err(|error| error.to_string())?;
    process.stdin = None;
    let stdout = process.stdout.take();
    let mut printed = Vec::new();
    let reading = async {
        let mut stdout = stdout?;
        let mut start = (&mut stdout).take(LONGEST as u64 * 20);
        start.read_to_end(&mut printed).await.ok()?;
        // A program that prints without end must still be able to exit.
        tokio::io::copy(&mut stdout, &mut tokio::io::sink())
            .await
            .ok()
    };
    let (_, ended) = tokio::join!(reading, process.wait());
    let stderr = process.stderr_tail(redactor);
    Ok((ended, printed, stderr))
}

/// The line with the version, or why there is none.
fn found(printed: &[u8], is_free: bool) -> Result<String, &'static str> {
    let end = printed.len().min(LONGEST * 19);
    let text = match str::from_utf8(&printed[..end]) {
        Ok(text) => text,
        // The start of a longer text may end within a character.
        Err(error) if error.error_len().is_none() => {
            str::from_utf8(&printed[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err("printed bytes that are not text"),
    };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_version = |line: &&str| is_free || has_number(line);
    let none = match lines.clone().next() {
        None => "printed nothing",
        Some(_) => "printed no version",
    };
    let line = lines.find(is_version).ok_or(none)?;
    if line.chars().any(char::is_control) {
        return Err("printed control characters");
    }
    Ok(line[..line.floor_char_boundary(LONGEST)].to_owned())
}

/// Whether a text contains a number such as `1.2`.
fn has_number(text: &str) -> bool {
    let is_number =
        |three: &[u8]| three[0].is_ascii_digit() && three[1] == b'.' && three[2].is_ascii_digit();
    text.as_bytes().windows(3).any(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_found_and_garbage_is_refused() {
        let check = |printed: &[u8], is_free: bool, expected: Result<&str, &'static str>| {
            let found = found(printed, is_free);
            assert_eq!(
                found.as_deref().map_err(|why| *why),
                expected,
                "{printed:?}"
            );
        };
        check(
            b"\n 2.1.325 (Claude Code)\n",
            false,
            Ok("2.1.325 (Claude Code)"),
        );
        check(
            b"Updating\ncodex-cli 0.166.0\n",
            false,
            Ok("codex-cli 0.166.0"),
        );
        check(b"nightly\n", true, Ok("nightly"));
        check(b"nightly\n", false, Err("printed no version"));
        check(
            b"Usage: claude [OPTIONS]\n",
            false,
            Err("printed no version"),
        );
        check(b" \n\n", false, Err("printed nothing"));
        check(b"", true, Err("printed nothing"));
        check(
            b"\x7fELF\x02\x01\xff\xfe 1.2.3",
            false,
            Err("printed bytes that are not text"),
        );
        check(
            b"\x1b[31m1.2.3\x1b[0m",
            false,
            Err("printed control characters"),
        );
        check(
            "1.2 ".repeat(5_000).as_bytes(),
            true,
            Ok("1.2 ".repeat(50).as_str()),
        );
        check(
            "\u{e4}1.2".repeat(5_000).as_bytes(),
            true,
            Ok("\u{e4}1.2".repeat(40).as_str()),
        );
    }
}
