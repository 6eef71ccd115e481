//! Builds the tree from a parser's events, within limits.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use proctor_record::problem::{Code, Problem, Problems, SourceText, Span};
use saphyr_parser::{Event, ScalarStyle, Tag};

use super::{MAX_DEPTH, MAX_NODES, MapEntry, Node, NodeValue, scalar};

/// A list or map that has not ended.
struct OpenCollection {
    anchor: usize,
    span: Span,
    items: Items,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<MapEntry>,
        /// A map's keys, for maps too large to search one by one.
        index: HashMap<String, Span>,
        merges: Vec<Node>,
        key: Option<MapKey>,
    },
}

enum MapKey {
    Named(String, Span),
    Merge,
    /// Reported already; its value is dropped.
    Invalid,
}

/// Turns the events of a text into its tree.
pub(super) struct Builder<'a> {
    source: &'a SourceText,
    pub(super) problems: &'a mut Problems,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, (Node, usize, usize)>,
    nodes: usize,
    pub(super) root: Option<Node>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(source: &'a SourceText, problems: &'a mut Problems) -> Self {
        Self {
            source,
            problems,
            open: Vec::new(),
            anchors: HashMap::new(),
            nodes: 0,
            root: None,
        }
    }

    /// Processes one event. An error ends the parsing.
    pub(super) fn accept(&mut self, event: Event<'_>, span: Span) -> Result<(), Problem> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.count(1)?;
                let data = self.scalar(text, style, tag.as_deref(), span);
                self.finish(
                    Node { span, data },
                    anchor,
                    matches!(style, ScalarStyle::Plain),
                )?;
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "seq", span);
                self.start(anchor, span, Items::Sequence(Vec::new()))?;
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.as_deref(), "map", span);
                let items = Items::Mapping {
                    entries: Vec::new(),
                    index: HashMap::new(),
                    merges: Vec::new(),
                    key: None,
                };
                self.start(anchor, span, items)?;
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(open) = self.open.pop() {
                    let node = self.close(open.items, open.span);
                    self.finish(node, open.anchor, false)?;
                }
            }
            Event::Alias(anchor) => {
                let node = self.expand(anchor, span)?;
                self.finish(node, 0, false)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn count(&mut self, nodes: usize) -> Result<(), Problem> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            return Err(too_many());
        }
        Ok(())
    }

    fn start(&mut self, anchor: usize, span: Span, items: Items) -> Result<(), Problem> {
        self.count(1)?;
        if self.open.len() >= MAX_DEPTH {
            return Err(too_deep());
        }
        self.open.push(OpenCollection {
            anchor,
            span,
            items,
        });
        Ok(())
    }

    fn expand(&mut self, anchor: usize, span: Span) -> Result<Node, Problem> {
        let Some((node, nodes, depth)) = self.anchors.get(&anchor) else {
            return Err(Problem::error(
                Code::Value,
                "recursive alias: it stands inside the value that it refers to",
            ));
        };
        let (nodes, depth) = (*nodes, *depth);
        let mut node = node.clone();
        // What is wrong inside an alias is wrong where it was written, not where it is used.
        if depth == 0 {
            node.span = span;
        }
        self.count(nodes)?;
        if self.open.len() + depth > MAX_DEPTH {
            return Err(too_deep());
        }
        Ok(node)
    }

    fn scalar(
        &mut self,
        text: Cow<'_, str>,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: Span,
    ) -> NodeValue {
        match tag {
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => {
                NodeValue::String(text.into_owned())
            }
            Some(tag) => {
                self.refuse_tag(Some(tag), "", span);
                scalar::resolve(text)
            }
            None if matches!(style, ScalarStyle::Plain) => scalar::resolve(text),
            None => NodeValue::String(text.into_owned()),
        }
    }

    fn refuse_tag(&mut self, tag: Option<&Tag>, allowed: &str, span: Span) {
        let Some(tag) = tag else { return };
        if tag.is_yaml_core_schema()
            && (tag.suffix == allowed || ["int", "float", "bool", "null"].contains(&&*tag.suffix))
        {
            return;
        }
        let name = if tag.is_yaml_core_schema() {
            format!("!!{}", tag.suffix)
        } else {
            tag.to_string()
        };
        self.problems.push(
            Problem::error(Code::Value, format!("unsupported YAML tag `{name}`"))
                .at(self.source, span)
                .hint("remove the tag"),
        );
    }

    /// Adds a finished value to its list or map.
    fn finish(&mut self, node: Node, anchor: usize, plain: bool) -> Result<(), Problem> {
        if anchor != 0 {
            // The copy is counted too: anchors nested in anchors would copy without end.
            let (nodes, depth) = (node.nodes(), node.depth());
            self.count(nodes)?;
            self.anchors.insert(anchor, (node.clone(), nodes, depth));
        }
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        let problem = match &mut open.items {
            Items::Sequence(items) => {
                items.push(node);
                None
            }
            Items::Mapping {
                entries,
                index,
                merges,
                key,
            } => match key.take() {
                None => {
                    let (read, problem) = read_key(node, plain, index);
                    *key = Some(read);
                    problem
                }
                Some(MapKey::Named(key, key_span)) => {
                    entries.push(MapEntry {
                        key,
                        key_span,
                        value: node,
                    });
                    None
                }
                Some(MapKey::Merge) => {
                    merges.push(node);
                    None
                }
                Some(MapKey::Invalid) => None,
            },
        };
        if let Some((problem, span)) = problem {
            self.problems.push(problem.at(self.source, span));
        }
        Ok(())
    }

    fn close(&mut self, items: Items, span: Span) -> Node {
        let data = match items {
            Items::Sequence(items) => NodeValue::Sequence(items),
            Items::Mapping {
                mut entries,
                merges,
                ..
            } => {
                if !merges.is_empty() {
                    let mut known = entries.iter().map(|e| e.key.clone()).collect();
                    for merged in merges {
                        self.merge(&mut entries, &mut known, merged);
                    }
                }
                NodeValue::Mapping(entries)
            }
        };
        Node { span, data }
    }

    /// Expands `<<`: existing keys take precedence, and earlier merges over later ones.
    fn merge(&mut self, entries: &mut Vec<MapEntry>, known: &mut HashSet<String>, merged: Node) {
        match merged.data {
            NodeValue::Mapping(new) => {
                for entry in new {
                    if known.insert(entry.key.clone()) {
                        entries.push(entry);
                    }
                }
            }
            NodeValue::Sequence(items)
                if items
                    .iter()
                    .all(|n| matches!(n.data, NodeValue::Mapping(_))) =>
            {
                for item in items {
                    self.merge(entries, known, item);
                }
            }
            _ => self.problems.push(
                Problem::error(Code::Type, "`<<` merges maps, but this value is not a map")
                    .at(self.source, merged.span),
            ),
        }
    }
}

