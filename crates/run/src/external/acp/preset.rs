//! The agents that Proctor knows, as data.
//!
//! Main type: [`Preset`]. Each module below holds one agent and its configuration, and documents
//! the agent's pitfalls.

mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;

pub(crate) use self::claude::PRESET as CLAUDE;
pub(crate) use self::codex::PRESET as CODEX;
pub(crate) use self::gemini::PRESET as GEMINI;
pub(crate) use self::goose::PRESET as GOOSE;
pub(crate) use self::opencode::PRESET as OPENCODE;
use super::LaunchPlan;
use super::dialect::Dialect;
use crate::external::cli::command;
use crate::external::{Assignment, AssignmentError};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::provider::Provider;
use proctor_models::WireFormat;

/// An agent that Proctor knows.
#[derive(Debug)]
pub(crate) struct Preset {
    pub(in crate::external) agent: BuiltinAgent,
    /// The arguments with which the program prints its version.
    pub(super) version: &'static [&'static str],
    /// The model APIs that it supports, best first.
    pub(super) formats: &'static [WireFormat],
    /// The folder in which it looks for skills, and its tool that loads a skill.
    pub(super) skills: Option<(&'static str, &'static str)>,
    /// How to read its messages.
    pub(super) dialect: Dialect,
    /// The agent's display name, if it always takes a prompt that starts with `/` for a command of
    /// its own.
    pub(super) commands: Option<&'static str>,
    /// Whether it stops at `maxTurns` by itself and reports that.
    pub(in crate::external) stops_at_max_turns: bool,
    /// Whether it reads the URL of its model only from its configuration, not from variables.
    pub(in crate::external) reads_only_configuration: bool,
    /// Whether it exits when its stdin is closed.
    pub(super) leaves: bool,
    args: &'static [&'static str],
    /// Variables that are always set for it.
    env: &'static [(&'static str, &'static str)],
    /// Adds what depends on the assignment.
    configure: fn(&Assignment, &mut LaunchPlan) -> Result<(), AssignmentError>,
}

impl Preset {
    /// Adds the arguments, variables and files for an assignment.
    pub(super) fn configure(
        &self,
        assignment: &Assignment,
        plan: &mut LaunchPlan,
    ) -> Result<(), AssignmentError> {
        if let (Some(agent), Some(word)) = (self.commands, command(&assignment.prompt)) {
            let word = word.to_owned();
            return Err(AssignmentError::Command { agent, word });
        }
        if assignment.access.endpoint.is_some() {
            // A suite that sets the URL also sets the key.
            for name in self.agent.variables() {
                plan.launch.env.remove(*name);
            }
        }
        plan.args(self.args);
        for (name, value) in self.env {
            plan.set(name, value);
        }
        (self.configure)(assignment, plan)
    }
}

/// The model's name if an endpoint needs one and accepts any.
const ANY_MODEL: &str = "any";

/// The provider of the model, as an agent with many providers names it: the suite's, or the first
/// one that the user has a key for. `of` lists key variables with the agent's name of their
/// provider.
fn provider(assignment: &Assignment, of: &[(&str, &'static str)]) -> Option<&'static str> {
    let named = assignment.access.provider.and_then(Provider::vendor);
    if named.is_some() {
        return named;
    }
    let is_set = |name: &str| {
        let value = assignment.environment.get(name);
        value.is_some_and(|value| !value.is_empty())
    };
    let found = of.iter().find(|(name, _)| is_set(name));
    found.map(|(_, provider)| *provider)
}
