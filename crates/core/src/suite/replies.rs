//! The replies of Proctor's client to a server's own requests: elicitation, sampling and roots.
//!
//! Its main type is [`ClientReplies`]. An answer that does not fit the request is an error, never
//! a silent refusal.

use std::path::Path;
use std::sync::Arc;

use proctor_record::event::Blame;
use proctor_record::excerpt::excerpt;
use proctor_record::hint::listed;
use proctor_record::problem::{Code, Problem, Problems, Span, WithSpan};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Case;
use super::agent::{ModelRef, split_model};
use super::files::FileOrigin;
use super::load::load_script;
use super::replies_file::{
    ActionWord, ElicitationFile, ElicitationRuleFile, RefusalWord, SamplingFile, rule_span,
};
use super::server::{Servers, TextScope};
use super::step::resolve::resolve_file;
use crate::decode::{Context, LooseText, Table};
use crate::document::Node;
use crate::matcher::Matcher;
use crate::provider::Provider;

/// The configured replies to the requests of one server. Each is also declared as a capability.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientReplies {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<Elicitation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// Paths or URIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roots: Option<Vec<String>>,
}

/// How elicitations are answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Elicitation {
    /// Each requested field gets the value of its name.
    Fields {
        values: Map<String, Value>,
        /// Where they are written, as `FILE:LINE`.
        #[serde(skip)]
        place: String,
    },
    /// The first rule that matches answers.
    Rules(Vec<ElicitationRule>),
}

/// One rule for elicitations.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationRule {
    /// Matches the parameters of the request.
    pub when: Option<Matcher>,
    pub reply: ElicitationReply,
    /// Where it is written, as `FILE:LINE`.
    #[serde(skip)]
    pub place: String,
}

/// The answer to an elicitation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ElicitationReply {
    Accept(Option<Map<String, Value>>),
    Decline,
    Cancel,
}

/// How sampling requests are answered.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Sampling {
    Refuse,
    Model(ModelRef),
}

/// Why a configured answer can't be given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct UnfitReply {
    /// The suite, unless the server's own schema is invalid.
    pub blame: Blame,
    pub reason: String,
}

