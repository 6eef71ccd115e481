//! `proctor tools`: what a server is and offers.

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

/// What a server offers, in its own words.
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
        let offer = match gather(client).await {
            // Before a text is shortened: a part of a secret no longer looks like one.
            Ok(offer) => offer.redacted(redactor),
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        let shown = match args.output.output {
            OutputFormat::Json => format!("{}\n", serde_json::to_string(&offer)?),
            OutputFormat::Text => text::render(&offer),
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
    let mut offer = ServerOverview {
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
    // A server is asked only for what it says that it has.
    let has = |capability: &str| offer.identity.capabilities.contains_key(capability);
    if has("tools") {
        offer.tools = client.list_tools(&caps).await?.items;
    }
    if has("resources") {
        offer.resources = client
            .list("resources/list", "resources", &caps)
            .await?
            .items;
        let templates = client
            .list("resources/templates/list", "resourceTemplates", &caps)
            .await;
        // Many servers have resources and no templates.
        offer.resource_templates = templates.map(|listed| listed.items).unwrap_or_default();
    }
    if has("prompts") {
        offer.prompts = client.list("prompts/list", "prompts", &caps).await?.items;
    }
    offer.findings = client
        .findings()
        .into_iter()
        .map(|(kind, detail, count)| FindingSummary {
            kind,
            detail,
            count,
        })
        .collect();
    Ok(offer)
}
