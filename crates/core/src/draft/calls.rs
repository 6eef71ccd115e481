//! The calls of a draft: what the script does, and what the checks expect.
//!
//! The main type is [`DraftedCall`].

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proctor_record::event::{Direction, EventKind};
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader};
use proctor_record::redact::has_marker;
use proctor_record::transcript::{Call, CallOutcome, CallRequest, Payload};
use regex::Regex;
use serde_json::{Value, json};

use super::volatile::{LoosenedValue, escaped, loosened, pattern};

/// How much of a text a check compares, in bytes.
const TEXT: usize = 600;

/// A text that a script would replace by a part of the conversation.
static QUOTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\{(?:prompt|user|results?|match)(?:[.\[][^{}]*)?\}").ok());

/// The annotations of each listed tool.
pub(super) type ListedTools = BTreeMap<String, Value>;

/// A recorded call that can be made again.
pub(super) struct DraftedCall {
    /// What the scripted model calls.
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) expected: Expectation,
    /// What the check accepts although it was different.
    pub(super) loosened: Vec<LoosenedValue>,
    /// Why the check says less than the record.
    pub(super) remarks: Vec<String>,
}

/// What a check expects of a call.
pub(super) enum Expectation {
    /// An entry of `calls`, without its server.
    Tool(Value),
    /// An entry of `resourcesRead`, without its server.
    Resource(Value),
    /// An entry of `promptsUsed`, without its server.
    Prompt(Value),
}

impl DraftedCall {
    /// The draft of a call, or why it can't be made again.
    pub(super) fn of(call: &Call, tools: &ListedTools) -> Result<Self, String> {
        if call.answer == CallOutcome::None {
            return Err("it has no response in the record".to_owned());
        }
        let mut drafted = match &call.request {
            CallRequest::Tool { name, arguments } => Self {
                tool: name.clone(),
                arguments: read(arguments)?,
                expected: Expectation::Tool(json!({ "tool": name })),
                loosened: Vec::new(),
                remarks: Vec::new(),
            },
            CallRequest::Resource { uri } => Self {
                tool: "read_resource".to_owned(),
                arguments: json!({ "uri": uri }),
                expected: Expectation::Resource(match pattern(uri) {
                    Some(pattern) => json!({ "uriPattern": format!("^{pattern}$") }),
                    None => json!({ "uri": uri }),
                }),
                loosened: Vec::new(),
                remarks: Vec::new(),
            },
            CallRequest::Prompt { name, arguments } => Self {
                tool: "get_prompt".to_owned(),
                arguments: json!({ "name": name, "arguments": read(arguments)? }),
                expected: Expectation::Prompt(json!({ "prompt": name })),
                loosened: Vec::new(),
                remarks: Vec::new(),
            },
        };
        drafted.check_repeatable()?;
        drafted.expect(call, tools);
        Ok(drafted)
    }

    /// A secret is not in the record, and a quote would be replaced.
    fn check_repeatable(&self) -> Result<(), String> {
        let text = self.arguments.to_string();
        if has_marker(&text) {
            return Err(
                "its arguments have a redacted value; add the call to `model.yaml` by hand"
                    .to_owned(),
            );
        }
        if let Some(quote) = QUOTE.as_ref().and_then(|quote| quote.find(&text)) {
            return Err(format!("a script can't send the text `{}`", quote.as_str()));
        }
        Ok(())
    }

