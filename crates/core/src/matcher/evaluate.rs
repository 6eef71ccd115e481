//! Evaluates a matcher, and finds the first mismatch.

use std::fmt::Write as _;

use proctor_record::json::{self, brief};
use serde_json::{Map, Value};

use super::{ContainsOperand, JsonKind, MatcherNode, Operand, Operator, PathStep, ValueMismatch};
use crate::assignment;

pub(super) fn evaluate(node: &MatcherNode, value: Option<&Value>) -> Result<(), ValueMismatch> {
    match_node(node, value).map_err(|miss| ValueMismatch {
        path: render(miss.inward),
        reason: miss.reason,
    })
}

/// A mismatch. Its path is collected from the inside out.
struct MatchFailure {
    inward: Vec<PathStep>,
    reason: String,
}

impl MatchFailure {
    fn here(reason: String) -> Self {
        Self {
            inward: Vec::new(),
            reason,
        }
    }

    fn expected(what: impl std::fmt::Display, found: &Value) -> Self {
        Self::here(format!("expected {what}, found {}", brief(found)))
    }

    fn at(mut self, step: PathStep) -> Self {
        self.inward.push(step);
        self
    }
}

type MatchOutcome = Result<(), MatchFailure>;

pub(super) fn accepts(node: &MatcherNode, value: Option<&Value>) -> bool {
    match_node(node, value).is_ok()
}

fn match_node(node: &MatcherNode, value: Option<&Value>) -> MatchOutcome {
    match node {
        MatcherNode::Literal(expected) => match_literal(expected, value),
        MatcherNode::Object(members) => {
            let found = present(value, || "an object".to_owned())?;
            let object = found.as_object();
            match_members(
                members,
                object.ok_or_else(|| MatchFailure::expected("an object", found))?,
            )
        }
        MatcherNode::Array(elements) => {
            let found = present(value, || "an array".to_owned())?;
            let array = found.as_array();
            match_elements(
                elements,
                array.ok_or_else(|| MatchFailure::expected("an array", found))?,
            )
        }
        MatcherNode::All(operators) => operators
            .iter()
            .try_for_each(|operator| match_operator(operator, value)),
    }
}

fn present(value: Option<&Value>, expected: impl Fn() -> String) -> Result<&Value, MatchFailure> {
    value.ok_or_else(|| MatchFailure::here(format!("expected {}, found nothing", expected())))
}

fn match_literal(expected: &Value, value: Option<&Value>) -> MatchOutcome {
    let found = present(value, || brief(expected))?;
    if json::equal(expected, found) {
        return Ok(());
    }
    let (expected, found) = json::brief_pair(expected, found);
    Err(MatchFailure::here(format!(
        "expected {expected}, found {found}"
    )))
}

fn match_members(members: &[(String, MatcherNode)], found: &Map<String, Value>) -> MatchOutcome {
    members.iter().try_for_each(|(key, node)| {
        match_node(node, found.get(key)).map_err(|miss| miss.at(PathStep::Key(key.clone())))
    })
}

fn match_elements(elements: &[MatcherNode], found: &[Value]) -> MatchOutcome {
    same_length(elements.len(), found)?;
    let pairs = elements.iter().zip(found);
    pairs.enumerate().try_for_each(|(index, (node, found))| {
        match_node(node, Some(found)).map_err(|miss| miss.at(PathStep::Index(index)))
    })
}

fn same_length(expected: usize, found: &[Value]) -> MatchOutcome {
    if expected == found.len() {
        return Ok(());
    }
    let plural = if expected == 1 { "" } else { "s" };
    Err(MatchFailure::here(format!(
        "expected {expected} element{plural}, found {}",
        found.len()
    )))
}

fn match_operator(operator: &Operator, value: Option<&Value>) -> MatchOutcome {
    match operator {
        Operator::Exists(exists) => match (exists, value) {
            (true, None) => Err(MatchFailure::here(
                "expected a value, found nothing".to_owned(),
            )),
            (false, Some(found)) => Err(MatchFailure::expected("nothing", found)),
            (true, Some(_)) | (false, None) => Ok(()),
        },
        Operator::OneOf(alternatives) => match_alternatives(alternatives, value),
        Operator::Not(operand) => {
            if !accepts(&operand.node, value) {
                return Ok(());
            }
            let found = value.map_or_else(|| "nothing".to_owned(), brief);
            Err(MatchFailure::here(format!(
                "expected anything but {}, found {found}",
                operand.brief
            )))
        }
        Operator::Exact(expected) => match_literal(expected, value),
        present_only @ (Operator::Contains(_)
        | Operator::Match(_)
        | Operator::Type(_)
        | Operator::Approx { .. }
        | Operator::Min(_)
        | Operator::Max(_)
        | Operator::Unordered(_)
        | Operator::Schema(_)) => {
            let found = present(value, || expectation(present_only))?;
            match_present(present_only, found)
        }
    }
}

