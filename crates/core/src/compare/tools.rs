//! Which tools a server offers, how much they weigh, and what changed about them.

use std::collections::BTreeMap;

use proctor_record::event::{ServerSeen, Surface, SurfaceChange};
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::contract::{self, SurfaceContent, line, tool_tokens};

/// The tools of a run by server and name.
#[derive(Debug, Clone, Default)]
pub(super) struct RunTools {
    tools: BTreeMap<(String, String), ToolText>,
    /// The servers whose tools the record does not hold.
    unknown: Vec<String>,
    /// Everything that servers offer, if the record holds it.
    surfaces: BTreeMap<String, SurfaceContent>,
}

#[derive(Debug, Clone)]
struct ToolText {
    description: Option<String>,
    schema: Value,
    tokens: u64,
}

/// What changed about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolChangeKind {
    Added,
    Removed,
    /// Only its description changed.
    Description,
    /// Only its input schema changed.
    Schema,
    DescriptionAndSchema,
}

/// A tool that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolChange {
    pub server: String,
    pub tool: String,
    pub kind: ToolChangeKind,
    /// The descriptions in the base and in the new run.
    pub descriptions: (Option<String>, Option<String>),
}

/// The estimated tokens of all tools in both runs; `None` if a record does not hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToolWeight {
    pub base: Option<u64>,
    pub new: Option<u64>,
}

/// The tools of two runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolsChange {
    pub weight: ToolWeight,
    pub changes: Vec<ToolChange>,
    /// The classified changes of each server whose surface both records hold.
    pub surfaces: BTreeMap<String, Vec<SurfaceChange>>,
}

impl ToolsChange {
    /// The changed tools of servers whose surfaces could not be compared.
    pub fn unclassified(&self) -> impl Iterator<Item = &ToolChange> {
        let changes = self.changes.iter();
        changes.filter(|change| !self.surfaces.contains_key(&change.server))
    }

    /// The classified changes, each as one line.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.surfaces
            .iter()
            .flat_map(|(server, all)| all.iter().map(move |change| line(server, change)))
    }
}

impl RunTools {
    pub(super) fn load(run: &RunReader, servers: &[ServerSeen]) -> Result<Self, RecordError> {
        let mut all = Self::default();
        for seen in servers {
            if let Some(content) = surface(run, seen)? {
                all.surfaces.insert(seen.server.clone(), content);
            }
            match tools(run, seen)? {
                Some(tools) => {
                    let named = tools.into_iter();
                    all.tools
                        .extend(named.map(|(name, tool)| ((seen.server.clone(), name), tool)));
                }
                None => all.unknown.push(seen.server.clone()),
            }
        }
        Ok(all)
    }

    fn weight(&self) -> Option<u64> {
        let tokens = self.tools.values().map(|tool| tool.tokens);
        (self.unknown.is_empty() && !self.tools.is_empty()).then(|| tokens.sum())
    }

    fn knows(&self, server: &str) -> bool {
        !self.unknown.iter().any(|unknown| unknown == server)
    }
}

impl ToolsChange {
    pub(super) fn of(base: &RunTools, new: &RunTools) -> Self {
        let mut changes = Vec::new();
        for ((server, tool), now) in &new.tools {
            let before = base.tools.get(&(server.clone(), tool.clone()));
            let kind = match before {
                // A server of an older record may have had the tool.
                None => base.knows(server).then_some(ToolChangeKind::Added),
                Some(before) => change(before, now),
            };
            changes.extend(kind.map(|kind| ToolChange {
                server: server.clone(),
                tool: tool.clone(),
                kind,
                descriptions: (
                    before.and_then(|before| before.description.clone()),
                    now.description.clone(),
                ),
            }));
        }
        for ((server, tool), before) in &base.tools {
            if new.knows(server) && !new.tools.contains_key(&(server.clone(), tool.clone())) {
                changes.push(ToolChange {
                    server: server.clone(),
                    tool: tool.clone(),
                    kind: ToolChangeKind::Removed,
                    descriptions: (before.description.clone(), None),
                });
            }
        }
        Self {
            weight: ToolWeight {
                base: base.weight(),
                new: new.weight(),
            },
            changes,
            surfaces: surfaces(&base.surfaces, &new.surfaces),
        }
    }
}

fn surfaces(
    base: &BTreeMap<String, SurfaceContent>,
    new: &BTreeMap<String, SurfaceContent>,
) -> BTreeMap<String, Vec<SurfaceChange>> {
    let both = base.iter().filter_map(|(server, old)| {
        let changes = contract::changes(old, new.get(server)?);
        Some((server.clone(), changes))
    });
    both.collect()
}

/// Everything that a server offers; `None` if the record does not hold it or it has no canonical form.
fn surface(run: &RunReader, seen: &ServerSeen) -> Result<Option<SurfaceContent>, RecordError> {
    let Some(bytes) = seen.surface.as_ref().map(|body| run.body_bytes(body)) else {
        return Ok(None);
    };
    let surface = bytes?.and_then(|bytes| json::from_slice::<Surface>(&bytes).ok());
    Ok(surface.and_then(|surface| SurfaceContent::of(&surface).ok()))
}

fn change(before: &ToolText, now: &ToolText) -> Option<ToolChangeKind> {
    let (text, schema) = (
        before.description != now.description,
        // The order of keys may differ from start to start.
        !json::equal(&before.schema, &now.schema),
    );
    match (text, schema) {
        (false, false) => None,
        (true, false) => Some(ToolChangeKind::Description),
        (false, true) => Some(ToolChangeKind::Schema),
        (true, true) => Some(ToolChangeKind::DescriptionAndSchema),
    }
}

/// The tools of a server by name; `None` if the record does not hold them.
fn tools(
    run: &RunReader,
    seen: &ServerSeen,
) -> Result<Option<Vec<(String, ToolText)>>, RecordError> {
    let Some(body) = seen.surface.as_ref().or(seen.tool_list.as_ref()) else {
        return Ok(None);
    };
    let Some(bytes) = run.body_bytes(body)? else {
        return Ok(None);
    };
    let list: Option<Vec<Box<RawValue>>> = if seen.surface.is_some() {
        let surface = json::from_slice::<Surface>(&bytes).ok();
        surface.map(|surface| surface.tools)
    } else {
        json::from_slice(&bytes).ok()
    };
    Ok(list.map(|list| list.iter().filter_map(|tool| described(tool)).collect()))
}

fn described(tool: &RawValue) -> Option<(String, ToolText)> {
    let tool: Value = json::from_str(tool.get()).ok()?;
    let name = tool.get("name")?.as_str()?.to_owned();
    let description = tool.get("description").unwrap_or(&Value::Null);
    let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
    let tokens = tool_tokens(&name, description, schema);
    Some((
        name,
        ToolText {
            description: description.as_str().map(str::to_owned),
            schema: schema.clone(),
            tokens,
        },
    ))
}
