//! The servers of a run: what they offer, what agents used of it, and what was wrong with it.
//!
//! Main types: [`CoveragePage`] and [`ServerPage`].

use proctor_core::coverage::{ArgumentCoverage, CallUse, Coverage, ServerCoverage};
use proctor_core::summary::FindingCounts;
use proctor_record::event::{ServerSeen, Surface, WireKind};
use proctor_record::json;
use proctor_record::record::RecordError;
use proctor_record::transcript::CallKind;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::body::{BodyRoom, PageBody};
use crate::{Report, words};

/// How many bytes of descriptions and schemas of one server are kept.
const SURFACE_BYTES: usize = 512 * 1024;

/// What agents used of the servers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoveragePage {
    /// Tools, resources and prompts, server by server.
    pub used: Vec<UsePage>,
    /// A sentence for each server.
    pub sentences: Vec<String>,
    /// Calls that are not included, since their trials called too many things.
    pub other_calls: u64,
    /// Calls whose arguments can't be read; `None` if no arguments were read.
    pub unread_arguments: Option<u64>,
}

/// The kind of something that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UseKind {
    Tool,
    Resource,
    Template,
    Prompt,
}

/// The use of a tool, a resource or a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsePage {
    pub server: String,
    pub kind: UseKind,
    pub name: String,
    /// Whether the server lists it.
    pub is_listed: bool,
    pub calls: u64,
    /// The number of calls that ended in an error or have no response.
    pub errors: u64,
    /// The number of cases with such a call.
    pub cases: usize,
    /// The mean duration of an answered call in microseconds.
    pub mean: Option<u64>,
    pub arguments: Vec<ArgumentPage>,
    /// The estimated tokens of its description in a model request.
    pub schema_tokens: Option<u64>,
}

/// An argument of a tool or prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArgumentPage {
    /// Its name, with those of the arguments around it: `filter.name`.
    pub name: String,
    pub is_required: bool,
    /// How often it was given.
    pub given: u64,
    /// The values of its enum that were never given, as JSON.
    pub unused: Vec<String>,
}

/// A server and what it offers.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerPage {
    /// Its name in the suite.
    pub server: String,
    /// The name and version that it reports.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The version of MCP.
    pub protocol: Option<String>,
    pub transport: Option<WireKind>,
    pub tools: Option<u64>,
    pub resources: Option<u64>,
    pub prompts: Option<u64>,
    pub tools_digest: Option<String>,
    pub instructions: Option<PageBody>,
    /// What it offers; `None` if the record does not list it.
    pub offers: Option<Vec<OfferPage>>,
    pub schema_tokens: Option<u64>,
    pub findings: Vec<FindingPage>,
}

/// A tool, a resource or a prompt, as its server describes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferPage {
    pub kind: UseKind,
    pub name: String,
    pub description: Option<PageBody>,
    /// Everything that the server sent about it, as JSON.
    pub json: PageBody,
}

/// Protocol problems of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FindingPage {
    pub kind: String,
    pub count: u64,
    pub example: String,
}

pub(super) fn coverage(coverage: &Coverage) -> CoveragePage {
    let mut used = Vec::new();
    for server in &coverage.servers {
        of_server(server, &mut used);
    }
    CoveragePage {
        used,
        sentences: coverage.servers.iter().map(sentence).collect(),
        other_calls: coverage.other_calls,
        unread_arguments: coverage.unread_arguments,
    }
}

/// `kubernetes: 14 of 36 tools called, 2 of 5 resources read`.
fn sentence(server: &ServerCoverage) -> String {
    if !server.is_listed {
        let name = &server.server;
        return format!("{name}: the record does not list what the server offers");
    }
    let resources = server.resources.len() + server.templates.len();
    let parts = [
        (server.tools_called(), server.tools.len(), "tools called"),
        (server.resources_read(), resources, "resources read"),
        (server.prompts_used(), server.prompts.len(), "prompts used"),
    ];
    let parts = parts.iter().filter(|(_, all, _)| *all > 0);
    let mut parts: Vec<String> = parts
        .map(|(used, all, deed)| format!("{used} of {all} {deed}"))
        .collect();
    if parts.is_empty() {
        parts.push("it offers nothing".to_owned());
    } else if !server.tools.is_empty() {
        let tokens = words::thousands(server.schema_tokens());
        parts.push(format!(
            "the tools weigh about {tokens} tokens in a request"
        ));
    }
    format!("{}: {}", server.server, parts.join(", "))
}

fn of_server(server: &ServerCoverage, out: &mut Vec<UsePage>) {
    let page = |kind, name: &str, used: &CallUse, arguments, schema_tokens| UsePage {
        server: server.server.clone(),
        kind,
        name: name.to_owned(),
        is_listed: true,
        calls: used.calls,
        errors: used.errors,
        cases: used.cases,
        mean: used
            .mean()
            .and_then(|time| u64::try_from(time.as_micros()).ok()),
        arguments,
        schema_tokens,
    };
    for tool in &server.tools {
        let arguments = arguments(&tool.arguments);
        let tokens = Some(tool.schema_tokens);
        out.push(page(
            UseKind::Tool,
            &tool.name,
            &tool.used,
            arguments,
            tokens,
        ));
    }
    let kinds = [
        (UseKind::Resource, &server.resources),
        (UseKind::Template, &server.templates),
    ];
    for (kind, items) in kinds {
        let items = items.iter();
        out.extend(items.map(|item| page(kind, &item.name, &item.used, Vec::new(), None)));
    }
    for prompt in &server.prompts {
        let arguments = arguments(&prompt.arguments);
        out.push(page(
            UseKind::Prompt,
            &prompt.name,
            &prompt.used,
            arguments,
            None,
        ));
    }
    for (kind, item) in &server.unlisted {
        let kind = match kind {
            CallKind::Tool => UseKind::Tool,
            CallKind::Resource => UseKind::Resource,
            CallKind::Prompt => UseKind::Prompt,
        };
        out.push(UsePage {
            is_listed: false,
            ..page(kind, &item.name, &item.used, Vec::new(), None)
        });
    }
}