    /// Adds the conditions on arguments and result of a tool.
    fn expect(&mut self, call: &Call, tools: &ListedTools) {
        let Expectation::Tool(entry) = &mut self.expected else {
            return;
        };
        let is_empty = self
            .arguments
            .as_object()
            .is_none_or(serde_json::Map::is_empty);
        entry["arguments"] = if is_empty {
            json!({ "$exact": {} })
        } else {
            loosened(&self.arguments, "arguments", &mut self.loosened)
        };
        let result = match &call.answer {
            CallOutcome::Result(payload) => payload.read(),
            CallOutcome::Error { .. } | CallOutcome::None => {
                entry["isError"] = json!(true);
                return;
            }
        };
        let Ok(Some(result)) = result else {
            self.remarks
                .push("the record does not hold the result, so it is not compared".to_owned());
            return;
        };
        let is_error = result["isError"] == true;
        entry["isError"] = json!(is_error);
        if tools
            .get(&self.tool)
            .is_some_and(|hints| hints["readOnlyHint"] == false)
        {
            let remark = "the tool says that it changes state, so its result is not compared";
            self.remarks.push(remark.to_owned());
            return;
        }
        let expected = self::result(result, &mut self.loosened, &mut self.remarks);
        if expected
            .as_object()
            .is_some_and(|members| !members.is_empty())
        {
            entry["result"] = expected;
        }
    }
}

/// The arguments of a call.
fn read(arguments: &Payload) -> Result<Value, String> {
    let value = arguments
        .read()
        .map_err(|error| format!("its arguments {error}"))?;
    match value {
        None => Ok(json!({})),
        Some(value) if value.is_object() => Ok(value.clone()),
        Some(_) => Err("its arguments are not a map".to_owned()),
    }
}

/// A matcher for a result: its structured content, or else its content.
fn result(result: &Value, found: &mut Vec<LoosenedValue>, remarks: &mut Vec<String>) -> Value {
    let structured = result
        .get("structuredContent")
        .filter(|value| value.is_object());
    if let Some(structured) = structured {
        return json!({ "structuredContent": loosened(structured, "structuredContent", found) });
    }
    let Some(blocks) = result["content"].as_array() else {
        return json!({});
    };
    let blocks = blocks.iter().enumerate();
    let blocks =
        blocks.map(|(at, block)| content(block, &format!("content[{at}]"), found, remarks));
    json!({ "content": blocks.collect::<Vec<_>>() })
}

/// A matcher for one block of content.
fn content(
    block: &Value,
    path: &str,
    found: &mut Vec<LoosenedValue>,
    remarks: &mut Vec<String>,
) -> Value {
    let Some(text) = block["text"].as_str() else {
        // The data of an image or a sound is too long to read.
        let keys = ["type", "mimeType", "name", "uri"].into_iter();
        let kept = keys.filter_map(|key| Some((key.to_owned(), block.get(key)?.clone())));
        return loosened(&Value::Object(kept.collect()), path, found);
    };
    let text = if text.len() <= TEXT {
        loosened(&json!(text), &format!("{path}.text"), found)
    } else {
        let head = &text[..text.floor_char_boundary(TEXT)];
        // Whole lines, so that no volatile value is cut.
        let head = head.rfind('\n').map_or(head, |end| &head[..end]);
        remarks.push(format!(
            "{path}: the first {} of {} bytes are compared",
            head.len(),
            text.len()
        ));
        let head = pattern(head).unwrap_or_else(|| escaped(head));
        json!({ "$match": format!("^{head}") })
    };
    json!({ "type": "text", "text": text })
}

/// The tools that the server listed in the session, with their annotations.
pub(super) fn listed_tools(run: &RunReader) -> Result<ListedTools, RecordError> {
    let mut tools = ListedTools::new();
    for trial in run.trials()? {
        for event in run.trial(&trial)? {
            let EventKind::Frame(frame) = event?.event else {
                continue;
            };
            if frame.direction != Direction::ToClient {
                continue;
            }
            let bytes = run.body_bytes(&frame.body)?.unwrap_or_default();
            let message: Value = json::from_slice(&bytes).unwrap_or_default();
            let listed = message["result"]["tools"].as_array().into_iter().flatten();
            tools.extend(listed.filter_map(|tool| {
                Some((
                    tool["name"].as_str()?.to_owned(),
                    tool["annotations"].clone(),
                ))
            }));
        }
    }
    Ok(tools)
}