impl ClientReplies {
    /// These replies, where the ones of a task replace those of the MCP config.
    #[must_use]
    pub fn overridden_by(&self, own: Option<&Self>) -> Self {
        let Some(own) = own else {
            return self.clone();
        };
        Self {
            elicitation: own.elicitation.clone().or(self.elicitation.clone()),
            sampling: own.sampling.clone().or(self.sampling.clone()),
            roots: own.roots.clone().or(self.roots.clone()),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The model that answers sampling requests.
    pub fn sampling_model(&self) -> Option<&ModelRef> {
        match self.sampling.as_ref()? {
            Sampling::Refuse => None,
            Sampling::Model(model) => Some(model),
        }
    }
}

impl Elicitation {
    /// The rules, each with its place, of which every one is expected to answer a request.
    pub fn places(&self) -> Vec<&str> {
        match self {
            Self::Fields { place, .. } => vec![place],
            Self::Rules(rules) => rules.iter().map(|rule| rule.place.as_str()).collect(),
        }
    }

    /// The result for a request with these parameters, and the index of the rule that gives it.
    pub fn reply(&self, params: &Value) -> Result<(Value, usize), UnfitReply> {
        match self {
            Self::Fields { values, place } => {
                let content = picked(values, params, place)?;
                let fitting = fitting(content, params, place)?;
                Ok((json!({"action": "accept", "content": fitting}), 0))
            }
            Self::Rules(rules) => {
                let is_meant = |rule: &ElicitationRule| match &rule.when {
                    Some(when) => when.evaluate(Some(params)).is_ok(),
                    None => true,
                };
                let Some(at) = rules.iter().position(is_meant) else {
                    let place = rules.first().map_or("", |rule| rule.place.as_str());
                    let reason = format!(
                        "no rule of `elicitation` ({place}) matches the request {}",
                        shown(params)
                    );
                    return Err(unfit(reason));
                };
                Ok((rules[at].result(params)?, at))
            }
        }
    }
}

impl ElicitationRule {
    fn result(&self, params: &Value) -> Result<Value, UnfitReply> {
        Ok(match &self.reply {
            ElicitationReply::Decline => json!({"action": "decline"}),
            ElicitationReply::Cancel => json!({"action": "cancel"}),
            // A form needs its content; a URL has none.
            ElicitationReply::Accept(None) if is_url(params) => json!({"action": "accept"}),
            ElicitationReply::Accept(content) => {
                let content = content.clone().unwrap_or_default();
                let fitting = fitting(content, params, &self.place)?;
                json!({"action": "accept", "content": fitting})
            }
        })
    }
}

fn is_url(params: &Value) -> bool {
    params.get("mode").is_some_and(|mode| mode == "url")
}

fn requested_fields(params: &Value) -> Vec<&String> {
    let properties = params
        .get("requestedSchema")
        .and_then(|schema| schema.get("properties")?.as_object());
    properties
        .map(|map| map.keys().collect())
        .unwrap_or_default()
}

/// The values of the requested fields. At least one must be among them, if the server requests any.
fn picked(
    values: &Map<String, Value>,
    params: &Value,
    place: &str,
) -> Result<Map<String, Value>, UnfitReply> {
    let requested = requested_fields(params);
    let known = requested
        .iter()
        .filter_map(|name| Some(((*name).clone(), values.get(*name)?.clone())));
    let content: Map<String, Value> = known.collect();
    if content.is_empty() && !requested.is_empty() {
        let fields = listed(requested.into_iter().map(String::as_str));
        let reason = format!(
            "`elicitation` ({place}) has no value for any requested field ({fields}) of {}",
            shown(params)
        );
        return Err(unfit(reason));
    }
    Ok(content)
}

/// The content, if it fits the requested schema and has no other fields.
fn fitting(content: Map<String, Value>, params: &Value, place: &str) -> Result<Value, UnfitReply> {
    let refused = |why: String| {
        let message = shown(params);
        unfit(format!(
            "the answer of `elicitation` ({place}) does not fit the request {message}: {why}"
        ))
    };
    if is_url(params) {
        let why = "it asks the user to open a URL, so the answer has no content".to_owned();
        return Err(refused(why));
    }
    let requested = requested_fields(params);
    if let Some(other) = content.keys().find(|name| !requested.contains(name)) {
        let fields = listed(requested.into_iter().map(String::as_str));
        let why = format!("the server does not request `{other}`; requested: {fields}");
        return Err(refused(why));
    }
    let schema = params.get("requestedSchema").unwrap_or(&Value::Bool(true));
    let options = jsonschema::options()
        .offline()
        .should_validate_formats(true);
    let validator = options.build(schema).map_err(|error| UnfitReply {
        blame: Blame::Server,
        reason: format!(
            "the schema of the elicitation {} is invalid: {error}",
            shown(params)
        ),
    })?;
    let content = Value::Object(content);
    let wrong = validator.iter_errors(&content).next().map(|error| {
        let at = error.instance_path().to_string();
        match at.trim_start_matches('/') {
            "" => error.to_string(),
            field => format!("`{field}`: {error}"),
        }
    });
    match wrong {
        Some(why) => Err(refused(why)),
        None => Ok(content),
    }
}

fn shown(params: &Value) -> String {
    let message = params.get("message").and_then(Value::as_str);
    format!("`{}`", excerpt(message.unwrap_or_default()))
}

fn unfit(reason: String) -> UnfitReply {
    UnfitReply {
        blame: Blame::Suite,
        reason,
    }
}

/// The replies as an MCP config or a task has them.
pub(super) struct WrittenReplies<'a> {
    pub(super) elicitation: Option<&'a WithSpan<ElicitationFile>>,
    pub(super) sampling: Option<&'a WithSpan<SamplingFile>>,
    pub(super) roots: Option<&'a [WithSpan<LooseText>]>,
}

impl WrittenReplies<'_> {
    pub(super) fn resolve(&self, origin: &FileOrigin, scope: &TextScope<'_>) -> ClientReplies {
        let cx = scope.cx;
        ClientReplies {
            elicitation: self.elicitation.map(|file| elicitation(file, cx)),
            sampling: self
                .sampling
                .and_then(|file| sampling(&file.value, origin, cx)),
            roots: self.roots.map(|roots| {
                let roots = roots.iter();
                let each = roots.map(|root| scope.expand(&root.value.0, root.span));
                each.map(|root| located(root, cx.source.folder())).collect()
            }),
        }
    }
}

