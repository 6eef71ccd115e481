//! A graph of modules: whether it has a cycle, and how it is drawn.

use std::collections::{BTreeMap, BTreeSet};

/// Each module, and the modules that it uses.
pub(crate) type Graph = BTreeMap<String, BTreeSet<String>>;

/// The modules of the first cycle, sorted; `None` if there is none.
pub(crate) fn cycle(graph: &Graph) -> Option<Vec<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|from| (from, reachable(graph, from)))
        .collect();
    let start = graph.keys().find(|module| reach[module].contains(module))?;
    let on_it =
        |module: &&&String| reach[start].contains(**module) && reach[**module].contains(start);
    Some(
        graph
            .keys()
            .collect::<Vec<_>>()
            .iter()
            .filter(on_it)
            .map(ToString::to_string)
            .collect(),
    )
}

/// All that a module uses, directly or not.
fn reachable<'a>(graph: &'a Graph, from: &String) -> BTreeSet<&'a String> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&String> = graph[from].iter().collect();
    while let Some(module) = waiting.pop() {
        if found.insert(module) {
            waiting.extend(graph.get(module).into_iter().flatten());
        }
    }
    found
}

/// The graph of a crate as text, in levels: a module uses only modules in lines below its own.
pub(crate) fn render(name: &str, graph: &Graph) -> String {
    let mut levels: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for module in graph.keys() {
        levels.entry(level(graph, module)).or_default().push(module);
    }
    let mut drawn = String::new();
    for (at, modules) in levels.values().rev().enumerate() {
        let name = if at == 0 { name } else { "" };
        drawn.push_str(&format!("{name:<9} {}\n", modules.join("  ")));
    }
    drawn
}

/// How many modules stand below another, one upon the other. The graph has no cycle.
fn level(graph: &Graph, module: &str) -> usize {
    let used = graph.get(module).into_iter().flatten();
    used.map(|used| level(graph, used) + 1).max().unwrap_or(0)
}
