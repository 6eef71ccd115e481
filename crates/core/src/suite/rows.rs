//! Rows: many cases from one file. Rows are a list in the file itself, a CSV file or a JSONL file.
//!
//! Its main type is [`Rows`]. Whatever its origin, a row is a map whose values know their places, so
//! that a problem names the file and line of the row.

mod csv;
mod fill;
mod jsonl;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use data_encoding::HEXLOWER;
use proctor_record::json::canonical;
use proctor_record::problem::{Code, Problem, SourceText, Span, WithSpan};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::files::{self, FileOrigin};
use super::step::resolve::resolve_file;
use crate::decode::{Context, Decode, Definitions};
use crate::document::{MapEntry, Node, NodeValue};

pub(super) use self::fill::{fill_case, fill_node, names_of, node_names, row_names};
pub(super) use self::jsonl::{json_fault, node_of};

/// The maximum number of values in a file of rows.
const MAX_VALUES: usize = 1_000_000;

/// The maximum length of a row's id in characters.
const MAX_ID: usize = 100;

/// The length of an id that comes from a hash.
const HASH_ID: usize = 12;

/// The keys of a row that are not data of the task.
const OWN_KEYS: [&str; 2] = ["id", "labels"];

/// A row as written: a map with any keys.
#[derive(Debug, Clone)]
pub struct RowFile(pub Node);

impl Decode for RowFile {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        if !matches!(node.data, NodeValue::Mapping(_)) {
            cx.wrong_type(node, "a map");
            return None;
        }
        Some(Self(node.clone()))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "object"})
    }
}

/// The labels of a row.
#[derive(Debug, Clone)]
pub struct RowLabels(pub BTreeMap<String, String>);

impl Decode for RowLabels {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        if !matches!(node.data, NodeValue::Mapping(_)) {
            cx.wrong_type(node, "a map of labels");
            return None;
        }
        labels(node, cx).map(Self)
    }

    fn schema(_: &mut Definitions) -> Value {
        let text = json!({"type": ["string", "number", "boolean"]});
        json!({"type": "object", "additionalProperties": text})
    }
}

/// The rows of a file, as maps, with the text that their places refer to.
pub(super) struct RowNodes {
    pub(super) source: SourceText,
    pub(super) nodes: Vec<Node>,
}

/// Reads the rows of a CSV or JSONL file. Reports its problems; `None` if it has no usable rows.
pub(super) fn read(
    written: &WithSpan<String>,
    origin: &FileOrigin,
    cx: &Context<'_>,
) -> Option<RowNodes> {
    let format = match extension(&written.value) {
        Some("csv") => csv::read,
        Some("jsonl" | "ndjson") => jsonl::read,
        _ => {
            let message = format!("`{}` is neither a CSV nor a JSONL file", written.value);
            let problem = Problem::error(Code::Value, message);
            cx.report(
                written.span,
                problem.hint("name a file that ends in `.csv` or `.jsonl`"),
            );
            return None;
        }
    };
    let path = resolve_file(written, origin, cx)?;
    let source = match files::read(&path) {
        Ok(source) => source,
        Err(problem) if matches!(problem.code, Code::File | Code::Limit) => {
            cx.report(written.span, problem);
            return None;
        }
        // Another problem has its place in the file itself.
        Err(problem) => {
            cx.report_elsewhere(problem);
            return None;
        }
    };
    let inner = cx.beside(source.clone());
    let nodes = format(&source, &inner)?;
    if nodes.is_empty() {
        let message = format!("`{}` has no rows", written.value);
        cx.report(written.span, Problem::error(Code::Vacuous, message));
        return None;
    }
    Some(RowNodes { source, nodes })
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension().and_then(|end| end.to_str())
}

/// Whether the values in a file are text, since CSV has no other.
pub(super) fn is_csv(path: &str) -> bool {
    extension(path) == Some("csv")
}

