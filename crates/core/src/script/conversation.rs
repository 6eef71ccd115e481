//! A model request, as rules see it.
//!
//! Its main type is [`Conversation`].

use proctor_record::json;
use proctor_record::model::{ModelMessage, ModelRequest, ToolResult};
use serde_json::Value;

use super::naming::{ToolLookup, ToolNaming};
use super::quote::{Quote, QuoteSource};

/// A request, with the data that rules need.
pub(super) struct Conversation<'r> {
    pub(super) request: &'r ModelRequest,
    /// How the available tools are named.
    names: ToolNaming,
    /// The number of the model's turn, from one.
    pub(super) turn: usize,
    /// The first user message.
    pub(super) prompt: Option<&'r str>,
    /// The last user message.
    pub(super) user: Option<&'r str>,
    pub(super) results: Vec<&'r ToolResult>,
    /// Those of the latest round.
    latest: &'r [ToolResult],
}

impl<'r> Conversation<'r> {
    pub(super) fn new(request: &'r ModelRequest, names: ToolNaming) -> Self {
        let mut conversation = Self {
            request,
            names,
            turn: 1,
            prompt: None,
            user: None,
            results: Vec::new(),
            latest: &[],
        };
        for message in &request.messages {
            match message {
                ModelMessage::User(text) => {
                    conversation.prompt = conversation.prompt.or(Some(text));
                    conversation.user = Some(text);
                }
                ModelMessage::Media(_) => {}
                ModelMessage::Assistant(_) => conversation.turn += 1,
                ModelMessage::Results(results) => {
                    conversation.results.extend(results);
                    conversation.latest = results;
                }
            }
        }
        conversation
    }

    pub(super) fn system(&self) -> Option<&'r str> {
        self.request.system.as_deref()
    }

    /// The names of the available tools.
    pub(super) fn tools(&self) -> Vec<&'r str> {
        let tools = self.request.tools.iter();
        tools.map(|tool| tool.name.as_str()).collect()
    }

    /// The results of the latest round of calls.
    pub(super) fn latest_texts(&self) -> Vec<&'r str> {
        let latest = self.latest.iter();
        latest.map(|result| result.text.as_str()).collect()
    }

    /// Whether a call of the latest round failed; `None` if there was no round.
    pub(super) fn latest_failed(&self) -> Option<bool> {
        (!self.latest.is_empty()).then(|| self.latest.iter().any(|result| result.is_error))
    }

    /// The available tool that a name refers to.
    pub(super) fn offered(&self, name: &str) -> ToolLookup<'r> {
        self.names.find(&self.tools(), name)
    }

    /// Whether the request forces the model to call this tool.
    pub(super) fn must_call(&self, name: &str) -> bool {
        let forced = self.request.must_call.as_deref();
        forced.is_some_and(|forced| self.names.find(&[forced], name) == ToolLookup::One(forced))
    }

    /// The value of a quote, or the reason why there is none. The reason continues a sentence.
    pub(super) fn look_up(&self, quote: &Quote, groups: &[Option<&str>]) -> Result<Value, String> {
        let text = match quote.source {
            QuoteSource::Prompt => self.prompt.ok_or("there is no user message"),
            QuoteSource::User => self.user.ok_or("there is no user message"),
            QuoteSource::Group(number) => groups
                .get(number)
                .copied()
                .flatten()
                .ok_or("that group of the pattern matched nothing"),
            QuoteSource::Latest => {
                let latest = self.results.last().map(|result| result.text.as_str());
                latest.ok_or("there is no tool result yet")
            }
            QuoteSource::Result(number) => match self.results.get(number - 1) {
                Some(result) => Ok(result.text.as_str()),
                None => {
                    return Err(format!(
                        "the number of tool results so far is {}",
                        self.results.len()
                    ));
                }
            },
        }?;
        if quote.path.is_empty() {
            return Ok(Value::String(text.to_owned()));
        }
        let Ok(mut value) = json::from_str::<Value>(text) else {
            return Err("that tool result is not JSON".to_owned());
        };
        for step in &quote.path {
            let part = match &mut value {
                Value::Object(map) => map.remove(step),
                Value::Array(items) => step
                    .parse()
                    .ok()
                    .filter(|index: &usize| *index < items.len())
                    .map(|index| items.swap_remove(index)),
                _ => None,
            };
            value = part.ok_or_else(|| format!("that tool result has no `{step}` there"))?;
        }
        Ok(value)
    }
}
