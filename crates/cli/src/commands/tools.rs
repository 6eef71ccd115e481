//! `proctor tools`: shows the identity, tools, resources and prompts of a server.

use std::borrow::Cow;

use anyhow::bail;
use proctor_core::lint::{LintFinding, LintedServer, lint};
use proctor_record::event::Surface;
use proctor_record::redact::Redactor;
use proctor_wire::client::{Client, ListError, ListLimits, ServerIdentity};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::session::{CommandOutcome, with_client};
use crate::args::{ToolsArgs, ToolsFormat};
use crate::exit::Exit;
use crate::output;

mod contract;
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
    /// The findings of lint.
    #[serde(serialize_with = "as_documents")]
    lint: Vec<LintFinding>,
    #[serde(skip)]
    identity: ServerIdentity,
}

#[derive(Serialize)]
struct FindingSummary {
    kind: proctor_record::event::FindingKind,
    detail: String,
    count: u64,
}

pub(crate) fn run(args: &ToolsArgs) -> anyhow::Result<Exit> {
    match (&args.lock, &args.against, args.output) {
        (Some(path), _, ToolsFormat::Text) => contract::lock(args, path),
        (Some(_), _, _) => bail!("`--lock` writes a file; leave out `--output`"),
        (None, Some(path), _) => contract::against(args, path),
        (None, None, ToolsFormat::Markdown | ToolsFormat::Github) => {
            bail!("`-o markdown` and `-o github` need `--against FILE`")
        }
        (None, None, ToolsFormat::Text | ToolsFormat::Json) => show(args),
    }
}

fn show(args: &ToolsArgs) -> anyhow::Result<Exit> {
    with_client(&args.server, "tools", async |client, redactor| {
        let overview = match gather(client).await {
            // Before a text is shortened: the redactor does not find a part of a secret.
            Ok(overview) => overview.redacted(redactor).linted(),
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        let shown = match args.output {
            ToolsFormat::Json => format!("{}\n", serde_json::to_string(&overview)?),
            _ => text::render(&overview),
        };
        output::result(&redactor.text(&shown))?;
        Ok(CommandOutcome::ok())
    })
}

fn as_documents<S: Serializer>(findings: &[LintFinding], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(findings.iter().map(proctor_report::lint::finding))
}

impl ServerOverview {
    fn linted(mut self) -> Self {
        let server = LintedServer {
            name: "server".to_owned(),
            surface: Surface {
                tools: self.tools.clone(),
                resources: self.resources.clone(),
                resource_templates: self.resource_templates.clone(),
                prompts: self.prompts.clone(),
                instructions: self.identity.instructions.clone(),
                ..Surface::default()
            },
        };
        self.lint = lint(&[server], &[]);
        self
    }

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
    let surface = client.surface(&ListLimits::default()).await?;
    let mut overview = ServerOverview {
        server: identity.raw.clone(),
        protocol: identity.protocol.clone(),
        era: identity.era.word(),
        tools: surface.tools,
        resources: surface.resources,
        resource_templates: surface.resource_templates,
        prompts: surface.prompts,
        findings: Vec::new(),
        lint: Vec::new(),
        identity,
    };
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
