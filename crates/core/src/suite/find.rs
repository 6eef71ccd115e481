//! Finds the eval files that a command line names: files, and folders with eval files.
//!
//! Its main function is [`eval_files`]. A file in a folder that can't be read or parsed counts as an eval
//! file if it looks like one: loading it then reports why, where skipping it would hide its cases.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proctor_record::problem::{Code, Problem, Problems};
use regex::Regex;
use walkdir::{DirEntry, WalkDir};

use super::files;
use super::load::kind_of;
use crate::document;

/// Folders that hold no suites, and may hold many files.
pub const SKIPPED_FOLDERS: [&str; 4] = ["node_modules", "target", "__pycache__", "venv"];

/// The maximum number of files and folders that are looked at.
const MAX_VISITED: usize = 100_000;

/// The eval files of some paths, in order and each once. A folder stands for the eval files below it,
/// without hidden files and folders.
pub fn eval_files(paths: &[PathBuf], problems: &mut Problems) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut known = Vec::new();
    for path in paths {
        let files = if path.is_dir() {
            in_folder(path, problems)
        } else {
            vec![path.clone()]
        };
        for file in files {
            let real = file.canonicalize().unwrap_or_else(|_| file.clone());
            if !known.contains(&real) {
                known.push(real);
                found.push(file);
            }
        }
    }
    found
}

fn in_folder(folder: &Path, problems: &mut Problems) -> Vec<PathBuf> {
    let shown = folder.display();
    let mut found = Vec::new();
    let walk = WalkDir::new(folder).sort_by_file_name().min_depth(1);
    let walk = walk.into_iter().filter_entry(is_looked_at);
    for (visited, entry) in walk.enumerate() {
        if visited >= MAX_VISITED {
            let message = format!("`{shown}` contains more than {MAX_VISITED} files");
            let problem = Problem::error(Code::Limit, message).in_file(folder);
            problems.push(problem.hint("name the eval files, or a smaller folder"));
            return Vec::new();
        }
        match entry {
            Ok(entry) if entry.path().is_file() && is_eval_file(entry.path()) => {
                found.push(files::normalise(entry.path()));
            }
            Ok(_) => {}
            Err(error) => {
                let message = format!("`{shown}` can't be searched for eval files: {error}");
                problems.push(Problem::error(Code::File, message).in_file(folder));
            }
        }
    }
    if found.is_empty() {
        let message = format!("`{shown}` contains no eval file");
        let problem = Problem::error(Code::File, message).in_file(folder);
        problems.push(problem.hint("an eval file ends in `.yaml` or `.yml` and has `kind: Eval`"));
    }
    found
}

fn is_looked_at(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.depth() == 0 || !(name.starts_with('.') || SKIPPED_FOLDERS.contains(&&*name))
}

/// Whether a file is an eval file, or can't be read and may be one.
fn is_eval_file(path: &Path) -> bool {
    let is_yaml = path
        .extension()
        .is_some_and(|ending| ending == "yaml" || ending == "yml");
    if !is_yaml {
        return false;
    }
    let Ok(source) = files::read(path) else {
        return true;
    };
    match document::parse(&source, &mut Problems::default()) {
        Some(document) => kind_of(&document.root) == Some("Eval"),
        None => looks_like_one(source.text()),
    }
}

fn looks_like_one(text: &str) -> bool {
    static KIND: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r#"\bkind["']?\s*:\s*["']?Eval\b"#).ok());
    KIND.as_ref().is_none_or(|kind| kind.is_match(text))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_stands_for_its_eval_files_also_for_broken_ones() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in [".hidden", "node_modules", "deep/er"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for (name, text) in [
            ("b.yaml", "kind: Eval\n"),
            ("a.yml", "{\"kind\": \"Eval\"}"),
            ("task.yaml", "kind: Task\n"),
            ("notes.md", "kind: Eval\n"),
            ("broken.yaml", "kind: Eval\nx: [\n"),
            ("broken-task.yaml", "kind: Task\nx: [\n"),
            ("deep/er/c.yaml", "kind: Eval\n"),
            (".hidden/d.yaml", "kind: Eval\n"),
            ("node_modules/e.yaml", "kind: Eval\n"),
        ] {
            fs::write(at(name), text).unwrap();
        }
        fs::write(at("latin.yaml"), b"kind: Eval # \xe9\n").unwrap();
        let mut problems = Problems::default();
        let paths = [at("b.yaml"), folder.path().to_owned()];
        let found = eval_files(&paths, &mut problems);
        let expected = [
            "b.yaml",
            "a.yml",
            "broken.yaml",
            "deep/er/c.yaml",
            "latin.yaml",
        ];
        assert_eq!(found, expected.map(at));
        assert_eq!(problems.errors(), 0);
    }

    #[test]
    fn a_folder_without_eval_files_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut problems = Problems::default();
        let paths = [folder.path().to_owned(), folder.path().join("missing.yaml")];
        let found = eval_files(&paths, &mut problems);
        // A file that does not exist is reported by the loader, with its neighbours.
        assert_eq!(found, [folder.path().join("missing.yaml")]);
        assert_eq!(problems.errors(), 1);
    }
}
