//! Finds out which strings of a value a matcher reads.

use proctor_record::json::has_lone_surrogate;
use serde_json::Value;

use super::{MatcherNode, Operand, Operator};

/// `false` only if the result does not depend on a string with half of a surrogate pair.
pub(super) fn lone_surrogate(node: &MatcherNode, value: &Value) -> bool {
    match (node, value) {
        (MatcherNode::Object(members), Value::Object(found)) => {
            members.iter().any(|(key, node)| {
                let member = found.get(key);
                member.is_some_and(|member| lone_surrogate(node, member))
            })
        }
        (MatcherNode::Array(elements), Value::Array(found)) => elements
            .iter()
            .zip(found)
            .any(|(node, found)| lone_surrogate(node, found)),
        // Of the wrong type, whatever is in it.
        (MatcherNode::Object(_) | MatcherNode::Array(_), _) => false,
        (MatcherNode::Literal(expected), _) => compared(expected, value),
        (MatcherNode::All(operators), _) => operators.iter().any(|one| operator_reads(one, value)),
    }
}

fn operator_reads(operator: &Operator, value: &Value) -> bool {
    let elements = value.as_array().map_or(&[][..], Vec::as_slice);
    let element_reads = |operand: &Operand| {
        elements
            .iter()
            .any(|one| lone_surrogate(&operand.node, one))
    };
    match operator {
        Operator::Exists(_)
        | Operator::Type(_)
        | Operator::Approx { .. }
        | Operator::Min(_)
        | Operator::Max(_) => false,
        Operator::Exact(expected) => compared(expected, value),
        Operator::Match(_) => value.is_string() && has_lone_surrogate(value),
        Operator::Schema(_) => has_lone_surrogate(value),
        Operator::Contains(_) if value.is_string() => has_lone_surrogate(value),
        Operator::Contains(contains) => element_reads(&contains.element),
        Operator::OneOf(operands) => operands.iter().any(|one| lone_surrogate(&one.node, value)),
        Operator::Not(operand) => lone_surrogate(&operand.node, value),
        Operator::Unordered(operands) => operands.iter().any(element_reads),
    }
}

/// Whether a comparison reads such a string: values of different types are never equal.
fn compared(expected: &Value, found: &Value) -> bool {
    let same_type = std::mem::discriminant(expected) == std::mem::discriminant(found);
    same_type && has_lone_surrogate(found)
}
