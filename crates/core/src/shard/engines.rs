//! The shard of this process, from the variables of the engine that started it.
//!
//! Main functions: [`detect`] and [`run_id`]. A wrong guess would run trials twice or never, so anything unclear is
//! an error.

use std::collections::BTreeMap;

use super::{Shard, ShardError, is_run_id};

type Environment = BTreeMap<String, String>;

/// The variable that overrides all engines.
const OVERRIDE: &str = "PROCTOR_SHARD";

/// The variables that name a run, by precedence.
pub const RUN_ID_VARIABLES: [&str; 4] = [
    "PROCTOR_RUN_ID",
    "SLURM_ARRAY_JOB_ID",
    "CI_PIPELINE_ID",
    "GITHUB_RUN_ID",
];

/// An engine that passes an index and a count.
struct IndexedEngine {
    name: &'static str,
    index: &'static str,
    count: &'static str,
    /// The number of the first index.
    first: u32,
}

const INDEXED: [IndexedEngine; 5] = [
    IndexedEngine {
        name: "Kubernetes",
        index: "JOB_COMPLETION_INDEX",
        count: "PROCTOR_SHARDS",
        first: 0,
    },
    IndexedEngine {
        name: "AWS Batch",
        index: "AWS_BATCH_JOB_ARRAY_INDEX",
        count: "AWS_BATCH_JOB_ARRAY_SIZE",
        first: 0,
    },
    IndexedEngine {
        name: "GitLab",
        index: "CI_NODE_INDEX",
        count: "CI_NODE_TOTAL",
        first: 1,
    },
    IndexedEngine {
        name: "Buildkite",
        index: "BUILDKITE_PARALLEL_JOB",
        count: "BUILDKITE_PARALLEL_JOB_COUNT",
        first: 0,
    },
    IndexedEngine {
        name: "CircleCI",
        index: "CIRCLE_NODE_INDEX",
        count: "CIRCLE_NODE_TOTAL",
        first: 0,
    },
];

/// Why the shard of this process is unknown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DetectError {
    #[error(
        "`--shard auto` found no engine: looked for PROCTOR_SHARD, JOB_COMPLETION_INDEX (Kubernetes), \
         SLURM_ARRAY_TASK_ID (Slurm), AWS_BATCH_JOB_ARRAY_INDEX (AWS Batch), CI_NODE_INDEX (GitLab), \
         BUILDKITE_PARALLEL_JOB (Buildkite) and CIRCLE_NODE_INDEX (CircleCI); set `PROCTOR_SHARD=INDEX/COUNT`"
    )]
    NotFound,
    #[error("{engine} sets {index}, but {count} is not set{}", if *.count == "PROCTOR_SHARDS" {
        ": Kubernetes does not pass the number of completions, so set it in the Job"
    } else {
        ""
    })]
    NoCount {
        engine: &'static str,
        index: &'static str,
        count: &'static str,
    },
    #[error("invalid {variable} `{value}`: expected a number")]
    NotANumber { variable: String, value: String },
    #[error(
        "the Slurm array {min}-{max}:{step} has {count} tasks, so the index of a task is unknown: use a range such \
         as `--array=1-16`, not a list"
    )]
    SlurmList {
        min: u32,
        max: u32,
        step: u32,
        count: u32,
    },
    #[error(
        "{first} says shard {first_shard}, but {second} says shard {second_shard}: set `PROCTOR_SHARD=INDEX/COUNT`"
    )]
    Contradiction {
        first: &'static str,
        first_shard: Shard,
        second: &'static str,
        second_shard: Shard,
    },
    #[error("{engine}: {source}")]
    Invalid {
        engine: &'static str,
        source: ShardError,
    },
}

/// The shard that the engine assigns to this process.
pub fn detect(environment: &Environment) -> Result<Shard, DetectError> {
    if let Some(text) = given(environment, OVERRIDE) {
        return text.parse().map_err(|source| DetectError::Invalid {
            engine: OVERRIDE,
            source,
        });
    }
    let mut found: Option<(&'static str, Shard)> = None;
    let indexed = INDEXED.iter().map(|engine| indexed(environment, engine));
    for result in indexed.chain([slurm(environment)]) {
        let Some((engine, shard)) = result? else {
            continue;
        };
        match found {
            Some((first, first_shard)) if first_shard != shard => {
                return Err(DetectError::Contradiction {
                    first,
                    first_shard,
                    second: engine,
                    second_shard: shard,
                });
            }
            Some(_) => {}
            None => found = Some((engine, shard)),
        }
    }
    found.map(|(_, shard)| shard).ok_or(DetectError::NotFound)
}

/// The id of the run that this process belongs to, if the environment has a usable one.
pub fn run_id(environment: &Environment) -> Option<String> {
    let mut values = RUN_ID_VARIABLES.iter();
    let found = values.find_map(|name| given(environment, name))?;
    is_run_id(found).then(|| found.to_owned())
}

type Detected = Result<Option<(&'static str, Shard)>, DetectError>;

fn indexed(environment: &Environment, engine: &IndexedEngine) -> Detected {
    let Some(index) = number(environment, engine.index)? else {
        return Ok(None);
    };
    let Some(count) = number(environment, engine.count)? else {
        return Err(DetectError::NoCount {
            engine: engine.name,
            index: engine.index,
            count: engine.count,
        });
    };
    // A first index of one makes zero invalid, and zero-based indexes are shifted.
    let shard = Shard::new(index.saturating_add(1 - engine.first), count);
    named(engine.name, shard)
}

/// Slurm passes a range, of which only a regular one maps to numbers without a gap.
fn slurm(environment: &Environment) -> Detected {
    const NAME: &str = "Slurm";
    const ID: &str = "SLURM_ARRAY_TASK_ID";
    let Some(id) = number(environment, ID)? else {
        return Ok(None);
    };
    let required = |variable: &'static str| {
        let missing = || DetectError::NoCount {
            engine: NAME,
            index: ID,
            count: variable,
        };
        number(environment, variable)?.ok_or_else(missing)
    };
    let min = required("SLURM_ARRAY_TASK_MIN")?;
    let max = required("SLURM_ARRAY_TASK_MAX")?;
    let count = required("SLURM_ARRAY_TASK_COUNT")?;
    let step = number(environment, "SLURM_ARRAY_TASK_STEP")?
        .unwrap_or(1)
        .max(1);
    let is_range = max >= min && id >= min && id <= max;
    if !is_range || (max - min) / step + 1 != count || !(id - min).is_multiple_of(step) {
        return Err(DetectError::SlurmList {
            min,
            max,
            step,
            count,
        });
    }
    named(NAME, Shard::new((id - min) / step + 1, count))
}

fn named(engine: &'static str, shard: Result<Shard, ShardError>) -> Detected {
    match shard {
        Ok(shard) => Ok(Some((engine, shard))),
        Err(source) => Err(DetectError::Invalid { engine, source }),
    }
}

fn given<'a>(environment: &'a Environment, name: &str) -> Option<&'a str> {
    let value = environment.get(name)?.trim();
    (!value.is_empty()).then_some(value)
}

fn number(environment: &Environment, name: &str) -> Result<Option<u32>, DetectError> {
    let Some(value) = given(environment, name) else {
        return Ok(None);
    };
    let not_a_number = |_| DetectError::NotANumber {
        variable: name.to_owned(),
        value: value.to_owned(),
    };
    value.parse().map(Some).map_err(not_a_number)
}
