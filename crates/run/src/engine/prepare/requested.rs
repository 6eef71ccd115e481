//! The options of a run: those of the command line, over those of the run that it replays or resumes.

use proctor_record::event::PlannedOptions;

use crate::engine::error::EngineError;
use crate::engine::options::{CheckOptions, RunSource};
use crate::engine::sharding;

/// The requested agents and judge. A replay uses those of the recorded run by default.
pub(super) fn requested_options(
    options: &CheckOptions,
    replayed: Option<&PlannedOptions>,
) -> Result<PlannedOptions, EngineError> {
    let mut asked = PlannedOptions {
        agents: options.agents.clone(),
        model_tap: options.model_tap,
        model: options.model.clone(),
        judge: options.judge.clone(),
        strict: options.run.strict,
        pass_env: options.pass_env.clone(),
        replay: None,
        replay_strict: false,
        gates: None,
        known_failures: Vec::new(),
        stop_when_decided: options.run.stop_when_decided,
        protocol: options.protocol.map(|pin| pin.to_string()),
        profile: options.run.profile.clone().map(Box::new),
        shard: options
            .run
            .shard
            .as_ref()
            .map(sharding::planned)
            .map(Box::new),
    };
    let (RunSource::Replay { folder, strict, .. }, Some(then)) = (&options.source, replayed) else {
        return Ok(asked);
    };
    asked.replay_strict = *strict;
    if asked.agents.is_empty() && asked.model.is_none() {
        asked.agents.clone_from(&then.agents);
        asked.model.clone_from(&then.model);
    }
    asked.judge = asked.judge.or_else(|| then.judge.clone());
    asked.protocol = asked.protocol.or_else(|| then.protocol.clone());
    asked.model_tap |= then.model_tap;
    asked.pass_env.extend(then.pass_env.iter().cloned());
    let folder = std::path::absolute(folder)
        .map_err(|error| EngineError::unusable("can't determine the path of the run", error))?;
    asked.replay = Some(folder.display().to_string());
    Ok(asked)
}

/// The options of a resumed run: the new ones, else those of its start.
pub(super) fn options_to_resume(
    options: &CheckOptions,
    earlier: &PlannedOptions,
) -> Result<PlannedOptions, EngineError> {
    if options.plan.is_some() {
        return Err(EngineError::usage(
            "a resumed run keeps its plan; `-n`, `--run` and limits can't be changed",
        ));
    }
    sharding::refuse_resume(earlier)?;
    if !options.run.gates.is_empty() {
        return Err(EngineError::usage(
            "a resumed run keeps its gates; check others with `proctor result verify`",
        ));
    }
    let mut pass_env = earlier.pass_env.clone();
    pass_env.extend(options.pass_env.iter().cloned());
    Ok(PlannedOptions {
        replay: earlier.replay.clone(),
        replay_strict: earlier.replay_strict,
        agents: match &options.agents[..] {
            [] => earlier.agents.clone(),
            given => given.to_vec(),
        },
        model_tap: options.model_tap || earlier.model_tap,
        model: options.model.clone().or_else(|| earlier.model.clone()),
        judge: options.judge.clone().or_else(|| earlier.judge.clone()),
        strict: options.run.strict || earlier.strict,
        pass_env,
        gates: earlier.gates.clone(),
        known_failures: earlier.known_failures.clone(),
        stop_when_decided: earlier.stop_when_decided,
        protocol: match options.protocol {
            Some(pin) => Some(pin.to_string()),
            None => earlier.protocol.clone(),
        },
        profile: earlier.profile.clone(),
        shard: earlier.shard.clone(),
    })
}
