//! Opens the models besides agents and judges: those that answer sampling requests of
//! servers, and those that play users.

use std::collections::BTreeMap;
use std::sync::Arc;

use proctor_core::suite::agent::ModelRef;
use proctor_core::suite::turns::UserTurn;
use proctor_core::suite::{Agent, Environment, Suite};
use proctor_models::{Model, Settings};
use proctor_record::event::PlannedOptions;

use super::error::EngineError;
use crate::context::model_key;
use crate::runner::TrialList;

/// Opens the models that the trials need, or reports what one lacks.
pub(super) fn open(
    suite: &Suite,
    trials: &TrialList,
    asked: &PlannedOptions,
    env: &Environment,
) -> Result<BTreeMap<String, Arc<Model>>, EngineError> {
    let mut open = BTreeMap::new();
    for model in trials.iter().flat_map(|spec| of_case(suite, spec.case)) {
        let key = model_key(&model);
        if open.contains_key(&key) {
            continue;
        }
        let opened = if asked.replay.is_some() {
            Model::Recorded(model.to_string())
        } else {
            Model::open_agent(&Agent::on_model(model), &Settings::of(env))
                .map_err(|error| EngineError::Missing(error.into()))?
        };
        open.insert(key, Arc::new(opened));
    }
    Ok(open)
}

fn of_case(suite: &Suite, case: usize) -> Vec<ModelRef> {
    let case = &suite.cases[case];
    let sampling = suite.servers.iter().filter_map(|server| {
        let own = case.replies.get(&server.name);
        let replies = server.client.replies.overridden_by(own);
        replies.sampling_model().cloned()
    });
    let users = case.turns.iter().filter_map(UserTurn::model).cloned();
    sampling.chain(users).collect()
}
