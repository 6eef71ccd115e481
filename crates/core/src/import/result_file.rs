//! The form of mcpchecker's result file, and a reader that holds one entry at a time.
//!
//! Main function: [`read`]. A file is an object with `results`, or (older) the bare array. Absent keys and
//! `null` mean the same, as in Go. Unknown keys are ignored, among them the headers of requests, which may
//! carry credentials.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use proctor_record::event::{AgentConfig, TaskSetConfig, TimeoutConfig};
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ImportError;

/// The configuration that a file describes.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResultSummary {
    pub(super) agent: Option<AgentConfig>,
    pub(super) judge: Option<AgentConfig>,
    #[serde(deserialize_with = "nullable")]
    pub(super) mcp_servers: Vec<ResultServer>,
    #[serde(deserialize_with = "nullable")]
    pub(super) skills: Vec<ResultSkill>,
    #[serde(deserialize_with = "nullable")]
    pub(super) evals: ResultEvals,
    #[serde(deserialize_with = "nullable")]
    pub(super) timeout: TimeoutConfig,
    #[serde(deserialize_with = "nullable")]
    pub(super) parallel_workers: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultServer {
    pub(super) name: String,
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(super) kind: String,
    pub(super) url: Option<String>,
    pub(super) command: Option<String>,
    pub(super) tools: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultSkill {
    #[serde(deserialize_with = "nullable")]
    pub(super) path: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResultEvals {
    #[serde(deserialize_with = "nullable")]
    pub(super) task_sets: Vec<TaskSetConfig>,
}

/// The result of one run of a task.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResultEntry {
    pub(super) task_name: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) task_path: String,
    /// Absent in a file that does not say whether the task passed.
    #[serde(default)]
    pub(super) task_passed: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) task_output: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) task_error: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) timed_out: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) task_judge_reason: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) task_judge_error: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) agent_execution_error: bool,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) difficulty: String,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) parallel: bool,
    /// The number of the run from zero; Go leaves out a zero.
    #[serde(default, deserialize_with = "nullable")]
    pub(super) run_index: u32,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) total_runs: u32,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) assertion_results: AssertionEntries,
    #[serde(default)]
    pub(super) all_assertions_passed: Option<bool>,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) call_history: CallHistory,
    #[serde(default, deserialize_with = "nullable")]
    pub(super) token_estimate: TokenEstimate,
    #[serde(default)]
    pub(super) setup_output: Option<PhaseEntry>,
    #[serde(default)]
    pub(super) agent_output: Option<PhaseEntry>,
    #[serde(default)]
    pub(super) verify_output: Option<PhaseEntry>,
    #[serde(default)]
    pub(super) cleanup_output: Option<PhaseEntry>,
    /// What Proctor adds to the format.
    #[serde(default)]
    pub(super) proctor: Option<ProctorEntry>,
}

