//! The files of a draft, with comments for the person who completes it.

use serde_json::{Value, json};

use super::calls::{DraftedCall, Expectation};
use super::server::DraftedServer;
use crate::document::yaml::push_block;
use crate::printable::printable;

/// The number of turns that an agent has without a limit of its own.
const TURNS: usize = 100;

/// How much of a value a comment shows, in characters.
const SHOWN: usize = 120;

/// The files of the suite, by their path in its folder.
pub(super) fn files(
    server: &DraftedServer,
    calls: &[DraftedCall],
    notes: &[String],
) -> Vec<(&'static str, String)> {
    vec![
        ("eval.yaml", eval(server, calls, notes)),
        ("mcp-config.yaml", config(server)),
        ("model.yaml", script(server, calls)),
        ("tasks/session.yaml", task(calls)),
    ]
}

fn eval(server: &DraftedServer, calls: &[DraftedCall], notes: &[String]) -> String {
    let mut out = "\
# The calls of a recorded session, as a suite. Run it with `proctor check eval.yaml`.
#
# The agent is a script that makes the recorded calls again (model.yaml). So a pass proves that the server still answers
# as recorded. It says nothing about agents: a script can't choose the wrong tool. To test an agent, write the
# prompt in tasks/session.yaml and a real model or agent here, such as `model: openai:gpt-5`."
        .to_owned();
    if !notes.is_empty() {
        out.push_str("\n#\n# To complete:");
    }
    for note in notes {
        out.push_str(&comment(0, &format!("- {note}")));
    }
    out.push_str(&format!(
        "
kind: Eval
metadata:
  name: {name}
config:
  agent:
    type: builtin.llm-agent
    model: scripted:model.yaml
  mcpConfigFile: mcp-config.yaml
  defaultTaskLimits:
    timeout: 5m
  taskSets:
    - glob: tasks/*.yaml
      assertions:",
        name = server.name
    ));
    section(&mut out, server, calls, "calls", |call| {
        match &call.expected {
            Expectation::Tool(entry) => Some(entry),
            Expectation::Resource(_) | Expectation::Prompt(_) => None,
        }
    });
    section(
        &mut out,
        server,
        calls,
        "resourcesRead",
        |call| match &call.expected {
            Expectation::Resource(entry) => Some(entry),
            Expectation::Tool(_) | Expectation::Prompt(_) => None,
        },
    );
    section(&mut out, server, calls, "promptsUsed", |call| {
        match &call.expected {
            Expectation::Prompt(entry) => Some(entry),
            Expectation::Tool(_) | Expectation::Resource(_) => None,
        }
    });
    out.push('\n');
    out
}

/// One assertion with an entry for each call of its kind.
fn section(
    out: &mut String,
    server: &DraftedServer,
    calls: &[DraftedCall],
    key: &str,
    entry: impl Fn(&DraftedCall) -> Option<&Value>,
) {
    let entries: Vec<_> = calls
        .iter()
        .filter_map(|call| Some((call, entry(call)?)))
        .collect();
    if entries.is_empty() {
        return;
    }
    let pad = match key {
        "calls" => {
            out.push_str(
                "
        # The recorded calls, in their order; other calls may come between. Values that look volatile are
        # loosened: ids, times, paths, hashes, ports. Tighten what your server promises. For a real agent, keep
        # only the calls and arguments that any good answer needs.
        calls:
          mode: inOrder
          list:",
            );
            12
        }
        key => {
            out.push_str(&format!("\n        {key}:"));
            10
        }
    };
    for (call, entry) in entries {
        for remark in &call.remarks {
            out.push_str(&comment(pad, remark));
        }
        for value in &call.loosened {
            out.push_str(&comment(pad, &format!("{} was {}", value.path, value.was)));
        }
        let mut whole = json!({ "server": server.name });
        for (key, value) in entry.as_object().into_iter().flatten() {
            whole[key] = value.clone();
        }
        push_block(out, &json!([whole]), pad);
    }
}

/// A comment on a line of its own. Server text can't end its line.
fn comment(pad: usize, text: &str) -> String {
    let text = printable(text);
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("\n{}# {shown}", " ".repeat(pad))
}

fn config(server: &DraftedServer) -> String {
    let about = if server.is_started {
        "\
# The server of the recording. The record has no environment: if the server needs variables, add them
# under `env:`, with `${NAME}` for secrets. Relative paths are relative to the folder of the run.
# If the calls change state (files, a database), give every trial a fresh one: otherwise the second run
# finds what the first one left."
    } else {
        "# The server of the recording. Add headers with `${NAME}` for secrets."
    };
    let mut out = format!("{about}\nmcpServers:\n  {}:", server.name);
    push_block(&mut out, &server.entry, 4);
    out.push('\n');
    out
}

fn script(server: &DraftedServer, calls: &[DraftedCall]) -> String {
    let mut out = "\
# A script instead of an LLM: it makes the recorded calls, one after another, with the recorded arguments.
# It proves the server, not an agent. All keys of this file: `proctor schema scripted`.
kind: Script
rules:"
        .to_owned();
    for (results, call) in calls.iter().enumerate() {
        let mut arguments = call.arguments.clone();
        if !matches!(call.expected, Expectation::Tool(_)) {
            arguments["server"] = json!(server.name);
        }
        let rule = json!({
            "when": { "results": results },
            "reply": { "calls": [{ "tool": call.tool, "arguments": arguments }] },
        });
        push_block(&mut out, &json!([rule]), 2);
    }
    let calls = match calls.len() {
        1 => "The recorded call is made.".to_owned(),
        calls => format!("All {calls} recorded calls are made."),
    };
    push_block(&mut out, &json!([{ "reply": { "text": calls } }]), 2);
    out.push('\n');
    out
}

fn task(calls: &[DraftedCall]) -> String {
    let limits = match calls.len() {
        calls if calls + 1 > TURNS => format!("  limits:\n    maxTurns: {}\n", calls + 1),
        _ => String::new(),
    };
    format!(
        "\
# One task for the agent. The recording does not say what the user asked for: write it here before you let a
# real agent do the task, and add `verify` steps for what must be true afterwards.
kind: Task
apiVersion: mcpchecker/v1alpha2
metadata:
  name: recorded-session
spec:
{limits}  prompt:
    inline: Make the calls of the recorded session again.
"
    )
}
