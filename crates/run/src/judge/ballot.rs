//! Parses a judge's reply strictly: anything but the requested form is rejected.
//!
//! Its main type is [`Ballot`]. Complaints name the broken rule and never repeat the judge's text,
//! which may originate from the exhibits.

use proctor_record::json;
use proctor_record::model::{Arguments, Reply, StopReason, Tool};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The tool that a judge must call.
pub(super) const TOOL: &str = "verdict";

/// A verdict in the requested form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ballot {
    pub(super) reason: String,
    pub(super) quotes: Vec<String>,
    pub(super) choice: BallotVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BallotVerdict {
    Pass,
    Fail,
    Unknown,
}

/// The result of parsing a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedBallot {
    Ballot(Ballot),
    /// The reply has another form; the text is the complaint for the next attempt.
    Malformed(&'static str),
    /// The reply has no verdict, and asking again would not help.
    None(String),
}

/// The definition of the tool for the judge.
pub(super) fn tool() -> Tool {
    Tool {
        name: TOOL.to_owned(),
        description: Some(
            "Give your verdict, once. Write `reason` first, then `evidence`, then `verdict`."
                .to_owned(),
        ),
        schema: json!({
            "type": "object",
            "properties": {
                "reason": {
                    "type": "string",
                    "description": "Written first: why, in one to three sentences.",
                },
                "evidence": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Quotes that decide it, each copied letter for letter from one exhibit. A pass needs at least one of 12 characters or more, or a whole exhibit.",
                },
                "verdict": {
                    "type": "string",
                    "enum": ["pass", "fail", "unknown"],
                    "description": "`unknown` if the exhibits do not tell.",
                },
            },
            "required": ["reason", "evidence", "verdict"],
            "additionalProperties": false,
        }),
    }
}

pub(super) fn read(reply: &Reply) -> ParsedBallot {
    match &reply.stop {
        StopReason::Done | StopReason::Calls => {}
        StopReason::Refusal => return ParsedBallot::None("the judge declined".to_owned()),
        StopReason::Length => {
            return ParsedBallot::None("the judge's reply was cut off".to_owned());
        }
        StopReason::Other(why) => {
            let why = super::exhibit::brief(why);
            return ParsedBallot::None(format!("the judge stopped with the reason `{why}`"));
        }
    }
    let found = match &reply.turn.calls[..] {
        [] => from_text(&reply.turn.text),
        [call] if call.name == TOOL => match &call.arguments {
            Arguments::Object(map) => validate(map),
            Arguments::Malformed { .. } => {
                Err("the arguments were not a JSON object with each key once")
            }
        },
        [_] => Err("a tool other than `verdict` was called"),
        _ => Err("more than one tool call was made"),
    };
    found.map_or_else(ParsedBallot::Malformed, ParsedBallot::Ballot)
}

/// A verdict as text: the JSON object alone.
fn from_text(text: &str) -> Result<Ballot, &'static str> {
    const WRONG: &str = "it was neither a call of `verdict` nor its JSON object alone";
    /// Rejects duplicate keys, which a map would accept.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct UniqueBallotKeys {
        #[serde(rename = "reason")]
        _reason: Value,
        #[serde(rename = "evidence")]
        _evidence: Value,
        #[serde(rename = "verdict")]
        _verdict: Value,
    }
    let text = text.trim();
    if text.starts_with("```") {
        return Err("the JSON object stood in a code block, not alone");
    }
    json::from_str::<UniqueBallotKeys>(text).map_err(|_| WRONG)?;
    let map: Map<String, Value> = json::from_str(text).map_err(|_| WRONG)?;
    validate(&map)
}

fn validate(map: &Map<String, Value>) -> Result<Ballot, &'static str> {
    if map
        .keys()
        .any(|key| !["reason", "evidence", "verdict"].contains(&key.as_str()))
    {
        return Err("the only keys are `reason`, `evidence` and `verdict`");
    }
    let reason = match map.get("reason") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        _ => return Err("`reason` must be a text that is not empty"),
    };
    let Some(Value::Array(quotes)) = map.get("evidence") else {
        return Err("`evidence` must be a list of texts");
    };
    let quotes = quotes.iter().map(|quote| match quote.as_str() {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("every quote in `evidence` must be a text that is not empty"),
    });
    let quotes = quotes.collect::<Result<_, _>>()?;
    let choice = match map.get("verdict").and_then(Value::as_str) {
        Some("pass") => BallotVerdict::Pass,
        Some("fail") => BallotVerdict::Fail,
        Some("unknown") => BallotVerdict::Unknown,
        _ => return Err("`verdict` must be `pass`, `fail` or `unknown`"),
    };
    Ok(Ballot {
        reason,
        quotes,
        choice,
    })
}
