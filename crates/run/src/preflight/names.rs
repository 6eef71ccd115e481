//! Finds names in checks and steps that the servers do not list.

use std::collections::BTreeSet;

use proctor_core::check::{OrderEntry, OrderKind};
use proctor_core::printable::printable;
use proctor_core::suite::Case;
use proctor_core::suite::step::Action;
use proctor_record::hint::nearest_hint;

use super::PreflightReport;

/// A warning for each name in the checks and steps of cases that its server does not list.
pub fn unknown_names<'a>(
    cases: impl Iterator<Item = &'a Case>,
    looked: &[PreflightReport],
) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut reported = BTreeSet::new();
    for case in cases {
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
