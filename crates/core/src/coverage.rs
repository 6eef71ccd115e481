//! What the agents of a run used of the servers, and what no case touched.
//!
//! The main type is [`Coverage`]. Calls come from the index, arguments from the trials themselves. Only calls of
//! agents count: a step of a case says nothing about what an agent can do with a server.

mod schema;
mod tally;
mod template;
#[cfg(test)]
mod tests;

use std::time::Duration;

use proctor_record::event::{ServerSeen, Surface};
use proctor_record::excerpt::excerpt;
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::index::IndexEntry;
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader};
use proctor_record::transcript::{CallKind, CallRequest};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::contract::tool_tokens;
use crate::summary::Summary;

pub use self::schema::{ArgumentCoverage, ValueCoverage};
use self::tally::CallTally;

/// What a run used of its servers.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coverage {
    /// The servers, in the order in which they were seen; then those that only calls name.
    pub servers: Vec<ServerCoverage>,
    /// Calls that are not included, since a trial called more than 256 tools, resources and prompts.
    pub other_calls: u64,
    /// Calls whose arguments the record does not hold or that can't be parsed; `None` if no arguments were read.
    pub unread_arguments: Option<u64>,
}

/// What a run used of one server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerCoverage {
    pub server: String,
    /// Whether the record lists what the server offers. Without, only `unlisted` has items.
    pub is_listed: bool,
    pub tools: Vec<ToolCoverage>,
    pub resources: Vec<ItemCoverage>,
    pub templates: Vec<ItemCoverage>,
    pub prompts: Vec<PromptCoverage>,
    /// What was called although the server does not list it.
    pub unlisted: Vec<(CallKind, ItemCoverage)>,
}

/// The calls of one tool, resource or prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallUse {
    pub calls: u64,
    /// The number of calls that ended in an error or have no response.
    pub errors: u64,
    /// The total duration of the answered calls.
    pub time: Duration,
    /// The number of calls without a response, as far as the trials were read.
    pub unanswered: u64,
    /// The number of cases with such a call.
    pub cases: usize,
}

impl CallUse {
    /// The mean duration of an answered call; `None` if there was no such call.
    pub fn mean(&self) -> Option<Duration> {
        let answered = self.calls.saturating_sub(self.unanswered);
        let answered = u32::try_from(answered).ok().filter(|count| *count > 0)?;
        Some(self.time / answered)
    }
}

