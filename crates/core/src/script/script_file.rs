//! The written form of a script (`kind: Script`): rules that stand in for a model.
//!
//! Its main type is [`ScriptFile`].

use std::time::Duration;

use crate::decode::{
    LooseText, NonEmpty, OptionalNonEmpty, PositiveInteger, RequiredKey, Table, record, words,
};
use crate::document::Node;
use crate::pattern::Pattern;
use crate::problem::WithSpan;

words! {
    /// `kind` of a script.
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
    /// Rules that stand in for a model: the first rule that fits a question answers it.
    pub struct ScriptFile {
        /// The schema that an editor checks this file against.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Script`.
        "kind" => kind: RequiredKey<ScriptKind>,
        /// The version of the format; it changes nothing yet.
        "apiVersion" => api_version: Option<ScriptVersion>,
        /// What the script is called.
        "metadata" => metadata: Option<ScriptMetadata>,
        /// The rules. The first that fits answers; if none does, the trial is errored.
        "rules" => rules: RequiredKey<NonEmpty<WithSpan<RuleFile>>>,
    }
}

record! {
    /// What a script is called.
    pub struct ScriptMetadata {
        /// Its name.
        "name" => name: Option<LooseText>,
        /// What it is for.
        "description" => description: Option<LooseText>,
        /// Kept as they are.
        "annotations" => annotations: Option<Node>,
    }
}

record! {
    /// A rule: when it fits, and what it answers.
    pub struct RuleFile {
        /// When the rule fits: everything here must hold. A rule without it always fits.
        "when" => when: OptionalNonEmpty<WhenFile>,
        /// What the model answers.
        "reply" => reply: RequiredKey<WithSpan<ReplyFile>>,
    }
}

record! {
    /// When a rule fits: everything that is given must hold.
    pub struct WhenFile {
        /// The number of the model's turn in this conversation, from 1.
        "turn" => turn: OptionalNonEmpty<PositiveInteger>,
        /// How many tool results the conversation holds.
        "results" => results: OptionalNonEmpty<u64>,
        /// A pattern in what the user said first.
        "prompt" => prompt: OptionalNonEmpty<Pattern>,
        /// A pattern in what the user said last.
        "user" => user: OptionalNonEmpty<Pattern>,
        /// A pattern in what the model was told before the conversation.
        "system" => system: OptionalNonEmpty<Pattern>,
        /// A pattern in one of the latest tool results.
        "result" => result: OptionalNonEmpty<Pattern>,
        /// Whether one of the latest tool results says that it failed.
        "error" => error: OptionalNonEmpty<bool>,
        /// A tool that is on offer, with or without its server's name before it.
        "tool" => tool: OptionalNonEmpty<String>,
        /// A pattern in the name of a tool that is on offer.
        "toolPattern" => tool_pattern: OptionalNonEmpty<Pattern>,
        /// The tool that the model must call.
        "mustCall" => must_call: OptionalNonEmpty<String>,
    }
}

record! {
    /// What the model answers. Texts and arguments can quote: `{prompt}`, `{user}`, `{result}`,
    /// `{result.PATH}`, `{results.N}`, `{results.N.PATH}`, `{match.N}`.
    pub struct ReplyFile any_of ["text", "thinking", "calls", "refuse", "error"] {
        /// What it says.
        "text" => text: Option<WithSpan<LooseText>>,
        /// What it thinks before.
        "thinking" => thinking: Option<WithSpan<LooseText>>,
        /// The tools that it calls, at once.
        "calls" => calls: OptionalNonEmpty<NonEmpty<WithSpan<CallFile>>>,
        /// It declines, with these words.
        "refuse" => refuse: Option<WithSpan<LooseText>>,
        /// There is no answer: its provider has a fault.
        "error" => error: Option<FaultFile>,
        /// How long it takes.
        "delay" => delay: Option<Duration>,
        /// Why it stops, if not because it is done or waits for its calls.
        "stop" => stop: Option<StopWord>,
        /// How many tokens it takes; estimated from the length of the texts if not given.
        "usage" => usage: Option<UsageFile>,
    }
}

record! {
    /// A tool call.
    pub struct CallFile {
        /// The tool, with or without its server's name before it. One that is not on offer is called all the same.
        "tool" => tool: String,
        /// Its arguments.
        "arguments" => arguments: Table<Node>,
        /// What the model writes instead of a JSON object.
        "malformed" => malformed: Option<WithSpan<LooseText>>,
    }
}

words! {
    /// Faults of a model's provider.
    pub enum FaultKind {
        /// Too many questions (429).
        "rateLimit" => RateLimit,
        /// Nobody there, or nobody well (5xx, a reset).
        "unavailable" => Unavailable,
        /// No reply in time.
        "timeout" => Timeout,
        /// The key is wrong.
        "key" => Key,
        /// The conversation has become too long.
        "context" => Context,
        /// The question is refused.
        "rejected" => Rejected,
        /// A reply that makes no sense.
        "malformed" => Malformed,
    }
}

record! {
    /// A fault of a model's provider.
    pub struct FaultFile {
        /// Which one.
        "kind" => kind: FaultKind,
        /// What the provider says.
        "detail" => detail: Option<LooseText>,
        /// How long it wants to be left alone.
        "retryAfter" => retry_after: Option<Duration>,
    }
}

words! {
    /// Why a model stops.
    pub enum StopWord {
        /// It is done.
        "done" => Done,
        /// It waits for what its calls give.
        "calls" => Calls,
        /// The answer was cut off.
        "length" => Length,
    }
}

record! {
    /// How many tokens an answer takes.
    pub struct UsageFile {
        /// What goes in, everything included.
        "input" => input: Option<u64>,
        /// What comes out, thinking included.
        "output" => output: Option<u64>,
        /// The part of what goes in that is read from a cache.
        "cached" => cached: Option<u64>,
        /// The part of what comes out that is thinking.
        "reasoning" => reasoning: Option<u64>,
    }
}
