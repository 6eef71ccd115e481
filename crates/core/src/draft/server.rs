//! The server of a recording, as an entry of an MCP config.
//!
//! The main type is [`DraftedServer`]. A secret was redacted in the record, so it becomes a variable.

use std::path::Path;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Value, json};

use proctor_record::event::{EventKind, WireKind};
use proctor_record::record::{RecordError, RunReader};

/// Programs that start another one, which names the server better.
const LAUNCHERS: [&str; 14] = [
    "npx", "uvx", "uv", "node", "python", "python3", "bunx", "bun", "deno", "env", "docker",
    "podman", "pipx", "sh",
];

static REDACTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\[redacted:([^\]]*)\]").ok());

/// A server as it was started, or reached, in the session.
pub(super) struct DraftedServer {
    pub(super) name: String,
    /// The entry in `mcpServers`.
    pub(super) entry: Value,
    pub(super) is_started: bool,
    pub(super) notes: Vec<String>,
}

impl DraftedServer {
    /// The server of a recording; `None` if the record names neither a command nor a URL.
    pub(super) fn of(run: &RunReader) -> Result<Option<Self>, RecordError> {
        let words = &run.started().command;
        let mut notes = Vec::new();
        let command = words.iter().position(|word| word == "--");
        if let Some(command) = command
            .map(|at| &words[at + 1..])
            .filter(|words| !words.is_empty())
        {
            let words: Vec<String> = command
                .iter()
                .map(|word| variables(word, &mut notes))
                .collect();
            let mut entry = json!({ "command": words[0] });
            if words.len() > 1 {
                entry["args"] = json!(words[1..]);
            }
            return Ok(Some(Self {
                name: name_of(command),
                entry,
                is_started: true,
                notes,
            }));
        }
        let Some((url, kind)) = reached(run)? else {
            return Ok(None);
        };
        let mut entry = json!({ "url": variables(&url, &mut notes) });
        if kind == WireKind::Sse {
            entry["type"] = json!("sse");
        }
        for (name, value) in headers(words) {
            entry["headers"][name] = json!(variables(value, &mut notes));
        }
        Ok(Some(Self {
            name: host(&url),
            entry,
            is_started: false,
            notes,
        }))
    }
}

/// The URL of the first connection.
fn reached(run: &RunReader) -> Result<Option<(String, WireKind)>, RecordError> {
    for trial in run.trials()? {
        for event in run.trial(&trial)? {
            if let EventKind::ConnectionOpened(opened) = event?.event
                && opened.target.contains("://")
            {
                return Ok(Some((opened.target, opened.transport)));
            }
        }
    }
    Ok(None)
}

/// The values of `--header` in a command line.
fn headers(words: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let given = words.iter().enumerate().filter_map(|(at, flag)| {
        let joined = flag.strip_prefix("--header=");
        let next = || words.get(at + 1).map(String::as_str);
        joined.or_else(|| (flag == "--header").then(next).flatten())
    });
    given.filter_map(|header| {
        let (name, value) = header.split_once(':')?;
        Some((name.trim(), value.trim()))
    })
}

/// A word with variables in place of what was redacted.
fn variables(word: &str, notes: &mut Vec<String>) -> String {
    let Some(redacted) = REDACTED.as_ref() else {
        return word.to_owned();
    };
    let replaced = redacted.replace_all(word, |found: &Captures<'_>| {
        let name: String = found[1]
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            })
            .collect();
        let name = match name.chars().next() {
            Some(first) if !first.is_ascii_digit() => name,
            _ => format!("SECRET_{name}"),
        };
        let note = format!("the record has no secrets: set the variable `{name}` for the server");
        if !notes.contains(&note) {
            notes.push(note);
        }
        format!("${{{name}}}")
    });
    replaced.into_owned()
}

/// A name for a server that a command starts.
fn name_of(command: &[String]) -> String {
    let program = |word: &String| {
        let name = Path::new(word)
            .file_name()
            .map(|name| name.to_string_lossy());
        // `server-git@1.2` and `server.py` are `server-git` and `server`.
        let name = name.unwrap_or_default();
        let name = name.split('@').next().unwrap_or_default();
        let stem = Path::new(name)
            .file_stem()
            .map(|stem| stem.to_string_lossy());
        stem.unwrap_or_default().into_owned()
    };
    let is_launcher = |word: &&String| LAUNCHERS.contains(&program(word).as_str());
    let is_option = |word: &&String| word.starts_with('-') || word.contains('=') || *word == "run";
    let mut words = command.iter().filter(|word| !is_option(word));
    let first = words.find(|word| !is_launcher(word));
    clean(&first.or(command.first()).map(program).unwrap_or_default())
}

fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
    clean(host.rsplit('@').next().unwrap_or_default())
}

/// A name that needs no quotes anywhere.
fn clean(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_after_what_is_started() {
        let check = |command: &str, expected: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&words), expected, "{command}");
        };
        check(
            "npx -y @modelcontextprotocol/server-memory@1.2",
            "server-memory",
        );
        check("uvx mcp-server-git --repository x", "mcp-server-git");
        check(
            "/opt/bin/mcp-server-everything stdio",
            "mcp-server-everything",
        );
        check("node ./dist/weather.js", "weather");
        check(
            "env MEMORY_FILE_PATH=/tmp/x mcp-server-memory",
            "mcp-server-memory",
        );
        check("python -m server", "server");
        check("npx", "npx");
    }

    #[test]
    fn a_redacted_word_becomes_a_variable_and_is_noted() {
        let mut notes = Vec::new();
        let word = variables("--key=[redacted:api-key]&x=[redacted:api-key]", &mut notes);
        assert_eq!(word, "--key=${API_KEY}&x=${API_KEY}");
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("`API_KEY`"), "{notes:?}");
        let words = ["record", "--header", "X-Key: a", "--header=B: c:d"].map(str::to_owned);
        let found: Vec<_> = headers(&words).collect();
        assert_eq!(found, [("X-Key", "a"), ("B", "c:d")]);
    }
}