/// The rows of a task.
pub(super) struct Rows {
    pub(super) source: SourceText,
    pub(super) list: Vec<Row>,
    /// The names that any row has.
    pub(super) names: BTreeSet<String>,
}

/// A row of a task.
pub(super) struct Row {
    /// Identifies the row within its task.
    pub(super) id: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) span: Span,
    values: Vec<MapEntry>,
}

impl Row {
    /// The value of a name; `None` if the row has none.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        let entry = self.values.iter().find(|entry| entry.key == name);
        entry.map(|e| &e.value).filter(|node| !node.is_null())
    }
}

impl Rows {
    /// The rows of a task: those in its file, or those of the file that it names.
    pub(super) fn load(
        inline: Option<&[RowFile]>,
        from: Option<&WithSpan<String>>,
        origin: &FileOrigin,
        cx: &Context<'_>,
    ) -> Option<Self> {
        let RowNodes { source, nodes } = match (inline, from) {
            (Some(_), Some(from)) => {
                let message = "only one of `rows`, `rowsFrom` is allowed";
                cx.report(from.span, Problem::error(Code::Conflict, message));
                return None;
            }
            (Some(rows), None) => RowNodes {
                source: cx.source.clone(),
                nodes: rows.iter().map(|row| row.0.clone()).collect(),
            },
            (None, Some(from)) => read(from, origin, cx)?,
            (None, None) => return None,
        };
        let inner = cx.beside(source.clone());
        let mut ids = RowIds::default();
        // Also those of rows with problems, which would otherwise hide the names that they have.
        let names = names(&nodes);
        let rows: Vec<Row> = nodes
            .into_iter()
            .filter_map(|node| row(node, &mut ids, &inner))
            .collect();
        Some(Self {
            source,
            list: rows,
            names,
        })
    }
}

fn names(nodes: &[Node]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for node in nodes {
        let NodeValue::Mapping(entries) = &node.data else {
            continue;
        };
        for MapEntry { key, .. } in entries {
            if !OWN_KEYS.contains(&key.as_str()) && !names.contains(key) {
                names.insert(key.clone());
            }
        }
    }
    names
}

fn row(node: Node, ids: &mut RowIds, cx: &Context<'_>) -> Option<Row> {
    let NodeValue::Mapping(entries) = node.data else {
        return None;
    };
    let (own, values): (Vec<MapEntry>, Vec<MapEntry>) = entries
        .into_iter()
        .partition(|entry| OWN_KEYS.contains(&entry.key.as_str()));
    let find = |key: &str| own.iter().find(|e| e.key == key).map(|e| &e.value);
    let labels = find("labels").map_or(Some(BTreeMap::new()), |node| labels(node, cx));
    let id = match find("id").filter(|node| !is_empty(node)) {
        Some(node) => RowId::given(node, cx)?,
        None => RowId::hashed(&values_of(&values), node.span),
    };
    ids.add(&id, cx).then_some(())?;
    Some(Row {
        id: id.text,
        labels: labels?,
        span: node.span,
        values,
    })
}

fn values_of(values: &[MapEntry]) -> Value {
    let members = values.iter().map(|e| (e.key.clone(), e.value.to_json()));
    Value::Object(members.collect::<Map<_, _>>())
}

/// Whether a value is absent: null, or an empty cell of a CSV file.
pub(super) fn is_empty(node: &Node) -> bool {
    node.is_null() || node.as_str().is_some_and(|text| text.trim().is_empty())
}

/// The id of a row, given or from a hash.
pub(super) struct RowId {
    pub(super) text: String,
    span: Span,
    is_given: bool,
}

