//! The known agents, as data.
//!
//! Main type: [`Preset`]. Each of the modules below holds one, and how it is configured; the traps that
//! each of them sets are told there.

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
use super::{Dialect, LaunchPlan};
use crate::external::cli::command;
use crate::external::{Assignment, AssignmentError};
use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::provider::Provider;
use proctor_models::WireFormat;

/// An agent that Proctor knows.
#[derive(Debug)]
pub(crate) struct Preset {
    /// Which one.
    pub(in crate::external) agent: BuiltinAgent,
    /// The arguments with which the program prints its version.
    pub(super) version: &'static [&'static str],
    /// What it can speak to its model, best first.
    pub(super) formats: &'static [WireFormat],
    /// Where it looks for skills, and its tool that loads one.
    pub(super) skills: Option<(&'static str, &'static str)>,
    /// What its words mean.
    pub(super) dialect: Dialect,
    /// What people call it, if it takes a prompt that starts with `/` for a command of its own, and can't
    /// be told otherwise.
    pub(super) commands: Option<&'static str>,
    /// Whether it ends at `maxTurns` by itself, and says that it did.
    pub(in crate::external) keeps_to_max_turns: bool,
    /// Whether it learns where its model is from its configuration alone, and not from variables.
    pub(in crate::external) reads_only_configuration: bool,
    /// Whether it ends when its stdin is closed.
    pub(super) leaves: bool,
    /// Its arguments.
    args: &'static [&'static str],
    /// What is always in its environment.
    env: &'static [(&'static str, &'static str)],
    /// Does the rest.
    configure: fn(&Assignment, &mut LaunchPlan) -> Result<(), AssignmentError>,
}

impl Preset {
    /// Adds what it needs for an assignment.
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
            // Whoever says where the model is, says with which key.
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

/// The model's name where an endpoint needs one and does not care which.
const ANY_MODEL: &str = "any";

/// The provider of the model, in the words of an agent that knows many: as the suite says, or the first
/// one that the user has a key for. `of` are variables of keys, with their provider's name for the agent.
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
