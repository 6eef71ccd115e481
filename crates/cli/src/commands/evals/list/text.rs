//! The text output of `proctor evals list`.

use comfy_table::{ContentArrangement, Table, presets};
use mcp_evals::{EvalFinding, EvalStatus, ListedEval, Severity};
use proctor_core::printable::printable;
use proctor_record::redact::Redactor;
use serde_json::Value;

use crate::commands::counted;
use crate::output;
use proctor_run::engine::offers::ServerOffer;

/// The maximum number of evals shown per server; the rest are counted.
const SHOWN: usize = 1_000;

/// The maximum number of findings shown per server; the rest are counted.
const FINDINGS: usize = 500;

/// The maximum length of a name, in characters.
const NAME: usize = 120;

pub(super) fn render(offers: &[ServerOffer], redactor: &Redactor) -> String {
    let parts: Vec<String> = offers.iter().map(|offer| server(offer, redactor)).collect();
    output::printable_lines(&redactor.text(&parts.join("\n")))
}

fn server(offer: &ServerOffer, redactor: &Redactor) -> String {
    let name = shown(&offer.server.name, redactor);
    if !offer.ships_evals() {
        return format!("{name}: no evals; the server does not declare the capability `evals`\n");
    }
    let places: Vec<String> = offer
        .places
        .iter()
        .map(|place| shown(&place.to_string(), redactor))
        .collect();
    let mut out = format!("{name}: {}\n", tally(offer));
    out.push_str(&format!("  declared in {}\n", places.join(", ")));
    if !offer.evals.is_empty() {
        out.push('\n');
        out.push_str(&table(offer, redactor));
        out.push('\n');
    }
    if offer.evals.len() > SHOWN {
        let more = offer.evals.len() - SHOWN;
        out.push_str(&format!("  and {more} more; `-o json` shows them\n"));
    }
    push_findings(offer, redactor, &mut out);
    out
}

fn tally(offer: &ServerOffer) -> String {
    let of_level = offer.level.map(|level| format!("{level} "));
    let word = format!("{}eval", of_level.unwrap_or_default());
    let count = |wanted| {
        offer
            .statuses()
            .filter(|(_, status)| *status == wanted)
            .count()
    };
    let mut text = counted(offer.evals.len(), &word);
    for (status, what) in [
        (EvalStatus::Invalid, "invalid"),
        (EvalStatus::Skipped, "of unknown type"),
    ] {
        match count(status) {
            0 => {}
            some => text.push_str(&format!(", {some} {what}")),
        }
    }
    text
}

fn table(offer: &ServerOffer, redactor: &Redactor) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(["  ID", "LEVEL", "GRADING", "NAME"]);
    for (index, status) in offer.statuses().take(SHOWN) {
        let item = &offer.evals[index];
        let mark = match status {
            EvalStatus::Valid => " ",
            EvalStatus::Invalid => "!",
            EvalStatus::Skipped => "-",
        };
        let text = |path: &str| {
            let value = item_text(item, path);
            shown(&value, redactor)
        };
        table.add_row([
            format!("{mark} {}", text("/id")),
            text("/input/type"),
            text("/gradingType"),
            text("/name"),
        ]);
    }
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

fn item_text(item: &ListedEval, path: &str) -> String {
    let value = item.to_value();
    let text = value.pointer(path).and_then(Value::as_str);
    text.unwrap_or("?").to_owned()
}

fn push_findings(offer: &ServerOffer, redactor: &Redactor, out: &mut String) {
    let findings = &offer.report.findings;
    if findings.is_empty() {
        return;
    }
    out.push('\n');
    for finding in findings.iter().take(FINDINGS) {
        let line = shown_in_full(&said(finding), redactor);
        out.push_str(&format!("  {line}\n"));
    }
    if findings.len() > FINDINGS {
        let more = findings.len() - FINDINGS;
        out.push_str(&format!("  and {more} more; `-o json` shows them\n"));
    }
}

fn said(finding: &EvalFinding) -> String {
    match finding.severity {
        Severity::Error => format!("! invalid: {finding}"),
        Severity::Skip => format!("- skipped: {finding}"),
        Severity::Warning => format!("  warning: {finding}"),
    }
}

fn shown_in_full(text: &str, redactor: &Redactor) -> String {
    printable(&redactor.text(text)).into_owned()
}

fn shown(text: &str, redactor: &Redactor) -> String {
    let text = shown_in_full(text, redactor);
    match text.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
