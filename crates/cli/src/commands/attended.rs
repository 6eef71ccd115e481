//! The engine's host on the command line: it writes notices to stderr and asks for consent on the terminal.
//!
//! Its main type is [`InteractiveHost`].

use std::io::{self, BufRead, IsTerminal, Read};

use proctor_record::event::NotRunOutcome;
use proctor_record::redact::Redactor;
use proctor_run::engine::EngineError;
use proctor_run::engine::consent::ConsentPurpose;
use proctor_run::engine::host::{ConsentAnswer, Host, HostFuture, HostNotice};

use super::evals::screen;
use super::list::nothing_selected;
use super::{drawn, tally};
use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::output;

/// The maximum length of an answer on the terminal, in bytes.
const ANSWER: u64 = 1_000;

/// A host that talks to the user through stdin and stderr.
pub(super) struct InteractiveHost {
    redactor: Redactor,
}

impl InteractiveHost {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor }
    }

    /// Prints why a run does not start, and returns the exit code. `format` is the output format of results.
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
            EngineError::NothingSelected { suite, selection } => {
                nothing_selected(&suite, &selection, format.unwrap_or(OutputFormat::Text))
            }
            EngineError::NothingToRerun(_) => {
                let text = self.redactor.text(&error.to_string()).into_owned();
                output::message(&output::printable_lines(&format!("{text}\n")))?;
                Ok(Exit::NothingSelected)
            }
            EngineError::NoEvals { any_invalid } => {
                output::message("no evals left to run\n")?;
                Ok(if any_invalid {
                    Exit::Failed
                } else {
                    Exit::NothingSelected
                })
            }
            EngineError::NoConsent { purpose, expired } => {
                output::message(&format!(
                    "error: consent is required and stdin or stderr is not a terminal; no tool was \
                     called\nhint: {}\n",
                    hint(purpose, expired)
                ))?;
                Ok(Exit::Usage)
            }
            EngineError::Refused => {
                output::message("No tool was called.\n")?;
                Ok(Exit::Usage)
            }
            EngineError::Changed(difference) => {
                let text = self.redactor.text(&difference.to_string()).into_owned();
                let text = output::printable_lines(&text);
                output::message(&format!("error: {text}\nno tool was called\n"))?;
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

    /// The text without secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    fn say(&self, text: &str) {
        let text = output::printable_lines(&self.redactor.text(text));
        // A closed stderr is no reason to fail.
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
                self.say(&format!("Consent found in `{}`.\n", path.display()));
            }
            HostNotice::ConsentKept(path) => {
                self.say(&format!("Consent saved to `{}`.\n", path.display()));
            }
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
        Box::pin(confirm(match purpose {
            ConsentPurpose::Run => "Run these evals? [y/N] ",
            ConsentPurpose::Write => "Call these tools? [y/N] ",
        }))
    }

    fn confirm(&self, question: &'static str) -> HostFuture<'_> {
        Box::pin(confirm(question))
    }
}

/// Asks on the terminal. Only `y` and `yes` are consent.
async fn confirm(question: &'static str) -> io::Result<ConsentAnswer> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(ConsentAnswer::Nobody);
    }
    // If the question can't be written, no answer follows.
    let _ = output::message(question);
    let (answer, answered) = tokio::sync::oneshot::channel();
    // On its own thread, so that Ctrl-C need not wait for a line.
    std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = io::stdin().lock().take(ANSWER).read_line(&mut line);
        // The receiver may be gone.
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
            "review the difference, then run the command on a terminal, or remove the entry from the \
             consent file; `--yes` has no effect here"
        }
        (ConsentPurpose::Run, false) => {
            "run the command on a terminal, pass `--yes`, or pass a matching file with `--consent`"
        }
        (ConsentPurpose::Write, false) => "run the command on a terminal, or pass `--yes`",
    }
}
