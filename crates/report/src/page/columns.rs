//! The trials of a run as columns: a row each, in far less space than as many objects.
//!
//! The main type is [`TrialColumns`].

use std::collections::HashMap;

use proctor_core::causes::Cause;
use proctor_core::summary::{Summary, TrialResult};
use proctor_record::event::{Blame, Outcome};
use serde::Serialize;

use super::OUTCOMES;
use super::facts::{AttemptFacts, TrialFacts};
use super::strings::Strings;

/// The blames of trials. Columns hold their positions.
pub(super) const BLAMES: [Blame; 5] = [
    Blame::Server,
    Blame::Agent,
    Blame::Suite,
    Blame::Judge,
    Blame::Infra,
];

/// The maximum number of characters of a reason in a list. The page of the trial has all of it.
const REASON: usize = 240;

/// The trials of a run, column by column. `null` is unknown or absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrialColumns {
    /// The positions of the case and the agent.
    pub case: Vec<usize>,
    pub agent: Vec<usize>,
    /// The number of the trial among those of its case and agent, from one.
    pub repeat: Vec<u32>,
    /// The number of recorded attempts.
    pub attempts: Vec<u32>,
    /// The position among the outcomes.
    pub outcome: Vec<usize>,
    /// The position among the blames.
    pub blame: Vec<Option<usize>>,
    /// The start, in microseconds since the run started.
    pub began: Vec<Option<u64>>,
    /// The duration in microseconds.
    pub duration: Vec<Option<u64>>,
    /// The tokens of the agent's model.
    pub input: Vec<Option<u64>>,
    pub output: Vec<Option<u64>>,
    /// The cost of agent and judge in US dollars.
    pub cost: Vec<Option<f64>>,
    pub calls: Vec<Option<u64>>,
    /// The string that names the decisive check.
    pub check: Vec<Option<usize>>,
    /// The string that is the reason, shortened.
    pub reason: Vec<Option<usize>>,
    /// The position among the causes.
    pub cause: Vec<Option<usize>>,
    /// The set of tools, resources and prompts that were used, as `server.name`.
    pub tools: Vec<Option<usize>>,
    /// The set of checks that did not pass.
    pub unmet: Vec<Option<usize>>,
}

impl TrialColumns {
    pub(super) fn of(
        summary: &Summary,
        facts: &TrialFacts,
        causes: &[Cause<'_>],
        strings: &mut Strings,
    ) -> Self {
        let causes = causes_by_file(causes);
        let mut columns = Self::default();
        for (case, cells) in summary.cases.iter().enumerate() {
            for (agent, trials) in cells.agents.iter().enumerate() {
                for trial in &trials.trials {
                    columns.case.push(case);
                    columns.agent.push(agent);
                    columns.repeat.push(trial.repeat);
                    columns.attempts.push(trial.attempts);
                    columns.outcome.push(outcome(trial.outcome()));
                    let file = trial.file();
                    let file = file.as_deref();
                    let cause = file.and_then(|file| causes.get(file));
                    columns.cause.push(cause.copied());
                    let attempt = file.and_then(|file| facts.attempt(file));
                    columns.result(trial.result.as_ref(), attempt, strings);
                }
            }
        }
        columns
    }

    /// Adds what the result of a trial tells; `None` adds an empty row.
    fn result(
        &mut self,
        result: Option<&TrialResult>,
        attempt: Option<&AttemptFacts>,
        strings: &mut Strings,
    ) {
        let blame = result.and_then(|result| result.blame);
        let position = |blame| BLAMES.iter().position(|known| *known == blame);
        self.blame.push(blame.and_then(position));
        self.began.push(attempt.map(|attempt| attempt.began_at));
        let micros = |result: &TrialResult| u64::try_from(result.duration().as_micros()).ok();
        self.duration.push(result.and_then(micros));
        self.input.push(result.and_then(|r| r.agent().usage.input));
        self.output
            .push(result.and_then(|r| r.agent().usage.output));
        self.cost.push(result.and_then(cost));
        self.calls.push(attempt.map(|attempt| attempt.calls));
        let check = result.and_then(|result| result.decisive.as_deref());
        let check = check.map(|decisive| strings.text(&decisive.check));
        self.check.push(check);
        let reason = result.and_then(|result| result.reason.as_deref());
        let reason = reason.map(|reason| strings.text(&shortened(reason)));
        self.reason.push(reason);
        self.tools
            .push(attempt.map(|attempt| strings.set(&attempt.tools)));
        self.unmet
            .push(attempt.map(|attempt| strings.set(&attempt.unmet)));
    }
}

/// The position of the cause of each trial, by the trial's file.
fn causes_by_file(causes: &[Cause<'_>]) -> HashMap<String, usize> {
    let mut by_file = HashMap::new();
    for (position, cause) in causes.iter().enumerate() {
        for (_, _, trial) in &cause.trials {
            by_file.extend(trial.file().map(|file| (file, position)));
        }
    }
    by_file
}

fn outcome(outcome: Option<Outcome>) -> usize {
    let position = OUTCOMES.iter().position(|known| *known == outcome);
    // Every outcome is in the list; a test says so.
    position.unwrap_or(OUTCOMES.len() - 1)
}

/// What the agent and the judge of a trial cost, if both are known.
pub(super) fn cost(result: &TrialResult) -> Option<f64> {
    Some(result.agent().cost_usd? + result.judge().cost_usd?)
}

fn shortened(reason: &str) -> String {
    match reason.char_indices().nth(REASON) {
        Some((end, _)) => format!("{}…", &reason[..end]),
        None => reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words;

    #[test]
    fn every_outcome_and_blame_has_a_place() {
        for known in [
            Outcome::Passed,
            Outcome::Failed,
            Outcome::TimedOut,
            Outcome::Errored,
            Outcome::Cancelled,
        ] {
            assert_eq!(OUTCOMES[outcome(Some(known))], Some(known));
            assert_ne!(words::outcome(Some(known)), words::outcome(None));
        }
        assert_eq!(OUTCOMES[outcome(None)], None);
        assert_eq!(BLAMES.map(words::blame).len(), 5);
    }

    #[test]
    fn a_long_reason_is_shortened_between_characters() {
        assert_eq!(shortened("no"), "no");
        let long = shortened(&"é".repeat(1000));
        assert_eq!(long, format!("{}…", "é".repeat(REASON)));
    }
}
