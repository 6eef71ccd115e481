//! The features of the server: capabilities, tools, resources, prompts, and the pages of their
//! lists.

use serde_json::Value;

use crate::evals::Evals;
use crate::message::{Era, HANDSHAKE, INVALID_PARAMS, Reply, STATELESS, UNKNOWN};
use crate::mode::{Mode, Modes};
use crate::options::Eras;

pub const INSTRUCTIONS: &str = "A fixture. Call `echo` to hear yourself; \"add\" adds — exactly.";

const TOOLS: [(&str, &str); 8] = [
    (
        "echo",
        r#"{ "name":"echo", "x-unknown":{"n":12345678901234567890},"title":"Echo","description":"Gives the text back.","inputSchema":{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}},"annotations":{"readOnlyHint":true, "x-unknown":[ ]} }"#,
    ),
    (
        "add",
        r#"{"inputSchema":{"properties":{"a":{"type":"number"},"b":{"type":"number"}},"type":"object","required":["a","b"]},"name":"add","description":"Adds two numbers.","outputSchema":{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]},"x-unknown":{"n":12345678901234567890}}"#,
    ),
    (
        "fail",
        r#"{"name":"fail","description":"Always fails.","inputSchema":{"type":"object"},"x-unknown":null}"#,
    ),
    (
        "sleep",
        r#"{"name":"sleep","description":"Answers after a while.","inputSchema":{"type":"object","properties":{"ms":{"type":"integer","minimum":0}},"required":["ms"]},"x-unknown":{"n":12345678901234567890}}"#,
    ),
    (
        "big",
        r#"{"name":"big","description":"Gives a text of this size.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer","minimum":0}},"required":["bytes"]},"x-unknown":{"n":12345678901234567890}}"#,
    ),
    (
        "env",
        r#"{"name":"env","description":"Gives the value of an environment variable.","inputSchema":{"type":"object","properties":{"name":{"type":"string","x-mcp-header":"Variable"}},"required":["name"]},"x-unknown":{"n":12345678901234567890}}"#,
    ),
    (
        "ask",
        r#"{"name":"ask","description":"Asks the client.","inputSchema":{"type":"object","properties":{"kind":{"enum":["roots","sampling","elicitation"]},"rounds":{"type":"integer","minimum":1}}},"x-unknown":{"n":12345678901234567890}}"#,
    ),
    (
        "progress",
        r#"{"name":"progress","description":"Tells how far it is.","inputSchema":{"type":"object","properties":{"steps":{"type":"integer"},"ms":{"type":"integer"}}},"x-unknown":{"n":12345678901234567890}}"#,
    ),
];
const LATE_TOOL: &str =
    r#"{"name":"late","description":"Was not there before.","inputSchema":{"type":"object"}}"#;

const RESOURCES: [&str; 2] = [
    r#"{"uri":"fixture://text","name":"text", "mimeType":"text/plain","x-unknown":{"n":12345678901234567890}}"#,
    r#"{ "name":"blob","uri":"fixture://blob","mimeType":"application/octet-stream","size":3,"x-unknown":{"n":12345678901234567890}}"#,
];
const TEMPLATES: [&str; 1] = [
    r#"{"name":"item","uriTemplate":"fixture://item/{id}","x-unknown":{"n":12345678901234567890}, "mimeType":"text/plain"}"#,
];
const PROMPTS: [&str; 1] = [
    r#"{"name":"greet","description":"Greets someone.","arguments":[{"name":"who","required":true,"x-unknown":1}],"x-unknown":{"n":12345678901234567890}}"#,
];

/// A paginated list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum List {
    Tools,
    Resources,
    Templates,
    Prompts,
}

