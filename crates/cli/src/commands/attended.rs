//! The engine's host at a command line: notices go to stderr, and questions to the terminal.
//!
//! Its main type is [`InteractiveHost`].

use std::io::{self, BufRead, IsTerminal, Read};

use proctor_core::event::NotRunOutcome;
use proctor_core::redact::Redactor;
use proctor_run::engine::EngineError;
use proctor_run::engine::consent::ConsentPurpose;
use proctor_run::engine::host::{ConsentAnswer, Host, HostFuture, HostNotice};

use super::evals::screen;
use super::list::nothing_selected;
use super::{drawn, tally};
use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::output;

/// How much of an answer is read.
const ANSWER: u64 = 1_000;

/// Whoever sits at the command line.
pub(super) struct InteractiveHost {
    redactor: Redactor,
}

impl InteractiveHost {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    /// Says why a run does not start, and gives the exit code that says so. `format` is that of results.
    pub(super) fn refuse(
        &self,
        error: EngineError,
        format: Option<OutputFormat>,
    ) -> anyhow::Result<Exit> {
        match error {
            EngineError::InvalidFile { file, problems } => {
                output::message(&format!("{}: {}\n", file.display(), tally(&problems)))?;
                Ok(Exit::Usage)
            }
            EngineError::NothingSelected(suite) => {
                nothing_selected(&suite, format.unwrap_or(OutputFormat::Text))
            }
            EngineError::NoEvals { any_invalid } => {
                output::message("no eval is left to be run\n")?;
                Ok(if any_invalid {
                    Exit::Failed
                } else {
                    Exit::NothingSelected
                })
            }
            EngineError::NoConsent { purpose, expired } => {
                output::message(&format!(
                    "error: this needs your consent, and there is no terminal to ask on; nothing was \
                     called\nhint: {}\n",
                    hint(purpose, expired)
                ))?;
                Ok(Exit::Usage)
            }
            EngineError::Refused => {
                output::message("Nothing was called.\n")?;
                Ok(Exit::Usage)
            }
            EngineError::Changed(difference) => {
                let text = self.redactor.text(&difference.to_string()).into_owned();
                let text = output::printable_lines(&text);
                output::message(&format!("error: {text}\nnothing was called\n"))?;
                Ok(Exit::Usage)
            }
            EngineError::Unreachable(reason) => {
                output::message(&format!("error: {}\n", output::printable_lines(&reason)))?;
                Ok(Exit::Inconclusive)
            }
            error @ (EngineError::Usage(_)
            | EngineError::Unusable { .. }
            | EngineError::Missing(_)
            | EngineError::Record(_)) => Err(error.into()),
        }
    }

    fn say(&self, text: &str) {
        let text = output::printable_lines(&self.redactor.text(text));
        // Nothing depends on whether anybody reads it.
        let _ = output::message(&text);
    }
}

impl Host for InteractiveHost {
    fn notice(&self, notice: HostNotice<'_>) {
        match notice {
            HostNotice::Problems(problems) => drop(output::message(&drawn(problems))),
            HostNotice::Text(text) => self.say(&format!("{text}\n")),
            HostNotice::Calls { planned, options } => self.say(&screen::render(planned, options)),
            HostNotice::ConsentFound(path) => {
                self.say(&format!("Agreed to in `{}`.\n", path.display()));
            }
            HostNotice::ConsentKept(path) => self.say(&format!("Kept in `{}`.\n", path.display())),
            HostNotice::NotRun(not_run) => {
                for one in not_run {
                    let word = match one.outcome {
                        NotRunOutcome::Invalid => "invalid",
                        NotRunOutcome::Skipped => "skipped",
                    };
                    self.say(&format!("{word}: {}\n", one.reason));
                }
            }
        }
    }

    fn ask(&self, purpose: ConsentPurpose) -> HostFuture<'_> {
        Box::pin(ask(purpose))
    }
}

/// Asks on the terminal. Only a clear yes is one.
async fn ask(purpose: ConsentPurpose) -> io::Result<ConsentAnswer> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(ConsentAnswer::Nobody);
    }
    let question = match purpose {
        ConsentPurpose::Run => "Run these evals? [y/N] ",
        ConsentPurpose::Write => "Call these tools? [y/N] ",
    };
    // Whoever can't read the question does not answer it.
    let _ = output::message(question);
    let (answer, answered) = tokio::sync::oneshot::channel();
    // A thread of its own, so that nobody waits for a line that never comes when Ctrl-C is pressed.
    std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(ANSWER).read_line(&mut line);
        // Whoever asked may be gone.
        let _ = answer.send(read.map(|_| line));
    })?;
    let line = answered.await.map_err(io::Error::other)??;
    let line = line.trim();
    let is_yes = ["y", "yes"]
        .iter()
        .any(|yes| line.eq_ignore_ascii_case(yes));
    Ok(if is_yes {
        ConsentAnswer::Yes
    } else {
        ConsentAnswer::No
    })
}

fn hint(purpose: ConsentPurpose, expired: bool) -> &'static str {
    match (purpose, expired) {
        (_, true) => {
            "look at the difference, then run it on a terminal to be asked again, or take the entry \
             out of the consent file; `--yes` does not help here"
        }
        (ConsentPurpose::Run, false) => {
            "run it on a terminal, or say `--yes`, or give a consent file that agrees with `--consent`"
        }
        (ConsentPurpose::Write, false) => "run it on a terminal, or say `--yes`",
    }
}
