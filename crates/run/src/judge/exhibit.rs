//! Prepares exhibits for the judge: it escapes hidden characters and boundary look-alikes, and
//! shortens long texts.
//!
//! Its main type is [`ExhibitItem`].

use proctor_core::printable::{is_hidden, push_printable};
use proctor_record::json::spelled;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use serde_json::Value;

use super::boundary::Boundary;
use super::{Criterion, Exhibits};

/// The maximum length of an item, from which on its middle is omitted.
const MAX_ITEM: usize = 64 * 1024;

/// How many characters of a judge's text a result shows.
const BRIEF_CHARS: usize = 600;

/// One text that the judge sees as data, such as the answer.
#[derive(Debug)]
pub(super) struct ExhibitItem {
    /// The title, chosen by Proctor.
    pub(super) title: String,
    /// The text before look-alikes of boundaries are escaped.
    text: String,
    /// Whether a quote from it is evidence.
    pub(super) proves: bool,
    /// The number of the call that it belongs to.
    pub(super) seq: Option<u64>,
}

impl ExhibitItem {
    fn new(title: &str, text: &str, proves: bool) -> Self {
        Self {
            title: title.to_owned(),
            text: text.to_owned(),
            proves,
            seq: None,
        }
    }

    /// Whether it has no visible text to quote.
    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// The text as the judge sees it: all of it, or its beginning and end.
    pub(super) fn shown(&self, boundary: &Boundary) -> Vec<String> {
        let show = |text: &str| boundary.keep_out_of(&harmless(text));
        match ends(&self.text) {
            (all, "") => vec![show(all)],
            (head, tail) => vec![show(head), show(tail)],
        }
    }

    /// The number of bytes omitted from the middle.
    pub(super) fn left_out(&self) -> usize {
        let (head, tail) = ends(&self.text);
        self.text.len() - head.len() - tail.len()
    }
}

/// The whole text and an empty one, or the beginning and the end.
fn ends(text: &str) -> (&str, &str) {
    if text.len() <= MAX_ITEM {
        return (text, "");
    }
    let head = text.floor_char_boundary(MAX_ITEM / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_ITEM / 2);
    (&text[..head], &text[tail..])
}

/// The items of a question: the criterion's own first, then the evidence.
pub(super) fn items(criterion: &Criterion, exhibits: &Exhibits<'_>) -> Vec<ExhibitItem> {
    let own = match criterion {
        Criterion::Contains(text) | Criterion::Exact(text) => {
            ExhibitItem::new("reference", text, false)
        }
        Criterion::Rubric(text) => ExhibitItem::new("criterion", text, false),
    };
    let mut items = vec![own, ExhibitItem::new("prompt", exhibits.prompt, false)];
    if let (Criterion::Rubric(_), Some(transcript)) = (criterion, exhibits.transcript) {
        for (number, call) in transcript.calls.iter().enumerate() {
            let about = |what: &str, text: &str| ExhibitItem {
                seq: Some(call.seq),
                ..ExhibitItem::new(&format!("call {} {what}", number + 1), text, true)
            };
            items.push(about("request", &request(call)));
            items.push(about("result", &answer(&call.answer)));
        }
    }
    items.push(ExhibitItem::new("answer", exhibits.answer, true));
    items
}

/// Notes about omitted parts, for the result.
pub(super) fn left_out(criterion: &Criterion, exhibits: &Exhibits<'_>) -> Vec<String> {
    let items = items(criterion, exhibits);
    let mut notes: Vec<String> = items
        .iter()
        .filter(|item| item.left_out() > 0)
        .map(|item| {
            format!(
                "the judge did not see all of the {}: {} of {} bytes were left out",
                item.title,
                item.left_out(),
                item.text.len()
            )
        })
        .collect();
    let unread = unread(criterion, exhibits);
    if unread > 0 {
        notes.push(format!("unreadable messages of the agent: {unread}"));
    }
    notes
}

/// The number of the agent's messages that are missing from the evidence of a rubric.
pub(super) fn unread(criterion: &Criterion, exhibits: &Exhibits<'_>) -> usize {
    match (criterion, exhibits.transcript) {
        (Criterion::Rubric(_), Some(transcript)) => transcript.unread.len(),
        _ => 0,
    }
}

fn request(call: &Call) -> String {
    let (what, name, arguments) = match &call.request {
        CallRequest::Tool { name, arguments } => ("tool", name, Some(arguments)),
        CallRequest::Resource { uri } => ("resource", uri, None),
        CallRequest::Prompt { name, arguments } => ("prompt", name, Some(arguments)),
    };
    let mut text = format!("server: {}\n{what}: {name}", call.server);
    if let Some(arguments) = arguments {
        text.push_str(&format!("\narguments: {}", payload(arguments, json)));
    }
    text
}

fn answer(answer: &CallOutcome) -> String {
    match answer {
        CallOutcome::Result(result) => payload(result, result_text),
        CallOutcome::Error { code, message } => format!("error {code}: {message}"),
        CallOutcome::None => "(never answered)".to_owned(),
    }
}

fn payload(payload: &Payload, show: impl Fn(&Value) -> String) -> String {
    match payload.read() {
        Ok(None) => "(none)".to_owned(),
        Ok(Some(value)) => spelled(&show(value)).into_owned(),
        Err(unread) => format!("(this part {unread})"),
    }
}

fn json(value: &Value) -> String {
    value.to_string()
}

/// The texts of a result unchanged, so that they can be quoted; other content as JSON.
fn result_text(result: &Value) -> String {
    let Some(blocks) = result.get("content").and_then(Value::as_array) else {
        return json(result);
    };
    let mut lines = Vec::new();
    if result.get("isError") == Some(&Value::Bool(true)) {
        lines.push("(the tool says that it failed)".to_owned());
    }
    for block in blocks {
        match (block.get("type").and_then(Value::as_str), block.get("text")) {
            (Some("text"), Some(Value::String(text))) => lines.push(text.clone()),
            _ => lines.push(json(block)),
        }
    }
    if let Some(structured) = result.get("structuredContent") {
        lines.push(json(structured));
    }
    lines.join("\n")
}

/// Escapes hidden characters except line breaks and tabs, and breaks up text that looks like a
/// boundary or a turn marker.
pub(super) fn harmless(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let run = chars[at..]
            .iter()
            .take_while(|n| same_bracket(c, **n))
            .count();
        if run >= 3 || (c == '<' && chars.get(at + 1) == Some(&'|')) {
            for bracket in &chars[at..at + run.max(1)] {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(*bracket)));
            }
            at += run.max(1);
            continue;
        }
        if c == '\n' || c == '\t' || !is_hidden(c) {
            out.push(c);
        } else {
            push_printable(&mut out, c);
        }
        at += 1;
    }
    out
}

/// Whether two characters look like the same opening or closing bracket.
fn same_bracket(a: char, b: char) -> bool {
    const OPEN: &str = "<＜‹«〈〈⟨《⟪≪⋘﹤❮❰˂ᐸ";
    const CLOSE: &str = ">＞›»〉〉⟩》⟫≫⋙﹥❯❱˃ᐳ";
    [OPEN, CLOSE]
        .iter()
        .any(|set| set.contains(a) && set.contains(b))
}

/// A judge's text, shortened and safe to show.
pub(super) fn brief(text: &str) -> String {
    let mut out = String::new();
    for (count, c) in text.trim().chars().enumerate() {
        if count == BRIEF_CHARS {
            out.push('…');
            break;
        }
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            c => push_printable(&mut out, c),
        }
    }
    out
}