impl RowId {
    /// An id as written. It must be short, and have no brackets: names of cases end in `[id]`.
    pub(super) fn given(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let text = match &node.data {
            NodeValue::String(text) => text.trim().to_owned(),
            NodeValue::Number(_, raw) => raw.clone(),
            NodeValue::Null
            | NodeValue::Bool(_)
            | NodeValue::Sequence(_)
            | NodeValue::Mapping(_) => {
                cx.wrong_type(node, "a string or a number");
                return None;
            }
        };
        let is_legal = |c: char| !c.is_control() && c != '[' && c != ']';
        if text.is_empty() || text.chars().count() > MAX_ID || !text.chars().all(is_legal) {
            let problem = Problem::error(Code::Value, "invalid row id");
            let hint = format!("use up to {MAX_ID} characters, without brackets");
            cx.report(node.span, problem.hint(hint));
            return None;
        }
        Some(Self {
            text,
            span: node.span,
            is_given: true,
        })
    }

    /// An id from the content of a row.
    pub(super) fn hashed(content: &Value, span: Span) -> Self {
        let hash = HEXLOWER.encode(&Sha256::digest(canonical(content)));
        Self {
            text: hash[..HASH_ID].to_owned(),
            span,
            is_given: false,
        }
    }
}

/// The ids of the rows so far, with their lines.
#[derive(Default)]
pub(super) struct RowIds(BTreeMap<String, u32>);

impl RowIds {
    /// Adds an id, or reports that another row has it.
    pub(super) fn add(&mut self, id: &RowId, cx: &Context<'_>) -> bool {
        match self.0.entry(id.text.clone()) {
            Entry::Vacant(free) => {
                free.insert(id.span.line);
                true
            }
            Entry::Occupied(taken) => {
                let line = taken.get();
                let problem = if id.is_given {
                    let message = format!("duplicate row id `{}`: line {line} has it", id.text);
                    Problem::error(Code::Conflict, message)
                } else {
                    let message = format!("the row repeats the one in line {line}");
                    Problem::error(Code::Conflict, message)
                        .hint("remove one of them, or give each an `id`")
                };
                cx.report(id.span, problem);
                false
            }
        }
    }
}

/// The labels of a row: a map, or `key=value,key=value` in a cell.
fn labels(node: &Node, cx: &Context<'_>) -> Option<BTreeMap<String, String>> {
    match &node.data {
        NodeValue::Mapping(entries) => {
            let text = |entry: &MapEntry| {
                let is_scalar = !matches!(
                    entry.value.data,
                    NodeValue::Sequence(_) | NodeValue::Mapping(_)
                );
                let text = fill::text(&entry.value).filter(|_| is_scalar);
                if text.is_none() {
                    cx.wrong_type(&entry.value, "a string");
                }
                Some((entry.key.clone(), text?))
            };
            entries.iter().map(text).collect()
        }
        NodeValue::String(text) => labels(&labels_of_cell(text, node.span, cx)?, cx),
        NodeValue::Null => Some(BTreeMap::new()),
        NodeValue::Bool(_) | NodeValue::Number(..) | NodeValue::Sequence(_) => {
            cx.wrong_type(node, "a map of labels");
            None
        }
    }
}

/// The labels of a cell, as a map: `key=value,key=value`.
pub(super) fn labels_of_cell(text: &str, span: Span, cx: &Context<'_>) -> Option<Node> {
    let pair = |pair: &str| {
        let pair = pair.split_once('=').map(|(k, v)| (k.trim(), v.trim()));
        let Some((key, value)) = pair.filter(|(key, _)| !key.is_empty()) else {
            let problem = Problem::error(Code::Value, format!("invalid labels `{text}`"));
            cx.report(span, problem.hint("write `key=value,key=value`"));
            return None;
        };
        Some(MapEntry {
            key: key.to_owned(),
            key_span: span,
            value: Node {
                span,
                data: NodeValue::String(value.to_owned()),
            },
        })
    };
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    let entries: Option<Vec<MapEntry>> = pairs.map(pair).collect();
    Some(Node {
        span,
        data: NodeValue::Mapping(entries?),
    })
}

/// The problem of a file with too many values.
fn too_many_values(span: Span, cx: &Context<'_>) {
    let message = format!("the file has more than {MAX_VALUES} values");
    cx.report(span, Problem::error(Code::Limit, message));
}

#[cfg(test)]
mod tests;
