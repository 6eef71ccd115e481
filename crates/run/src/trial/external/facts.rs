//! What the record says of an external agent's work, whatever the agent says.
//!
//! Its main type is [`Facts`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use proctor_core::event::{Actor, ConnectionId, Direction, Event, FindingKind, What};
use proctor_core::message::{self, Kind, Message};
use proctor_core::record::{Blobs, RecordError};

use crate::proxy::ended_by_itself;

/// What is known of the servers of a trial.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// The servers that were asked for anything: a session, their tools, a call.
    pub(super) reached: BTreeSet<String>,
    /// The servers that were asked for their tools.
    pub(super) listed: BTreeSet<String>,
    /// Why a proxy turned the agent away, by server.
    pub(super) refused: BTreeMap<String, String>,
    /// The tools that were called, by server.
    pub(super) called: BTreeMap<String, BTreeSet<String>>,
    /// Servers that ended by themselves: how, and whether they had said anything before.
    pub(super) died: Vec<(String, String, bool)>,
}

impl Facts {
    /// Reads the events of a trial.
    pub(super) fn of(
        events: impl IntoIterator<Item = Result<Event, RecordError>>,
        blobs: &Blobs,
    ) -> Result<Self, RecordError> {
        let mut facts = Self::default();
        let mut open: HashMap<ConnectionId, (String, bool)> = HashMap::new();
        for event in events {
            match event?.event {
                What::ConnectionOpened(opened) if opened.actor == Actor::Agent => {
                    // Some agents try out what a server speaks, and start it again if it does not like
                    // that.
                    let is_other = |(server, _, has_spoken): &(String, String, bool)| {
                        *server != opened.server || *has_spoken
                    };
                    facts.died.retain(is_other);
                    open.insert(opened.conn, (opened.server, false));
                }
                What::Frame(frame) => {
                    let Some((server, has_spoken)) = open.get_mut(&frame.conn) else {
                        continue;
                    };
                    if frame.direction == Direction::ToClient {
                        *has_spoken = true;
                    } else if let Some(bytes) = blobs.body_bytes(&frame.body)? {
                        facts.asked(server, &bytes);
                    }
                }
                What::Finding(finding) if finding.kind == FindingKind::Refused => {
                    if let Some((server, _)) = open.get(&finding.conn) {
                        facts.refused.insert(server.clone(), finding.detail);
                    }
                }
                What::ConnectionClosed(closed) => {
                    let Some((server, has_spoken)) = open.remove(&closed.conn) else {
                        continue;
                    };
                    if ended_by_itself(&closed.reason) {
                        let stderr = closed.stderr.unwrap_or_default();
                        let last = crate::external::last_words(&stderr);
                        let how = format!("it {}{last}", closed.reason);
                        facts.died.push((server, how, has_spoken));
                    }
                }
                _ => {}
            }
        }
        Ok(facts)
    }

    fn asked(&mut self, server: &str, bytes: &[u8]) {
        // What is no message asks for nothing.
        let _ = message::each(bytes, &mut |message| {
            if let Kind::Request { method, .. } = message.kind() {
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
                    let params: serde_json::Value = serde_json::from_str(params.get()).ok()?;
                    Some(params.get("name")?.as_str()?.to_owned())
                });
                let called = self.called.entry(server.to_owned()).or_default();
                called.extend(tool);
            }
            _ => {}
        }
    }
}
