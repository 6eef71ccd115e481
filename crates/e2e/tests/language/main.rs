//! The phrases that Proctor does not use stay out of its documentation and its messages.
//!
//! `phrases.tsv` lists them with their replacements. `allowed.tsv` lists the places where they still occur; it
//! can only get shorter.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod source;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use source::texts;

/// A file, relative to the root of the repository, and a phrase in it.
type Place = (String, String);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The lines of a table beside this file, each split at its tab.
fn table(text: &'static str) -> Vec<(&'static str, &'static str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once('\t').unwrap()).collect()
}

fn phrases() -> Vec<(&'static str, &'static str)> {
    table(include_str!("phrases.tsv"))
}

/// The files below a folder, relative to the root, without those that are built.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{folder}/{name}");
        if !entry.file_type().unwrap().is_dir() {
            found.push(path);
        } else if !matches!(&name[..], "target" | "node_modules") {
            found.extend(files(&path));
        }
    }
    found
}

fn ends_with(path: &str, extensions: &[&str]) -> bool {
    extensions.iter().any(|extension| path.ends_with(extension))
}

/// The pages that users and contributors read, and the comments of the examples.
fn pages() -> Vec<String> {
    let top = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
    let folders = ["docs", "benches", "examples"].into_iter().flat_map(files);
    let below = folders.filter(|path| ends_with(path, &[".md", ".yaml"]));
    top.map(str::to_owned).into_iter().chain(below).collect()
}

/// Whether users read the doc comments of a source file: as help, or in an editor through a JSON Schema.
fn is_help(path: &str) -> bool {
    path.starts_with("crates/cli/src/args") || ends_with(path, &["_file.rs", "price/file.rs"])
}

/// Whether a source file is for tests only.
fn is_for_tests(path: &str) -> bool {
    path.starts_with("crates/e2e/") || path.contains("/tests/") || path.ends_with("/tests.rs")
}

/// What users can read of a file: messages, help, the snapshots of both, and further pages.
fn readable(path: &str) -> Option<Vec<String>> {
    let read = || fs::read_to_string(root().join(path)).unwrap();
    let is_shipped = path.contains("/src/") && !is_for_tests(path);
    match path.rsplit_once('.')?.1 {
        "snap" | "md" => Some(vec![read()]),
        "yaml" if is_shipped => Some(vec![read()]),
        "rs" if is_shipped => Some(texts(&read(), is_help(path))),
        _ => None,
    }
}

/// The files of the product that users can read, each with its texts.
fn product() -> Vec<(String, Vec<String>)> {
    let mut all = vec!["CHANGELOG.md".to_owned()];
    all.extend(files("crates"));
    let with_texts = |path: String| readable(&path).map(|texts| (path, texts));
    all.into_iter().filter_map(with_texts).collect()
}

/// In lower case, with one space between words, and without the marks of comments.
fn normalized(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| *word != "#");
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    words.join(" ").replace('’', "'")
}

/// Whether a phrase occurs as whole words.
fn has(text: &str, phrase: &str) -> bool {
    text.match_indices(phrase).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let behind = text[at + phrase.len()..].chars().next();
        [before, behind]
            .iter()
            .all(|c| !c.is_some_and(char::is_alphanumeric))
    })
}

fn places(texts: &[(String, Vec<String>)]) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    for (path, texts) in texts {
        let texts: Vec<String> = texts.iter().map(|text| normalized(text)).collect();
        for (phrase, _) in phrases() {
            if texts.iter().any(|text| has(text, phrase)) {
                found.insert((path.clone(), phrase.to_owned()));
            }
        }
    }
    found
}

fn shown<'a>(places: impl Iterator<Item = &'a Place>) -> String {
    let replacement = |phrase: &str| phrases().iter().find(|(p, _)| *p == phrase).unwrap().1;
    let line = |(path, phrase): &Place| format!("{path}\t{phrase}\t→ {}\n", replacement(phrase));
    places.map(line).collect()
}

#[test]
fn pages_have_none_of_the_phrases() {
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).unwrap();
        (path, vec![text])
    };
    let pages: Vec<_> = pages().into_iter().map(read).collect();
    assert!(pages.len() > 50, "{}", pages.len());
    let found = places(&pages);
    assert!(found.is_empty(), "rewrite:\n{}", shown(found.iter()));
}

#[test]
fn messages_have_the_phrases_only_where_they_are_still_allowed() {
    let product = product();
    assert!(product.len() > 500, "{}", product.len());
    let found = places(&product);
    let allowed = table(include_str!("allowed.tsv"));
    let allowed = allowed
        .iter()
        .map(|(path, phrase)| ((*path).to_owned(), (*phrase).to_owned()));
    let allowed: BTreeSet<Place> = allowed.collect();
    let new = shown(found.difference(&allowed));
    assert!(new.is_empty(), "rewrite:\n{new}");
    let gone: Vec<String> = allowed
        .difference(&found)
        .map(|(p, w)| format!("{p}\t{w}"))
        .collect();
    assert!(
        gone.is_empty(),
        "remove from allowed.tsv:\n{}",
        gone.join("\n")
    );
}

#[test]
fn a_phrase_is_found_in_any_case_across_lines_and_as_whole_words() {
    let check = |text: &str, phrase: &str, expected: bool| {
        assert_eq!(
            has(&normalized(text), phrase),
            expected,
            "{phrase} in {text}"
        );
    };
    check("Nobody\nreads it", "nobody", true);
    check("# what is gone\n# on with", "gone on with", true);
    check("the address is none.", "is none", true);
    check("it is nonempty", "is none", false);
    check("this none", "is none", false);
}

#[test]
fn literals_and_help_are_read_and_tests_are_not() {
    let source = r##"
        //! Not help.
        /// The first line
        /// and the second.
        fn f<'a>(c: char) -> &'a str {
            match c { '"' => r#"a "raw" text"#, '\'' => "a \
                long text", _ => "with \"quotes\"" } // "not a text"
        }
        #[cfg(test)]
        mod tests { fn g() { let x = "in a test"; } }
        /* "nor this" */ const X: &[u8] = b"bytes";
    "##;
    let literals = ["a \"raw\" text", "a long text", "with \"quotes\"", "bytes"];
    assert_eq!(texts(source, false), literals);
    let help = ["Not help. The first line and the second."];
    assert_eq!(texts(source, true), [&help[..], &literals[..]].concat());
}
