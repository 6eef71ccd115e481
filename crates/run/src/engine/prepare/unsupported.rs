//! Refuses what this version does not support, before anything starts.

use proctor_core::suite::agent::AgentKind;
use proctor_core::suite::server::Transport;
use proctor_core::suite::{Agent, Case, Isolation, Server, Suite};

use crate::engine::error::EngineError;
use crate::engine::sources;

/// Refuses absent sources, and servers that can't be shared.
pub(super) fn refuse_unsupported_features(suite: &Suite) -> Result<(), EngineError> {
    sources::refuse_absent(suite)?;
    let shares = suite.isolation == Isolation::Run;
    let on_stdio = |server: &Server| matches!(server.transport, Transport::Stdio { .. });
    if let (true, Some(agent), Some(server)) = (
        shares,
        suite.agents.iter().find(|agent| is_external(agent)),
        suite.servers.iter().find(|server| on_stdio(server)),
    ) {
        return Err(EngineError::usage(format!(
            "`isolation: run` is not supported for the external agent `{}`: it starts the server \
             `{}` itself",
            agent.name, server.name
        )));
    }
    Ok(())
}

/// Refuses external agents for shipped evals, which need a model unless they only call a tool.
pub(super) fn refuse_external_agents(suite: &Suite) -> Result<(), EngineError> {
    let is_for_model = |case: &&Case| {
        let shipped = case.shipped.as_ref();
        shipped.is_some_and(|shipped| shipped.eval.input.kind() != "execution")
    };
    let program = suite.agents.iter().find(|agent| is_external(agent));
    let conversing = suite.cases.iter().find(|case| !case.turns.is_empty());
    if let (Some(agent), Some(case)) = (program, conversing) {
        return Err(EngineError::usage(format!(
            "the external agent `{}` can't do `{}`, which has `turns`: only `builtin.llm-agent` \
             takes more than one message of the user",
            agent.name, case.name
        )));
    }
    let replying = suite.cases.iter().find(|case| !case.replies.is_empty());
    if let (Some(agent), Some(case)) = (program, replying) {
        return Err(EngineError::usage(format!(
            "`replies` of `{}` have no effect on the external agent `{}`: it answers the requests \
             of servers itself",
            case.name, agent.name
        )));
    }
    let is_conversation = |case: &&Case| {
        let selection = case.selection.as_ref();
        selection.is_some_and(|selection| selection.messages.len() > 1)
    };
    if let (Some(agent), Some(case)) = (program, suite.cases.iter().find(is_conversation)) {
        return Err(EngineError::usage(format!(
            "the external agent `{}` can't continue the conversation of `{}`: it takes one prompt",
            agent.name, case.name
        )));
    }
    if let (Some(agent), Some(case)) = (program, suite.cases.iter().find(is_for_model)) {
        return Err(EngineError::usage(format!(
            "the external agent `{}` can't run the shipped eval `{}`: set a model with `--model \
             MODEL`",
            agent.name, case.name
        )));
    }
    Ok(())
}

fn is_external(agent: &Agent) -> bool {
    agent.model_in_loop().is_none() && agent.kind != AgentKind::Nobody
}
