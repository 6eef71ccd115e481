//! Decides whether an external agent's work can be graded, from its report and the record.
//!
//! Its main function is [`verdict`].

use std::collections::BTreeMap;

use proctor_core::suite::Limits;
use proctor_core::suite::Server;
use proctor_core::suite::server::AllowedTools;
use proctor_record::decision::TrialFailure;
use proctor_record::event::{Blame, TrialEnded};
use proctor_record::hint::listed;

use super::super::early_end::ended;
use super::super::ending::{errored, failed, timed_out};
use super::facts::ServerContacts;
use crate::external::{Adapter, AgentReport, ExternalAgent};

/// What is known after an agent has ended.
pub(super) struct AgentEvidence<'a> {
    pub(super) report: &'a AgentReport,
    pub(super) facts: &'a ServerContacts,
    /// A server failure that decides the trial, from the record.
    pub(super) failure: Option<TrialFailure>,
    /// A protocol problem of a server that decides the trial.
    pub(super) breach: Option<TrialFailure>,
    /// The proven blame if the work can't be graded.
    pub(super) at_fault: Option<Blame>,
    pub(super) servers: &'a [Server],
    /// The tools of each server, if known.
    pub(super) tools: &'a BTreeMap<String, Vec<String>>,
    pub(super) reach: Reach,
    /// The first request that its script has no answer to.
    pub(super) trouble: Option<&'a str>,
    /// Why its last model request has no reply, and the blame, if the tap saw it.
    pub(super) lost: Option<(Blame, String)>,
    pub(super) limits: &'a Limits,
}

/// Which servers an agent must have reached for its work to be graded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The tools of every server must have been listed, as known agents do at the start.
    AllListed,
    /// Any request to one server is enough.
    One,
    /// No server: the agent connects when it needs one, as its file says.
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

/// The end of a trial whose work can't be graded; `None` if it can.
pub(super) fn verdict(work: &AgentEvidence<'_>) -> Option<TrialEnded> {
    let AgentEvidence { report, .. } = work;
    let is_proven = |failure: &&TrialFailure| failure.blame.is_some();
    if let Some(failure) = work.failure.as_ref().filter(is_proven) {
        return Some(ended(failure.clone()));
    }
    // The agent worked without this server, whatever it answers.
    if let Some((server, why)) = work.facts.without_token.first_key_value() {
        let reason = format!("the agent could not use the server `{server}`: {why}");
        return Some(errored(Blame::Infra, reason));
    }
    if let Some(why) = work.trouble {
        return Some(errored(Blame::Suite, why));
    }
    if report.out_of_turns {
        return Some(timed_out(out_of_turns(work.limits)));
    }
    if let Some(error) = &report.error {
        let seen = work.lost.as_ref().map(|(blame, _)| *blame);
        let blame = match (report.model_lost, seen) {
            (true, _) => Blame::Infra,
            (false, seen) => seen.unwrap_or(Blame::Agent),
        };
        let reason = format!(
            "the agent ended with an error: {error}{}",
            unreached(report)
        );
        return Some(errored(blame, reason));
    }
    if let Some((blame, why)) = &work.lost {
        let reason = format!("the answer is not from the model: {why}");
        return Some(errored(*blame, reason));
    }
    // A failed agent may leave calls unanswered; this agent reports no failure.
    if let Some(failure) = work.failure.as_ref().or(work.breach.as_ref()) {
        return Some(ended(failure.clone()));
    }
    if let Some(reason) = forbidden(work) {
        return Some(failed(Blame::Agent, reason));
    }
    if let Some(reason) = unreached_servers(work) {
        let reason = format!("{reason}{}", unreached(report));
        return Some(errored(Blame::Agent, reason));
    }
    if report.answer.is_none() {
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

/// A tool that the agent tried to use or used without permission.
fn forbidden(work: &AgentEvidence<'_>) -> Option<String> {
    if !work.report.denied.is_empty() {
        let tools = listed(work.report.denied.iter().map(String::as_str));
        return Some(match &work.report.refused[..] {
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

/// The servers that an agent should have reached and did not. Servers without tools don't count.
fn unreached_servers(work: &AgentEvidence<'_>) -> Option<String> {
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

fn unreached(report: &AgentReport) -> String {
    if report.unreached.is_empty() {
        return String::new();
    }
    let names = listed(report.unreached.iter().map(String::as_str));
    format!("; it reported that it could not reach {names}")
}

#[cfg(test)]
mod tests;
