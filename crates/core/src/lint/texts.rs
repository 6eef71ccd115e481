//! Rules on the texts that a model reads.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proctor_record::json;
use regex::Regex;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Findings, LintRule, LintedServer, LintedTool, names};
use crate::printable::is_hidden;

/// Orders to a model, which a description of a tool has no need for.
const ORDERS: [(&str, &str); 9] = [
    (
        "a tag that looks like part of the prompt",
        r"(?i)</?\s*(important|system|instructions?|secret|hidden|admin|assistant)\s*/?>|\[\s*(system|inst)\s*\]|<\|im_start\|>",
    ),
    (
        "an order to ignore other instructions",
        r"(?i)\b(ignore|disregard|forget|override)\b.{0,30}\b(previous|prior|above|earlier|preceding|other|all|your|system)\b.{0,30}\b(instructions?|prompts?|rules|guidelines|messages|directions)\b",
    ),
    (
        "an order to hide something from the user",
        r"(?i)\b(do not|don't|never|without|avoid)\s+(ever\s+)?(tell(ing)?|mention(ing)?|inform(ing)?|notify(ing)?|reveal(ing)?|show(ing)?|alert(ing)?|ask(ing)?|disclos(e|ing))\b.{0,50}\b(the\s+)?users?\b|\b(do not|don't|never)\s+mention\s+(this|that|it)\b",
    ),
    (
        "a path of keys or passwords",
        r"(?i)(~|/home/\S+|/root)?/?\.(ssh|aws|netrc|gnupg|cursor)/|\bid_(rsa|ed25519)\b|/etc/(passwd|shadow)|\bmcp\.json\b",
    ),
    (
        "an order to pass on secrets or the conversation",
        r"(?i)\b(send|forward|upload|post|copy|append|include|pass|exfiltrate|leak)\b.{0,60}\b(conversation|chat history|credentials?|api[ _-]?keys?|passwords?|private keys?|environment variables?|system prompt)\b",
    ),
    (
        "an order about the system prompt",
        r"(?i)\b(reveal|print|repeat|output|include|return|show|your)\b.{0,30}\bsystem prompt\b",
    ),
    (
        "a claim to priority over other tools",
        r"(?i)\b(always|must|only)\b.{0,20}\b(use|call|prefer|choose|select)\b.{0,20}\bthis tool\b.{0,40}\b(instead|before|over|first|regardless|any|every|all)\b|\bthis tool\b.{0,30}\b(takes?|has)\b.{0,10}\b(priority|precedence)\b",
    ),
    (
        "an order for calls of other tools",
        r"(?i)\b(before|after|whenever|when)\b.{0,20}\b(using|calling|invoking|you (use|call))\b.{0,30}\b(any|other|another|every|all)\b.{0,20}\btools?\b.{0,120}\b(must|always|first|read|send|call)\b",
    ),
    (
        "an order to the model",
        r"(?i)\b(as an ai|you are now|your new (task|role|instructions)|new instructions:|important instructions? (for|to) the (ai|model|assistant|llm))\b",
    ),
];

static ORDER_PATTERNS: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
    let compiled = ORDERS.iter().filter_map(|(what, pattern)| {
        let pattern = Regex::new(pattern).ok()?;
        Some((*what, pattern))
    });
    compiled.collect()
});

pub(super) fn tool(tool: &LintedTool<'_>, found: &mut Findings) {
    let place = tool.place();
    let description = tool.description();
    if description.is_empty() {
        let message = "the tool has no description";
        found.add(LintRule::MissingDescription, tool.server, &place, message);
    } else if names::words(description) == names::words(&tool.name) {
        let message = "the description says no more than the name";
        found.add(LintRule::MissingDescription, tool.server, &place, message);
    }
    read(tool.server, &place, &tool.value, found);
}

/// The texts of a server besides its tools.
pub(super) fn surface(server: &LintedServer, found: &mut Findings) {
    let surface = &server.surface;
    if let Some(instructions) = &surface.instructions {
        let text = Value::from(instructions.as_str());
        read(&server.name, "instructions", &text, found);
    }
    let lists = [
        ("prompts", "name", &surface.prompts),
        ("resources", "uri", &surface.resources),
        (
            "resourceTemplates",
            "uriTemplate",
            &surface.resource_templates,
        ),
    ];
    for (list, key, items) in lists {
        for item in items {
            if let Some((name, value)) = named(item, key) {
                read(&server.name, &format!("{list}/{name}"), &value, found);
            }
        }
    }
}

