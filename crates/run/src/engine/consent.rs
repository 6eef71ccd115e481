//! Shows the planned calls and asks for consent.
//!
//! Its main function is [`obtain`]. Consent comes only from the user, never from a server. It is
//! bound to the server's command or URL, its tools and its evals, as they were shown.

pub(super) mod keep;

use std::collections::BTreeSet;
use std::path::Path;

use mcp_evals::{Eval, Input};
use proctor_core::evals::consent::{Consent, Consents};
use proctor_core::evals::content::OfferContent;
use proctor_core::evals::fingerprint::{self, Fingerprint};
use proctor_core::printable::printable;
use proctor_core::suite::Server;
use proctor_core::suite::auth::Auth;
use proctor_core::suite::server::Transport;
use proctor_record::redact::Redactor;
use serde_json::{Map, Value};

use super::error::EngineError;
use super::host::{ConsentAnswer, Host, HostNotice};
use super::offers::{EvalPlan, ServerOffer};

const HOW_TO_SEE: &str = "`proctor evals list -o json` shows them";

/// The maximum number of changed calls that are shown.
const CALLS: usize = 40;

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

/// The servers to which the user consented, as they were shown.
#[derive(Debug)]
pub struct ConsentGrant {
    servers: Vec<AgreedServer>,
    redactor: Redactor,
}

/// A server as it was shown.
#[derive(Debug)]
struct AgreedServer {
    name: String,
    print: Fingerprint,
    content: OfferContent,
}

/// The changes of servers since consent was given.
#[derive(Debug, PartialEq, Eq)]
pub struct ConsentDifference(Vec<ServerDifference>);

/// The changes of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerDifference {
    server: String,
    names: fingerprint::FingerprintDifference,
    /// What changed, old and new, as far as the old is known.
    details: Vec<String>,
}

impl std::fmt::Display for ConsentDifference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (
            at,
            ServerDifference {
                server,
                names,
                details,
            },
        ) in self.0.iter().enumerate()
        {
            let start = if at == 0 { "" } else { "\n" };
            write!(
                f,
                "{start}`{server}` changed since you gave consent:{names}"
            )?;
            for detail in details {
                write!(f, "\n    {detail}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for ConsentDifference {}

impl ConsentGrant {
    /// The servers of planned evals, as they are shown.
    pub(super) fn of(planned: &[EvalPlan<'_>], redactor: &Redactor) -> Self {
        let servers = planned.iter().map(|planned| AgreedServer {
            name: planned.offer.server.name.clone(),
            print: print_of(planned.offer, redactor),
            content: OfferContent::of(&planned.offer.tools, &planned.offer.evals),
        });
        Self {
            servers: servers.collect(),
            redactor: redactor.clone(),
        }
    }

    /// Checks that servers, listed again, are unchanged since consent was given.
    pub fn still_holds(&self, offers: &[ServerOffer]) -> Result<(), ConsentDifference> {
        let mut differences = Vec::new();
        for offer in offers {
            let now = print_of(offer, &self.redactor);
            let agreed = self
                .servers
                .iter()
                .find(|agreed| agreed.name == offer.server.name);
            // A server without earlier consent counts as new.
            let print = match agreed {
                Some(agreed) => agreed.print.clone(),
                None => Fingerprint::new(String::new(), Vec::new(), &[], &[]),
            };
            let print = print.of_level(offer.level);
            if let Some(names) = print.difference(&now.of_level(offer.level)) {
                let content = OfferContent::of(&offer.tools, &offer.evals);
                let details = agreed.map(|agreed| agreed.content.changes(&content, &names));
                let details = details.unwrap_or_default().into_iter();
                let shown = details.map(|detail| self.redactor.text(&detail).into_owned());
                differences.push(ServerDifference {
                    server: offer.server.name.clone(),
                    names,
                    details: shown.collect(),
                });
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
    differences: Vec<ServerDifference>,
    /// Whether every server has a matching entry.
    is_all: bool,
}

/// Shows the planned calls, and asks unless consent already exists. Dropping the future cancels the
/// question, and so does `changed`, which is polled only while the user is asked.
pub async fn obtain(
    planned: &[EvalPlan<'_>],
    options: &ConsentOptions<'_>,
    host: &dyn Host,
    changed: impl Future<Output = ConsentDifference>,
) -> Result<ConsentGrant, EngineError> {
    host.notice(HostNotice::Calls { planned, options });
    let granted = ConsentGrant::of(planned, options.redactor);
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
        let answer = tokio::select! {
            answer = host.ask(purpose) => answer,
            difference = changed => {
                // The question has no answer, and its line no end.
                host.notice(HostNotice::Text(""));
                return Err(EngineError::Changed(difference));
            }
        };
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
        if let Some(names) = consent.difference(&now, offer.level) {
            kept.is_all = false;
            let calls: BTreeSet<String> = calls(evals, options.redactor).collect();
            kept.differences.push(ServerDifference {
                server: offer.server.name.clone(),
                names,
                details: changed_calls(&consent.calls, &calls),
            });
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
        let fingerprint = print_of(offer, redactor);
        let mut consent = Consent {
            agreed: evals.iter().map(|eval| eval.id.clone()).collect(),
            calls: calls(evals, redactor).collect(),
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

/// The calls of execution evals, as lines of a consent file.
fn calls(evals: &[&Eval], redactor: &Redactor) -> impl Iterator<Item = String> {
    let calls = evals.iter().filter_map(|eval| call(eval));
    calls.map(|(tool, arguments)| call_text(tool, arguments, redactor))
}

/// The calls that were agreed to and are gone, and those that are new. A consent file has the text of calls, and only the
/// hashes of everything else.
fn changed_calls(old: &BTreeSet<String>, new: &BTreeSet<String>) -> Vec<String> {
    let gone = old
        .difference(new)
        .map(|call| format!("call before: {call}"));
    let come = new
        .difference(old)
        .map(|call| format!("call now:    {call}"));
    gone.chain(come).take(CALLS).collect()
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
        given(&offer.server),
        &offer.tools,
        &offer.evals,
    )
}

/// The names of the environment variables or headers that a server gets.
pub fn given(server: &Server) -> Vec<String> {
    let mut names: Vec<String> = match &server.transport {
        Transport::Stdio { env, .. } => env.keys().cloned().collect(),
        Transport::Http { headers, .. } | Transport::Sse { headers, .. } => {
            headers.keys().cloned().collect()
        }
    };
    let has_token = matches!(
        &server.auth,
        Some(Auth::Command { .. } | Auth::ClientCredentials(_) | Auth::Login { is_required: true })
    );
    names.extend(has_token.then(|| "Authorization".to_owned()));
    names
}

#[cfg(test)]
mod tests;
