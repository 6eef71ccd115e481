//! A new agent, provider or wire format touches only the files that CONTRIBUTING.md lists.
//!
//! A file that names two of a kind holds a list of them, and a list has to grow with each new one. So
//! such files are listed there, and whatever names only one is the module of that one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proctor_core::builtin_agent::BuiltinAgent;
use proctor_core::provider::Provider;

/// The words that name one of a kind in source text.
type Words = Vec<String>;

#[test]
fn contributing_lists_the_files_that_a_new_agent_touches() {
    let words = BuiltinAgent::ALL.map(|agent| {
        let variant = format!("{agent:?}");
        let mut words = vec![
            format!("BuiltinAgent::{variant}"),
            format!("Cli::{variant}"),
        ];
        // A word that is a provider's too says nothing of agents.
        if Provider::parse(agent.name()).is_none() {
            words.push(format!("\"{agent}\""));
        }
        words
    });
    assert_eq!(lists(&words), listed("agent"));
}

#[test]
fn contributing_lists_the_files_that_a_new_provider_touches() {
    let words = Provider::ALL.map(|provider| {
        let mut words = vec![format!("Provider::{provider:?}"), format!("\"{provider}:")];
        if BuiltinAgent::parse(provider.name()).is_none() {
            words.push(format!("\"{provider}\""));
        }
        words
    });
    assert_eq!(lists(&words), listed("provider"));
}

#[test]
fn contributing_lists_the_files_that_a_new_wire_format_touches() {
    let words = ["Chat", "Responses", "Messages", "Gemini"]
        .map(|format| vec![format!("Format::{format}"), format!("Wire::{format}")]);
    assert_eq!(lists(&words), listed("format"));
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that CONTRIBUTING.md names between the marks of this kind, one at the start of each item.
fn listed(kind: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md"))
        .expect("the repository is as expected");
    let (_, rest) = text
        .split_once(&format!("<!-- {kind} -->"))
        .expect("the repository is as expected");
    let (items, _) = rest
        .split_once("<!-- end -->")
        .expect("the repository is as expected");
    let path = |line: &str| {
        let path = line.strip_prefix("- `")?.split('`').next()?;
        Some(path.to_owned())
    };
    // What `NAME` stands for is a module of one.
    let paths = items.lines().filter_map(path);
    paths.filter(|path| !path.contains("NAME")).collect()
}

/// The source files that name at least two of a kind.
fn lists(kind: &[Words]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for package in std::fs::read_dir(root().join("crates")).expect("the repository is as expected")
    {
        let package = package.expect("the repository is as expected").path();
        if !package.ends_with("e2e") {
            look_through(&package.join("src"), kind, &mut found);
        }
    }
    found
}

fn look_through(folder: &Path, kind: &[Words], found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("the repository is as expected") {
        let path = entry.expect("the repository is as expected").path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("the repository is as expected");
        if stem == "tests" {
            continue;
        }
        if path.is_dir() {
            look_through(&path, kind, found);
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("the repository is as expected");
        let text = code(&text);
        let is_named = |words: &&Words| words.iter().any(|word| has_word(&text, word));
        if kind.iter().filter(is_named).count() > 1 {
            let path = path
                .strip_prefix(root())
                .expect("the repository is as expected");
            found.insert(
                path.to_str()
                    .expect("the repository is as expected")
                    .to_owned(),
            );
        }
    }
}

/// A source text without its comments and its tests.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| *line != "mod tests {");
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether the text has the word, and not as the beginning of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let ends = |at: usize| {
        let next = text[at + word.len()..].chars().next();
        word.ends_with(['"', ':']) || !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    text.match_indices(word).any(|(at, _)| ends(at))
}
