//! What a run used of its servers, for people and for scripts: tools with their calls, errors and durations, and
//! what no case touched.

mod document;

use proctor_core::coverage::{
    ArgumentCoverage, CallUse, Coverage, ItemCoverage, ServerCoverage, ToolCoverage,
};
use proctor_core::printable::printable;
use proctor_record::duration;
use proctor_record::event::ServerSeen;
use proctor_record::transcript::CallKind;
use unicode_width::UnicodeWidthStr;

pub use self::document::document;
pub(crate) use self::document::{millis, totals};

use crate::sheet::{Sheet, SheetStyle, width, wrap};
use crate::words;

/// The maximum number of resources or prompts that are named.
const NAMED: usize = 20;

/// A last column that is narrower than this stands below its row.
const NARROW: usize = 16;

/// The columns after the name, with their widths.
const COLUMNS: [(&str, usize); 5] = [
    ("calls", 7),
    ("errors", 6),
    ("mean", 7),
    ("cases", 5),
    ("tokens", 6),
];

/// Renders the coverage as text.
pub fn render(servers: &[ServerSeen], coverage: &Coverage, style: SheetStyle) -> String {
    let mut sheet = Sheet::new(style);
    for server in &coverage.servers {
        let seen = servers.iter().find(|seen| seen.server == server.server);
        let version = seen.and_then(|seen| seen.version.as_deref());
        sheet.blank();
        if server.is_listed {
            sheet.title(&server.server, &headline(server, version));
            tools(&mut sheet, &server.tools);
        } else {
            let text = "the record does not list what the server offers";
            sheet.title(&server.server, text);
        }
        items(&mut sheet, server);
    }
    if coverage.servers.is_empty() {
        sheet.text(0, "The record names no server.");
    }
    notes(&mut sheet, coverage);
    sheet.into_text()
}

/// `1.2.0 · 14 of 36 tools called · schemas: about 9,100 tokens in each model request`.
fn headline(server: &ServerCoverage, version: Option<&str>) -> String {
    let mut facts: Vec<String> = version.map(str::to_owned).into_iter().collect();
    let resources = server.resources.len() + server.templates.len();
    for (used, all, deed) in [
        (server.tools_called(), server.tools.len(), "tools called"),
        (server.resources_read(), resources, "resources read"),
        (server.prompts_used(), server.prompts.len(), "prompts used"),
    ] {
        if all > 0 {
            facts.push(format!("{used} of {all} {deed}"));
        }
    }
    let tokens = words::thousands(server.schema_tokens());
    facts.push(format!(
        "tool schemas: about {tokens} tokens in each model request"
    ));
    facts.join(" · ")
}

/// The table of tools: the most called first, then those that were never called.
fn tools(sheet: &mut Sheet, tools: &[ToolCoverage]) {
    if tools.is_empty() {
        return;
    }
    let mut tools: Vec<&ToolCoverage> = tools.iter().collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.used.calls));
    let names = tools.iter().map(|tool| width(&tool.name));
    let fixed: usize = COLUMNS.iter().map(|(_, width)| width + 2).sum();
    let most = sheet.room(fixed + NARROW).max(20);
    let name_room = names.max().unwrap_or(0).clamp(4, most);
    let titles = COLUMNS.map(|(title, _)| title.to_owned());
    sheet.blank();
    let last = if sheet.room(name_room + fixed + 4) < NARROW {
        ""
    } else {
        "never given"
    };
    row(sheet, name_room, "tool", &titles, last);
    for tool in tools {
        let missing = if tool.used.calls == 0 {
            "(never called)".to_owned()
        } else {
            never_given(&tool.arguments).join(", ")
        };
        let weight = words::thousands(tool.schema_tokens);
        let [calls, errors, mean, cases] = figures(&tool.used);
        row(
            sheet,
            name_room,
            &tool.name,
            &[calls, errors, mean, cases, weight],
            &missing,
        );
    }
}

/// Calls, error rate, mean duration and cases.
fn figures(used: &CallUse) -> [String; 4] {
    if used.calls == 0 {
        return std::array::from_fn(|_| "–".to_owned());
    }
    let mean = used.mean().map_or("–".to_owned(), duration::brief);
    [
        words::thousands(used.calls),
        share(used.errors, used.calls),
        mean,
        words::thousands(used.cases as u64),
    ]
}

/// A share in percent. Some are never shown as none or all.
fn share(part: u64, all: u64) -> String {
    match (part, all) {
        (0, _) => "0%".to_owned(),
        (part, all) if part == all => "100%".to_owned(),
        (part, all) => format!("{}%", (part * 100 / all).clamp(1, 99)),
    }
}

