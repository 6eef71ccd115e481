//! What a matcher can match at all, as far as its form tells.

use super::{Node, Operand, Operator, Type};

/// `false` only if no object can match.
pub(super) fn can_match_object(node: &Node) -> bool {
    match node {
        Node::Literal(value) => value.is_object(),
        Node::Object(_) => true,
        Node::Array(_) => false,
        Node::All(operators) => operators.iter().all(operator_can),
    }
}

fn operator_can(operator: &Operator) -> bool {
    match operator {
        Operator::Exact(value) => value.is_object(),
        Operator::OneOf(alternatives) => alternatives.iter().any(|one| can_match_object(&one.node)),
        Operator::Type(types) => types.contains(&Type::Object),
        Operator::Exists(exists) => *exists,
        Operator::Schema(schema) => schema.may_be_object(),
        Operator::Not(operand) => !matches_every_object(operand),
        Operator::Contains(_)
        | Operator::Match(_)
        | Operator::Approx { .. }
        | Operator::Min(_)
        | Operator::Max(_)
        | Operator::Unordered(_) => false,
    }
}

/// `true` only if there is no object that does not match.
fn matches_every_object(operand: &Operand) -> bool {
    match &operand.node {
        Node::Object(members) => members.is_empty(),
        Node::Literal(_) | Node::Array(_) => false,
        Node::All(operators) => operators.iter().all(|operator| match operator {
            Operator::Type(types) => types.contains(&Type::Object),
            Operator::Exists(exists) => *exists,
            Operator::OneOf(alternatives) => alternatives.iter().any(matches_every_object),
            Operator::Schema(schema) => schema.accepts_all(),
            Operator::Not(inner) => !can_match_object(&inner.node),
            _ => false,
        }),
    }
}