fn match_alternatives(alternatives: &[Operand], value: Option<&Value>) -> MatchOutcome {
    if alternatives
        .iter()
        .any(|operand| accepts(&operand.node, value))
    {
        return Ok(());
    }
    let found = value.map_or_else(|| "nothing".to_owned(), brief);
    let briefs: Vec<&str> = alternatives.iter().map(|one| one.brief.as_str()).collect();
    Err(MatchFailure::here(format!(
        "expected one of {}; found {found}",
        briefs.join(", ")
    )))
}

fn match_present(operator: &Operator, found: &Value) -> MatchOutcome {
    let holds = match (operator, found) {
        (Operator::Contains(contains), _) => holds_inside(contains, found),
        (Operator::Match(pattern), Value::String(text)) => pattern.is_match(text),
        (Operator::Type(types), _) => types.iter().any(|one| one.holds(found)),
        (Operator::Approx { value, tolerance }, Value::Number(number)) => {
            json::within(number, value, tolerance)
        }
        (Operator::Min(min), Value::Number(number)) => json::compare_numbers(number, min).is_ge(),
        (Operator::Max(max), Value::Number(number)) => json::compare_numbers(number, max).is_le(),
        (Operator::Unordered(elements), Value::Array(found)) => {
            return match_unordered(elements, found);
        }
        (Operator::Schema(schema), _) => {
            return match schema.violation(found) {
                None => Ok(()),
                Some((mut path, message)) => {
                    path.reverse();
                    Err(MatchFailure {
                        inward: path,
                        reason: format!("does not match the schema: {message}"),
                    })
                }
            };
        }
        // The value is of another kind; the last four are evaluated before this.
        (
            Operator::Match(_)
            | Operator::Approx { .. }
            | Operator::Min(_)
            | Operator::Max(_)
            | Operator::Unordered(_)
            | Operator::Exact(_)
            | Operator::OneOf(_)
            | Operator::Exists(_)
            | Operator::Not(_),
            _,
        ) => false,
    };
    if holds {
        Ok(())
    } else {
        Err(MatchFailure::expected(expectation(operator), found))
    }
}

fn holds_inside(contains: &ContainsOperand, found: &Value) -> bool {
    match found {
        Value::String(found) => contains
            .text
            .as_ref()
            .is_some_and(|text| found.contains(text.as_str())),
        Value::Array(found) => found
            .iter()
            .any(|element| accepts(&contains.element.node, Some(element))),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn match_unordered(elements: &[Operand], found: &[Value]) -> MatchOutcome {
    same_length(elements.len(), found)?;
    let partners = assignment::maximum_matching(elements.len(), found.len(), |left, right| {
        accepts(&elements[left].node, Some(&found[right]))
    });
    let Some(lonely) = partners.iter().position(Option::is_none) else {
        return Ok(());
    };
    let free: Vec<String> = found
        .iter()
        .enumerate()
        .filter(|(index, _)| !partners.contains(&Some(*index)))
        .map(|(_, element)| brief(element))
        .take(3)
        .collect();
    Err(MatchFailure::here(format!(
        "expected, in any order, an element that matches {}; unmatched: {}",
        elements[lonely].brief,
        free.join(", ")
    )))
}

fn expectation(operator: &Operator) -> String {
    match operator {
        Operator::Exact(value) => brief(value),
        Operator::Contains(contains) => match &contains.text {
            Some(_) => format!("something that contains {}", contains.element.brief),
            None => format!(
                "an array with an element that matches {}",
                contains.element.brief
            ),
        },
        Operator::Match(pattern) => format!("a string that matches `{}`", pattern.as_str()),
        Operator::OneOf(_) | Operator::Not(_) | Operator::Exists(_) => "a value".to_owned(),
        Operator::Type(types) => {
            let names: Vec<&str> = types.iter().copied().map(JsonKind::name).collect();
            format!("type {}", names.join(" or "))
        }
        Operator::Approx { value, tolerance } => format!("{value} ± {tolerance}"),
        Operator::Min(min) => format!("a number of at least {min}"),
        Operator::Max(max) => format!("a number of at most {max}"),
        Operator::Unordered(_) => "an array".to_owned(),
        Operator::Schema(_) => "a value that matches the schema".to_owned(),
    }
}

fn render(inward: Vec<PathStep>) -> String {
    let mut path = String::new();
    for step in inward.into_iter().rev() {
        match step {
            PathStep::Index(index) => {
                let _ = write!(path, "[{index}]");
            }
            PathStep::Key(key) if is_plain(&key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&key);
            }
            PathStep::Key(key) => {
                let _ = write!(path, "[{}]", brief(&Value::from(key)));
            }
        }
    }
    path
}

/// Whether a key reads well behind a dot.
fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '/'))
}
