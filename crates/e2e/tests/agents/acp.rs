//! Agents that speak the Agent Client Protocol: one that misbehaves, and the real ones.

mod faults;
mod real;

use proctor_e2e::session::SessionOutcome;
use proctor_record::event::{AgentClaimed, Blame, Body, EventKind, Outcome, TrialEnded};
use proctor_record::model::Usage;
use rustix::process::Pid;

/// How the trial ended.
fn ended(seen: &SessionOutcome) -> &TrialEnded {
    match seen.events.last().map(|event| &event.event) {
        Some(EventKind::TrialEnded(ended)) => ended,
        other => panic!("no end: {other:?}\n{}\n{}", seen.stdout, seen.stderr),
    }
}

/// Checks how a trial ended, who is blamed, and that the reason says this.
fn expect(seen: &SessionOutcome, outcome: Outcome, blame: Option<Blame>, reason: &str) {
    let ended = ended(seen);
    let said = ended.reason.as_deref().unwrap_or_default();
    let place = format!("{said}\n{}\n{}", seen.stdout, seen.stderr);
    assert_eq!((ended.outcome, ended.blame), (outcome, blame), "{place}");
    assert!(said.contains(reason), "{place}");
}

/// What the agent answered.
fn answer(seen: &SessionOutcome) -> Option<&str> {
    seen.events.iter().find_map(|event| match &event.event {
        EventKind::AgentAnswered {
            text: Body::Text(text),
        } => Some(text.as_str()),
        _ => None,
    })
}

fn claims(seen: &SessionOutcome) -> Vec<&AgentClaimed> {
    let claims = seen.events.iter().filter_map(|event| match &event.event {
        EventKind::AgentClaimed(claim) => Some(claim),
        _ => None,
    });
    claims.collect()
}

/// The tokens that the agent says it took.
fn usage(seen: &SessionOutcome) -> Option<Usage> {
    seen.events.iter().find_map(|event| match &event.event {
        EventKind::AgentEnded(ended) => ended.usage,
        _ => None,
    })
}

/// The processes that know of this path, by their arguments or their environment. An agent does not
/// inherit what everything else of a session is marked with.
pub(crate) fn processes_with(text: &str) -> Vec<Pid> {
    let all = std::fs::read_dir("/proc").expect("there is a /proc");
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has = |pid: &i32| {
        ["cmdline", "environ"].iter().any(|file| {
            let told = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let told = String::from_utf8_lossy(&told);
            told.contains(text)
        })
    };
    pids.filter(has).filter_map(Pid::from_raw).collect()
}
