//! Profiles: named sets of flags in `proctor.yaml`, beside the suites.
//!
//! Main types: [`ProfilesFile`] for the file, and [`Profile`]. A profile is text for flags and nothing else, so
//! the command line parses its values a second time, with the same rules as typed ones.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use proctor_record::hint::nearest_hint;
use proctor_record::problem::{Code, Problem, Problems, SourceText, Span};
use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, OptionalNonEmpty, PositiveInteger,
    RequiredKey, StrictKeys, Table, record, words,
};
use crate::document::{self, Document, Node, NodeValue};
use crate::pattern::Pattern;
use crate::plan::LabelSelector;
use crate::suite::files;
use crate::suite::gates_file::{PassHatFile, ShareFile};

/// The name of the file.
pub const PROFILES_FILE: &str = "proctor.yaml";

record! {
    /// Defaults for the flags of `proctor check`, by the name of a profile.
    pub struct ProfilesFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// The profiles by name. `proctor check --profile NAME` uses one.
        "profiles" => profiles: RequiredKey<StrictKeys<Table<ProfileFile>>>,
    }
}

record! {
    /// A profile. Each key stands for a flag of `proctor check`, and the flag on the command line wins.
    pub struct ProfileFile {
        /// Only cases with these labels: `k=v,j=w`.
        "labels" => labels: OptionalNonEmpty<LabelsFile>,
        /// Only cases whose name matches this regular expression.
        "run" => run: OptionalNonEmpty<Pattern>,
        /// The number of runs of each case.
        "runs" => runs: OptionalNonEmpty<PositiveInteger>,
        /// The timeout for setup, agent and verification of each case.
        "taskTimeout" => task_timeout: OptionalNonEmpty<Duration>,
        /// The same for cases that don't set one.
        "defaultTaskTimeout" => default_task_timeout: OptionalNonEmpty<Duration>,
        /// The timeout for the cleanup of each case.
        "cleanupTimeout" => cleanup_timeout: OptionalNonEmpty<Duration>,
        /// The same for cases that don't set one.
        "defaultCleanupTimeout" => default_cleanup_timeout: OptionalNonEmpty<Duration>,
        /// The number of parallel trials of tasks with `parallel: true`.
        "parallel" => parallel: OptionalNonEmpty<PositiveInteger>,
        /// The number of parallel trials of all tasks.
        "jobs" => jobs: OptionalNonEmpty<PositiveInteger>,
        /// Whether to stop after the first failure.
        "failFast" => fail_fast: OptionalNonEmpty<bool>,
        /// The trials whose folders are left in place: `failed`, `all` or `none`.
        "keep" => keep: OptionalNonEmpty<KeepWord>,
        /// Whether to skip trials that can't change the answer of the gate.
        "stopWhenDecided" => stop_when_decided: OptionalNonEmpty<bool>,
        /// The budget in US dollars.
        "budgetUsd" => budget_usd: OptionalNonEmpty<DollarsAboveZero>,
        /// The budget in tokens.
        "budgetTokens" => budget_tokens: OptionalNonEmpty<PositiveInteger>,
        /// The highest estimate in US dollars with which a run starts.
        "maxEstimateUsd" => max_estimate_usd: OptionalNonEmpty<DollarsAboveZero>,
        /// A file with model prices, relative to this file.
        "prices" => prices: OptionalNonEmpty<String>,
        /// The MCP config that replaces the suite's, relative to this file.
        "mcpConfigFile" => mcp_config_file: OptionalNonEmpty<String>,
        /// The agents that replace the suite's.
        "agents" => agents: OptionalNonEmpty<NonEmpty<String>>,
        /// The model of the agents.
        "model" => model: OptionalNonEmpty<String>,
        /// The model that judges.
        "judge" => judge: OptionalNonEmpty<String>,
        /// Whether the model requests of external agents go through Proctor.
        "modelTap" => model_tap: OptionalNonEmpty<bool>,
        /// The environment variables that servers get in addition.
        "passEnv" => pass_env: OptionalNonEmpty<NonEmpty<String>>,
        /// The maximum turns of shipped scenarios.
        "maxTurns" => max_turns: OptionalNonEmpty<PositiveInteger>,
        /// The response timeout of servers.
        "callTimeout" => call_timeout: OptionalNonEmpty<Duration>,
        /// Whether protocol problems fail trials, and unknown keys a suite.
        "strict" => strict: OptionalNonEmpty<bool>,
        /// The lowest mean of the cases' pass rates.
        "minPassRate" => min_pass_rate: OptionalNonEmpty<ShareFile>,
        /// The lowest one-sided 95 % lower bound of the pass rate.
        "minLowerBound" => min_lower_bound: OptionalNonEmpty<ShareFile>,
        /// The lowest average chance that all of `k` trials of a case pass.
        "passHat" => pass_hat: OptionalNonEmpty<PassHatFile>,
        /// The run, or for several suites the folder of runs, that must not be better.
        "noRegression" => no_regression: OptionalNonEmpty<String>,
        /// The highest number of errored trials.
        "maxErrors" => max_errors: OptionalNonEmpty<u64>,
    }
}

words! {
    /// The trials whose folders are left in place.
    pub enum KeepWord {
        /// Trials that failed, errored or timed out.
        "failed" => Failed,
        "all" => All,
        "none" => None,
    }
}

/// The keys whose values are paths, relative to the file.
const PATHS: [&str; 2] = ["prices", "mcpConfigFile"];

