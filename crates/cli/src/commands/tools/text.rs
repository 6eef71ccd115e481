//! The text output of `proctor tools`.

use std::borrow::Cow;
use std::fmt::Write;

use anstyle::Style;
use proctor_core::printable::printable;
use proctor_record::json;
use serde_json::Value;
use serde_json::value::RawValue;
use unicode_width::UnicodeWidthStr;

use super::ServerOverview;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// The approximate number of JSON characters per token.
const CHARACTERS_A_TOKEN: usize = 4;

/// The maximum number of findings of lint; `proctor lint` shows all.
const LINT_LINES: usize = 10;

pub(super) fn render(offer: &ServerOverview) -> String {
    let mut out = String::new();
    // Writing to a string can't fail.
    let _ = write_all(offer, &mut out);
    out.lines()
        .flat_map(|line| [line.trim_end(), "\n"])
        .collect()
}

fn write_all(offer: &ServerOverview, out: &mut String) -> std::fmt::Result {
    write_identity(offer, out)?;
    let tokens: usize = offer.tools.iter().map(|tool| tokens(tool)).sum();
    write_section("Tools", &offer.tools, Some(tokens), out, write_tool)?;
    write_section("Resources", &offer.resources, None, out, |v, _, out| {
        write_line(v, "uri", out)
    })?;
    write_section(
        "Resource templates",
        &offer.resource_templates,
        None,
        out,
        |v, _, out| write_line(v, "uriTemplate", out),
    )?;
    write_section("Prompts", &offer.prompts, None, out, |v, _, out| {
        write_prompt(v, out)
    })?;
    write_lint(offer, out)?;
    if !offer.findings.is_empty() {
        writeln!(out, "\n{BOLD}Protocol problems{BOLD:#}")?;
        for finding in &offer.findings {
            let times = if finding.count > 1 {
                format!(" ({} times)", finding.count)
            } else {
                String::new()
            };
            writeln!(out, "  {}{times}", printable(&finding.detail))?;
        }
    }
    Ok(())
}

/// The findings of lint, the most severe first.
fn write_lint(offer: &ServerOverview, out: &mut String) -> std::fmt::Result {
    if offer.lint.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n{BOLD}Lint{BOLD:#} ({})", offer.lint.len())?;
    for finding in offer.lint.iter().take(LINT_LINES) {
        writeln!(
            out,
            "  {:<7} {}: {} {DIM}({}){DIM:#}",
            finding.rule.severity().word(),
            printable(&finding.place),
            printable(&finding.message),
            finding.rule.id()
        )?;
    }
    let left = offer.lint.len().saturating_sub(LINT_LINES);
    if left > 0 {
        writeln!(out, "  {left} more: run `proctor lint`")?;
    }
    Ok(())
}

fn write_identity(offer: &ServerOverview, out: &mut String) -> std::fmt::Result {
    let identity = &offer.identity;
    let name = identity.name.as_deref().unwrap_or("(no server name)");
    let version = identity.version.as_deref().unwrap_or("");
    writeln!(
        out,
        "{BOLD}{}{BOLD:#} {}",
        printable(name),
        printable(version)
    )?;
    writeln!(
        out,
        "  protocol      {} ({})",
        printable(&offer.protocol),
        offer.era
    )?;
    let capabilities: Vec<String> = identity
        .capabilities
        .iter()
        .map(|(name, value)| capability(name, value))
        .collect();
    let capabilities = if capabilities.is_empty() {
        "none".to_owned()
    } else {
        capabilities.join(", ")
    };
    writeln!(out, "  capabilities  {capabilities}")?;
    if let Some(instructions) = &identity.instructions {
        let first = instructions
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("");
        let more = if instructions.trim().lines().count() > 1 {
            " …"
        } else {
            ""
        };
        writeln!(
            out,
            "  instructions  {}{more}",
            printable(&shortened(first, 200))
        )?;
    }
    Ok(())
}

/// A capability with what it adds: `resources (subscribe, listChanged)`.
fn capability(name: &str, value: &Value) -> String {
    let details: Vec<String> = value
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, value)| **value != Value::Bool(false))
        .map(|(key, _)| printable(key).into_owned())
        .collect();
    let name = printable(name);
    if details.is_empty() {
        name.into_owned()
    } else {
        format!("{name} ({})", details.join(", "))
    }
}

fn write_section(
    title: &str,
    items: &[Box<RawValue>],
    tokens: Option<usize>,
    out: &mut String,
    write_item: impl Fn(&Value, &RawValue, &mut String) -> std::fmt::Result,
) -> std::fmt::Result {
    if items.is_empty() {
        return Ok(());
    }
    let weight = tokens.map_or(String::new(), |t| format!(", about {t} tokens"));
    writeln!(out, "\n{BOLD}{title}{BOLD:#} ({}{weight})", items.len())?;
    for raw in items {
        match json::from_str(raw.get()) {
            Ok(value) => write_item(&value, raw, out)?,
            Err(_) => writeln!(out, "  {}", printable(&shortened(raw.get(), 200)))?,
        }
    }
    Ok(())
}

