//! What changed between a run and the one before: server, model, suite, Proctor.

use std::collections::BTreeMap;

use proctor_record::hint::counted;
use serde::Serialize;

use super::{hashes, short_name};
use crate::overview::{AgentOverview, Overview, ServerOverview};

/// A change that may explain why results differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mark {
    pub kind: MarkKind,
    /// `kubernetes 0.4.0 → 0.4.1`.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MarkKind {
    Server,
    Model,
    Suite,
    Proctor,
}

/// The changes of each run, oldest first. The first run has none.
pub(super) fn between(runs: &[(String, Overview)]) -> Vec<Vec<Mark>> {
    // A run of selected cases does not change the others, so each case is compared with its latest earlier run.
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    let mut marks = Vec::with_capacity(runs.len());
    for (index, (_, run)) in runs.iter().enumerate() {
        let mut found = Vec::new();
        if let Some((_, before)) = index.checked_sub(1).and_then(|index| runs.get(index)) {
            servers(before, run, &mut found);
            models(before, run, &mut found);
            found.extend(suite(&known, run));
            let (old, new) = (&before.started.proctor, &run.started.proctor);
            if old != new {
                found.push(Mark {
                    kind: MarkKind::Proctor,
                    text: format!("Proctor {old} → {new}"),
                });
            }
        }
        known.extend(hashes(run));
        marks.push(found);
    }
    marks
}

fn servers(before: &Overview, run: &Overview, found: &mut Vec<Mark>) {
    for server in &run.servers {
        let mut earlier = before.servers.iter();
        let Some(old) = earlier.find(|old| old.server == server.server) else {
            continue;
        };
        found.extend(server_change(old, server).map(|text| Mark {
            kind: MarkKind::Server,
            text,
        }));
    }
}

fn server_change(old: &ServerOverview, new: &ServerOverview) -> Option<String> {
    let name = &new.server;
    let version = |server: &ServerOverview| server.version.clone().unwrap_or("?".to_owned());
    if old.version != new.version {
        return Some(format!("{name} {} → {}", version(old), version(new)));
    }
    let is_known = old.tools_digest.is_some() && new.tools_digest.is_some();
    (is_known && old.tools_digest != new.tools_digest)
        .then(|| format!("{name} {}: other tools", version(new)))
}

fn models(before: &Overview, run: &Overview, found: &mut Vec<Mark>) {
    let of = |run: &Overview, name: &str| -> Vec<String> {
        let fits = |agent: &&AgentOverview| short_name(agent) == name;
        let agents = run.agents.iter().filter(fits);
        agents.filter_map(|agent| agent.model.clone()).collect()
    };
    let mut seen = Vec::new();
    for agent in &run.agents {
        let name = short_name(agent);
        let (old, new) = (of(before, name), of(run, name));
        if seen.contains(&name) || old.is_empty() || old == new {
            continue;
        }
        seen.push(name);
        found.push(Mark {
            kind: MarkKind::Model,
            text: format!("{name}: {} → {}", old.join(", "), new.join(", ")),
        });
    }
}

fn suite(known: &BTreeMap<&str, &str>, run: &Overview) -> Option<Mark> {
    let (mut changed, mut added) = (0, 0);
    for (id, hash) in hashes(run) {
        match known.get(id) {
            Some(old) if *old == hash => {}
            Some(_) => changed += 1,
            None => added += 1,
        }
    }
    let part = |count: usize, word: &str| {
        (count > 0).then(|| format!("{} {word}", counted(count, "case")))
    };
    let parts = [part(changed, "changed"), part(added, "added")];
    let text = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(Mark {
        kind: MarkKind::Suite,
        text,
    })
}