/// A label selector.
#[derive(Debug, Clone)]
pub struct LabelsFile;

impl Decode for LabelsFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = String::decode(node, cx)?;
        let problem = match LabelSelector::parse(&text) {
            Ok(selector) if selector.is_empty() => "no labels: this would select every case".into(),
            Ok(_) => return Some(Self),
            Err(error) => error.to_string(),
        };
        cx.report(node.span, Problem::error(Code::Value, problem));
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "string", "minLength": 1})
    }
}

/// An amount of money above zero.
#[derive(Debug, Clone, Copy)]
pub struct DollarsAboveZero;

impl Decode for DollarsAboveZero {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let number = match &node.data {
            NodeValue::Number(number, _) => number.as_f64(),
            _ => None,
        };
        if number.is_some_and(|number| number > 0.0 && number.is_finite()) {
            return Some(Self);
        }
        cx.wrong_type(node, "an amount above zero, such as 2.50");
        None
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "number", "exclusiveMinimum": 0})
    }
}

/// A profile, as text for flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    /// The path of its file.
    pub file: PathBuf,
    pub values: Vec<ProfileValue>,
}

/// The value of a key of a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileValue {
    pub key: String,
    /// One text, or those of a list.
    pub texts: Vec<String>,
}

/// Finds `proctor.yaml` in a folder or above it. The search ends at the root of the repository.
pub fn find(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let file = folder.join(PROFILES_FILE);
        if file.exists() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

/// The JSON Schema of the file.
pub fn schema() -> Value {
    let mut definitions = Definitions::new();
    let root = ProfilesFile::schema(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Proctor profiles",
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

/// Checks a file, and returns the number of its profiles.
pub fn check(path: &Path, problems: &mut Problems) -> Option<usize> {
    open(path, problems).map(|(_, _, profiles)| profiles.len())
}

/// Loads a profile. If it returns `None`, it has reported why.
pub fn load(path: &Path, name: &str, problems: &mut Problems) -> Option<Profile> {
    let (source, document, profiles) = open(path, problems)?;
    let known: Vec<String> = profiles.iter().map(|(known, _)| known.clone()).collect();
    if let Some((name, values)) = profiles.into_iter().find(|(known, _)| known == name) {
        return Some(Profile {
            name,
            file: path.to_owned(),
            values,
        });
    }
    let span = document
        .root
        .get("profiles")
        .map_or(Span::default(), |n| n.span);
    let problem = Problem::error(Code::Reference, format!("unknown profile `{name}`"));
    let hint = nearest_hint(name, known.iter().map(String::as_str));
    problems.push(problem.at(&source, span).maybe_hint(hint));
    None
}

/// The values of each profile, by its name.
type NamedValues = Vec<(String, Vec<ProfileValue>)>;

/// Reads a file without errors.
fn open(path: &Path, problems: &mut Problems) -> Option<(SourceText, Document, NamedValues)> {
    let source = files::read(path)
        .map_err(|problem| problems.push(problem))
        .ok()?;
    let before = problems.errors();
    let document = document::parse(&source, problems)?;
    let profiles = decode(&source, &document.root, problems);
    (problems.errors() == before).then_some((source, document, profiles))
}

/// The profiles of a file. Reports the problems of all of them.
fn decode(source: &SourceText, root: &Node, problems: &mut Problems) -> NamedValues {
    let found = RefCell::new(Problems::default());
    let cx = Context::new(source.clone(), &found);
    let file = ProfilesFile::decode(root, &cx);
    let mut all = Vec::new();
    if file.is_some_and(|file| file.profiles.get().is_some()) {
        for entry in entries(root.get("profiles")) {
            let values = entries(Some(&entry.value)).iter();
            let values = values.filter_map(|value| {
                let texts = texts(&value.value, &cx);
                let texts = if PATHS.contains(&value.key.as_str()) {
                    let inside = |text: String| source.folder().join(text).display().to_string();
                    texts.into_iter().map(inside).collect()
                } else {
                    texts
                };
                (!texts.is_empty()).then(|| ProfileValue {
                    key: value.key.clone(),
                    texts,
                })
            });
            all.push((entry.key.clone(), values.collect()));
        }
    }
    drop(cx);
    let mut found = found.into_inner();
    // A key that is ignored would leave a gate or a budget out.
    found.promote(Code::UnknownKey);
    problems.append(found);
    all
}

fn entries(node: Option<&Node>) -> &[document::MapEntry] {
    match node.map(|node| &node.data) {
        Some(NodeValue::Mapping(entries)) => entries,
        _ => &[],
    }
}

/// The texts of a value that is decoded already. Those of a map are `k=rate`.
fn texts(node: &Node, cx: &Context<'_>) -> Vec<String> {
    match &node.data {
        NodeValue::Null => Vec::new(),
        NodeValue::Sequence(items) => items.iter().flat_map(|item| texts(item, cx)).collect(),
        NodeValue::Mapping(_) => {
            let text = |key: &str| node.get(key).and_then(|n| texts(n, cx).into_iter().next());
            let pair = text("k").zip(text("rate"));
            pair.map(|(k, rate)| format!("{k}={rate}"))
                .into_iter()
                .collect()
        }
        _ => LooseText::decode(node, cx)
            .map(|text| text.0)
            .into_iter()
            .collect(),
    }
}

#[cfg(test)]
mod tests;
