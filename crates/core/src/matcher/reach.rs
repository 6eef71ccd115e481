//! Finds out which kinds of values a matcher can match.

use std::ops::BitAnd;

use serde_json::Value;

use super::evaluate::accepts;
use super::{JsonKind, MatcherNode, Operand, Operator};

/// `false` only if no object can match.
pub(super) fn can_match_object(node: &MatcherNode) -> bool {
    kinds(node).has(Kinds::OBJECT)
}

/// `false` only if no value can match, not even an absent one.
pub(super) fn can_match(node: &MatcherNode) -> bool {
    !kinds(node).is_empty()
}

/// `true` only if every object matches.
pub(super) fn matches_every_object(node: &MatcherNode) -> bool {
    match node {
        MatcherNode::Object(members) => members.is_empty(),
        MatcherNode::Literal(_) | MatcherNode::Array(_) => false,
        MatcherNode::All(operators) => operators.iter().all(|operator| match operator {
            Operator::Type(types) => types.contains(&JsonKind::Object),
            Operator::Exists(exists) => *exists,
            Operator::OneOf(alternatives) => {
                let mut nodes = alternatives.iter().map(|one| &one.node);
                nodes.any(matches_every_object)
            }
            Operator::Schema(schema) => schema.accepts_all(),
            Operator::Not(inner) => !can_match_object(&inner.node),
            Operator::Exact(_)
            | Operator::Contains(_)
            | Operator::Match(_)
            | Operator::Approx { .. }
            | Operator::Min(_)
            | Operator::Max(_)
            | Operator::Unordered(_) => false,
        }),
    }
}

/// A set of kinds of JSON values, including "absent".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    const ABSENT: Self = Self(1);
    const NULL: Self = Self(1 << 1);
    const BOOLEAN: Self = Self(1 << 2);
    const NUMBER: Self = Self(1 << 3);
    const STRING: Self = Self(1 << 4);
    const ARRAY: Self = Self(1 << 5);
    const OBJECT: Self = Self(1 << 6);
    /// All kinds except "absent".
    pub(super) const PRESENT: Self = Self((1 << 7) - 2);
    const ALL: Self = Self((1 << 7) - 1);

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn and_not(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(super) fn any(all: impl Iterator<Item = Self>) -> Self {
        all.fold(Self::NONE, |one, other| Self(one.0 | other.0))
    }

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(_) => Self::NUMBER,
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    /// The kind with this name in JSON Schema and `$type`.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "number" | "integer" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => Self::NONE,
        }
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// The kinds that may match; those left out certainly don't.
fn kinds(node: &MatcherNode) -> Kinds {
    let only_if = |possible: bool, kind: Kinds| if possible { kind } else { Kinds::NONE };
    match node {
        MatcherNode::Literal(value) => Kinds::of(value),
        MatcherNode::Object(members) => {
            let mut nodes = members.iter().map(|(_, node)| node);
            only_if(nodes.all(can_match), Kinds::OBJECT)
        }
        MatcherNode::Array(elements) => only_if(elements.iter().all(can_be_there), Kinds::ARRAY),
        MatcherNode::All(operators) => {
            let all = operators.iter().map(operator_kinds);
            let kinds = all.fold(Kinds::ALL, BitAnd::bitand);
            match candidates(operators) {
                // Only these are left, so each is asked.
                Some(values) => {
                    let fitting = values
                        .into_iter()
                        .filter(|value| accepts(node, Some(value)));
                    kinds & Kinds::any(fitting.map(Kinds::of))
                }
                None => kinds,
            }
        }
    }
}

/// Whether a present value may match.
fn can_be_there(node: &MatcherNode) -> bool {
    kinds(node).has(Kinds::PRESENT)
}

/// The only values that may match, where an operator lists them.
fn candidates(operators: &[Operator]) -> Option<Vec<&Value>> {
    operators.iter().find_map(|operator| match operator {
        Operator::Exact(value) => Some(vec![value]),
        Operator::OneOf(alternatives) => alternatives
            .iter()
            .map(|one| match &one.node {
                MatcherNode::Literal(value) => Some(value),
                MatcherNode::Object(_) | MatcherNode::Array(_) | MatcherNode::All(_) => None,
            })
            .collect(),
        Operator::Contains(_)
        | Operator::Match(_)
        | Operator::Type(_)
        | Operator::Exists(_)
        | Operator::Approx { .. }
        | Operator::Min(_)
        | Operator::Max(_)
        | Operator::Unordered(_)
        | Operator::Schema(_)
        | Operator::Not(_) => None,
    })
}

fn operator_kinds(operator: &Operator) -> Kinds {
    let of = |operand: &Operand| kinds(&operand.node);
    match operator {
        Operator::Exact(value) => Kinds::of(value),
        Operator::OneOf(alternatives) => Kinds::any(alternatives.iter().map(of)),
        Operator::Type(types) => Kinds::any(types.iter().map(|kind| Kinds::named(kind.name()))),
        Operator::Exists(true) => Kinds::PRESENT,
        Operator::Exists(false) => Kinds::ABSENT,
        Operator::Schema(schema) => schema.kinds(),
        Operator::Not(operand) => Kinds::ALL.and_not(certain(&operand.node)),
        Operator::Contains(contains) => {
            let text = contains
                .text
                .as_ref()
                .map_or(Kinds::NONE, |_| Kinds::STRING);
            let list = can_be_there(&contains.element.node);
            Kinds::any([text, if list { Kinds::ARRAY } else { Kinds::NONE }].into_iter())
        }
        Operator::Match(_) => Kinds::STRING,
        Operator::Approx { .. } | Operator::Min(_) | Operator::Max(_) => Kinds::NUMBER,
        Operator::Unordered(elements) => {
            let possible = elements.iter().all(|one| can_be_there(&one.node));
            if possible { Kinds::ARRAY } else { Kinds::NONE }
        }
    }
}

/// The kinds of which every value certainly matches.
fn certain(node: &MatcherNode) -> Kinds {
    match node {
        MatcherNode::Literal(Value::Null) => Kinds::NULL,
        MatcherNode::Object(members) if members.is_empty() => Kinds::OBJECT,
        MatcherNode::Literal(_) | MatcherNode::Array(_) | MatcherNode::Object(_) => Kinds::NONE,
        MatcherNode::All(operators) => operators.iter().fold(Kinds::ALL, |all, operator| {
            all & match operator {
                Operator::Exact(Value::Null) => Kinds::NULL,
                Operator::Exists(true) => Kinds::PRESENT,
                Operator::Exists(false) => Kinds::ABSENT,
                Operator::Type(types) => {
                    let whole = types.iter().filter(|kind| **kind != JsonKind::Integer);
                    Kinds::any(whole.map(|kind| Kinds::named(kind.name())))
                }
                Operator::OneOf(alternatives) => {
                    Kinds::any(alternatives.iter().map(|one| certain(&one.node)))
                }
                Operator::Schema(schema) if schema.accepts_all() => Kinds::PRESENT,
                Operator::Not(inner) => Kinds::ALL.and_not(kinds(&inner.node)),
                Operator::Exact(_)
                | Operator::Contains(_)
                | Operator::Match(_)
                | Operator::Approx { .. }
                | Operator::Min(_)
                | Operator::Max(_)
                | Operator::Unordered(_)
                | Operator::Schema(_) => Kinds::NONE,
            }
        }),
    }
}
