//! Fills `{row.NAME}` in: in the templates of a case, and in the assertions of its task set.

use std::collections::BTreeSet;

use super::Row;
use crate::document::{MapEntry, Node, NodeValue};
use crate::suite::step::{
    Action, ContentCheck, Field, HttpBody, Judgement, PatternTemplate, ScriptStep, ToolStep,
};
use crate::suite::template::{Reference, Template, TemplatePart, TemplateValue};
use crate::suite::turns::UserTurn;
use crate::suite::{Case, Step};

/// The names that the templates of a case refer to.
pub(in crate::suite) fn names_of(case: &Case) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut note = |template: &mut Template| {
        names.extend(template.references().filter_map(|one| match one {
            Reference::Row(name) => Some(name.clone()),
            _ => None,
        }));
    };
    let mut case = case.clone();
    each_template(&mut case, &mut note, &mut |_| {});
    names
}

/// Fills the values of a row into a case. Names that the row lacks stay as they are.
pub(in crate::suite) fn fill_case(case: &mut Case, row: &Row) {
    let mut fill = |template: &mut Template| {
        for part in &mut template.parts {
            if let TemplatePart::Reference(Reference::Row(name)) = part
                && let Some(value) = row.get(name).and_then(text)
            {
                *part = TemplatePart::Reference(Reference::RowValue(value));
            }
        }
    };
    // A string that is only `{row.NAME}` becomes the value itself: a number stays a number.
    let mut fill_value = |value: &mut TemplateValue| {
        if let TemplateValue::String(template) = value
            && let [TemplatePart::Reference(Reference::Row(name))] = &template.parts[..]
            && let Some(node) = row.get(name)
            && node.as_str().is_none()
        {
            *value = TemplateValue::Plain(node.to_json());
        }
    };
    each_template(case, &mut fill, &mut fill_value);
}

/// A change to each template, and one to each value with templates, which comes first.
type OnTemplate<'a> = &'a mut dyn FnMut(&mut Template);
type OnValue<'a> = &'a mut dyn FnMut(&mut TemplateValue);

fn each_template(case: &mut Case, on: OnTemplate<'_>, on_value: OnValue<'_>) {
    on(&mut case.prompt);
    let turns = case.turns.iter_mut().flat_map(UserTurn::templates);
    turns.for_each(&mut *on);
    let steps = case.setup.iter_mut();
    for step in steps.chain(&mut case.verify).chain(&mut case.cleanup) {
        of_step(step, on, on_value);
    }
}

fn of_step(step: &mut Step, on: OnTemplate<'_>, on_value: OnValue<'_>) {
    match &mut step.action {
        Action::Script(ScriptStep { env, .. }) => env.values_mut().for_each(on),
        Action::Http(http) => {
            on(&mut http.url);
            http.headers.values_mut().for_each(&mut *on);
            match &mut http.body {
                Some(HttpBody::Raw(raw)) => on(raw),
                Some(HttpBody::Json(value)) => of_value(value, on, on_value),
                None => {}
            }
            if let Some(content) = &mut http.content {
                of_content(content, on, on_value);
            }
        }
        Action::Judge(Judgement::Contains(criterion) | Judgement::Exact(criterion)) => {
            on(criterion);
        }
        Action::CallTool(ToolStep { args, content, .. }) => {
            of_value(args, on, on_value);
            if let Some(content) = content {
                of_content(content, on, on_value);
            }
        }
        Action::Extension { args, .. } => of_value(args, on, on_value),
    }
}

fn of_content(content: &mut ContentCheck, on: OnTemplate<'_>, on_value: OnValue<'_>) {
    let ContentCheck { pattern, fields } = content;
    if let Some(PatternTemplate(template)) = pattern {
        on(template);
    }
    for Field {
        equals, pattern, ..
    } in fields
    {
        if let Some(value) = equals {
            of_value(value, on, on_value);
        }
        if let Some(PatternTemplate(template)) = pattern {
            on(template);
        }
    }
}

fn of_value(value: &mut TemplateValue, on: OnTemplate<'_>, on_value: OnValue<'_>) {
    on_value(value);
    match value {
        TemplateValue::Plain(_) => {}
        TemplateValue::String(template) => on(template),
        TemplateValue::Array(items) => {
            for item in items {
                of_value(item, on, on_value);
            }
        }
        TemplateValue::Object(entries) => {
            for (_, item) in entries {
                of_value(item, on, on_value);
            }
        }
    }
}

/// The names that `{row.NAME}` in the strings of a tree refers to.
pub(in crate::suite) fn node_names(node: &Node) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    each_string(node, &mut |text| names.extend(row_names(text)));
    names
}

/// The names that `{row.NAME}` in a text refers to.
pub(in crate::suite) fn row_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut rest = text;
    while let Some((_, name, after)) = next_name(rest) {
        names.insert(name.to_owned());
        rest = after;
    }
    names
}

fn each_string<'a>(node: &'a Node, on: &mut impl FnMut(&'a str)) {
    match &node.data {
        NodeValue::String(text) => on(text),
        NodeValue::Sequence(items) => items.iter().for_each(|item| each_string(item, on)),
        NodeValue::Mapping(entries) => entries.iter().for_each(|e| each_string(&e.value, on)),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(..) => {}
    }
}

/// A tree with the values of a row. A string that is only `{row.NAME}` becomes the value itself.
pub(in crate::suite) fn fill_node(node: &Node, row: &Row) -> Node {
    let data = match &node.data {
        NodeValue::String(text) => match next_name(text) {
            Some(("", name, "")) => row.get(name).map(|value| value.data.clone()),
            Some(_) => Some(NodeValue::String(fill_text(text, row))),
            None => None,
        },
        NodeValue::Sequence(items) => Some(NodeValue::Sequence(
            items.iter().map(|item| fill_node(item, row)).collect(),
        )),
        NodeValue::Mapping(entries) => Some(NodeValue::Mapping(
            entries
                .iter()
                .map(|entry| MapEntry {
                    key: entry.key.clone(),
                    key_span: entry.key_span,
                    value: fill_node(&entry.value, row),
                })
                .collect(),
        )),
        NodeValue::Null | NodeValue::Bool(_) | NodeValue::Number(..) => None,
    };
    Node {
        span: node.span,
        data: data.unwrap_or_else(|| node.data.clone()),
    }
}

fn fill_text(written: &str, row: &Row) -> String {
    let mut out = String::new();
    let mut rest = written;
    while let Some((before, name, after)) = next_name(rest) {
        out.push_str(before);
        match row.get(name).and_then(text) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&format!("{{row.{name}}}")),
        }
        rest = after;
    }
    out + rest
}

/// Splits a text at its first `{row.NAME}`.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    const START: &str = "{row.";
    let at = text.find(START)?;
    let (name, after) = text[at + START.len()..].split_once('}')?;
    Some((&text[..at], name, after))
}

/// The text of a value, as it is filled in. Lists and maps are JSON.
pub(super) fn text(node: &Node) -> Option<String> {
    match &node.data {
        NodeValue::Null => None,
        NodeValue::Bool(value) => Some(value.to_string()),
        NodeValue::Number(_, raw) => Some(raw.clone()),
        NodeValue::String(text) => Some(text.clone()),
        NodeValue::Sequence(_) | NodeValue::Mapping(_) => Some(node.to_json().to_string()),
    }
}
