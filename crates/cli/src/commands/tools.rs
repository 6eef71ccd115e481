//! `proctor tools`: shows the identity, tools, resources and prompts of a server.

use std::borrow::Cow;

use proctor_core::redact::Redactor;
use proctor_wire::client::{Client, ListError, ListLimits, ServerIdentity};
use serde::Serialize;
use serde_json::value::RawValue;

use super::session::{CommandOutcome, with_client};
use crate::args::{OutputFormat, ToolsArgs};
use crate::exit::Exit;
use crate::output;

mod text;

/// The identity and the lists of a server, as it sent them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerOverview {
    server: Box<RawValue>,
    protocol: String,
    era: &'static str,
    tools: Vec<Box<RawValue>>,
    resources: Vec<Box<RawValue>>,
    resource_templates: Vec<Box<RawValue>>,
    prompts: Vec<Box<RawValue>>,
    findings: Vec<FindingSummary>,
    #[serde(skip)]
    identity: ServerIdentity,
}

#[derive(Serialize)]
struct FindingSummary {
    kind: proctor_core::event::FindingKind,
    detail: String,
    count: u64,
}

pub(crate) fn run(args: &ToolsArgs) -> anyhow::Result<Exit> {
    with_client(&args.server, "tools", async |client, redactor| {
        let overview = match gather(client).await {
            // Before a text is shortened: the redactor does not find a part of a secret.
            Ok(overview) => overview.redacted(redactor),
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        let shown = match args.output.output {
            OutputFormat::Json => format!("{}\n", serde_json::to_string(&overview)?),
            OutputFormat::Text => text::render(&overview),
        };
        output::result(&redactor.text(&shown))?;
        Ok(CommandOutcome::ok())
    })
}

impl ServerOverview {
    fn redacted(mut self, redactor: &Redactor) -> Self {
        let lists = [
            &mut self.tools,
            &mut self.resources,
            &mut self.resource_templates,
            &mut self.prompts,
        ];
        for raw in lists.into_iter().flatten() {
            if let Cow::Owned(text) = redactor.text(raw.get())
                && let Ok(redacted) = RawValue::from_string(text)
            {
                *raw = redacted;
            }
        }
        let identity = &mut self.identity;
        for text in [
            &mut identity.name,
            &mut identity.version,
            &mut identity.instructions,
        ] {
            *text = text.take().map(|text| redactor.text(&text).into_owned());
        }
        self
    }
}

async fn gather(client: &Client) -> Result<ServerOverview, ListError> {
    let identity = client.identity().clone();
    let caps = ListLimits::default();
    let mut overview = ServerOverview {
        server: identity.raw.clone(),
        protocol: identity.protocol.clone(),
        era: identity.era.word(),
        tools: Vec::new(),
        resources: Vec::new(),
        resource_templates: Vec::new(),
        prompts: Vec::new(),
        findings: Vec::new(),
        identity,
    };
    // Only capabilities that the server declares are listed.
    let has = |capability: &str| overview.identity.capabilities.contains_key(capability);
    if has("tools") {
        overview.tools = client.list_tools(&caps).await?.items;
    }
    if has("resources") {
        overview.resources = client
            .list("resources/list", "resources", &caps)
            .await?
            .items;
        let templates = client
            .list("resources/templates/list", "resourceTemplates", &caps)
            .await;
        // Many servers have resources and no templates.
        overview.resource_templates = templates.map(|listed| listed.items).unwrap_or_default();
    }
    if has("prompts") {
        overview.prompts = client.list("prompts/list", "prompts", &caps).await?.items;
    }
    overview.findings = client
        .findings()
        .into_iter()
        .map(|(kind, detail, count)| FindingSummary {
            kind,
            detail,
            count,
        })
        .collect();
    Ok(overview)
}
