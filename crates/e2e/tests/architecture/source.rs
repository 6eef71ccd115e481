//! Which top-level modules of a crate name which others, read from its source as text.
//!
//! Paths are found by `crate::` and by as many `super::` as lead to the crate's root. Comments, strings and
//! tests do not count.

use std::fs;
use std::path::Path;

use crate::graph::Graph;

/// The modules below a `src` folder, each with those that it uses.
pub(crate) fn modules(src: &Path) -> Graph {
    let mut graph = Graph::new();
    let mut files = Vec::new();
    collect(src, &mut Vec::new(), &mut files);
    for (module, _) in &files {
        graph.entry(module[0].clone()).or_default();
    }
    let known: Vec<String> = graph.keys().cloned().collect();
    for (module, text) in &files {
        let named = roots(&plain(text), module.len());
        let uses = named
            .into_iter()
            .filter(|name| known.contains(name) && *name != module[0]);
        graph.entry(module[0].clone()).or_default().extend(uses);
    }
    graph
}

/// Each file below a folder that belongs to a module, with the path of that module.
fn collect(folder: &Path, at: &mut Vec<String>, files: &mut Vec<(Vec<String>, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_root = at.is_empty() && matches!(&name[..], "lib" | "main" | "bin");
        if is_root || name == "tests" {
            continue;
        }
        at.push(name);
        if path.is_dir() {
            collect(&path, at, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push((at.clone(), fs::read_to_string(&path).unwrap()));
        }
        at.pop();
    }
}

/// Where a folder of sources has one of these words outside comments and tests: `FILE: WORD`. Files below
/// `except` may have them.
pub(crate) fn uses(folder: &Path, words: &[&str], except: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.file_stem().unwrap() == "tests";
        if is_test || path.with_extension("") == except {
            continue;
        }
        if path.is_dir() {
            found.extend(uses(&path, words, except));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = without_comments(&fs::read_to_string(&path).unwrap());
            let used = words.iter().filter(|word| text.contains(**word));
            found.extend(used.map(|word| format!("{}: {word}", path.display())));
        }
    }
    found
}

/// Source without comments and the module of tests at its end.
fn without_comments(source: &str) -> String {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let code = |line: &str| line.split("//").next().unwrap_or("").to_owned();
    source.lines().map(code).collect::<Vec<_>>().join("\n")
}

/// Source without comments, texts and tests.
fn plain(source: &str) -> String {
    let joined = without_comments(source);
    joined.split('"').step_by(2).collect::<Vec<_>>().join("\"")
}

/// The names that stand right behind the crate's root in a module at this depth.
fn roots(text: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    for marker in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in text.match_indices(&marker) {
            let before = &text[..at];
            let is_longer = before.ends_with("super::") || before.ends_with(is_word);
            if !is_longer {
                names.extend(heads(&text[at + marker.len()..]));
            }
        }
    }
    names
}

/// The first word of a path, or of each path in braces.
fn heads(rest: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| is_word(*c))
            .collect()
    };
    let Some(list) = rest.strip_prefix('{') else {
        return vec![word(rest)];
    };
    let (mut depth, mut start, mut all) = (0, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                all.push(word(&list[start..at]));
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                all.push(word(&list[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    all
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