/// The assertions of an entry in the order of the file.
#[derive(Debug, Default)]
pub(super) struct AssertionEntries(pub(super) Vec<(String, AssertionEntry)>);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AssertionEntry {
    pub(super) passed: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub(super) reason: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) details: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct CallHistory {
    #[serde(deserialize_with = "nullable")]
    pub(super) tool_calls: Vec<CallEntry>,
    #[serde(deserialize_with = "nullable")]
    pub(super) resource_reads: Vec<CallEntry>,
    #[serde(deserialize_with = "nullable")]
    pub(super) prompt_gets: Vec<CallEntry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct CallEntry {
    #[serde(deserialize_with = "nullable")]
    pub(super) server_name: String,
    pub(super) timestamp: Option<String>,
    pub(super) success: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub(super) error: String,
    /// The tool or prompt.
    pub(super) name: Option<String>,
    /// The resource.
    pub(super) uri: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub(super) request: RequestEntry,
    pub(super) result: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct RequestEntry {
    pub(super) params: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenEstimate {
    /// The model's own counts.
    pub(super) actual: Option<TokenUsage>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TokenUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct PhaseEntry {
    #[serde(deserialize_with = "nullable")]
    pub(super) steps: Vec<Option<StepEntry>>,
    #[serde(deserialize_with = "nullable")]
    pub(super) success: bool,
    #[serde(deserialize_with = "nullable")]
    pub(super) error: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct StepEntry {
    #[serde(rename = "type", deserialize_with = "nullable")]
    pub(super) kind: String,
    #[serde(deserialize_with = "nullable")]
    pub(super) success: bool,
    #[serde(deserialize_with = "nullable")]
    pub(super) message: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub(super) error: String,
    #[serde(
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(super) outputs: BTreeMap<String, String>,
}

/// The parts of Proctor's own object that the format has no key for.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProctorEntry {
    pub(super) agent: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) reason: Option<String>,
}

impl PhaseEntry {
    /// The steps that the file describes.
    pub(super) fn steps(&self) -> impl Iterator<Item = &StepEntry> {
        self.steps.iter().flatten()
    }
}

/// Reads a file, and passes on each entry with its number from zero. Returns the summary if it has one.
pub(super) fn read(
    path: &Path,
    each: impl FnMut(usize, ResultEntry) -> Result<(), ImportError>,
) -> Result<Option<ResultSummary>, ImportError> {
    let io = |source| ImportError::Io {
        path: path.to_owned(),
        source,
    };
    let mut file = File::open(path).map_err(io)?;
    let mut mark = [0; 3];
    let has_mark = file.read_exact(&mut mark).is_ok() && mark == *b"\xef\xbb\xbf";
    let start = if has_mark { 3 } else { 0 };
    file.seek(SeekFrom::Start(start)).map_err(io)?;
    let mut reading = EntryReader {
        each,
        number: 0,
        failed: None,
    };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file));
    let read = TopLevel(&mut reading).deserialize(&mut json);
    let read = read.and_then(|summary| json.end().map(|()| summary));
    match (reading.failed, read) {
        (Some(error), _) => Err(error),
        (None, Ok(summary)) => Ok(summary),
        (None, Err(error)) if error.is_io() => Err(io(error.into())),
        (None, Err(error)) => Err(ImportError::Form {
            path: path.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// What is passed on, and the error that ended it.
struct EntryReader<F> {
    each: F,
    number: usize,
    failed: Option<ImportError>,
}

/// The whole document.
struct TopLevel<'a, F>(&'a mut EntryReader<F>);

impl<'de, F> DeserializeSeed<'de> for TopLevel<'_, F>
where
    F: FnMut(usize, ResultEntry) -> Result<(), ImportError>,
{
    type Value = Option<ResultSummary>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F> Visitor<'de> for TopLevel<'_, F>
where
    F: FnMut(usize, ResultEntry) -> Result<(), ImportError>,
{
    type Value = Option<ResultSummary>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `results`, or an array of results")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Entries(self.0).visit_seq(seq)?;
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut summary, mut has_results) = (None, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "summary" if summary.is_none() => summary = map.next_value()?,
                "results" if !has_results => {
                    has_results = true;
                    map.next_value_seed(Entries(self.0))?;
                }
                "summary" | "results" => {
                    return Err(de::Error::custom(format!("duplicate key `{key}`")));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        if has_results {
            Ok(summary)
        } else {
            Err(de::Error::missing_field("results"))
        }
    }
}

/// The entries, one at a time.
struct Entries<'a, F>(&'a mut EntryReader<F>);

impl<'de, F> DeserializeSeed<'de> for Entries<'_, F>
where
    F: FnMut(usize, ResultEntry) -> Result<(), ImportError>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F> Visitor<'de> for Entries<'_, F>
where
    F: FnMut(usize, ResultEntry) -> Result<(), ImportError>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of results")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self(reading) = self;
        loop {
            let entry = seq.next_element::<ResultEntry>();
            let entry = entry.map_err(|error| {
                de::Error::custom(format!("result {}: {error}", reading.number + 1))
            })?;
            let Some(entry) = entry else {
                return Ok(());
            };
            if let Err(error) = (reading.each)(reading.number, entry) {
                reading.failed = Some(error);
                return Err(de::Error::custom("stopped"));
            }
            reading.number += 1;
        }
    }
}

impl<'de> Deserialize<'de> for AssertionEntries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kinds;
        impl<'de> Visitor<'de> for Kinds {
            type Value = AssertionEntries;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of assertions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some((kind, entry)) = map.next_entry::<String, Option<_>>()? {
                    all.extend(entry.map(|entry| (kind, entry)));
                }
                Ok(AssertionEntries(all))
            }
        }
        deserializer.deserialize_map(Kinds)
    }
}

/// Reads `null` as the default.
fn nullable<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
