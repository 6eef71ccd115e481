//! Compares selection rows with the tools that the servers offer, before any model is asked.

use proctor_core::check::{Check, SelectionCheck};
use proctor_core::printable::printable;
use proctor_core::suite::Case;
use proctor_record::hint::{listed, nearest_hint};

use super::PreflightReport;

/// How many problems are listed.
const SHOWN: usize = 20;

/// The rows that name tools that no server offers, or several servers.
pub fn misfits<'a>(
    cases: impl Iterator<Item = &'a Case>,
    looked: &[PreflightReport],
) -> Vec<String> {
    let mut all = Vec::new();
    for case in cases {
        let Some(check) = selection_of(case) else {
            continue;
        };
        for tool in check.expected().iter().chain(&check.not) {
            if let Some(problem) = misfit(case, check, tool, looked) {
                let text = format!("{}: {problem}", place(case));
                all.push(printable(&text).into_owned());
            }
        }
    }
    if all.len() > SHOWN {
        let more = all.len() - SHOWN;
        all.truncate(SHOWN);
        all.push(format!("and {more} more"));
    }
    all
}

/// The selection check of a case, if it is a selection row.
fn selection_of(case: &Case) -> Option<&SelectionCheck> {
    case.checks.iter().find_map(|check| match check.as_ref() {
        Check::Selection(check) => Some(check.as_ref()),
        _ => None,
    })
}

/// The file and line of a row.
fn place(case: &Case) -> String {
    match case.places.first() {
        Some(place) => format!("{}:{}", place.path, place.line),
        None => case.name.clone(),
    }
}

fn misfit(
    case: &Case,
    check: &SelectionCheck,
    tool: &str,
    looked: &[PreflightReport],
) -> Option<String> {
    let is_meant = |report: &&PreflightReport| {
        let server = check.server.as_ref();
        case.uses(&report.seen.server) && server.is_none_or(|server| *server == report.seen.server)
    };
    let meant: Vec<&PreflightReport> = looked.iter().filter(is_meant).collect();
    let offers = |report: &&&PreflightReport| report.offered.tools.iter().any(|one| one == tool);
    let found: Vec<&str> = meant
        .iter()
        .filter(offers)
        .map(|report| report.seen.server.as_str())
        .collect();
    match &found[..] {
        [_] => None,
        [] => {
            let known = meant.iter().flat_map(|report| &report.offered.tools);
            let hint = nearest_hint(tool, known.map(String::as_str));
            let hint = hint.map_or(String::new(), |hint| format!("; {hint}"));
            let who = match &check.server {
                Some(server) => format!("the server `{server}` lists no tool"),
                None => "no server lists a tool".to_owned(),
            };
            Some(format!("{who} `{tool}`{hint}"))
        }
        several => Some(format!(
            "several servers list the tool `{tool}`: {}; name one with `server`",
            listed(several.iter().copied())
        )),
    }
}
