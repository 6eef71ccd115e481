//! Shows what would be called, and asks whether it may be.
//!
//! Its main function is [`obtain`]. Nothing that a server says grants anything: what is agreed to is
//! bound to the server's command or address, its tools and its evals, as they were shown.

mod keep;
mod screen;

use std::io::{BufRead, IsTerminal, Read};
use std::path::Path;

use anyhow::Context;
use mcp_evals::{Eval, Input};
use proctor_core::evals::consent::{Consent, Consents};
use proctor_core::evals::fingerprint::{self, Fingerprint};
use proctor_core::redact::Redactor;
use proctor_core::suite::server::Transport;
use serde_json::{Map, Value};

use super::gather::{Offer, Planned};
use crate::exit::Exit;
use crate::output;

/// How much of an answer is read.
const ANSWER: u64 = 1_000;

/// What is asked for, and how.
pub(crate) struct ConsentOptions<'a> {
    pub(crate) purpose: Purpose,
    /// The user says yes beforehand.
    pub(crate) yes: bool,
    /// Whether there is a terminal to ask on.
    pub(crate) terminal: bool,
    /// Where consent is kept.
    pub(crate) file: Option<&'a Path>,
    /// The model that will be asked.
    pub(crate) model: Option<&'a str>,
    /// The model that will judge.
    pub(crate) judge: Option<&'a str>,
    /// How often each eval is run.
    pub(crate) runs: u32,
    /// How many turns a scenario has at most, where the user says so.
    pub(crate) max_turns: Option<u32>,
    pub(crate) redactor: &'a Redactor,
}

/// What the calls are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To run evals.
    Run,
    /// To write evals.
    Write,
}

/// What was agreed to.
#[derive(Debug)]
pub(crate) struct Granted {
    servers: Vec<(String, Fingerprint)>,
    redactor: Redactor,
}

