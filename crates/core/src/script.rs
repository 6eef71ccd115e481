//! Scripted models: rules instead of an LLM, for dry runs and tests.
//!
//! Its main type is [`Script`]. A reply depends only on the request: the same request
//! gets the same reply, so parallel trials and replays do not affect each other. A
//! request that no rule matches is an error, never an empty answer.

use std::path::Path;
use std::time::Duration;

use proctor_record::hint::listed;
use proctor_record::model::{
    Arguments, ModelRequest, Reply, StopReason, Thinking, ToolCall, Turn, Usage,
};
use proctor_record::problem::SourceText;

use crate::pattern::Pattern;

mod conversation;
mod estimate;
mod naming;
mod quote;
mod resolve;
pub mod script_file;
#[cfg(test)]
mod tests;

use self::conversation::Conversation;
use self::naming::ToolLookup;
use self::quote::{Quote, QuotingValue, TextWithQuotes};

pub use self::naming::ToolNaming;
pub(crate) use self::resolve::resolve;

/// The rules of a scripted model.
#[derive(Debug, Clone)]
pub struct Script {
    source: SourceText,
    name: Option<String>,
    rules: Vec<ScriptRule>,
}

#[derive(Debug, Clone)]
struct ScriptRule {
    /// The line it starts at, for messages.
    line: u32,
    when: RuleCondition,
    delay: Duration,
    answer: RuleAnswer,
}

#[derive(Debug, Clone, Default)]
struct RuleCondition {
    turn: Option<usize>,
    results: Option<u64>,
    prompt: Option<Pattern>,
    user: Option<Pattern>,
    system: Option<Pattern>,
    result: Option<Pattern>,
    error: Option<bool>,
    tool: Option<String>,
    tool_pattern: Option<Pattern>,
    must_call: Option<String>,
}

#[derive(Debug, Clone)]
enum RuleAnswer {
    Says(Box<ReplyTemplate>),
    Fails(ProviderFault),
}

#[derive(Debug, Clone)]
struct ReplyTemplate {
    text: Option<TextWithQuotes>,
    thinking: Option<TextWithQuotes>,
    calls: Vec<(String, CallArguments)>,
    stop: StopReason,
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    reasoning: Option<u64>,
}

#[derive(Debug, Clone)]
enum CallArguments {
    Object(Vec<(String, QuotingValue)>),
    Malformed { text: String, reason: String },
}

/// The answer of a rule to a request.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptOutcome {
    /// The time until the model answers.
    pub delay: Duration,
    /// The reply, or the simulated provider failure.
    pub answer: Result<Reply, ProviderFault>,
}

/// A simulated failure of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderFault {
    RateLimited {
        /// The wait that the provider requests with `Retry-After`.
        retry_after: Option<Duration>,
        detail: String,
    },
    /// The provider is unavailable.
    Unavailable {
        /// The wait that the provider requests with `Retry-After`.
        retry_after: Option<Duration>,
        detail: String,
    },
    /// No reply in time.
    TimedOut,
    /// The key is wrong.
    Key {
        detail: String,
    },
    /// The conversation exceeds the context window.
    ContextOverflow {
        detail: String,
    },
    /// The question is refused.
    Rejected {
        detail: String,
    },
    Malformed {
        detail: String,
    },
}

/// Why a script has no reply: a mistake in the script, or a conversation that it was not
/// written for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error(
        "no rule matches: turn {turn}, {results} tool {} so far, available tools: {}",
        if *.results == 1 { "result" } else { "results" },
        if .tools.is_empty() { "none".to_owned() } else { listed(.tools.iter().map(String::as_str)) }
    )]
    NoRule {
        /// The number of the turn, from one.
        turn: usize,
        /// How many tool results there are so far.
        results: usize,
        /// The available tools; of many, the first few.
        tools: Vec<String>,
    },
    /// A rule calls a tool, and several available tools match.
    #[error(
        "the rule at line {line} calls `{tool}`, which is ambiguous: {}; add the server's name, as in `server__{tool}`",
        listed(.offered.iter().map(String::as_str))
    )]
    Ambiguous {
        /// The line at which the rule starts.
        line: u32,
        tool: String,
        /// The tools that match.
        offered: Vec<String>,
    },
    /// A rule quotes a part of the conversation that does not exist.
    #[error("the rule at line {line} quotes `{{{quote}}}`, but {reason}")]
    NotThere {
        /// The line at which the rule starts.
        line: u32,
        quote: String,
        reason: String,
    },
}

/// Estimates the number of tokens of a request.
pub fn input_tokens(request: &ModelRequest) -> u64 {
    estimate::input(request)
}

/// The maximum number of available tools that a message lists.
const SHOWN_TOOLS: usize = 10;

impl Script {
    /// The file, as the user would write it.
    pub fn path(&self) -> &Path {
        self.source.path()
    }

    /// The text of the script file.
    pub fn text(&self) -> &str {
        self.source.text()
    }

    /// Its name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// How many rules it has.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    /// The reply of the first rule that matches, in Proctor's own loop.
    pub fn reply(&self, request: &ModelRequest) -> Result<ScriptOutcome, ScriptError> {
        self.reply_among(request, ToolNaming::Own)
    }

