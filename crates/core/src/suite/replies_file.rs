//! The file format of the replies to a server's own requests: elicitation, sampling and roots.
//!
//! Its main type is [`RepliesFile`].

use proctor_record::problem::{Span, WithSpan};
use serde_json::{Value, json};

use crate::decode::{
    Context, Decode, Definitions, LooseText, NonEmpty, RequiredKey, Table, record, words,
};
use crate::document::{Node, NodeValue};
use crate::matcher::Matcher;

record! {
    /// The replies of Proctor's client to the requests of one server.
    pub struct RepliesFile {
        /// The answers to elicitations: by field, by rule, `decline` or `cancel`.
        "elicitation" => elicitation: Option<WithSpan<ElicitationFile>>,
        /// The model that answers sampling requests, or `refuse`.
        "sampling" => sampling: Option<WithSpan<SamplingFile>>,
        /// The roots that the server gets: paths or URIs. Proctor expands `${VAR}` and `${VAR:-default}`.
        "roots" => roots: Option<Vec<WithSpan<LooseText>>>,
    }
}

/// The answers to elicitations.
#[derive(Debug, Clone)]
pub enum ElicitationFile {
    /// The same action for every request.
    Always(RefusalWord),
    /// A value for each field, by name.
    Fields(Table<Node>),
    /// The first rule that matches a request answers it.
    Rules(NonEmpty<ElicitationRuleFile>),
}

words! {
    /// How a user refuses an elicitation.
    pub enum RefusalWord {
        /// The user says no.
        "decline" => Decline,
        /// The user closes the dialog.
        "cancel" => Cancel,
    }
}

words! {
    /// What a user does with an elicitation.
    pub enum ActionWord {
        /// The user submits the form.
        "accept" => Accept,
        /// The user says no.
        "decline" => Decline,
        /// The user closes the dialog.
        "cancel" => Cancel,
    }
}

record! {
    /// One rule for elicitations.
    pub struct ElicitationRuleFile any_of ["action", "content"] {
        /// A matcher for the parameters of the request: `message`, `requestedSchema`, `mode`. By default every request.
        "when" => when: Option<WithSpan<Matcher>>,
        /// The action: `accept`, `decline` or `cancel`. By default `accept`.
        "action" => action: Option<WithSpan<ActionWord>>,
        /// The content of the form, which must fit the requested schema.
        "content" => content: Option<WithSpan<Table<Node>>>,
    }
}

impl Decode for ElicitationFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::String(_) => RefusalWord::decode(node, cx).map(Self::Always),
            NodeValue::Sequence(_) => NonEmpty::decode(node, cx).map(Self::Rules),
            NodeValue::Mapping(_) => Table::decode(node, cx).map(Self::Fields),
            NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(..) => {
                cx.wrong_type(node, "fields, a list of rules, `decline` or `cancel`");
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [
            RefusalWord::schema(definitions),
            NonEmpty::<ElicitationRuleFile>::schema(definitions),
            {"type": "object"},
        ]})
    }
}

/// How sampling requests are answered.
#[derive(Debug, Clone)]
pub enum SamplingFile {
    /// Every request is refused.
    Refuse,
    /// A model answers.
    Model(SamplingModelFile),
}

words! {
    /// The word for sampling that is refused.
    pub enum RefuseWord {
        "refuse" => Refuse,
    }
}

record! {
    /// The model that answers sampling requests.
    pub struct SamplingModelFile {
        /// The model, as `provider:model-id`.
        "model" => model: RequiredKey<WithSpan<String>>,
    }
}

impl Decode for SamplingFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        match &node.data {
            NodeValue::String(_) => RefuseWord::decode(node, cx).map(|_| Self::Refuse),
            NodeValue::Mapping(_) => SamplingModelFile::decode(node, cx).map(Self::Model),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Number(..)
            | NodeValue::Sequence(_) => {
                cx.wrong_type(node, "`{model: …}` or `refuse`");
                None
            }
        }
    }

    fn schema(definitions: &mut Definitions) -> Value {
        json!({"anyOf": [
            RefuseWord::schema(definitions),
            SamplingModelFile::schema(definitions),
        ]})
    }
}

/// The place of a rule, by its first key.
pub(super) fn rule_span(rule: &ElicitationRuleFile) -> Span {
    let spans = [
        rule.when.as_ref().map(|when| when.span),
        rule.action.as_ref().map(|action| action.span),
        rule.content.as_ref().map(|content| content.span),
    ];
    let given = spans.into_iter().flatten();
    given.min_by_key(|span| span.line).unwrap_or_default()
}
