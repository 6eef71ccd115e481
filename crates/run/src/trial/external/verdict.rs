//! Why the work of an external agent is no work to be graded: what it says, beside what was seen.
//!
//! Its main function is [`verdict`].

use std::collections::BTreeMap;

use proctor_core::decision::TrialFailure;
use proctor_core::event::{Blame, TrialEnded};
use proctor_core::hint::listed;
use proctor_core::suite::Limits;
use proctor_core::suite::Server;
use proctor_core::suite::server::AllowedTools;

use super::super::decided::ended;
use super::super::ending::{errored, failed, timed_out};
use super::facts::ServerContacts;
use crate::external::{Adapter, AgentReport, ExternalAgent};

/// What is known when an agent has ended.
pub(super) struct AgentEvidence<'a> {
    /// What it says.
    pub(super) told: &'a AgentReport,
    /// What was seen.
    pub(super) facts: &'a ServerContacts,
    /// How a server failed the trial, by the record.
    pub(super) failure: Option<TrialFailure>,
    /// What a server did against the protocol, where that matters.
    pub(super) breach: Option<TrialFailure>,
    /// Who is to blame for work that is not as it should be, if the record proves it.
    pub(super) at_fault: Option<Blame>,
    /// The servers that it was given.
    pub(super) servers: &'a [Server],
    /// The tools of each, where they are known.
    pub(super) tools: &'a BTreeMap<String, Vec<String>>,
    /// Which of the servers it must have reached.
    pub(super) reach: Reach,
    /// What its script has no answer to.
    pub(super) trouble: Option<&'a str>,
    /// Why the last that it asked its model has no reply, and whose fault that is, where that is seen.
    pub(super) lost: Option<(Blame, String)>,
    pub(super) limits: &'a Limits,
}

/// Which of its servers an agent must have reached, for its work to be graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The tools of every server must have been listed: how agents that Proctor knows start.
    AllListed,
    /// One server is enough, by any request.
    One,
    /// None has to be: the agent connects when it needs a server, as its file says.
    OnUse,
}

impl Reach {
    pub(super) fn of(external: &ExternalAgent) -> Self {
        let is_from_file = |adapter: Adapter<'_>| adapter.is_from_file();
        if !external.adapter().is_some_and(is_from_file) {
            Self::AllListed
        } else if external.agent().connects_on_use {
            Self::OnUse
        } else {
            Self::One
        }
    }
}

/// The end of a trial whose agent's work can't be graded; `None` if it can.
pub(super) fn verdict(work: &AgentEvidence<'_>) -> Option<TrialEnded> {
    let AgentEvidence { told, .. } = work;
    let is_proven = |failure: &&TrialFailure| failure.blame.is_some();
    if let Some(failure) = work.failure.as_ref().filter(is_proven) {
        return Some(ended(failure.clone()));
    }
    if let Some(why) = work.trouble {
        return Some(errored(Blame::Suite, why));
    }
    if told.out_of_turns {
        return Some(timed_out(out_of_turns(work.limits)));
    }
    if let Some(error) = &told.error {
        let seen = work.lost.as_ref().map(|(blame, _)| *blame);
        let blame = match (told.model_lost, seen) {
            (true, _) => Blame::Infra,
            (false, seen) => seen.unwrap_or(Blame::Agent),
        };
        let reason = format!("the agent ended with an error: {error}{}", unreached(told));
        return Some(errored(blame, reason));
    }
    if let Some((blame, why)) = &work.lost {
        let reason = format!("the answer is not from the model: {why}");
        return Some(errored(*blame, reason));
    }
    // An agent that went wrong leaves calls behind; here it says that it did not.
    if let Some(failure) = work.failure.as_ref().or(work.breach.as_ref()) {
        return Some(ended(failure.clone()));
    }
    if let Some(reason) = forbidden(work) {
        return Some(failed(Blame::Agent, reason));
    }
    if let Some(reason) = out_of_reach(work) {
        let reason = format!("{reason}{}", unreached(told));
        return Some(errored(Blame::Agent, reason));
    }
    if told.answer.is_none() {
        return Some(failed(work.at_fault, "the agent gave no answer"));
    }
    None
}

fn out_of_turns(limits: &Limits) -> String {
    match limits.max_turns {
        Some(turns) => format!("the agent was not done after {turns} turns"),
        None => "the agent reached its turn limit".to_owned(),
    }
}

/// What an agent wanted to use that it may not, or used all the same.
fn forbidden(work: &AgentEvidence<'_>) -> Option<String> {
    if !work.told.denied.is_empty() {
        let tools = listed(work.told.denied.iter().map(String::as_str));
        return Some(match &work.told.refused[..] {
            [] => format!("the agent tried to use {tools}, which is not allowed"),
            refused => refused.join("; "),
        });
    }
    for server in work.servers {
        let AllowedTools::Only(allowed) = &server.allowed else {
            continue;
        };
        let mut called = work.facts.called.get(&server.name).into_iter().flatten();
        if let Some(tool) = called.find(|tool| !allowed.contains(tool)) {
            let name = &server.name;
            return Some(format!(
                "the agent used `{name}.{tool}`, which is not allowed"
            ));
        }
    }
    None
}

/// Which servers an agent did not reach though it should have. A server without tools need not be.
fn out_of_reach(work: &AgentEvidence<'_>) -> Option<String> {
    let has_tools = |server: &&Server| {
        let tools = work.tools.get(&server.name);
        tools.is_none_or(|tools| !tools.is_empty())
    };
    let names = work.servers.iter().filter(has_tools);
    let mut names = names.map(|server| server.name.as_str());
    match work.reach {
        Reach::OnUse => None,
        Reach::AllListed => {
            let server = names.find(|name| !work.facts.listed.contains(*name))?;
            Some(format!("the agent never listed the tools of `{server}`"))
        }
        Reach::One => {
            let names: Vec<&str> = names.collect();
            if names.is_empty() || !work.facts.reached.is_empty() {
                return None;
            }
            let refused = work.facts.refused.first_key_value();
            let refused = refused.map_or(String::new(), |(server, why)| {
                format!("; Proctor refused its requests to `{server}`: {why}")
            });
            Some(format!(
                "the agent did not connect to any of its servers ({}){refused}; if it connects only when it needs \
                 a server, set `connects: onUse` in its agent file",
                listed(names)
            ))
        }
    }
}

fn unreached(told: &AgentReport) -> String {
    if told.unreached.is_empty() {
        return String::new();
    }
    let names = listed(told.unreached.iter().map(String::as_str));
    format!("; it reported that it could not reach {names}")
}

#[cfg(test)]
mod tests;