/// A resource, a resource template, or something that the server does not list.
#[derive(Debug, Clone, PartialEq)]
pub struct ItemCoverage {
    /// The URI, the template or the name.
    pub name: String,
    pub used: CallUse,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ToolCoverage {
    pub name: String,
    pub used: CallUse,
    pub arguments: Vec<ArgumentCoverage>,
    /// The estimated tokens of its name, description and input schema in a model request: a quarter of the bytes of
    /// their JSON.
    pub schema_tokens: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PromptCoverage {
    pub name: String,
    pub used: CallUse,
    pub arguments: Vec<ArgumentCoverage>,
}

impl ServerCoverage {
    /// The number of tools that were called.
    pub fn tools_called(&self) -> usize {
        self.tools.iter().filter(|tool| tool.used.calls > 0).count()
    }

    /// The number of resources that were read, with templates.
    pub fn resources_read(&self) -> usize {
        let all = self.resources.iter().chain(&self.templates);
        all.filter(|item| item.used.calls > 0).count()
    }

    /// The number of prompts that were used.
    pub fn prompts_used(&self) -> usize {
        let is_used = |prompt: &&PromptCoverage| prompt.used.calls > 0;
        self.prompts.iter().filter(is_used).count()
    }

    /// The estimated tokens of all its tools in a model request.
    pub fn schema_tokens(&self) -> u64 {
        self.tools.iter().map(|tool| tool.schema_tokens).sum()
    }
}

/// Counts the calls of a run while its index is read.
#[derive(Debug, Default)]
pub struct CoverageCounter(CallTally);

impl CoverageCounter {
    pub fn add(&mut self, entry: &IndexEntry) {
        self.0.add(&entry.attempt);
    }

    /// The coverage by tools, resources and prompts, without arguments.
    pub fn finish(self, run: &RunReader, servers: &[ServerSeen]) -> Result<Coverage, RecordError> {
        let mut tally = self.0;
        let mut coverage = Coverage {
            servers: Vec::new(),
            other_calls: tally.other_calls,
            unread_arguments: None,
        };
        for seen in servers {
            let surface = surface(run, seen)?;
            coverage.servers.push(server(&mut tally, seen, surface));
        }
        for name in tally.servers() {
            let known = |server: &&mut ServerCoverage| server.server == name;
            let unlisted = tally.take_rest(&name);
            match coverage.servers.iter_mut().find(known) {
                Some(server) => server.unlisted = unlisted,
                None => coverage.servers.push(ServerCoverage {
                    server: name,
                    unlisted,
                    ..ServerCoverage::default()
                }),
            }
        }
        Ok(coverage)
    }
}

impl Coverage {
    /// The coverage of a run, with the arguments of all calls. Reads every trial with calls, one at a time.
    pub fn load(run: &RunReader) -> Result<(Summary, Self), RecordError> {
        let mut counter = CoverageCounter::default();
        let mut with_calls = Vec::new();
        let summary = Summary::observed(run, |entry| {
            counter.add(entry);
            if !entry.attempt.calls.is_empty() {
                with_calls.push(entry.file.clone());
            }
        })?;
        let mut coverage = counter.finish(run, &summary.servers)?;
        coverage.unread_arguments = Some(0);
        let options = FoldOptions {
            results: false,
            text_bytes: 0,
            ..FoldOptions::default()
        };
        for name in with_calls {
            if let Some(file) = run.trial_file(&name) {
                coverage.add_arguments(&fold_trial(run, &file, &options)?);
            }
        }
        Ok((summary, coverage))
    }

    fn add_arguments(&mut self, folded: &FoldedTrial) {
        for call in &folded.transcript.calls {
            let server = self.servers.iter_mut().find(|s| s.server == call.server);
            let Some(server) = server else { continue };
            let found = match &call.request {
                CallRequest::Tool { name, arguments } => {
                    let mut tools = server.tools.iter_mut();
                    let tool = tools.find(|tool| tool.name == *name);
                    tool.map(|tool| (&mut tool.used, &mut tool.arguments, arguments))
                }
                CallRequest::Prompt { name, arguments } => {
                    let mut prompts = server.prompts.iter_mut();
                    let prompt = prompts.find(|prompt| prompt.name == *name);
                    prompt.map(|prompt| (&mut prompt.used, &mut prompt.arguments, arguments))
                }
                CallRequest::Resource { .. } => None,
            };
            let Some((used, known, given)) = found else {
                continue;
            };
            used.unanswered += u64::from(call.duration.is_none());
            match given.read() {
                Ok(Some(value)) => schema::mark(known, value),
                Ok(None) => {}
                Err(_) => *self.unread_arguments.get_or_insert(0) += 1,
            }
        }
    }
}

/// What a server offers, if the record has it.
fn surface(run: &RunReader, seen: &ServerSeen) -> Result<Option<Surface>, RecordError> {
    let Some(body) = seen.surface.as_ref().or(seen.tool_list.as_ref()) else {
        return Ok(None);
    };
    let Some(bytes) = run.body_bytes(body)? else {
        return Ok(None);
    };
    Ok(if seen.surface.is_some() {
        json::from_slice(&bytes).ok()
    } else {
        let tools: Option<Vec<Box<RawValue>>> = json::from_slice(&bytes).ok();
        tools.map(|tools| Surface {
            tools,
            ..Surface::default()
        })
    })
}

fn server(tally: &mut CallTally, seen: &ServerSeen, surface: Option<Surface>) -> ServerCoverage {
    let is_listed = surface.is_some();
    let surface = surface.unwrap_or_default();
    let mut take = |kind, name: &str| tally.take(&seen.server, kind, &excerpt(name));
    let tools = parsed(&surface.tools).map(|tool: OfferedTool| ToolCoverage {
        used: take(CallKind::Tool, &tool.name),
        schema_tokens: tool_tokens(&tool.name, &tool.description, &tool.input_schema),
        arguments: schema::arguments(&tool.input_schema),
        name: tool.name,
    });
    let tools = tools.collect();
    let resources = parsed(&surface.resources).map(|resource: OfferedResource| ItemCoverage {
        used: take(CallKind::Resource, &resource.uri),
        name: resource.uri,
    });
    let resources = resources.collect();
    let prompts = parsed(&surface.prompts).map(|prompt: OfferedPrompt| PromptCoverage {
        used: take(CallKind::Prompt, &prompt.name),
        arguments: prompt.arguments.into_iter().map(Into::into).collect(),
        name: prompt.name,
    });
    let prompts = prompts.collect();
    // Each URI counts for the first template that it fits.
    let templates = parsed(&surface.resource_templates).map(|template: OfferedTemplate| {
        let uris = template::uris(&template.uri_template);
        let fits = |uri: &str| uris.as_ref().is_some_and(|uris| uris.is_match(uri));
        ItemCoverage {
            used: tally.take_all(&seen.server, CallKind::Resource, fits),
            name: template.uri_template,
        }
    });
    ServerCoverage {
        server: seen.server.clone(),
        is_listed,
        tools,
        resources,
        templates: templates.collect(),
        prompts,
        unlisted: Vec::new(),
    }
}

/// The items of a list, without malformed ones.
fn parsed<T: for<'de> Deserialize<'de>>(items: &[Box<RawValue>]) -> impl Iterator<Item = T> {
    items
        .iter()
        .filter_map(|item| json::from_str(item.get()).ok())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedTool {
    name: String,
    #[serde(default)]
    description: Value,
    #[serde(default)]
    input_schema: Value,
}

#[derive(Deserialize)]
struct OfferedResource {
    uri: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfferedTemplate {
    uri_template: String,
}

#[derive(Deserialize)]
struct OfferedPrompt {
    name: String,
    #[serde(default)]
    arguments: Vec<PromptArgument>,
}

#[derive(Deserialize)]
struct PromptArgument {
    name: String,
    #[serde(default)]
    required: bool,
}

impl From<PromptArgument> for ArgumentCoverage {
    fn from(argument: PromptArgument) -> Self {
        Self {
            name: argument.name,
            is_required: argument.required,
            ..Self::default()
        }
    }
}
