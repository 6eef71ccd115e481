//! What the user says after the agent's first answer, resolved.
//!
//! Its main type is [`UserTurn`].

use std::sync::Arc;

use proctor_record::event::{CheckId, CheckPlace};
use proctor_record::problem::{Code, Problem, WithSpan};
use serde::Serialize;

use super::agent::ModelRef;
use super::eval_file::AssertionsFileOrRows;
use super::files::FileOrigin;
use super::replies::model;
use super::resolve_assertions::{self, ServerScope};
use super::template::Template;
use super::turns_file::{UserModelFile, UserTurnFile};
use crate::check::Check;
use crate::decode::{Context, LooseText};

/// How many messages a model that plays the user may write by default.
const MAX_MESSAGES: u32 = 10;

/// When the user stops by default.
const STOP: &str = "The goal is reached, or it is clear that the assistant can't reach it.";

/// One entry of a task's `turns`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum UserTurn {
    /// One message. Its templates are filled in after the setup.
    Message(Template),
    /// Messages of a model.
    Model(UserModel),
}

/// A model that plays the user.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserModel {
    pub model: ModelRef,
    pub goal: Template,
    /// When the user ends the conversation.
    pub stop: Template,
    /// The maximum number of messages.
    pub max_messages: u32,
}

impl UserTurn {
    pub(super) fn templates(&mut self) -> Vec<&mut Template> {
        match self {
            Self::Message(message) => vec![message],
            Self::Model(user) => vec![&mut user.goal, &mut user.stop],
        }
    }

    /// The model that plays the user.
    pub fn model(&self) -> Option<&ModelRef> {
        match self {
            Self::Message(_) => None,
            Self::Model(user) => Some(&user.model),
        }
    }
}

/// Resolves a model that plays the user. `text` resolves a text of the task.
pub(super) fn user(
    file: &UserModelFile,
    origin: &FileOrigin,
    cx: &Context<'_>,
    text: impl Fn(&WithSpan<LooseText>) -> Option<Template>,
) -> Option<UserTurn> {
    let goal = file.goal.get();
    if let Some(goal) = goal.filter(|goal| goal.value.0.trim().is_empty()) {
        cx.report(goal.span, Problem::error(Code::Value, "the goal is empty"));
    }
    let model = model(file.model.get()?, origin, cx);
    Some(UserTurn::Model(UserModel {
        goal: text(goal?)?,
        stop: match &file.stop {
            Some(stop) => text(stop)?,
            None => Template::literal(STOP),
        },
        max_messages: file.max_turns.map_or(MAX_MESSAGES, |most| most.0),
        model: model?,
    }))
}

/// The checks on the calls of one turn, with their places. The first prompt is turn 1.
pub(super) fn checks(
    file: &UserTurnFile,
    turn: u32,
    servers: ServerScope<'_>,
    cx: &Context<'_>,
) -> Vec<(Arc<Check>, CheckPlace)> {
    let Some(WithSpan { value, span }) = &file.assertions else {
        return Vec::new();
    };
    let assertions = match value {
        AssertionsFileOrRows::Fixed(assertions) => assertions,
        AssertionsFileOrRows::PerRow(_) => {
            let message = "the assertions of a turn can't contain `{row.NAME}`";
            let problem = Problem::error(Code::Reference, message);
            cx.report(*span, problem.hint("move them to the task set"));
            return Vec::new();
        }
    };
    let checks = resolve_assertions::resolve(&assertions.value, servers, cx);
    if checks.is_empty() {
        let message = "the turn has no assertions, so this checks nothing";
        cx.report(*span, Problem::error(Code::Vacuous, message));
    }
    let path = cx.source.path().display().to_string();
    let located = checks.into_iter().map(|check| {
        let mut spans = assertions.spans.iter();
        let key = spans.find(|(key, _)| *key == *check.name());
        let line = key.map_or(span.line, |(_, span)| span.line);
        let check = Check::OfTurn {
            turn,
            check: Box::new(check),
        };
        let place = CheckPlace {
            check: CheckId::Assertion(check.name().into_owned()),
            path: path.clone(),
            line,
        };
        (Arc::new(check), place)
    });
    located.collect()
}
