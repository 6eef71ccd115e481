//! Script steps: the `#!` line is used if present; other scripts run in the user's shell.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use proctor_core::suite::checkout::file_digest;
use proctor_core::suite::step::values::FillError;
use proctor_core::suite::step::{ScriptSource, ScriptStep};
use proctor_record::duration;
use proctor_record::event::{Blame, Phase};
use proctor_record::redact::{Redactor, secrets_of};
use proctor_record::verdict::Verdict;
use tokio::time::timeout;

use super::environment::{VariableError, check_variable};
use super::note::StepEndRecorder;
use super::scoring::{self, ScriptReport};
use super::{ActionOutcome, Steps, TRANSCRIPT};
use proctor_contain::process::{GRACE, LingeringProcess, ProcessExit, Spawn, SpawnError};
use proctor_contain::tail::Tail;
use proctor_wire::worker;

/// How much of a file is read to find its `#!` line.
const FIRST_LINE: u64 = 1024;

/// How many lines of a script's output a reason shows.
const SHOWN_LINES: usize = 20;
const SHOWN_CHARS: usize = 2000;

/// Why a script can't be run as written.
#[derive(Debug, thiserror::Error)]
enum ScriptStepError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error(transparent)]
    Variable(#[from] VariableError),
    #[error("could not read `{path}`: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "`{0}` has changed since the suite was loaded, so it was not run; the agent or a step may have replaced it"
    )]
    Changed(PathBuf),
    #[error("could not write the script to a file: {0}")]
    Write(io::Error),
}

impl Steps {
    pub(super) async fn run_script(
        &mut self,
        script: &ScriptStep,
        phase: Phase,
        note: &mut StepEndRecorder,
    ) -> ActionOutcome {
        let spawn = match self.prepare(script, phase) {
            Ok(spawn) => spawn,
            Err(error @ ScriptStepError::Write(_)) => {
                return ActionOutcome::unknown(&error, Blame::Infra);
            }
            Err(error) => return ActionOutcome::unknown(&error, Blame::Suite),
        };
        let process = match spawn.start_lingering() {
            Ok(process) => process,
            Err(error) => return not_started(&error),
        };
        note.written = Some(process.merged().clone());
        // Processes that it left behind run until the trial ends; the script itself ends with this
        // step.
        let mut running = WatchedScript::new(&mut self.lingering, process);
        let process = running.process();
        let Ok(ended) = timeout(script.timeout, process.ended()).await else {
            let merged = process.merged().clone();
            drop(running);
            self.settle().await;
            let limit = duration::render(script.timeout);
            let reason = format!("the script timed out after {limit}");
            let text = merged.text_and_gap(&self.options.redactor);
            let shown = self.options.redactor.text(&text);
            // Proctor ended it, so its verdict is unknown.
            return ActionOutcome::unknown(&with_end(&reason, &shown), Blame::Suite).shows(text);
        };
        process.last_words().await;
        let redactor = &self.options.redactor;
        let (text, shown, outputs) = worker::apart(|| {
            let text = process.merged().text_and_gap(redactor);
            let shown = redactor.text(&text).into_owned();
            (text, shown, outputs(process, ended, redactor))
        });
        let reason = || with_end(&format!("the script {ended}"), &shown);
        let report = match (&self.transcript, phase) {
            (Some(known), Phase::Grade) => Some((known, reported(process.stdout(), redactor))),
            _ => None,
        };
        let done = match (ended, report) {
            (ProcessExit::Exited(_), Some((_, ScriptReport::Unusable(reason)))) => {
                scoring::unusable(&reason)
            }
            (ProcessExit::Exited(code), Some((known, ScriptReport::Verdict(report)))) => {
                report.judge(code == 0, known, &ended.to_string())
            }
            (ended, _) => match ended {
                ProcessExit::Exited(0) => ActionOutcome::new(Verdict::Pass),
                ProcessExit::Exited(_) => ActionOutcome::new(Verdict::fail(reason())),
                // A crashed script has no verdict.
                ProcessExit::Signalled(_) => ActionOutcome::unknown(&reason(), Blame::Suite),
                // Its guard was killed.
                ProcessExit::Unknown => ActionOutcome::unknown(&reason(), Blame::Infra),
            },
        };
        running.is_over = true;
        let outputs = outputs.into_iter().chain(done.outputs.clone());
        let outputs = outputs.collect();
        ActionOutcome { outputs, ..done }.shows(text)
    }

