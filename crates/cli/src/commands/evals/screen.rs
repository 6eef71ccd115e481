//! The consent screen: every call that Proctor would make, grouped by tool.
//!
//! All text of a server is escaped and never starts a line, and everything that is left out is counted. The
//! screen is plain text of up to 80 columns.

use std::collections::BTreeMap;

use mcp_evals::{Eval, Input};
use proctor_core::printable::printable;
use proctor_core::suite::server::{Transport, command_line};
use proctor_record::redact::Redactor;
use serde_json::{Map, Value};
use unicode_width::UnicodeWidthChar;

use proctor_record::hint::counted;
use proctor_run::engine::consent::{ConsentOptions, ConsentPurpose, call, given};
use proctor_run::engine::evals::turns;
use proctor_run::engine::offers::{Effect, EvalPlan, ServerOffer};

const WIDTH: usize = 80;

/// The maximum length of a text, in characters.
const TEXT: usize = 4_000;

/// The maximum number of calls, tools or evals in each list.
const SHOWN: usize = 500;

const HOW_TO_SEE: &str = "see `proctor evals list -o json`";

/// Renders the screen for all servers.
pub(in crate::commands) fn render(
    planned: &[EvalPlan<'_>],
    options: &ConsentOptions<'_>,
) -> String {
    let mut screen = ConsentScreen {
        out: String::new(),
        redactor: options.redactor,
    };
    let planned: Vec<&EvalPlan<'_>> = planned.iter().filter(|p| !p.evals.is_empty()).collect();
    for planned in &planned {
        screen.server(planned, options);
    }
    let asks_a_model = planned.iter().flat_map(|planned| &planned.evals);
    if asks_a_model.clone().any(|eval| call(eval).is_none()) {
        screen.line(0, &format!("Model: {}", named(options.model)));
    }
    let is_judged = |eval: &&&Eval| eval.grading_type.as_str() == "llm-as-judge";
    if asks_a_model.clone().any(|eval| is_judged(&eval)) {
        screen.line(0, &format!("Judge: {}", named(options.judge)));
    }
    screen.out
}

fn named(model: Option<&str>) -> &str {
    model.unwrap_or("none given")
}

/// A text, or its start and how much is missing.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT) {
        Some((end, _)) => {
            let more = text[end..].chars().count();
            format!("{}… ({more} more characters; {HOW_TO_SEE})", &text[..end])
        }
        None => text.to_owned(),
    }
}

/// An execution eval, and the arguments of its call.
type ShownCall<'a> = (&'a Eval, &'a Map<String, Value>);

struct ConsentScreen<'a> {
    out: String,
    redactor: &'a Redactor,
}