impl List {
    pub fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "tools/list" => Self::Tools,
            "resources/list" => Self::Resources,
            "resources/templates/list" => Self::Templates,
            "prompts/list" => Self::Prompts,
            _ => return None,
        })
    }

    fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    fn items(self, changed: bool) -> Vec<String> {
        let owned = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        match self {
            Self::Tools if changed => {
                let kept = TOOLS
                    .iter()
                    .filter(|(name, _)| *name != "fail")
                    .map(|(_, text)| *text);
                kept.chain([LATE_TOOL]).map(str::to_owned).collect()
            }
            Self::Tools => TOOLS.iter().map(|(_, text)| (*text).to_owned()).collect(),
            Self::Resources => owned(&RESOURCES),
            Self::Templates => owned(&TEMPLATES),
            Self::Prompts => owned(&PROMPTS),
        }
    }

    /// Returns the only item of an additional page.
    fn extra(self, page: u64) -> String {
        match self {
            Self::Tools => {
                format!(r#"{{"name":"extra-{page}","inputSchema":{{"type":"object"}}}}"#)
            }
            Self::Resources => {
                format!(r#"{{"uri":"fixture://extra/{page}","name":"extra-{page}"}}"#)
            }
            Self::Templates => format!(
                r#"{{"uriTemplate":"fixture://extra-{page}/{{id}}","name":"extra-{page}"}}"#
            ),
            Self::Prompts => format!(r#"{{"name":"extra-{page}"}}"#),
        }
    }
}

/// Returns one page of a list, as the modes require.
pub fn page(list: List, params: &Value, modes: &Modes, changed: bool, era: Era) -> Reply {
    let cursor = params["cursor"].as_str();
    let Some(number) = page_number(cursor, modes) else {
        return Reply::error(
            INVALID_PARAMS,
            format!("unknown cursor `{}`", cursor.unwrap_or_default()),
        );
    };
    let empty_pages = modes.number(Mode::EmptyPages, 3).unwrap_or(0);
    let first = number == empty_pages;
    let items = match number {
        _ if list == List::Tools && modes.has(Mode::NoTools) => Vec::new(),
        _ if first => list.items(changed),
        _ if number < empty_pages => Vec::new(),
        _ => vec![list.extra(number)],
    };
    let next = next_cursor(number, empty_pages, modes);
    let next = next.map_or_else(String::new, |cursor| format!(r#""nextCursor":"{cursor}","#));
    let cache = if era == Era::Stateless {
        r#","cacheScope":"private", "ttlMs":0"#
    } else {
        ""
    };
    Reply::Complete(format!(r#"{next}"{}":[ {}]{cache}"#, list.key(), items.join(" ,")).into())
}

fn page_number(cursor: Option<&str>, modes: &Modes) -> Option<u64> {
    match cursor {
        None => Some(0),
        Some("") if modes.has(Mode::EmptyCursor) => Some(1),
        Some("again") if modes.has(Mode::RepeatedCursor) => Some(1),
        Some(cursor) => cursor.strip_prefix("page-")?.parse().ok(),
    }
}

fn next_cursor(number: u64, empty_pages: u64, modes: &Modes) -> Option<String> {
    if modes.has(Mode::RepeatedCursor) {
        return Some("again".to_owned());
    }
    if modes.has(Mode::EmptyCursor) {
        return (number == 0).then(String::new);
    }
    let pages = modes.number(Mode::Pages, 1).unwrap_or(1) + empty_pages;
    let more = modes.has(Mode::EndlessPages) || number + 1 < pages;
    more.then(|| format!("page-{}", number + 1))
}

/// Returns the members of a `server/discover` result.
pub fn discovery(modes: &Modes, eras: Eras, ships_evals: bool) -> Reply {
    let older = if eras == Eras::Both {
        format!(r#", "{}""#, HANDSHAKE[3])
    } else {
        String::new()
    };
    let capabilities = capabilities(modes, ships_evals);
    let instructions = crate::message::quote(INSTRUCTIONS);
    Reply::Complete(
        format!(
            r#""instructions":{instructions},"supportedVersions":["{STATELESS}"{older}],"capabilities":{capabilities},"ttlMs":0,"cacheScope":"private""#
        )
        .into(),
    )
}

pub fn capabilities(modes: &Modes, ships_evals: bool) -> String {
    let lists_tools = !modes.has(Mode::NoTools) || modes.argument(Mode::NoTools) == Some("empty");
    let tools = if lists_tools {
        r#""tools":{"listChanged":true, "x-unknown":{}},"#
    } else {
        ""
    };
    let [top, experimental, extensions] = if ships_evals {
        Evals::declared(modes)
    } else {
        Default::default()
    };
    format!(
        r#"{{ "x-custom":{{"deep":[1,{{"b":0.10,"a":[ ]}}]}},{top}{tools}"experimental":{{{experimental}"fixture/odd":{{"n":12345678901234567890}}}},"extensions":{{{extensions}"org.example/fixture":{{"v":1}}}}, "resources":{{"listChanged":true}},"prompts":{{}},"logging":{{}} }}"#
    )
}

/// Returns the members of a `resources/read` result.
pub fn read(uri: &str, era: Era) -> Reply {
    let contents = match uri {
        "fixture://text" => {
            r#"{"text":"hello, résumé \u00e9 \/","uri":"fixture://text", "mimeType":"text/plain"}"#
                .to_owned()
        }
        "fixture://blob" => r#"{"uri":"fixture://blob","blob":"AP8Q"}"#.to_owned(),
        _ if uri.starts_with("fixture://item/") => {
            let id = crate::message::quote(&uri["fixture://item/".len()..]);
            format!(r#"{{"text":{id},"uri":{}}}"#, crate::message::quote(uri))
        }
        _ => return Reply::error(INVALID_PARAMS, format!("unknown resource `{uri}`")),
    };
    let cache = if era == Era::Stateless {
        r#","cacheScope":"private", "ttlMs":0"#
    } else {
        ""
    };
    Reply::Complete(format!(r#""contents":[{contents}]{cache}"#).into())
}

/// Returns the members of a `prompts/get` result.
pub fn prompt(name: &str, params: &Value) -> Reply {
    if name != "greet" {
        return Reply::error(INVALID_PARAMS, format!("unknown prompt `{name}`"));
    }
    let who = params["arguments"]["who"].as_str().unwrap_or("world");
    let text = crate::message::quote(&format!("Greet {who}."));
    Reply::Complete(
        format!(r#""messages":[{{"content":{{"text":{text},"type":"text"}},"role":"user",{UNKNOWN}}}],"description":"A greeting""#)
            .into(),
    )
}