fn read_key(
    node: Node,
    plain: bool,
    index: &mut HashMap<String, Span>,
) -> (MapKey, Option<(Problem, Span)>) {
    let span = node.span;
    let key = match node.data {
        NodeValue::String(text) if plain && text == "<<" => return (MapKey::Merge, None),
        NodeValue::String(text) => text,
        NodeValue::Number(_, raw) => raw,
        NodeValue::Bool(value) => value.to_string(),
        NodeValue::Null | NodeValue::Sequence(_) | NodeValue::Mapping(_) => {
            let problem = Problem::error(Code::Type, "a key must be a string")
                .hint("quote it if it contains `{`, `[` or `:`");
            return (MapKey::Invalid, Some((problem, span)));
        }
    };
    if let Some(first) = index.insert(key.clone(), span) {
        let problem = Problem::error(Code::DuplicateKey, format!("duplicate key `{key}`"))
            .hint(format!("first on line {}", first.line));
        return (MapKey::Invalid, Some((problem, span)));
    }
    (MapKey::Named(key, span), None)
}

pub(super) fn too_many() -> Problem {
    Problem::error(
        Code::Limit,
        format!("the file contains more than {MAX_NODES} values"),
    )
    .hint("split the file, or move large texts to other files; each use of an alias counts")
}

pub(super) fn too_deep() -> Problem {
    Problem::error(
        Code::Limit,
        format!("lists and maps are nested deeper than {MAX_DEPTH} levels"),
    )
}