impl ConsentScreen<'_> {
    fn server(&mut self, planned: &EvalPlan<'_>, options: &ConsentOptions<'_>) {
        let EvalPlan { offer, evals } = planned;
        let name = self.shown(&offer.server.name);
        let heading = match options.purpose {
            ConsentPurpose::Run => format!("`{name}`: {} to run", counted(evals.len(), "eval")),
            ConsentPurpose::Write => format!(
                "`{name}`: {} to make, twice each",
                counted(evals.len(), "call")
            ),
        };
        self.line(0, &heading);
        self.target(offer);
        if options.runs > 1 {
            self.line(2, &format!("Each eval runs {} times.", options.runs));
        }
        self.blank();
        self.calls(offer, evals);
        self.scenarios(offer, evals, options.max_turns);
        let asked = ids(evals, |input| matches!(input, Input::Invocation(_)));
        if !asked.is_empty() {
            self.line(2, "A model chooses a tool, but Proctor does not call it:");
            self.names(4, &asked);
            self.blank();
        }
    }

    fn target(&mut self, offer: &ServerOffer) {
        let given = given(&offer.server);
        match &offer.server.transport {
            Transport::Stdio {
                command,
                args,
                folder,
                cwd,
                ..
            } => {
                let words = std::iter::once(command).chain(args).map(String::as_str);
                let command = self.shown(&command_line(words));
                self.line(2, &format!("Command: {command}"));
                let folder = match cwd {
                    Some(cwd) if cwd.starts_with("{trial.dir}") => cwd.clone(),
                    Some(cwd) => folder.join(cwd).display().to_string(),
                    None => folder.display().to_string(),
                };
                let folder = self.shown(&folder);
                self.line(2, &format!("Working directory: {folder}"));
            }
            Transport::Http { url, .. } | Transport::Sse { url, .. } => {
                let url = self.shown(url);
                self.line(2, &format!("URL: {url}"));
            }
        }
        if !given.is_empty() {
            let given = self.shown(&given.join(", "));
            self.line(2, &format!("Passed to it: {given} (values are hidden)"));
        }
    }

    /// Lists the calls of execution evals, the most dangerous tools first.
    fn calls(&mut self, offer: &ServerOffer, evals: &[&Eval]) {
        let mut tools: BTreeMap<(Effect, &str), Vec<ShownCall<'_>>> = BTreeMap::new();
        let effects = offer.effects();
        for eval in evals {
            if let Some((tool, arguments)) = call(eval) {
                let effect = effects.get(tool).copied().unwrap_or(Effect::Unknown);
                let calls = tools.entry((effect, tool)).or_default();
                calls.push((*eval, arguments));
            }
        }
        if tools.is_empty() {
            return;
        }
        self.line(2, "Proctor will make these calls with exactly these arguments. The notes after the tool names come from the server and are not verified.");
        self.blank();
        let total: usize = tools.values().map(Vec::len).sum();
        let mut left = SHOWN;
        for ((effect, name), calls) in tools {
            if left == 0 {
                break;
            }
            self.tool(offer, name, effect);
            for (eval, arguments) in calls.into_iter().take(left) {
                let id = self.shown(&eval.id);
                self.line(4, &format!("`{id}`"));
                self.description(eval);
                let arguments = self.shown(&Value::Object(arguments.clone()).to_string());
                self.line(6, &arguments);
                left -= 1;
            }
            self.blank();
        }
        self.rest(total, "call");
    }

    fn tool(&mut self, offer: &ServerOffer, name: &str, effect: Effect) {
        let tool = offer.tool(name);
        let shown = self.shown(name);
        let note = match (tool, effect) {
            (None, _) => "[UNKNOWN] not in the server's tool list",
            (_, Effect::Destructive) => "[DESTRUCTIVE] marked destructive",
            (_, Effect::Unknown) => "[UNKNOWN] not marked, may be destructive",
            (_, Effect::Additive) => "marked non-destructive, may change things",
            (_, Effect::ReadOnly) => "marked read-only",
        };
        self.line(2, &format!("`{shown}`: {note}"));
        if let Some(annotations) = tool.and_then(|tool| tool.get("annotations")) {
            let annotations = self.shown(&annotations.to_string());
            self.line(4, &format!("annotations: {annotations}"));
        }
    }

    /// Lists scenario evals, and the tools that their model may call.
    fn scenarios(&mut self, offer: &ServerOffer, evals: &[&Eval], max_turns: Option<u32>) {
        let mut scenarios = Vec::new();
        for eval in evals {
            if let Input::Scenario(input) = &eval.input {
                scenarios.push((*eval, &input.messages));
            }
        }
        if scenarios.is_empty() {
            return;
        }
        self.line(2, "A model works on its own in:");
        for (eval, messages) in scenarios.iter().take(SHOWN) {
            let id = self.shown(&eval.id);
            let turns = counted(turns(eval, max_turns) as usize, "turn");
            self.line(4, &format!("`{id}`, up to {turns}"));
            self.description(eval);
            for message in *messages {
                let role = message.role.as_str();
                let said = self.shown(&said(message));
                self.line(6, &format!("{role}: {said}"));
            }
        }
        self.rest(scenarios.len(), "eval");
        self.line(
            2,
            "The model may call any of these tools, with any arguments:",
        );
        let mut tools: Vec<(Effect, &str)> = offer
            .tools
            .iter()
            .map(|tool| {
                let name = tool.get("name").and_then(Value::as_str).unwrap_or("");
                (Effect::of(tool), name)
            })
            .collect();
        tools.sort_unstable();
        for (effect, name) in tools.iter().take(SHOWN) {
            let mark = match effect {
                Effect::Destructive => " [DESTRUCTIVE]",
                Effect::Unknown => " [UNKNOWN]",
                Effect::Additive => " (marked non-destructive)",
                Effect::ReadOnly => " (marked read-only)",
            };
            let name = self.shown(name);
            self.line(4, &format!("`{name}`{mark}"));
        }
        self.rest(tools.len(), "tool");
        self.blank();
    }

    /// Shows the server's description of an eval, which may mention destructive operations.
    fn description(&mut self, eval: &Eval) {
        if let Some(description) = &eval.description {
            let description = self.shown(description);
            self.line(6, &format!("Description: {description}"));
        }
    }

    fn names(&mut self, indent: usize, names: &[&str]) {
        let shown: Vec<String> = names
            .iter()
            .take(SHOWN)
            .map(|name| format!("`{}`", self.shown(name)))
            .collect();
        self.line(indent, &shown.join(", "));
        self.rest(names.len(), "eval");
    }

    fn rest(&mut self, total: usize, word: &str) {
        if total > SHOWN {
            let more = counted(total - SHOWN, &format!("more {word}"));
            self.line(2, &format!("and {more}; {HOW_TO_SEE}"));
            self.blank();
        }
    }

    /// A text of the server: redacted, escaped and shortened.
    fn shown(&self, text: &str) -> String {
        shortened(&printable(&self.redactor.text(text)))
    }

    fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Appends a line, wrapped if it is too long.
    fn line(&mut self, indent: usize, text: &str) {
        let pad = " ".repeat(indent);
        for (at, part) in wrapped(text, WIDTH - indent - 2).iter().enumerate() {
            let deeper = if at == 0 { "" } else { "  " };
            self.out.push_str(&format!("{pad}{deeper}{part}\n"));
        }
    }
}