    /// The reply of the first rule that matches, with this naming of tools.
    pub fn reply_among(
        &self,
        request: &ModelRequest,
        names: ToolNaming,
    ) -> Result<ScriptOutcome, ScriptError> {
        let conversation = Conversation::new(request, names);
        let Some((rule, groups)) = self
            .rules
            .iter()
            .find_map(|rule| Some((rule, rule.when.fits(&conversation)?)))
        else {
            let tools = request.tools.iter().take(SHOWN_TOOLS);
            return Err(ScriptError::NoRule {
                turn: conversation.turn,
                results: conversation.results.len(),
                tools: tools.map(|tool| tool.name.clone()).collect(),
            });
        };
        let answer = match &rule.answer {
            RuleAnswer::Fails(fault) => Err(fault.clone()),
            RuleAnswer::Says(says) => {
                let mut look_up = |quote: &Quote| {
                    conversation
                        .look_up(quote, &groups)
                        .map_err(|reason| ScriptError::NotThere {
                            line: rule.line,
                            quote: quote.written.clone(),
                            reason,
                        })
                };
                let tools = says.tools(rule.line, &conversation)?;
                Ok(says.reply(&conversation, tools, &mut look_up)?)
            }
        };
        Ok(ScriptOutcome {
            delay: rule.delay,
            answer,
        })
    }
}

/// Two scripts are equal if their files are equal.
impl PartialEq for Script {
    fn eq(&self, other: &Self) -> bool {
        self.path() == other.path() && self.text() == other.text()
    }
}

impl Eq for Script {}

impl RuleCondition {
    /// The groups of its pattern, if the condition holds.
    fn fits<'r>(&self, conversation: &Conversation<'r>) -> Option<Vec<Option<&'r str>>> {
        let counts = self.turn.is_none_or(|n| n == conversation.turn)
            && self
                .results
                .is_none_or(|n| n == conversation.results.len() as u64)
            && self
                .error
                .is_none_or(|error| conversation.latest_failed() == Some(error))
            && self
                .tool
                .as_ref()
                .is_none_or(|name| conversation.offered(name) != ToolLookup::Nothing)
            && self
                .must_call
                .as_ref()
                .is_none_or(|name| conversation.must_call(name));
        if !counts {
            return None;
        }
        let mut quoted = Vec::new();
        for (pattern, texts) in [
            (&self.prompt, conversation.prompt.into_iter().collect()),
            (&self.user, conversation.user.into_iter().collect()),
            (&self.system, conversation.system().into_iter().collect()),
            (&self.result, conversation.latest_texts()),
            (&self.tool_pattern, conversation.tools()),
        ] {
            let Some(pattern) = pattern else { continue };
            let groups = texts.into_iter().find_map(|text| pattern.captures(text))?;
            if self.quoted_pattern() == Some(pattern) {
                quoted = groups;
            }
        }
        Some(quoted)
    }

    /// The pattern that `{match.N}` refers to: the only one, or the only one with groups.
    fn quoted_pattern(&self) -> Option<&Pattern> {
        let all = [
            &self.prompt,
            &self.user,
            &self.system,
            &self.result,
            &self.tool_pattern,
        ];
        let all: Vec<&Pattern> = all.into_iter().flatten().collect();
        if let [only] = all[..] {
            return Some(only);
        }
        let mut with_groups = all.into_iter().filter(|pattern| pattern.has_groups());
        with_groups.next().filter(|_| with_groups.next().is_none())
    }
}

impl ReplyTemplate {
    /// The full names of the tools that it calls. A tool that is not available keeps its name.
    fn tools(
        &self,
        line: u32,
        conversation: &Conversation<'_>,
    ) -> Result<Vec<String>, ScriptError> {
        let name = |(tool, _): &(String, CallArguments)| match conversation.offered(tool) {
            ToolLookup::One(offered) => Ok(offered.to_owned()),
            ToolLookup::Nothing => Ok(tool.clone()),
            ToolLookup::Several(offered) => Err(ScriptError::Ambiguous {
                line,
                tool: tool.clone(),
                offered: offered.into_iter().map(str::to_owned).collect(),
            }),
        };
        self.calls.iter().map(name).collect()
    }

    fn reply<E>(
        &self,
        conversation: &Conversation<'_>,
        tools: Vec<String>,
        look_up: &mut impl FnMut(&Quote) -> Result<serde_json::Value, E>,
    ) -> Result<Reply, E> {
        let mut turn = Turn::default();
        if let Some(text) = &self.text {
            turn.text = text.fill(look_up)?;
        }
        if let Some(thinking) = &self.thinking {
            turn.thinking.push(Thinking {
                text: thinking.fill(look_up)?,
                raw: None,
            });
        }
        for (number, (name, (_, arguments))) in tools.into_iter().zip(&self.calls).enumerate() {
            turn.calls.push(ToolCall {
                id: format!("call_{}_{}", conversation.turn, number + 1),
                name,
                arguments: arguments.fill(look_up)?,
            });
        }
        Ok(Reply {
            usage: Usage {
                input: Some(
                    self.input
                        .unwrap_or_else(|| estimate::input(conversation.request)),
                ),
                output: Some(self.output.unwrap_or_else(|| estimate::output(&turn))),
                cached: self.cached,
                cache_written: None,
                reasoning: self.reasoning,
            },
            turn,
            stop: self.stop.clone(),
            raw: None,
        })
    }
}

impl CallArguments {
    fn fill<E>(
        &self,
        look_up: &mut impl FnMut(&Quote) -> Result<serde_json::Value, E>,
    ) -> Result<Arguments, E> {
        Ok(match self {
            Self::Object(entries) => Arguments::Object(
                entries
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), value.fill(look_up)?)))
                    .collect::<Result<_, _>>()?,
            ),
            Self::Malformed { text, reason } => Arguments::Malformed {
                text: text.clone(),
                reason: reason.clone(),
            },
        })
    }
}