fn named(item: &RawValue, key: &str) -> Option<(String, Value)> {
    let value: Value = json::from_str(item.get()).ok()?;
    let name = value.get(key)?.as_str()?.to_owned();
    Some((name, value))
}

/// The rules on every text of an item, at most one finding per rule and place.
fn read(server: &str, place: &str, value: &Value, found: &mut Findings) {
    let mut texts = Vec::new();
    gather(value, &mut texts);
    let hidden: BTreeSet<char> = texts.iter().flat_map(|text| hidden(text)).collect();
    if !hidden.is_empty() {
        let hidden: Vec<String> = hidden
            .iter()
            .take(8)
            .map(|c| format!("U+{:04X}", u32::from(*c)))
            .collect();
        let message = format!("hidden characters: {}", hidden.join(", "));
        found.add(LintRule::HiddenCharacters, server, place, message);
    }
    for (what, pattern) in ORDER_PATTERNS.iter() {
        // Line breaks and hidden characters must not split an order.
        let flat = |text: &&str| -> String {
            let kept = text.chars().filter(|c| !is_hidden(*c) || c.is_whitespace());
            let kept: String = kept.collect();
            kept.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let order = texts.iter().map(flat).find_map(|text| {
            let order = pattern.find(&text)?.as_str().to_owned();
            Some(order)
        });
        if let Some(order) = order {
            let order = proctor_record::json::brief(&Value::from(order));
            let message = format!("{what}: {order}");
            found.add(LintRule::ModelInstructions, server, place, message);
        }
    }
}

/// All texts of a value, keys too.
fn gather<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(list) => list.iter().for_each(|part| gather(part, found)),
        Value::Object(map) => {
            for (key, part) in map {
                found.push(key);
                gather(part, found);
            }
        }
        _ => {}
    }
}

/// The hidden characters of a text, without line breaks and without those that emojis consist of.
fn hidden(text: &str) -> Vec<char> {
    let all: Vec<char> = text.chars().collect();
    let is_sign = |c: Option<&char>| c.is_some_and(|c| *c >= '\u{2000}' && !is_hidden(*c));
    let is_keycap =
        |c: Option<&char>| c.is_some_and(|c| c.is_ascii_digit() || matches!(c, '#' | '*'));
    let found = all.iter().enumerate().filter(|(at, c)| {
        let before = at.checked_sub(1).and_then(|at| all.get(at));
        let in_emoji = match **c {
            '\u{fe0f}' => is_sign(before) || is_keycap(before),
            '\u{200d}' => {
                is_sign(all.get(at + 1)) && (is_sign(before) || before == Some(&'\u{fe0f}'))
            }
            _ => false,
        };
        is_hidden(**c) && !matches!(**c, '\n' | '\r' | '\t') && !in_emoji
    });
    found.map(|(_, c)| *c).collect()
}

/// Words that don't tell two descriptions apart.
const FILLERS: [&str; 12] = [
    "a", "an", "and", "by", "for", "in", "of", "on", "or", "the", "to", "with",
];

/// Tools whose descriptions say the same, but for their small words, plurals and punctuation.
pub(super) fn all(tools: &[LintedTool<'_>], found: &mut Findings) {
    let folded: Vec<String> = tools
        .iter()
        .map(|tool| folded(tool.description()))
        .collect();
    for (at, tool) in tools.iter().enumerate() {
        let is_same = |other: &usize| !folded[at].is_empty() && folded[*other] == folded[at];
        if let Some(other) = (0..at).find(is_same) {
            let other = &tools[other];
            let whose = if other.server == tool.server {
                format!("`{}`", other.name)
            } else {
                format!("`{}` of the server `{}`", other.name, other.server)
            };
            let message = format!("the description says the same as that of {whose}");
            found.add(
                LintRule::SimilarDescriptions,
                tool.server,
                &tool.place(),
                message,
            );
        }
    }
}

fn folded(description: &str) -> String {
    let words = names::words(description).into_iter();
    let words = words.filter(|word| !FILLERS.contains(&word.as_str()));
    let words: Vec<String> = words
        .map(|word| word.trim_end_matches('s').to_owned())
        .collect();
    words.join(" ")
}

/// Whether a text names an argument.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}
