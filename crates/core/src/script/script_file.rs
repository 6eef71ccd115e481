//! The file format of a script (`kind: Script`): the rules of a scripted model.
//!
//! Its main type is [`ScriptFile`].

use std::time::Duration;

use proctor_record::problem::WithSpan;

use crate::decode::{
    LooseText, NonEmpty, OptionalNonEmpty, PositiveInteger, RequiredKey, Table, record, words,
};
use crate::document::Node;
use crate::pattern::Pattern;

words! {
    /// The value of `kind` in a script.
    pub enum ScriptKind {
        "Script" => Script,
    }
}

words! {
    /// The version of the format.
    pub enum ScriptVersion {
        "proctor/v1" => V1,
    }
}

record! {
    /// A scripted model: a list of rules. The first rule that matches a request answers it.
    pub struct ScriptFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Script`.
        "kind" => kind: RequiredKey<ScriptKind>,
        /// The version of the format. There is only one.
        "apiVersion" => api_version: Option<ScriptVersion>,
        /// The name of the script.
        "metadata" => metadata: Option<ScriptMetadata>,
        /// The rules. The first rule that matches answers. If no rule matches, the trial ends as errored.
        "rules" => rules: RequiredKey<NonEmpty<WithSpan<RuleFile>>>,
    }
}

record! {
    /// The name and description of a script.
    pub struct ScriptMetadata {
        /// The name of the script.
        "name" => name: Option<LooseText>,
        /// A description of the script.
        "description" => description: Option<LooseText>,
        /// Annotations that Proctor stores unchanged.
        "annotations" => annotations: Option<Node>,
    }
}

record! {
    /// A rule: a condition and an answer.
    pub struct RuleFile {
        /// The condition: all of its keys must hold. A rule without it always matches.
        "when" => when: OptionalNonEmpty<WhenFile>,
        /// The answer of the model.
        "reply" => reply: RequiredKey<WithSpan<ReplyFile>>,
    }
}

record! {
    /// The condition of a rule. All of its keys must hold.
    pub struct WhenFile {
        /// The number of the model's turn in this conversation, starting at 1.
        "turn" => turn: OptionalNonEmpty<PositiveInteger>,
        /// The number of tool results in the conversation.
        "results" => results: OptionalNonEmpty<u64>,
        /// A regular expression for the first user message.
        "prompt" => prompt: OptionalNonEmpty<Pattern>,
        /// A regular expression for the last user message.
        "user" => user: OptionalNonEmpty<Pattern>,
        /// A regular expression for the system prompt.
        "system" => system: OptionalNonEmpty<Pattern>,
        /// A regular expression for one of the latest tool results.
        "result" => result: OptionalNonEmpty<Pattern>,
        /// Whether one of the latest tool results is an error.
        "error" => error: OptionalNonEmpty<bool>,
        /// An available tool, with or without its server's name as a prefix.
        "tool" => tool: OptionalNonEmpty<String>,
        /// A regular expression for the name of an available tool.
        "toolPattern" => tool_pattern: OptionalNonEmpty<Pattern>,
        /// The tool that the model must call.
        "mustCall" => must_call: OptionalNonEmpty<String>,
    }
}

record! {
    /// The answer of the model. Texts and arguments can quote: `{prompt}`, `{user}`, `{result}`,
    /// `{result.PATH}`, `{results.N}`, `{results.N.PATH}`, `{match.N}`.
    pub struct ReplyFile any_of ["text", "thinking", "calls", "refuse", "error"] {
        /// The text of the answer.
        "text" => text: Option<WithSpan<LooseText>>,
        /// The thinking before the answer.
        "thinking" => thinking: Option<WithSpan<LooseText>>,
        /// The tool calls of the answer, made in parallel.
        "calls" => calls: OptionalNonEmpty<NonEmpty<WithSpan<CallFile>>>,
        /// A refusal with this text.
        "refuse" => refuse: Option<WithSpan<LooseText>>,
        /// A failure of the provider instead of an answer.
        "error" => error: Option<FaultFile>,
        /// The time until the model answers.
        "delay" => delay: Option<Duration>,
        /// The stop reason, if it does not follow from the answer.
        "stop" => stop: Option<StopWord>,
        /// The token usage. By default Proctor estimates it from the length of the texts.
        "usage" => usage: Option<UsageFile>,
    }
}

record! {
    /// A tool call.
    pub struct CallFile {
        /// The tool, with or without its server's name as a prefix. The model also calls a tool that is not available.
        "tool" => tool: String,
        /// The arguments of the call.
        "arguments" => arguments: Table<Node>,
        /// Malformed arguments: text that is not a valid JSON object.
        "malformed" => malformed: Option<WithSpan<LooseText>>,
    }
}

words! {
    /// A type of provider failure.
    pub enum FaultKind {
        /// Rate limited (429).
        "rateLimit" => RateLimit,
        /// The provider is unavailable (5xx, connection reset).
        "unavailable" => Unavailable,
        /// The request times out.
        "timeout" => Timeout,
        /// The API key is invalid.
        "key" => Key,
        /// The conversation exceeds the context window.
        "context" => Context,
        /// The provider rejects the request.
        "rejected" => Rejected,
        /// The reply is malformed.
        "malformed" => Malformed,
    }
}

record! {
    /// A provider failure.
    pub struct FaultFile {
        /// The type of failure.
        "kind" => kind: FaultKind,
        /// The error message of the provider.
        "detail" => detail: Option<LooseText>,
        /// The `Retry-After` value.
        "retryAfter" => retry_after: Option<Duration>,
    }
}

words! {
    /// The stop reason of a model.
    pub enum StopWord {
        /// The answer is complete.
        "done" => Done,
        /// The model waits for the results of its calls.
        "calls" => Calls,
        /// The answer was truncated.
        "length" => Length,
    }
}

record! {
    /// The token usage of an answer.
    pub struct UsageFile {
        /// The number of input tokens, including cached ones.
        "input" => input: Option<u64>,
        /// The number of output tokens, including thinking.
        "output" => output: Option<u64>,
        /// The number of input tokens that are read from the cache.
        "cached" => cached: Option<u64>,
        /// The number of output tokens that are thinking.
        "reasoning" => reasoning: Option<u64>,
    }
}
