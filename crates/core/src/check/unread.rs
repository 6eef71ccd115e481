//! Handles messages that may be calls, but can't be read for certain.

use proctor_record::transcript::{CallKind, UnreadMessage};

use super::CheckResult;
use super::target::{NameMatcher, OrderEntry, OrderKind};
use super::wording::listed;

/// Whether a message may be a call of this kind.
pub(super) fn may_be(message: &UnreadMessage, kind: CallKind) -> bool {
    message.kind.is_none_or(|found| found == kind)
}

/// Whether a message may be a call that an entry names.
pub(super) fn may_match(message: &UnreadMessage, kind: CallKind, entry: &NameMatcher) -> bool {
    let names_it = match &message.name {
        Some(name) => entry.matches(&message.server, name),
        None => entry.server == message.server,
    };
    may_be(message, kind) && names_it
}

/// Whether a message may be a call that an order of calls names.
pub(super) fn may_be_entry(message: &UnreadMessage, entry: &OrderEntry) -> bool {
    let kind = match entry.kind {
        OrderKind::Tool => CallKind::Tool,
        OrderKind::Resource => CallKind::Resource,
        OrderKind::Prompt => CallKind::Prompt,
    };
    let name = message.name.as_ref();
    may_be(message, kind)
        && entry.server == message.server
        && name.is_none_or(|name| *name == entry.name)
}

/// The unknown verdict of a check that these messages could change.
pub(super) fn doubt(messages: &[&UnreadMessage]) -> CheckResult {
    let lines = messages
        .iter()
        .map(|message| format!("message #{} of the agent may be {message}", message.seq));
    let evidence = messages.iter().map(|message| message.seq);
    CheckResult::unknown(listed(lines.collect(), "\n"), evidence.collect())
}
