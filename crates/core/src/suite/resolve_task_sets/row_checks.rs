//! Assertions with `{row.NAME}` in them: each row has its own checks.
//!
//! Its main type is [`RowChecks`]. It stops at the first row whose assertions are wrong: the others
//! would repeat the same problem.

use std::collections::BTreeSet;
use std::sync::Arc;

use proctor_record::problem::{Code, Problem, Span};

use super::super::assertion_file::AssertionsFile;
use super::super::resolve_assertions::ServerScope;
use super::super::rows::{Row, fill_node, node_names};
use super::{TaskSet, Tasks, shared_checks};
use crate::check::Check;
use crate::decode::Decode;
use crate::document::{Node, NodeValue};

/// The names that the assertions of some task sets refer to.
pub(super) fn names<'a>(sets: impl Iterator<Item = &'a TaskSet<'a>>) -> BTreeSet<String> {
    sets.filter_map(|set| set.per_row)
        .flat_map(node_names)
        .collect()
}

/// The keys of assertions, with their places.
pub(super) fn key_spans(node: &Node) -> Vec<(String, Span)> {
    match &node.data {
        NodeValue::Mapping(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), entry.key_span))
            .collect(),
        _ => Vec::new(),
    }
}

/// The checks of one row after another.
#[derive(Default)]
pub(super) struct RowChecks {
    /// Whether the assertions of a row were wrong.
    is_wrong: bool,
}

impl RowChecks {
    /// The checks of a task set for one case.
    pub(super) fn of(
        &mut self,
        set: &TaskSet<'_>,
        row: Option<&Row>,
        case: &str,
        tasks: &Tasks<'_>,
    ) -> Vec<Arc<Check>> {
        let Some(node) = set.per_row.filter(|_| !self.is_wrong) else {
            return Vec::new();
        };
        let Some(row) = row else {
            let message = format!("the assertions use `{{row.NAME}}`, and `{case}` has no rows");
            let problem = Problem::error(Code::Reference, message);
            tasks
                .cx
                .report(node.span, problem.hint("add `rows` to the task"));
            self.is_wrong = true;
            return Vec::new();
        };
        let before = tasks.cx.fatal();
        let filled = fill_node(node, row);
        let file = tasks
            .cx
            .deciding(|| AssertionsFile::decode(&filled, tasks.cx));
        let scope = ServerScope {
            servers: tasks.scope.servers.as_ref(),
            mapping: &set.mapping,
        };
        let checks = file.map(|file| shared_checks(&file, scope, tasks.cx));
        if tasks.cx.fatal() != before {
            self.is_wrong = true;
            let line = row.span.line;
            let message = format!("the assertions are wrong for `{case}`, the row in line {line}");
            tasks
                .cx
                .report(node.span, Problem::error(Code::Value, message));
        }
        checks.unwrap_or_default()
    }
}
