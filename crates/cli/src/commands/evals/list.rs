//! `proctor evals list`: shows the evals that servers ship, without running them.

use proctor_wire::client::ListLimits;
use serde::Serialize;
use serde_json::value::RawValue;

use super::servers::visit;
use crate::args::{EvalsListArgs, OutputFormat};
use crate::commands::session::CommandOutcome;
use crate::exit::Exit;
use crate::output;
use proctor_run::engine::offers::{ServerOffer, look};

mod text;

pub(super) fn run(args: &EvalsListArgs) -> anyhow::Result<Exit> {
    visit(&args.servers, async |visit| {
        let level = args.level.map(Into::into);
        let (mut offers, mut errors) = (Vec::new(), Vec::new());
        for server in visit.servers {
            // If one server is unreachable, the others are still shown.
            match look(server, level, visit.options, &ListLimits::default()).await {
                Ok(offer) => offers.push(offer),
                Err(error) => errors.push(error.to_string()),
            }
        }
        let shown = match args.output.output {
            OutputFormat::Json => {
                let mut text = serde_json::to_string_pretty(&document(&offers, &errors))?;
                text.push('\n');
                visit.redactor.text(&text).into_owned()
            }
            OutputFormat::Text => text::render(&offers, visit.redactor),
        };
        output::result(&shown)?;
        Ok(match &errors[..] {
            [] => CommandOutcome::ok(),
            errors => CommandOutcome::because(Exit::Inconclusive, errors.join("\nerror: ")),
        })
    })
}

#[derive(Serialize)]
struct ListOutput<'a> {
    servers: Vec<ServerEvals<'a>>,
    errors: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerEvals<'a> {
    server: &'a str,
    capability: Vec<String>,
    list_changed: bool,
    evals: &'a [Box<RawValue>],
    findings: Vec<FindingEntry<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FindingEntry<'a> {
    index: usize,
    eval_id: Option<&'a str>,
    severity: &'static str,
    rule: String,
    path: &'a str,
    message: &'a str,
}

fn document<'a>(offers: &'a [ServerOffer], errors: &'a [String]) -> ListOutput<'a> {
    let servers = offers.iter().map(|offer| ServerEvals {
        server: &offer.server.name,
        capability: offer.places.iter().map(ToString::to_string).collect(),
        list_changed: offer.tells_of_changes,
        evals: &offer.raw,
        findings: offer.report.findings.iter().map(found).collect(),
    });
    ListOutput {
        servers: servers.collect(),
        errors,
    }
}

fn found(finding: &mcp_evals::EvalFinding) -> FindingEntry<'_> {
    FindingEntry {
        index: finding.index,
        eval_id: finding.id.as_deref(),
        severity: match finding.severity {
            mcp_evals::Severity::Error => "error",
            mcp_evals::Severity::Warning => "warning",
            mcp_evals::Severity::Skip => "skip",
        },
        rule: kebab(&format!("{:?}", finding.rule)),
        path: &finding.path,
        message: &finding.text,
    }
}

/// Converts `NoEffect` to `no-effect`.
fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}