/// How servers are not what was agreed to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference(Vec<(String, fingerprint::Difference)>);

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (server, difference)) in self.0.iter().enumerate() {
            let start = if at == 0 { "" } else { "\n" };
            write!(
                f,
                "{start}`{server}` is not what was agreed to:{difference}"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Difference {}

impl Granted {
    /// Whether servers, listed again, are what was agreed to.
    pub(crate) fn still_holds(&self, offers: &[Offer]) -> Result<(), Difference> {
        let mut differences = Vec::new();
        for offer in offers {
            let now = print_of(offer, &self.redactor);
            let agreed = self
                .servers
                .iter()
                .find(|(name, _)| *name == offer.server.name);
            // A server that nobody was asked about is all new.
            let agreed = match agreed {
                Some((_, agreed)) => agreed.clone(),
                None => Fingerprint::new(String::new(), Vec::new(), &[], &[]),
            };
            let agreed = agreed.of_level(offer.level);
            if let Some(difference) = agreed.difference(&now.of_level(offer.level)) {
                differences.push((offer.server.name.clone(), difference));
            }
        }
        if differences.is_empty() {
            Ok(())
        } else {
            Err(Difference(differences))
        }
    }
}

/// What the consent file says about what is planned.
#[derive(Default)]
struct Kept {
    consents: Consents,
    differences: Vec<(String, fingerprint::Difference)>,
    /// Whether every server has an entry that fits.
    is_all: bool,
}

/// Whether somebody can be shown something and asked.
pub(crate) fn is_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows what would be called, and asks unless that was answered before; gives the exit code if it
/// may not be. Dropping the future while it waits for an answer ends the waiting.
pub(crate) async fn obtain(
    planned: &[Planned<'_>],
    options: &ConsentOptions<'_>,
) -> anyhow::Result<Result<Granted, Exit>> {
    say(&screen::render(planned, options), options.redactor)?;
    let granted = Granted {
        servers: planned
            .iter()
            .map(|planned| {
                let print = print_of(planned.offer, options.redactor);
                (planned.offer.server.name.clone(), print)
            })
            .collect(),
        redactor: options.redactor.clone(),
    };
    let kept = match kept(planned, options)? {
        Ok(kept) => kept,
        Err(exit) => return Ok(Err(exit)),
    };
    if kept.is_all {
        let path = options.file.map(|path| path.display().to_string());
        let text = format!("Agreed to in `{}`.\n", path.unwrap_or_default());
        say(&text, options.redactor)?;
        return Ok(Ok(granted));
    }
    let is_gone = !kept.differences.is_empty();
    if is_gone {
        let text = format!(
            "Consent is gone: {}\n",
            Difference(kept.differences.clone())
        );
        say(&text, options.redactor)?;
    }
    // What is to be kept is made before anything is agreed to: it may be too much.
    let text = match options.file {
        Some(_) => Some(with_new(kept.consents, planned, options.redactor).render()?),
        None => None,
    };
    if !options.yes || is_gone {
        if !options.terminal {
            refuse(options, is_gone)?;
            return Ok(Err(Exit::Usage));
        }
        if !ask(options.purpose).await? {
            output::message("Nothing was called.\n")?;
            return Ok(Err(Exit::Usage));
        }
    }
    if let (Some(path), Some(text)) = (options.file, text) {
        keep::write(path, &text).with_context(|| format!("can't write `{}`", path.display()))?;
        output::message(&format!("Kept in `{}`.\n", path.display()))?;
    }
    Ok(Ok(granted))
}

/// Reads the consent file, if there is one.
fn kept(
    planned: &[Planned<'_>],
    options: &ConsentOptions<'_>,
) -> anyhow::Result<Result<Kept, Exit>> {
    let Some(path) = options.file else {
        return Ok(Ok(Kept::default()));
    };
    let consents = match keep::read(path)? {
        Ok(consents) => consents,
        Err(exit) => return Ok(Err(exit)),
    };
    let mut kept = Kept {
        is_all: true,
        ..Kept::default()
    };
    for Planned { offer, evals } in planned.iter().filter(|planned| !planned.evals.is_empty()) {
        let Some(consent) = consents.servers.get(&offer.server.name) else {
            kept.is_all = false;
            continue;
        };
        let now = print_of(offer, options.redactor);
        if let Some(difference) = consent.difference(&now, offer.level) {
            kept.is_all = false;
            kept.differences
                .push((offer.server.name.clone(), difference));
        }
        // What was there, and was not shown, was not agreed to.
        kept.is_all &= evals.iter().all(|eval| consent.agreed.contains(&eval.id));
    }
    kept.consents = consents;
    Ok(Ok(kept))
}

/// The consents with what is agreed to now. What was agreed to before stays so if nothing has changed.
fn with_new(mut consents: Consents, planned: &[Planned<'_>], redactor: &Redactor) -> Consents {
    for Planned { offer, evals } in planned.iter().filter(|planned| !planned.evals.is_empty()) {
        let calls = evals.iter().filter_map(|eval| call(eval));
        let fingerprint = print_of(offer, redactor);
        let mut consent = Consent {
            agreed: evals.iter().map(|eval| eval.id.clone()).collect(),
            calls: calls
                .map(|(tool, arguments)| screen::call_text(tool, arguments, redactor))
                .collect(),
            fingerprint,
        };
        let name = &offer.server.name;
        if let Some(old) = consents.servers.get(name)
            && old.difference(&consent.fingerprint, offer.level).is_none()
        {
            consent.fingerprint = old.fingerprint.clone();
            consent.agreed.extend(old.agreed.iter().cloned());
            consent.calls.extend(old.calls.iter().cloned());
        }
        consents.servers.insert(name.clone(), consent);
    }
    consents
}

/// What an execution eval calls.
fn call(eval: &Eval) -> Option<(&str, &Map<String, Value>)> {
    match &eval.input {
        Input::Execution(input) => Some((&input.tool_name, &input.arguments)),
        _ => None,
    }
}

/// What a server is and offers. Nothing secret is in it.
fn print_of(offer: &Offer, redactor: &Redactor) -> Fingerprint {
    Fingerprint::new(
        redactor.text(&offer.server.written).into_owned(),
        given(&offer.server.transport),
        &offer.tools,
        &offer.evals,
    )
}

/// The names of what a server is given.
fn given(transport: &Transport) -> Vec<String> {
    match transport {
        Transport::Stdio { env, .. } => env.keys().cloned().collect(),
        Transport::Http { headers, .. } | Transport::Sse { headers, .. } => {
            headers.keys().cloned().collect()
        }
    }
}

fn refuse(options: &ConsentOptions<'_>, is_gone: bool) -> anyhow::Result<()> {
    let hint = match (options.purpose, is_gone) {
        (_, true) => {
            "look at the difference, then run it on a terminal to be asked again, or take the entry \
             out of the consent file; `--yes` does not help here"
        }
        (Purpose::Run, false) => {
            "run it on a terminal, or say `--yes`, or give a consent file that agrees with `--consent`"
        }
        (Purpose::Write, false) => "run it on a terminal, or say `--yes`",
    };
    let text = format!(
        "error: this needs your consent, and there is no terminal to ask on; nothing was called\nhint: {hint}\n"
    );
    output::message(&text)
}

/// Asks on the terminal. Only a clear yes is one.
async fn ask(purpose: Purpose) -> anyhow::Result<bool> {
    output::message(match purpose {
        Purpose::Run => "Run these evals? [y/N] ",
        Purpose::Write => "Call these tools? [y/N] ",
    })?;
    let (answer, answered) = tokio::sync::oneshot::channel();
    // A thread of its own, so that nobody waits for a line that never comes when Ctrl-C is pressed.
    std::thread::Builder::new().spawn(move || {
        let mut line = String::new();
        let read = std::io::stdin().lock().take(ANSWER).read_line(&mut line);
        // Whoever asked may be gone.
        let _ = answer.send(read.map(|_| line));
    })?;
    let line = answered.await.context("nobody answered")??;
    let line = line.trim();
    Ok(["y", "yes"]
        .iter()
        .any(|yes| line.eq_ignore_ascii_case(yes)))
}

fn say(text: &str, redactor: &Redactor) -> anyhow::Result<()> {
    output::message(&output::printable_lines(&redactor.text(text)))
}

#[cfg(test)]
mod tests;
