//! How to read an agent's messages where the protocol is not specific.
//!
//! Main type: [`Dialect`]. Each known agent has one, next to its preset, and it sets every field: a
//! default that is wrong for an agent could turn an outage of its model into an answer.

use proctor_record::model::Usage;
use serde_json::Value;

use super::calls::AcpCall;
use super::failures::{AgentFailure, Outage};

/// How an agent names its tools, and how it reports usage, limits and failures.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The tool's name, if the agent gives it beside the title: from the id of a call and its update.
    pub(super) tool_name: for<'a> fn(&'a str, &'a Value) -> Option<&'a str>,
    /// The tool of a server that a call refers to. The names of server and tool are
    /// [folded](super::policy::fold).
    pub(super) tool_of: fn(&AcpCall, &str) -> Option<String>,
    /// Whether only the titles of calls identify tools, so that `tool_of` is not used.
    pub(super) matches_titles: bool,
    /// The arguments within the input of a call.
    pub(super) arguments: fn(Value) -> Value,
    /// The token usage in the end of a turn, if the agent reports all of it.
    pub(super) usage: fn(&Value) -> Option<Usage>,
    /// Why a turn with this end and this text has no answer, although it ended normally.
    pub(super) failed_turn: fn(&Value, Option<&str>) -> Option<AgentFailure>,
    /// The start of the error with which it reports that it reached its turn limit.
    pub(super) turn_limit: Option<&'static str>,
    /// Whether an error that ends a turn is its provider's: the code is the provider's status or has
    /// no meaning, and a failed tool is not such an error.
    pub(super) passes_on_provider_errors: bool,
    /// Notes what it reports about its model between messages, in a `session_info_update`.
    pub(super) note_outage: fn(&mut Outage, &Value),
    /// The login method that uses a key from the environment.
    pub(super) key_login: Option<&'static str>,
}

/// The dialect of an agent that Proctor does not know: the protocol, and nothing beyond it.
pub(super) static UNKNOWN: Dialect = Dialect {
    tool_name: |_, _| None,
    tool_of: |_, _| None,
    matches_titles: true,
    arguments: |input| input,
    usage: |_| None,
    failed_turn: |_, _| None,
    turn_limit: None,
    passes_on_provider_errors: false,
    note_outage: |_, _| {},
    key_login: None,
};