fn row(sheet: &mut Sheet, name_room: usize, name: &str, cells: &[String; 5], last: &str) {
    let printed = printable(name).into_owned();
    let mut line = if printed.width() > name_room {
        sheet.line(2, &printed);
        " ".repeat(name_room + 2)
    } else {
        format!("  {printed}{}", " ".repeat(name_room - printed.width()))
    };
    for ((_, room), cell) in COLUMNS.iter().zip(cells) {
        let gap = " ".repeat(room.saturating_sub(cell.width()));
        line.push_str(&format!("  {gap}{cell}"));
    }
    let indent = line.width() + 2;
    let last = printable(last).into_owned();
    if sheet.room(indent) < NARROW {
        sheet.raw(&line);
        if !last.is_empty() {
            sheet.text(6, &last);
        }
        return;
    }
    let mut lines = wrap(&last, sheet.room(indent) - 1).into_iter();
    sheet.raw(&format!("{line}  {}", lines.next().unwrap_or_default()));
    for more in lines {
        sheet.raw(&format!("{}{more}", " ".repeat(indent)));
    }
}

/// The arguments that no call gave, and the enum values that no call gave: `limit`, `format="xml"`.
fn never_given(arguments: &[ArgumentCoverage]) -> Vec<String> {
    fn collect(arguments: &[ArgumentCoverage], prefix: &str, out: &mut Vec<String>) {
        for argument in arguments {
            let path = format!("{prefix}{}", argument.name);
            if argument.given == 0 {
                out.push(path);
                continue;
            }
            let values = argument.values.iter().filter(|value| value.given == 0);
            out.extend(values.map(|value| format!("{path}={}", value.value)));
            collect(&argument.arguments, &format!("{path}."), out);
        }
    }
    let mut out = Vec::new();
    collect(arguments, "", &mut out);
    out
}

/// The resources and prompts that no case touched, and calls of what the server does not list.
fn items(sheet: &mut Sheet, server: &ServerCoverage) {
    let unread = |items: &[ItemCoverage]| -> Vec<String> {
        let unused = items.iter().filter(|item| item.used.calls == 0);
        unused.map(|item| item.name.clone()).collect()
    };
    let unused = server
        .prompts
        .iter()
        .filter(|prompt| prompt.used.calls == 0);
    let prompts: Vec<String> = unused.map(|prompt| prompt.name.clone()).collect();
    let called = server.prompts.iter().filter(|prompt| prompt.used.calls > 0);
    let arguments = called.flat_map(|prompt| {
        let missing = never_given(&prompt.arguments).into_iter();
        missing.map(|argument| format!("{}.{argument}", prompt.name))
    });
    let unlisted = server.unlisted.iter().map(|(kind, item)| {
        let calls = words::count(item.used.calls, "call");
        format!("{} {} ({calls})", noun(*kind), item.name)
    });
    for (title, names) in [
        ("Resources never read", unread(&server.resources)),
        ("Templates never read", unread(&server.templates)),
        ("Prompts never used", prompts),
        ("Prompt arguments never given", arguments.collect()),
        ("Called, but not listed by the server", unlisted.collect()),
    ] {
        if names.is_empty() {
            continue;
        }
        sheet.blank();
        sheet.line(2, &format!("{title}: {}", names.len()));
        for name in names.iter().take(NAMED) {
            sheet.line(4, name);
        }
        if names.len() > NAMED {
            sheet.line(4, &format!("… and {} more", names.len() - NAMED));
        }
    }
}

fn noun(kind: CallKind) -> &'static str {
    match kind {
        CallKind::Tool => "tool",
        CallKind::Resource => "resource",
        CallKind::Prompt => "prompt",
    }
}

fn notes(sheet: &mut Sheet, coverage: &Coverage) {
    sheet.blank();
    sheet.text(
        0,
        "Tokens are an estimate: a quarter of the bytes of a tool's name, description and schema.",
    );
    if coverage.other_calls > 0 {
        let calls = words::count(coverage.other_calls, "call");
        sheet.text(
            0,
            &format!("{calls} not included: a trial called more than 256 targets."),
        );
    }
    match coverage.unread_arguments {
        None | Some(0) => {}
        Some(unread) => {
            let calls = words::count(unread, "call");
            sheet.text(
                0,
                &format!("The arguments of {calls} can't be read, so more may have been given."),
            );
        }
    }
}