/// The texts of a message, with `[image]` and the like for other content.
fn said(message: &mcp_evals::Message) -> String {
    let blocks = message.content.blocks().iter();
    let texts = blocks.map(|block| match block {
        mcp_evals::Content::Text(text) => text.text.clone(),
        other => format!("[{}]", other.kind()),
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn ids<'a>(evals: &[&'a Eval], is_meant: impl Fn(&Input) -> bool) -> Vec<&'a str> {
    let meant = evals.iter().filter(|eval| is_meant(&eval.input));
    meant.map(|eval| eval.id.as_str()).collect()
}

/// Wraps a text at spaces, or within a word that is too long.
fn wrapped(text: &str, width: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let mut used = 0;
        let mut space = None;
        let mut end = rest.len();
        for (at, c) in rest.char_indices() {
            used += c.width().unwrap_or(0);
            if used > width && at > 0 {
                end = at;
                break;
            }
            if c == ' ' && at > 0 {
                space = Some(at);
            }
        }
        if end == rest.len() {
            parts.push(rest);
            return parts;
        }
        // A space further back than half a line would waste more than it helps.
        let cut = space
            .filter(|space| *space > end / 2)
            .map_or(end, |space| space + 1);
        parts.push(rest[..cut].trim_end_matches(' '));
        rest = &rest[cut..];
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::samples::{asking, execution, offer};
    use super::*;
    use proctor_run::engine::offers::EvalSelection;

    fn screen(tools: &[Value], evals: &[Value]) -> String {
        let offer = offer(tools, evals);
        let redactor = Redactor::default();
        let options = ConsentOptions {
            purpose: ConsentPurpose::Run,
            yes: false,
            file: None,
            model: Some("openai:gpt-5"),
            judge: None,
            runs: 1,
            max_turns: None,
            redactor: &redactor,
        };
        render(&[offer.plan(&EvalSelection::default())], &options)
    }

    #[test]
    fn e28_the_screen_shows_calls_grouped_by_tool() {
        let tools = [
            json!({"name": "look", "annotations": {"readOnlyHint": true}}),
            json!({"name": "drop", "annotations": {"destructiveHint": true}}),
            json!({"name": "add", "annotations": {"destructiveHint": false}}),
            json!({"name": "touch"}),
        ];
        let evals = [
            execution("looks", "look", &json!({"at": "x".repeat(100)})),
            execution("drops", "drop", &json!({})),
            execution("touches", "touch", &json!({"a": 1})),
            execution("ghost", "gone", &json!({})),
            execution("touches-again", "touch", &json!({"a": [1, 2]})),
            asking("picks", "invocation"),
            asking("works", "scenario"),
        ];
        insta::assert_snapshot!(screen(&tools, &evals));
    }

    #[test]
    fn e32_text_of_a_server_is_escaped_on_the_screen() {
        let evil = "a\u{1b}[2J\u{202e}b\n`ok`: marked read-only by server\r\u{200b}";
        let text = screen(
            &[json!({"name": evil, "annotations": {"title": evil}})],
            &[
                execution(
                    evil,
                    evil,
                    &json!({evil: evil, "env": "$HOME {{env.HOME}} ${HOME}"}),
                ),
                asking(&format!("{evil}2"), "scenario"),
            ],
        );
        let hidden = |c: char| c != '\n' && proctor_core::printable::is_hidden(c);
        assert!(!text.contains(hidden), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("`ok`")), "{text}");
        assert!(text.contains("$HOME {{env.HOME}} ${HOME}"), "{text}");
    }

    #[test]
    fn e28_nothing_is_left_out_without_a_count() {
        let long = execution("long", "t", &json!({"x": "y".repeat(TEXT)}));
        let text = screen(&[], &[long]);
        assert!(text.contains("(8 more characters; "), "{text}");
        let evals: Vec<Value> = (0..SHOWN + 3)
            .map(|at| execution(&at.to_string(), "t", &json!({})))
            .collect();
        let text = screen(&[], &evals);
        assert!(text.contains("and 3 more calls; "), "{text}");
    }

    #[test]
    fn long_lines_are_broken_at_spaces_and_lose_nothing() {
        let check = |text: &str, expected: &[&str]| assert_eq!(wrapped(text, 10), expected);
        check("", &[""]);
        check("1234567890", &["1234567890"]);
        check("12345678901", &["1234567890", "1"]);
        check("1234567 901 3", &["1234567", "901 3"]);
        check("1 34567890123", &["1 34567890", "123"]);
        check("漢漢漢漢漢漢", &["漢漢漢漢漢", "漢"]);
    }
}