    fn prepare(&mut self, script: &ScriptStep, phase: Phase) -> Result<Spawn, ScriptStepError> {
        let mut given = BTreeMap::new();
        for (name, template) in &script.env {
            let value = self.fill(template)?;
            check_variable(name, &value)?;
            given.insert(name.clone(), value);
        }
        self.options.redactor.learn(secrets_of(&given));
        let mut env = self.values.variables();
        if phase == Phase::Grade && self.transcript.is_some() {
            let path = self.transcript_path().map_err(ScriptStepError::Write)?;
            env.insert(TRANSCRIPT.to_owned(), path.display().to_string());
        }
        env.append(&mut given);
        let path = match &script.source {
            ScriptSource::File(path) => std::path::absolute(path),
            ScriptSource::Inline(text) => Ok(self.write(text).map_err(ScriptStepError::Write)?),
        };
        let read = |path: io::Result<PathBuf>| {
            let path = path?;
            let start = start_of(&path)?;
            Ok((path, start))
        };
        let (path, start) = read(path).map_err(|source| ScriptStepError::Read {
            path: match &script.source {
                ScriptSource::File(path) => path.clone(),
                ScriptSource::Inline(_) => script.folder.clone(),
            },
            source,
        })?;
        if let Some(loaded) = &script.digest
            && file_digest(&path).ok().as_ref() != Some(loaded)
        {
            return Err(ScriptStepError::Changed(path));
        }
        let shell = env.get("SHELL").filter(|shell| !shell.is_empty());
        let (program, args) = command(&path, &start, shell.map_or("/bin/sh", String::as_str));
        Ok(Spawn {
            program,
            args,
            env,
            folder: script.folder.clone(),
            guard: self.options.connect.guard.clone(),
            grace: GRACE,
        })
    }

    /// Writes an inline script to a file that only its owner can read. Blank lines before `#!` are
    /// removed, since YAML blocks often start with one.
    fn write(&mut self, text: &str) -> io::Result<PathBuf> {
        let folder = match &self.scripts {
            Some(folder) => folder,
            None => self.scripts.insert(self.options.scratches.open()?),
        };
        self.written += 1;
        let path = folder.path().join(format!("script-{}", self.written));
        let trimmed = text.trim_start();
        let text = if trimmed.starts_with("#!") {
            trimmed
        } else {
            text
        };
        File::create_new(&path)?.write_all(text.as_bytes())?;
        Ok(path)
    }
}

/// A script that is terminated if its future is dropped. It stays in the list of scripts that may
/// have left processes, so that the next step and the end of the trial can wait until it is gone.
struct WatchedScript<'a> {
    all: &'a mut Vec<LingeringProcess>,
    at: usize,
    is_over: bool,
}

impl<'a> WatchedScript<'a> {
    fn new(all: &'a mut Vec<LingeringProcess>, process: LingeringProcess) -> Self {
        all.push(process);
        Self {
            at: all.len() - 1,
            all,
            is_over: false,
        }
    }

    fn process(&mut self) -> &mut LingeringProcess {
        &mut self.all[self.at]
    }
}

impl Drop for WatchedScript<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.process().end();
        }
    }
}

fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    fs::File::open(path)?
        .take(FIRST_LINE)
        .read_to_end(&mut start)?;
    Ok(start)
}

/// The program and arguments for a script. The interpreter is started by name, as the kernel would,
/// so that the file itself need not be executable.
fn command(path: &Path, start: &[u8], shell: &str) -> (OsString, Vec<OsString>) {
    let file = path.as_os_str().to_owned();
    if start.starts_with(b"\x7fELF") {
        return (file, Vec::new());
    }
    let Some(line) = start.strip_prefix(b"#!") else {
        return (shell.into(), vec![file]);
    };
    let line = line
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or(line)
        .trim_ascii();
    // At most one argument, including its spaces, as the kernel passes it.
    let end = line
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    if interpreter.is_empty() {
        return (shell.into(), vec![file]);
    }
    let argument = argument.trim_ascii();
    let argument = (!argument.is_empty()).then(|| OsString::from_vec(argument.to_vec()));
    let args = argument.into_iter().chain([file]).collect();
    (OsString::from_vec(interpreter.to_vec()), args)
}