fn arguments(all: &[ArgumentCoverage]) -> Vec<ArgumentPage> {
    let mut out = Vec::new();
    add_arguments(&mut out, "", all);
    out
}

fn add_arguments(out: &mut Vec<ArgumentPage>, parent: &str, all: &[ArgumentCoverage]) {
    for argument in all {
        let name = format!("{parent}{}", argument.name);
        let unused = argument.values.iter().filter(|value| value.given == 0);
        out.push(ArgumentPage {
            name: name.clone(),
            is_required: argument.is_required,
            given: argument.given,
            unused: unused.map(|value| value.value.to_string()).collect(),
        });
        add_arguments(out, &format!("{name}."), &argument.arguments);
    }
}

/// The servers that the run saw, and those that only findings or connections name.
pub(super) fn servers(
    report: &Report<'_>,
    coverage: &Coverage,
) -> Result<Vec<ServerPage>, RecordError> {
    let summary = report.summary;
    let mut pages = Vec::new();
    for seen in &summary.servers {
        let mut covered = coverage.servers.iter();
        let covered = covered.find(|server| server.server == seen.server);
        let mut page = seen_page(report, seen)?;
        page.transport = summary.transports.get(&seen.server).copied();
        page.schema_tokens = covered
            .filter(|server| server.is_listed)
            .map(ServerCoverage::schema_tokens);
        pages.push(page);
    }
    let others = summary.transports.keys().chain(summary.findings.keys());
    for name in others {
        if !pages.iter().any(|page| page.server == *name) {
            pages.push(ServerPage {
                transport: summary.transports.get(name).copied(),
                ..unseen(name)
            });
        }
    }
    for page in &mut pages {
        let found = summary.findings.get(&page.server);
        page.findings = found.map(findings).unwrap_or_default();
    }
    Ok(pages)
}

fn findings(found: &FindingCounts) -> Vec<FindingPage> {
    let found = found.iter().map(|(kind, found)| FindingPage {
        kind: words::finding(*kind),
        count: found.count,
        example: found.example.clone(),
    });
    found.collect()
}

fn unseen(server: &str) -> ServerPage {
    ServerPage {
        server: server.to_owned(),
        name: None,
        version: None,
        protocol: None,
        transport: None,
        tools: None,
        resources: None,
        prompts: None,
        tools_digest: None,
        instructions: None,
        offers: None,
        schema_tokens: None,
        findings: Vec::new(),
    }
}

fn seen_page(report: &Report<'_>, seen: &ServerSeen) -> Result<ServerPage, RecordError> {
    let mut room = BodyRoom::new(SURFACE_BYTES);
    let surface = match &seen.surface {
        Some(body) => report.run.body_bytes(body)?,
        None => None,
    };
    let surface: Option<Surface> = surface.and_then(|bytes| json::from_slice(&bytes).ok());
    let instructions = surface.as_ref().and_then(|s| s.instructions.as_deref());
    Ok(ServerPage {
        name: seen.name.clone(),
        version: seen.version.clone(),
        protocol: Some(seen.protocol.clone()),
        tools: Some(seen.tools),
        resources: Some(seen.resources),
        prompts: Some(seen.prompts),
        tools_digest: seen.tools_digest.clone(),
        instructions: instructions.map(|text| room.text(text)),
        offers: surface.as_ref().map(|surface| offers(surface, &mut room)),
        ..unseen(&seen.server)
    })
}

fn offers(surface: &Surface, room: &mut BodyRoom) -> Vec<OfferPage> {
    let lists = [
        (UseKind::Tool, &surface.tools),
        (UseKind::Resource, &surface.resources),
        (UseKind::Template, &surface.resource_templates),
        (UseKind::Prompt, &surface.prompts),
    ];
    let mut offers = Vec::new();
    for (kind, items) in lists {
        for item in items {
            offers.push(offer(kind, item, room));
        }
    }
    offers
}

/// The parts of an item that a list shows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedOffer {
    name: Option<String>,
    uri: Option<String>,
    uri_template: Option<String>,
    description: Option<String>,
}

fn offer(kind: UseKind, item: &RawValue, room: &mut BodyRoom) -> OfferPage {
    let named: Option<NamedOffer> = json::from_str(item.get()).ok();
    let description = named
        .as_ref()
        .and_then(|named| named.description.as_deref());
    let description = description.map(|text| room.text(text));
    let name = named.and_then(|named| match kind {
        UseKind::Tool | UseKind::Prompt => named.name,
        UseKind::Resource => named.uri,
        UseKind::Template => named.uri_template,
    });
    OfferPage {
        kind,
        name: name.unwrap_or_else(|| "(malformed)".to_owned()),
        description,
        json: room.text(item.get()),
    }
}
