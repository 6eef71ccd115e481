//! Compares the servers of a run with the suite and with the earlier part of a resumed run.

use std::collections::BTreeSet;

use proctor_core::check::{OrderEntry, OrderKind};
use proctor_core::event::{ServerSeen, Surface};
use proctor_core::hint::nearest_hint;
use proctor_core::printable::printable;
use proctor_core::redact::Redactor;
use proctor_core::suite::step::Action;
use proctor_core::suite::{Case, Suite};

use crate::preflight::ServerListing;
use crate::runner::TrialSpec;

/// What Proctor learned of a server before the first trial.
pub(super) struct PreflightReport {
    pub(super) seen: ServerSeen,
    pub(super) offered: ServerListing,
    pub(super) surface: Surface,
}

/// Why a run can't be resumed with this server: it changed since the run started.
pub(super) fn change(
    before: &[ServerSeen],
    now: &ServerSeen,
    redactor: &Redactor,
) -> Option<String> {
    // The record contains the redacted form.
    let text = |text: &Option<String>| Some(redactor.text(text.as_deref()?).into_owned());
    let now = ServerSeen {
        server: redactor.text(&now.server).into_owned(),
        name: text(&now.name),
        version: text(&now.version),
        protocol: redactor.text(&now.protocol).into_owned(),
        ..now.clone()
    };
    let before = before.iter().rfind(|seen| seen.server == now.server)?;
    let changes = now.changes_since(before);
    (!changes.is_empty()).then(|| {
        format!(
            "the server `{}` changed since the run started: {}; start a new run",
            now.server,
            changes.join(", ")
        )
    })
}

/// A warning for each name in the selected checks and steps that its server does not list.
pub(super) fn unknown_names(
    suite: &Suite,
    trials: &[TrialSpec],
    looked: &[PreflightReport],
) -> Vec<String> {
    let cases: BTreeSet<usize> = trials.iter().map(|spec| spec.case).collect();
    let mut warnings = Vec::new();
    let mut reported = BTreeSet::new();
    for case in cases.into_iter().filter_map(|case| suite.cases.get(case)) {
        for entry in names(case) {
            let server = looked.iter().find(|l| l.seen.server == entry.server);
            let Some(known) = server.and_then(|server| server.offered.of(entry.kind)) else {
                continue;
            };
            if known.contains(&entry.name) {
                continue;
            }
            let warning = warning(&entry, known, case);
            if reported.insert((word(entry.kind), entry.server, entry.name)) {
                warnings.push(warning);
            }
        }
    }
    warnings
}

/// All exact names in a case.
fn names(case: &Case) -> Vec<OrderEntry> {
    let mut names: Vec<OrderEntry> = case.checks.iter().flat_map(|c| c.exact_names()).collect();
    let steps = case.setup.iter().chain(&case.verify).chain(&case.cleanup);
    names.extend(steps.filter_map(|step| match &step.action {
        Action::CallTool(call) => Some(OrderEntry {
            kind: OrderKind::Tool,
            server: call.server.clone(),
            name: call.tool.clone(),
        }),
        _ => None,
    }));
    names
}

fn warning(entry: &OrderEntry, known: &[String], case: &Case) -> String {
    let OrderEntry { server, name, kind } = entry;
    let kind = word(*kind);
    let hint = nearest_hint(name, known.iter().map(String::as_str));
    let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
    let text = format!(
        "warning: the server `{server}` lists no {kind} `{name}`, which `{}` refers to{hint}",
        case.name
    );
    printable(&text).into_owned()
}

fn word(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Tool => "tool",
        OrderKind::Resource => "resource",
        OrderKind::Prompt => "prompt",
    }
}
