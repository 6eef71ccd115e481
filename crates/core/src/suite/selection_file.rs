//! The file format of a selection file (`kind: Selection`).
//!
//! Its main type is [`SelectionFile`].

use proctor_record::problem::{Code, Problem, WithSpan};
use serde_json::{Value, json};

use super::eval_file::LimitsFile;
use super::rows::RowLabels;
use super::task_file::TaskMetadata;
use crate::check::SelectionMode;
use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, OptionalNonEmpty, RequiredKey, StrictKeys,
    decode_word, record, words,
};
use crate::document::{Node, NodeValue};
use crate::matcher::Matcher;

words! {
    /// The value of `kind` in a selection file.
    pub enum SelectionKind {
        "Selection" => Selection,
    }
}

record! {
    /// Selection: prompts, and the tools that a model should choose for them. No tool is called.
    pub struct SelectionFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Selection`.
        "kind" => kind: RequiredKey<SelectionKind>,
        /// The version of the format. It has no effect in this file.
        "apiVersion" => api_version: Option<LooseText>,
        /// The name, labels and runs of all rows.
        "metadata" => metadata: RequiredKey<TaskMetadata>,
        /// The rows.
        "spec" => spec: RequiredKey<StrictKeys<SelectionSpecFile>>,
    }
}

record! {
    /// The rows of a selection file.
    pub struct SelectionSpecFile one_of ["rows", "rowsFrom"] {
        /// The rows. Each is a case of its own.
        "rows" => rows: Option<NonEmpty<WithSpan<SelectionRowFile>>>,
        /// A CSV or JSONL file with rows.
        "rowsFrom" => rows_from: Option<WithSpan<String>>,
        /// The limits of each trial.
        "limits" => limits: Option<LimitsFile>,
    }
}

record! {
    /// A prompt, and the tools that a model should choose for it in its first turn.
    pub struct SelectionRowFile one_of ["prompt", "messages"] {
        /// Identifies the row. By default it comes from a hash of the prompt.
        "id" => id: Option<Node>,
        /// The prompt.
        "prompt" => prompt: Option<WithSpan<LooseText>>,
        /// A conversation that ends with a message of the user.
        "messages" => messages: Option<WithSpan<NonEmpty<SelectionMessageFile>>>,
        /// The tool to choose, a list of tools of which one must be chosen, or `none`.
        "expect" => expect: RequiredKey<WithSpan<ExpectedToolsFile>>,
        /// Tools that must not be chosen.
        "not" => not: Option<WithSpan<ToolNamesFile>>,
        /// A matcher for the arguments of the chosen tools.
        "arguments" => arguments: OptionalNonEmpty<WithSpan<Matcher>>,
        /// Whether other calls are allowed in the same turn. By default they are not (`exact`).
        "mode" => mode: Option<SelectionMode>,
        /// The server of the tools, if the task set names none.
        "server" => server: Option<WithSpan<String>>,
        /// Labels to select by, besides those of the file.
        "labels" => labels: Option<RowLabels>,
    }
}

words! {
    /// The author of a message.
    pub enum MessageRole {
        "user" => User,
        "assistant" => Assistant,
    }
}

record! {
    /// A message of a conversation.
    pub struct SelectionMessageFile {
        /// Who wrote it.
        "role" => role: WithSpan<MessageRole>,
        /// The text.
        "content" => content: LooseText,
    }
}

const MODES: [SelectionMode; 2] = [SelectionMode::Exact, SelectionMode::Contains];

impl Decode for SelectionMode {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        decode_word(node, cx, &MODES.map(|mode| (mode.word(), mode)))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": MODES.map(SelectionMode::word)})
    }
}

/// The tools that a row expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedToolsFile {
    /// Written `none`: the model must answer without a call. A tool of that name is written `[none]`.
    None,
    Tools(ToolNamesFile),
}

impl Decode for ExpectedToolsFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        if node.as_str() == Some("none") {
            return Some(Self::None);
        }
        ToolNamesFile::decode(node, cx).map(Self::Tools)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        ToolNamesFile::schema(definitions)
    }
}

/// One tool, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolNamesFile(pub Vec<String>);

impl Decode for ToolNamesFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let items = match &node.data {
            NodeValue::Sequence(items) => &items[..],
            _ => std::slice::from_ref(node),
        };
        if items.is_empty() {
            let problem = Problem::error(Code::Vacuous, "the list of tools is empty");
            cx.report(node.span, problem.hint("name a tool"));
            return None;
        }
        let names = items.iter().map(|item| String::decode(item, cx));
        names.collect::<Option<_>>().map(Self)
    }

    fn schema(definitions: &mut Definitions) -> Value {
        let name = String::schema(definitions);
        json!({"anyOf": [name, {"type": "array", "minItems": 1, "items": name}]})
    }
}
