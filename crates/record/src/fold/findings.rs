//! Collects protocol problems, up to a limit.

use std::collections::{HashMap, HashSet};

use crate::event::{ConnectionId, Direction, Finding, FindingKind};

use super::MessagePosition;

/// How many findings per kind and connection are kept individually; the rest is only counted.
const KEPT: usize = 20;

/// The recorded findings, and those derived from messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    recorded: Vec<Finding>,
    recorded_kinds: HashSet<(ConnectionId, FindingKind)>,
    derived: Vec<Finding>,
    /// The indexes of findings about messages of the client.
    of_client: HashSet<usize>,
    /// For each kind: how many are kept, and the index of the last.
    kept: HashMap<(ConnectionId, FindingKind), (usize, usize)>,
}

impl Findings {
    pub(super) fn recorded(&mut self, finding: Finding) {
        self.recorded_kinds.insert((finding.conn, finding.kind));
        self.recorded.push(finding);
    }

    pub(super) fn derived(&mut self, place: MessagePosition, kind: FindingKind, detail: &str) {
        let (count, last) = self.kept.entry((place.conn, kind)).or_default();
        if *count > KEPT {
            self.derived[*last].count += 1;
            return;
        }
        *count += 1;
        *last = self.derived.len();
        if place.direction == Direction::ToServer {
            self.of_client.insert(*last);
        }
        self.derived.push(Finding {
            conn: place.conn,
            kind,
            detail: format!("event {}: {detail}", place.seq),
            count: 1,
        });
    }

    /// The recorded findings first, each with whether it is about the server. Live recording
    /// reports all findings of a kind, so derived ones of that kind are dropped.
    pub(super) fn into_all(self) -> Vec<(Finding, bool)> {
        let Self {
            recorded,
            recorded_kinds,
            derived,
            of_client,
            ..
        } = self;
        let is_new = |finding: &Finding| !recorded_kinds.contains(&(finding.conn, finding.kind));
        let derived = derived.into_iter().enumerate();
        let derived = derived
            .map(|(index, finding)| (finding, !of_client.contains(&index)))
            .filter(|(finding, _)| is_new(finding));
        let recorded = recorded.into_iter().map(|finding| {
            let is_server = finding.kind.is_about_server();
            (finding, is_server)
        });
        recorded.chain(derived).collect()
    }
}
