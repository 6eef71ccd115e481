//! What the record shows of an external agent's work, independent of the agent's report.
//!
//! Its main type is [`ServerContacts`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_record::event::{
    Actor, ConnectionId, Direction, Event, EventKind, FindingKind, HttpFailure,
};
use proctor_record::json;
use proctor_record::message::{self, Message, MessageKind};
use proctor_record::record::{Blobs, RecordError};

/// The contacts between an agent and the servers of a trial.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ServerContacts {
    /// The servers that received any request.
    pub(super) reached: BTreeSet<String>,
    /// The servers whose tools were listed.
    pub(super) listed: BTreeSet<String>,
    /// Why a proxy refused the agent, by server.
    pub(super) refused: BTreeMap<String, String>,
    /// Why Proctor had no valid token for a request of the agent, by server.
    pub(super) without_token: BTreeMap<String, String>,
    pub(super) called: BTreeMap<String, BTreeSet<String>>,
}

impl ServerContacts {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "only what a tap saw is a fact, and a trial without one does not pass"
    )]
    /// Reads the events of a trial.
    pub(super) fn of(
        events: impl IntoIterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
    ) -> Result<Self, RecordError> {
        let mut facts = Self::default();
        let mut open: HashMap<ConnectionId, String> = HashMap::new();
        for event in events {
            match event?.event {
                EventKind::ConnectionOpened(opened) if opened.actor == Actor::Agent => {
                    open.insert(opened.conn, opened.server);
                }
                EventKind::Frame(frame) if frame.direction == Direction::ToServer => {
                    if let Some(server) = open.get(&frame.conn)
                        && let Some(bytes) = blobs.body_bytes(&frame.body)?
                    {
                        facts.asked(server, &bytes);
                    }
                }
                EventKind::Http(http) if http.failure == Some(HttpFailure::Unauthorized) => {
                    if let Some(server) = open.get(&http.conn) {
                        facts.without_token.insert(server.clone(), http.line);
                    }
                }
                EventKind::Finding(finding) if finding.kind == FindingKind::Refused => {
                    if let Some(server) = open.get(&finding.conn) {
                        facts.refused.insert(server.clone(), finding.detail);
                    }
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    fn asked(&mut self, server: &str, bytes: &[u8]) {
        // Text that is not a message requests nothing.
        let _ = message::each(bytes, &mut |message| {
            if let MessageKind::Request { method, .. } = message.kind() {
                self.reached.insert(server.to_owned());
                self.requested(server, method, message);
            }
        });
    }

    fn requested(&mut self, server: &str, method: &str, message: &Message<'_>) {
        match method {
            "tools/list" => {
                self.listed.insert(server.to_owned());
            }
            "tools/call" => {
                let tool = message.params.and_then(|params| {
                    let params: serde_json::Value = json::from_str(params.get()).ok()?;
                    Some(params.get("name")?.as_str()?.to_owned())
                });
                let called = self.called.entry(server.to_owned()).or_default();
                called.extend(tool);
            }
            _ => {}
        }
    }
}