/// The verdict in the output of a script.
fn reported(stdout: &Tail, redactor: &Redactor) -> ScriptReport {
    let text = stdout.text(redactor);
    let is_cut = stdout.text_and_gap(redactor).len() > text.len();
    if is_cut && stdout.count() > text.matches("\"verdict\"").count() {
        let reason = "its verdict is not in the last 64 KiB of its output";
        return ScriptReport::Unusable(reason.to_owned());
    }
    ScriptReport::read(&text, is_cut)
}

fn outputs(
    process: &LingeringProcess,
    ended: ProcessExit,
    redactor: &Redactor,
) -> BTreeMap<String, String> {
    let text = |tail: &Tail| {
        let text = tail.text(redactor);
        text.trim_end_matches(['\n', '\r']).to_owned()
    };
    // As shells compute it.
    let code = match ended {
        ProcessExit::Exited(code) => code.to_string(),
        ProcessExit::Signalled(signal) => (128 + signal).to_string(),
        ProcessExit::Unknown => String::new(),
    };
    [
        ("stdout", text(process.stdout())),
        ("stderr", text(process.stderr())),
        ("output", text(process.merged())),
        ("exitCode", code),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The result if a program could not be started: the suite is to blame, unless the guard failed.
pub(super) fn not_started(error: &SpawnError) -> ActionOutcome {
    match error {
        SpawnError::Guard { .. } => ActionOutcome::unknown(&error, Blame::Infra),
        SpawnError::NoFolder(_) | SpawnError::Program(_) => {
            ActionOutcome::unknown(&error, Blame::Suite)
        }
    }
}

/// A reason with the end of the output, redacted.
pub(super) fn with_end(reason: &str, written: &str) -> String {
    let text = written.trim_end();
    if text.is_empty() {
        return format!("{reason} without output");
    }
    let from = text.rmatch_indices('\n').nth(SHOWN_LINES - 1);
    let lines = from.map_or(text, |(at, _)| &text[at + 1..]);
    let from = lines.char_indices().rev().nth(SHOWN_CHARS - 1);
    let end = from.map_or(lines, |(at, _)| &lines[at..]);
    format!("{reason}; the end of its output:\n{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_names_the_interpreter() {
        let check = |start: &str, expected: &[&str]| {
            let (program, args) = command(Path::new("/s/f"), start.as_bytes(), "/bin/zsh");
            let words = [vec![program], args].concat();
            assert_eq!(
                words,
                expected.iter().map(OsString::from).collect::<Vec<_>>()
            );
        };
        check("echo hi", &["/bin/zsh", "/s/f"]);
        check("", &["/bin/zsh", "/s/f"]);
        check("#!", &["/bin/zsh", "/s/f"]);
        check("#!/bin/bash\necho", &["/bin/bash", "/s/f"]);
        check("#! /bin/sh -eu \r\necho", &["/bin/sh", "-eu", "/s/f"]);
        check(
            "#!/usr/bin/env -S python3 -u\n",
            &["/usr/bin/env", "-S python3 -u", "/s/f"],
        );
        check("\x7fELF\u{1}", &["/s/f"]);
    }

    #[test]
    fn a_reason_shows_the_end_of_the_output() {
        let check = |written: &str, expected: &str| {
            assert_eq!(with_end("it failed", written), expected);
        };
        check(" \n", "it failed without output");
        check("a\nb\n", "it failed; the end of its output:\na\nb");
        let lines: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
        let last = lines[10..].join("\n");
        check(
            &lines.join("\n"),
            &format!("it failed; the end of its output:\n{last}"),
        );
        let long = "é".repeat(3000);
        let end = "é".repeat(SHOWN_CHARS);
        check(&long, &format!("it failed; the end of its output:\n{end}"));
    }
}
