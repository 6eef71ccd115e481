//! Shows the planned calls and asks for consent.
//!
//! Its main function is [`obtain`]. Consent comes only from the user, never from a server. It is
//! bound to the server's command or URL, its tools and its evals, as they were shown.

pub(super) mod keep;

use std::path::Path;

use mcp_evals::{Eval, Input};
use proctor_core::evals::consent::{Consent, Consents};
use proctor_core::evals::fingerprint::{self, Fingerprint};
use proctor_core::printable::printable;
use proctor_core::redact::Redactor;
use proctor_core::suite::server::Transport;
use serde_json::{Map, Value};

use super::error::EngineError;
use super::host::{ConsentAnswer, Host, HostNotice};
use super::offers::{EvalPlan, ServerOffer};

const HOW_TO_SEE: &str = "`proctor evals list -o json` shows them";

/// The maximum number of characters of a call in a consent file.
const CALL: usize = 4_000;

/// The options for asking for consent.
pub struct ConsentOptions<'a> {
    pub purpose: ConsentPurpose,
    /// Whether the user agreed beforehand with `--yes`.
    pub yes: bool,
    /// The consent file.
    pub file: Option<&'a Path>,
    /// The model that will be asked.
    pub model: Option<&'a str>,
    /// The model that will judge.
    pub judge: Option<&'a str>,
    /// The number of trials per eval.
    pub runs: u32,
    /// The user's turn limit for scenarios.
    pub max_turns: Option<u32>,
    pub redactor: &'a Redactor,
}

/// The purpose of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConsentPurpose {
    Run,
    Write,
}

/// The servers to which the user consented, with their fingerprints.
#[derive(Debug)]
pub struct ConsentGrant {
    servers: Vec<(String, Fingerprint)>,
    redactor: Redactor,
}

/// The changes of servers since consent was given.
#[derive(Debug, PartialEq, Eq)]
pub struct ConsentDifference(Vec<(String, fingerprint::FingerprintDifference)>);

