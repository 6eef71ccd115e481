//! Resolves a selection file to cases, one for each row.

use std::sync::Arc;

use proctor_record::event::{CheckId, CheckPlace};
use proctor_record::hint::listed;
use proctor_record::json;
use proctor_record::problem::{Code, Problem, Span, WithSpan};
use serde_json::{Value, json};

use super::files::FileOrigin;
use super::resolve_assertions::ServerScope;
use super::rows::{self, RowId, RowIds};
use super::selection_file::{
    ExpectedToolsFile, MessageRole, SelectionFile, SelectionMessageFile, SelectionRowFile,
};
use super::template::Template;
use super::{Case, CaseId, Limits, SelectionInput, SelectionMessage};
use crate::check::{Check, ExpectedTools, SelectionCheck, SelectionMode};
use crate::decode::{Context, Decode};
use crate::document::{MapEntry, Node, NodeValue};

/// The start of a prompt that a person still has to write: it tells the model which tool to choose, so
/// it would prove nothing.
pub const PLACEHOLDER: &str = "TO BE WRITTEN";

/// The context in which a selection file is resolved.
pub(super) struct SelectionScope<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) origin: &'a FileOrigin,
    pub(super) servers: ServerScope<'a>,
    /// The server that the task set names, resolved.
    pub(super) server: Option<String>,
    /// The path that goes into the cases' ids.
    pub(super) shown_path: String,
}

/// The cases of a selection file.
pub(super) fn resolve(file: &SelectionFile, scope: &SelectionScope<'_>) -> Option<Vec<Case>> {
    let cx = scope.cx;
    let metadata = file.metadata.get()?;
    let spec = file.spec.get()?;
    let template = Case {
        // Nothing is executed, so trials can't disturb each other.
        parallel: metadata.parallel.unwrap_or(true),
        limits: spec.limits.as_ref().map(Limits::from).unwrap_or_default(),
        ..metadata.case(&scope.shown_path, cx)?
    };
    let mut ids = RowIds::default();
    let mut to = |row: &WithSpan<SelectionRowFile>, cx: &Context<'_>| {
        let one = OneRow { scope, cx, row };
        one.resolve(&template, &mut ids)
    };
    match (&spec.rows, &spec.rows_from) {
        (Some(rows), _) => Some(rows.0.iter().filter_map(|row| to(row, cx)).collect()),
        (None, Some(from)) => {
            let read = rows::read(from, scope.origin, cx)?;
            let is_csv = rows::is_csv(&from.value);
            let inner = cx.beside(read.source.clone());
            let decode = |node: Node| {
                let node = if is_csv { typed(node, &inner)? } else { node };
                inner.deciding(|| WithSpan::<SelectionRowFile>::decode(&node, &inner))
            };
            let rows = read.nodes.into_iter().filter_map(decode);
            Some(rows.filter_map(|row| to(&row, &inner)).collect())
        }
        (None, None) => None,
    }
}

/// The values of a CSV row: cells are strings, and the format has lists and JSON. Empty cells are
/// absent.
fn typed(row: Node, cx: &Context<'_>) -> Option<Node> {
    let NodeValue::Mapping(entries) = row.data else {
        return None;
    };
    let cell = |entry: MapEntry| {
        let text = entry.value.as_str().unwrap_or_default();
        let span = entry.value.span;
        let data = match entry.key.as_str() {
            "expect" | "not" if text.contains('|') => {
                let names = text.split('|').map(|name| Node {
                    span,
                    data: NodeValue::String(name.trim().to_owned()),
                });
                NodeValue::Sequence(names.collect())
            }
            "arguments" | "messages" => match json::decode(text) {
                Ok(value) => rows::node_of(value, span).data,
                Err(error) => {
                    let fault = rows::json_fault(&error);
                    let message = format!("`{}` is not JSON: {fault}", entry.key);
                    cx.report(span, Problem::error(Code::Syntax, message));
                    return None;
                }
            },
            "labels" => rows::labels_of_cell(text, span, cx)?.data,
            "expect" | "not" | "server" | "mode" => NodeValue::String(text.trim().to_owned()),
            _ => entry.value.data,
        };
        Some(MapEntry {
            value: Node { span, data },
            ..entry
        })
    };
    let given = entries.into_iter().filter(|e| !rows::is_empty(&e.value));
    Some(Node {
        span: row.span,
        data: NodeValue::Mapping(given.map(cell).collect::<Option<_>>()?),
    })
}

/// A row that is being resolved.
struct OneRow<'a> {
    scope: &'a SelectionScope<'a>,
    /// The file that holds the row.
    cx: &'a Context<'a>,
    row: &'a WithSpan<SelectionRowFile>,
}