fn elicitation(file: &WithSpan<ElicitationFile>, cx: &Context<'_>) -> Elicitation {
    match &file.value {
        ElicitationFile::Always(word) => Elicitation::Rules(vec![ElicitationRule {
            when: None,
            reply: match word {
                RefusalWord::Decline => ElicitationReply::Decline,
                RefusalWord::Cancel => ElicitationReply::Cancel,
            },
            place: place(file.span, cx),
        }]),
        ElicitationFile::Fields(fields) => {
            if fields.0.is_empty() {
                let problem = Problem::error(Code::Vacuous, "no field has a value");
                cx.report(file.span, problem.hint("to refuse, write `decline`"));
            }
            Elicitation::Fields {
                values: values(fields),
                place: place(file.span, cx),
            }
        }
        ElicitationFile::Rules(rules) => {
            let last = rules.0.len().saturating_sub(1);
            let rules = rules.0.iter().enumerate();
            Elicitation::Rules(rules.map(|(at, file)| rule(file, at == last, cx)).collect())
        }
    }
}

fn rule(file: &ElicitationRuleFile, is_last: bool, cx: &Context<'_>) -> ElicitationRule {
    let span = rule_span(file);
    if file.when.is_none() && !is_last {
        let message = "this rule matches every request, so the rules after it have no effect";
        let problem = Problem::error(Code::Vacuous, message);
        cx.report(span, problem.hint("add `when`, or make it the last rule"));
    }
    if let Some(when) = &file.when
        && !when.value.can_match_object()
    {
        let message = "this can never match: the parameters of a request are a map";
        cx.report(when.span, Problem::error(Code::Vacuous, message));
    }
    let content = file.content.as_ref();
    let action = file.action.as_ref().map(|action| action.value);
    if let (Some(content), Some(ActionWord::Decline | ActionWord::Cancel)) = (content, action) {
        let message = "only an accepted form has `content`";
        cx.report(content.span, Problem::error(Code::Conflict, message));
    }
    ElicitationRule {
        when: file.when.as_ref().map(|when| when.value.clone()),
        reply: match action {
            Some(ActionWord::Decline) => ElicitationReply::Decline,
            Some(ActionWord::Cancel) => ElicitationReply::Cancel,
            Some(ActionWord::Accept) | None => {
                ElicitationReply::Accept(content.map(|content| values(content)))
            }
        },
        place: place(span, cx),
    }
}

fn values(fields: &Table<Node>) -> Map<String, Value> {
    let fields = fields.iter();
    fields
        .map(|(name, value)| (name.value.clone(), value.to_json()))
        .collect()
}

fn place(span: Span, cx: &Context<'_>) -> String {
    format!("{}:{}", cx.source.path().display(), span.line)
}

fn sampling(file: &SamplingFile, origin: &FileOrigin, cx: &Context<'_>) -> Option<Sampling> {
    match file {
        SamplingFile::Refuse => Some(Sampling::Refuse),
        SamplingFile::Model(file) => model(file.model.get()?, origin, cx).map(Sampling::Model),
    }
}

/// Refuses replies that belong to one trial, if trials share their connections.
pub(super) fn refuse_shared(servers: Option<&Servers>, cases: &[Case], cx: &Context<'_>) {
    let hint = "use `isolation: trial`";
    if let Some(case) = cases.iter().find(|case| !case.replies.is_empty()) {
        let message = "a task can't have `replies` with `isolation: run`: trials share the client";
        let problem = Problem::error(Code::Conflict, message);
        cx.report_elsewhere(problem.in_file(&case.path).hint(hint));
    }
    let mut enabled = servers.into_iter().flat_map(|servers| &servers.enabled);
    if let Some(server) = enabled.find(|s| s.client.replies.sampling_model().is_some()) {
        let message = format!(
            "a model can't answer the sampling requests of `{}` with `isolation: run`: they belong \
             to no trial",
            server.name
        );
        let problem = Problem::error(Code::Conflict, message);
        cx.report_elsewhere(problem.in_file(cx.source.path()).hint(hint));
    }
}

/// A model outside of an agent, with its script if it is one.
pub(super) fn model(
    written: &WithSpan<String>,
    origin: &FileOrigin,
    cx: &Context<'_>,
) -> Option<ModelRef> {
    let mut model = split_model(written, false, cx)?;
    if model.provider == Some(Provider::Scripted) {
        let path = WithSpan {
            value: model.id.clone(),
            span: written.span,
        };
        let path = resolve_file(&path, origin, cx)?;
        let mut problems = Problems::default();
        let script = load_script(&path, &mut problems);
        cx.append(problems);
        model.script = Some(Arc::new(script?));
    }
    Some(model)
}

/// A root: a URI stays as it is, a path is relative to the file that names it. A template is filled in by
/// each trial.
fn located(root: String, folder: &Path) -> String {
    if root.contains("://") || root.starts_with("{trial.dir}") {
        return root;
    }
    folder.join(root).display().to_string()
}

#[cfg(test)]
mod tests;
