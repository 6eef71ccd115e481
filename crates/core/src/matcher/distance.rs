//! How far a value is from a match: the number of places where it differs.

use serde_json::Value;

use super::Node;
use super::evaluate::accepts;

pub(super) fn distance(node: &Node, value: Option<&Value>) -> usize {
    match (node, value) {
        (Node::Object(members), Some(Value::Object(found))) => members
            .iter()
            .map(|(key, node)| distance(node, found.get(key)))
            .sum(),
        (Node::Array(elements), Some(Value::Array(found))) => {
            let differing: usize = elements
                .iter()
                .zip(found)
                .map(|(node, found)| distance(node, Some(found)))
                .sum();
            differing + elements.len().abs_diff(found.len())
        }
        // A value of the wrong kind misses everything that was asked of its parts.
        (Node::Object(_) | Node::Array(_), _) => size(node),
        (Node::Literal(_) | Node::All(_), _) => usize::from(!accepts(node, value)),
    }
}

fn size(node: &Node) -> usize {
    match node {
        Node::Object(members) => 1 + members.iter().map(|(_, node)| size(node)).sum::<usize>(),
        Node::Array(elements) => 1 + elements.iter().map(size).sum::<usize>(),
        Node::Literal(_) | Node::All(_) => 1,
    }
}