fn write_tool(tool: &Value, raw: &RawValue, out: &mut String) -> std::fmt::Result {
    let name = text(tool, "name").unwrap_or("(no name)");
    let mut notes = vec![format!("~{} tokens", tokens(raw))];
    notes.extend(annotations(tool));
    writeln!(
        out,
        "  {BOLD}{}{BOLD:#}  {DIM}{}{DIM:#}",
        printable(name),
        notes.join(", ")
    )?;
    if let Some(description) = text(tool, "description") {
        let first = description
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("");
        writeln!(
            out,
            "    {}",
            printable(&shortened(first.trim(), width().saturating_sub(5)))
        )?;
    }
    let schema = tool.get("inputSchema");
    let required: Vec<&str> = schema
        .and_then(|s| s.get("required")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let arguments = schema.and_then(|s| s.get("properties")?.as_object());
    let mut arguments: Vec<Argument<'_>> = arguments
        .into_iter()
        .flatten()
        .map(|(name, schema)| Argument {
            name: printable(name),
            kind: printable(&kind(schema)).into_owned(),
            is_required: required.contains(&name.as_str()),
            about: text(schema, "description")
                .unwrap_or("")
                .lines()
                .next()
                .unwrap_or(""),
        })
        .collect();
    // Required arguments first, each group in alphabetical order.
    arguments.sort_by_key(|argument| !argument.is_required);
    let names = arguments.iter().map(|a| a.name.width()).max().unwrap_or(0);
    for argument in arguments {
        let need = if argument.is_required {
            ""
        } else {
            ", optional"
        };
        let gap = " ".repeat(names - argument.name.width());
        let head = format!("      {}{gap}  {}{need}", argument.name, argument.kind);
        let room = width().saturating_sub(head.width() + 2).max(20);
        writeln!(
            out,
            "      {}{gap}  {DIM}{}{need}{DIM:#}  {}",
            argument.name,
            argument.kind,
            printable(&shortened(argument.about, room - 1))
        )?;
    }
    Ok(())
}

/// One line of the list of a tool's arguments.
struct Argument<'a> {
    name: Cow<'a, str>,
    kind: String,
    is_required: bool,
    about: &'a str,
}

/// The width of the terminal, or 160 for files and pipes.
fn width() -> usize {
    terminal_size::terminal_size().map_or(160, |(width, _)| usize::from(width.0))
}

/// The annotations of a tool. Proctor does not verify them.
fn annotations(tool: &Value) -> Vec<String> {
    const HINTS: [(&str, &str); 4] = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "open world"),
    ];
    let Some(given) = tool.get("annotations") else {
        return vec!["no annotations".to_owned()];
    };
    let says = |hint: &&(&str, &str)| given.get(hint.0).and_then(Value::as_bool) == Some(true);
    HINTS
        .iter()
        .filter(says)
        .map(|(_, word)| (*word).to_owned())
        .collect()
}

/// The type of an argument, as short text.
fn kind(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let values: Vec<String> = values.iter().take(8).map(Value::to_string).collect();
        return values.join(" | ");
    }
    let choices = schema.get("anyOf").or_else(|| schema.get("oneOf"));
    if let Some(choices) = choices.and_then(Value::as_array) {
        let kinds: Vec<String> = choices.iter().take(8).map(kind).collect();
        return kinds.join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join(" | ")
        }
        _ => "any".to_owned(),
    }
}

fn write_line(item: &Value, key: &str, out: &mut String) -> std::fmt::Result {
    let id = text(item, key).unwrap_or("(none)");
    let about = text(item, "description")
        .or_else(|| text(item, "name"))
        .unwrap_or("");
    let about = about.lines().next().unwrap_or("");
    writeln!(
        out,
        "  {BOLD}{}{BOLD:#}  {}",
        printable(id),
        printable(&shortened(about, 120))
    )
}

fn write_prompt(prompt: &Value, out: &mut String) -> std::fmt::Result {
    let arguments: Vec<String> = prompt
        .get("arguments")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|argument| {
            let name = printable(text(argument, "name")?).into_owned();
            let required = argument.get("required").and_then(Value::as_bool) == Some(true);
            Some(if required { name } else { format!("{name}?") })
        })
        .collect();
    let name = text(prompt, "name").unwrap_or("(no name)");
    let about = text(prompt, "description").unwrap_or("");
    writeln!(
        out,
        "  {BOLD}{}{BOLD:#}({})  {}",
        printable(name),
        arguments.join(", "),
        printable(&shortened(about, 120))
    )
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

/// The approximate number of tokens of a tool in each model request.
fn tokens(raw: &RawValue) -> usize {
    raw.get().len().div_ceil(CHARACTERS_A_TOKEN)
}

fn shortened(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(chars).collect();
    format!("{head}…")
}
