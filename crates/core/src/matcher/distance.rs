//! The distance of a value from a match: the number of places where it differs.

use serde_json::Value;

use super::MatcherNode;
use super::evaluate::accepts;

pub(super) fn distance(node: &MatcherNode, value: Option<&Value>) -> usize {
    match (node, value) {
        (MatcherNode::Object(members), Some(Value::Object(found))) => members
            .iter()
            .map(|(key, node)| distance(node, found.get(key)))
            .sum(),
        (MatcherNode::Array(elements), Some(Value::Array(found))) => {
            let differing: usize = elements
                .iter()
                .zip(found)
                .map(|(node, found)| distance(node, Some(found)))
                .sum();
            differing + elements.len().abs_diff(found.len())
        }
        // A value of the wrong kind misses everything that was asked of its parts.
        (MatcherNode::Object(_) | MatcherNode::Array(_), _) => size(node),
        (MatcherNode::Literal(_) | MatcherNode::All(_), _) => usize::from(!accepts(node, value)),
    }
}

fn size(node: &MatcherNode) -> usize {
    match node {
        MatcherNode::Object(members) => {
            1 + members.iter().map(|(_, node)| size(node)).sum::<usize>()
        }
        MatcherNode::Array(elements) => 1 + elements.iter().map(size).sum::<usize>(),
        MatcherNode::Literal(_) | MatcherNode::All(_) => 1,
    }
}