impl OneRow<'_> {
    fn report(&self, span: Span, code: Code, message: impl Into<String>) {
        self.cx.report(span, Problem::error(code, message));
    }

    fn resolve(&self, template: &Case, ids: &mut RowIds) -> Option<Case> {
        let row = self.row;
        let messages = self.messages();
        let check = self.check();
        let messages = messages?;
        let id = match row.id.as_ref().filter(|node| !rows::is_empty(node)) {
            Some(node) => RowId::given(node, self.cx)?,
            None => RowId::hashed(&content(&messages), row.span),
        };
        ids.add(&id, self.cx).then_some(())?;
        let check = check?;
        let mut case = template.clone();
        case.id = CaseId(format!("{}[{}]", case.id, id.text));
        case.name = format!("{}[{}]", case.name, id.text);
        if let Some(labels) = &row.labels {
            let labels = labels.0.iter().map(|(k, v)| (k.clone(), v.clone()));
            case.labels.extend(labels);
        }
        case.prompt = Template::literal(shown(&messages));
        case.checks = vec![
            Arc::new(Check::Selection(Box::new(check))),
            Arc::new(Check::NotExecuted),
        ];
        case.places = vec![CheckPlace {
            check: CheckId::Assertion("selection".to_owned()),
            path: self.cx.source.path().display().to_string(),
            line: row.span.line,
        }];
        case.selection = Some(Arc::new(SelectionInput { messages }));
        Some(case)
    }

    fn messages(&self) -> Option<Vec<SelectionMessage>> {
        if let Some(prompt) = &self.row.prompt {
            if prompt.value.0.trim().is_empty() {
                self.report(prompt.span, Code::Value, "the prompt is empty");
                return None;
            }
            if prompt.value.0.starts_with(PLACEHOLDER) {
                let problem = Problem::error(Code::Value, "the prompt is still to be written");
                let hint = "write what a user would ask, without the name of the tool";
                self.cx.report(prompt.span, problem.hint(hint));
                return None;
            }
            return Some(vec![SelectionMessage {
                role: MessageRole::User,
                text: prompt.value.0.clone(),
            }]);
        }
        let written = self.row.messages.as_ref()?;
        let message = |file: &SelectionMessageFile| SelectionMessage {
            role: file.role.value,
            text: file.content.0.clone(),
        };
        let messages: Vec<SelectionMessage> = written.0.iter().map(message).collect();
        let last = messages.last()?;
        if last.role != MessageRole::User || last.text.trim().is_empty() {
            let message = "the last message must be one of the user, with a text";
            self.report(written.span, Code::Value, message);
            return None;
        }
        Some(messages)
    }

    fn check(&self) -> Option<SelectionCheck> {
        let row = self.row;
        let server = match &row.server {
            Some(server) => Some(self.scope.servers.resolve("row", server, self.cx)),
            None => self.scope.server.clone(),
        };
        let expect = row.expect.get()?;
        let not = row.not.as_ref().map_or(&[][..], |not| &not.value.0);
        let arguments = row.arguments.as_ref();
        let expected = match &expect.value {
            ExpectedToolsFile::None => {
                if let Some(not) = &row.not {
                    let message =
                        "`not` has no effect with `expect: none`, which forbids all calls";
                    self.report(not.span, Code::Conflict, message);
                }
                if let Some(arguments) = arguments {
                    let message = "`arguments` has no effect with `expect: none`";
                    self.report(arguments.span, Code::Conflict, message);
                }
                ExpectedTools::None
            }
            ExpectedToolsFile::Tools(names) => {
                let both: Vec<&str> = names
                    .0
                    .iter()
                    .map(String::as_str)
                    .filter(|name| not.iter().any(|other| other == name))
                    .collect();
                if let (false, Some(written)) = (both.is_empty(), &row.not) {
                    let message = format!("{} is both expected and forbidden", listed(both));
                    self.report(written.span, Code::Conflict, message);
                }
                ExpectedTools::AnyOf(names.0.clone())
            }
        };
        if let Some(arguments) = arguments {
            if !arguments.value.can_match_object() {
                let message = "no arguments can match: arguments are an object";
                self.report(arguments.span, Code::Vacuous, message);
            }
            if arguments.value.matches_every_object() {
                let message = "all arguments match, so `arguments` checks nothing";
                self.report(arguments.span, Code::Vacuous, message);
            }
        }
        Some(SelectionCheck {
            server,
            expect: expected,
            not: not.to_vec(),
            arguments: arguments.map(|matcher| matcher.value.clone()),
            mode: row.mode.unwrap_or(SelectionMode::Exact),
        })
    }
}

/// What the id of a row without one comes from.
fn content(messages: &[SelectionMessage]) -> Value {
    match messages {
        [only] => json!(only.text),
        several => several
            .iter()
            .map(|message| json!([message.role.word(), message.text]))
            .collect(),
    }
}

/// The messages as one text, for people.
fn shown(messages: &[SelectionMessage]) -> String {
    match messages {
        [only] => only.text.clone(),
        several => {
            let lines = several
                .iter()
                .map(|message| format!("{}: {}", message.role.word(), message.text));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

#[cfg(test)]
mod tests;