impl std::fmt::Display for ConsentDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, (server, difference)) in self.0.iter().enumerate() {
            let start = if at == 0 { "" } else { "\n" };
            write!(
                f,
                "{start}`{server}` changed since you gave consent:{difference}"
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for ConsentDifference {}

impl ConsentGrant {
    /// Checks that servers, listed again, are unchanged since consent was given.
    pub fn still_holds(&self, offers: &[ServerOffer]) -> Result<(), ConsentDifference> {
        let mut differences = Vec::new();
        for offer in offers {
            let now = print_of(offer, &self.redactor);
            let agreed = self
                .servers
                .iter()
                .find(|(name, _)| *name == offer.server.name);
            // A server without earlier consent counts as new.
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
            Err(ConsentDifference(differences))
        }
    }
}

/// The contents of the consent file for the planned evals.
#[derive(Default)]
struct StoredConsent {
    consents: Consents,
    differences: Vec<(String, fingerprint::FingerprintDifference)>,
    /// Whether every server has a matching entry.
    is_all: bool,
}

/// Shows the planned calls, and asks unless consent already exists. Dropping the future cancels the
/// question.
pub async fn obtain(
    planned: &[EvalPlan<'_>],
    options: &ConsentOptions<'_>,
    host: &dyn Host,
) -> Result<ConsentGrant, EngineError> {
    host.notice(HostNotice::Calls { planned, options });
    let granted = ConsentGrant {
        servers: planned
            .iter()
            .map(|planned| {
                let print = print_of(planned.offer, options.redactor);
                (planned.offer.server.name.clone(), print)
            })
            .collect(),
        redactor: options.redactor.clone(),
    };
    let kept = kept(planned, options, host)?;
    if let (true, Some(path)) = (kept.is_all, options.file) {
        host.notice(HostNotice::ConsentFound(path));
        return Ok(granted);
    }
    let expired = !kept.differences.is_empty();
    if expired {
        let difference = ConsentDifference(kept.differences.clone());
        let text = format!("Consent expired: {difference}");
        host.notice(HostNotice::Text(&options.redactor.text(&text)));
    }
    // The file is rendered before the question, since it may be too large.
    let text = match options.file {
        Some(_) => {
            let consents = with_new(kept.consents, planned, options.redactor).render();
            Some(consents.map_err(|error| EngineError::Missing(error.into()))?)
        }
        None => None,
    };
    if !options.yes || expired {
        let purpose = options.purpose;
        let answer = host.ask(purpose).await;
        match answer.map_err(|error| EngineError::unusable("can't read the answer", error))? {
            ConsentAnswer::Yes => {}
            ConsentAnswer::No => return Err(EngineError::Refused),
            ConsentAnswer::Nobody => return Err(EngineError::NoConsent { purpose, expired }),
        }
    }
    if let (Some(path), Some(text)) = (options.file, text) {
        keep::write(path, &text).map_err(|error| {
            EngineError::unusable(format!("can't write `{}`", path.display()), error)
        })?;
        host.notice(HostNotice::ConsentKept(path));
    }
    Ok(granted)
}

/// Reads the consent file, if it exists.
fn kept(
    planned: &[EvalPlan<'_>],
    options: &ConsentOptions<'_>,
    host: &dyn Host,
) -> Result<StoredConsent, EngineError> {
    let Some(path) = options.file else {
        return Ok(StoredConsent::default());
    };
    let consents = keep::read(path, host)?;
    let mut kept = StoredConsent {
        is_all: true,
        ..StoredConsent::default()
    };
    for EvalPlan { offer, evals } in planned.iter().filter(|planned| !planned.evals.is_empty()) {
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
        // Consent covers only the evals that were shown.
        kept.is_all &= evals.iter().all(|eval| consent.agreed.contains(&eval.id));
    }
    kept.consents = consents;
    Ok(kept)
}

/// Adds the new consent. Earlier consent stays valid if nothing has changed.
fn with_new(mut consents: Consents, planned: &[EvalPlan<'_>], redactor: &Redactor) -> Consents {
    for EvalPlan { offer, evals } in planned.iter().filter(|planned| !planned.evals.is_empty()) {
        let calls = evals.iter().filter_map(|eval| call(eval));
        let fingerprint = print_of(offer, redactor);
        let mut consent = Consent {
            agreed: evals.iter().map(|eval| eval.id.clone()).collect(),
            calls: calls
                .map(|(tool, arguments)| call_text(tool, arguments, redactor))
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

/// A call as one line of a consent file.
fn call_text(tool: &str, arguments: &Map<String, Value>, redactor: &Redactor) -> String {
    let arguments = Value::Object(arguments.clone()).to_string();
    let text = redactor.text(&format!("{tool} {arguments}")).into_owned();
    let text = printable(&text);
    match text.char_indices().nth(CALL) {
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… ({more} more characters; {HOW_TO_SEE})", &text[..end])
        }
        None => text.into_owned(),
    }
}

/// The tool and the arguments of an execution eval.
pub fn call(eval: &Eval) -> Option<(&str, &Map<String, Value>)> {
    match &eval.input {
        Input::Execution(input) => Some((&input.tool_name, &input.arguments)),
        _ => None,
    }
}

/// The fingerprint of a server and its offer, without secrets.
fn print_of(offer: &ServerOffer, redactor: &Redactor) -> Fingerprint {
    let command = match &offer.server.transport {
        Transport::Stdio { cwd: Some(cwd), .. } => format!("{} in {cwd}", offer.server.written),
        Transport::Stdio { .. } | Transport::Http { .. } | Transport::Sse { .. } => {
            offer.server.written.clone()
        }
    };
    Fingerprint::new(
        redactor.text(&command).into_owned(),
        given(&offer.server.transport),
        &offer.tools,
        &offer.evals,
    )
}

/// The names of the environment variables or headers that a server gets.
pub fn given(transport: &Transport) -> Vec<String> {
    match transport {
        Transport::Stdio { env, .. } => env.keys().cloned().collect(),
        Transport::Http { headers, .. } | Transport::Sse { headers, .. } => {
            headers.keys().cloned().collect()
        }
    }
}

#[cfg(test)]
mod tests;
