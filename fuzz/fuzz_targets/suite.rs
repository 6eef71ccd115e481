//! The suite loader: it returns a suite or an error, never both or neither, the same each time; an agent that does nothing
//! passes no case of any suite that loads; and a document that is written as JSON reads the same.
#![no_main]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use proctor_core::document;
use proctor_core::grading::CaseChecks;
use proctor_core::suite::{Case, Environment, Inputs, LoadedFile, load_any};
use proctor_fuzz::{graded_generously, scratch, silent_trial};
use proctor_record::event::Outcome;
use proctor_record::fold::FoldedTrial;
use proctor_record::problem::{Problem, Problems, SourceText};

/// Starts each file of an input; its path follows.
const FILE: &str = "=== ";

/// Longer documents are not written again.
const MAX_JSON: usize = 1 << 20;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let folder = scratch("suite");
    let Some(first) = unpacked(text, &folder) else {
        return;
    };
    let (loaded, problems) = load(&first);
    let again = load(&first);
    assert_eq!(
        format!("{loaded:?}"),
        format!("{:?}", again.0),
        "loaded twice"
    );
    let shown = |problems: &Problems| problems.iter().map(Problem::to_string).collect::<Vec<_>>();
    assert_eq!(shown(&problems), shown(&again.1));
    assert_eq!(
        loaded.is_none(),
        problems.fatal() > 0,
        "{:?}",
        shown(&problems)
    );
    let silent = silent_trial();
    match &loaded {
        Some(LoadedFile::Suite(suite)) => {
            suite
                .cases
                .iter()
                .for_each(|case| fails_silence(case, &silent));
        }
        Some(LoadedFile::Case(case, _)) => fails_silence(case, &silent),
        Some(LoadedFile::Selection(cases)) => {
            cases.iter().for_each(|case| fails_silence(case, &silent));
        }
        Some(LoadedFile::Agent(_) | LoadedFile::Servers(_) | LoadedFile::Script(_)) | None => {}
    }
    let text = fs::read_to_string(&first).expect("the file that was loaded");
    reads_the_same_as_json(&text);
});

/// Writes the files of an input, and returns the first.
fn unpacked(text: &str, folder: &Path) -> Option<PathBuf> {
    let mut first = None;
    for file in text.split(FILE).skip(1).take(12) {
        let (name, content) = file.split_once('\n')?;
        let legal = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
        let is_inside = name
            .split('/')
            .all(|part| !part.is_empty() && !part.starts_with('.'));
        if !is_inside || !name.chars().all(legal) || name.len() > 100 {
            return None;
        }
        let path = folder.join(name);
        fs::create_dir_all(path.parent()?).ok()?;
        fs::write(&path, content).ok()?;
        first.get_or_insert(path);
    }
    first
}

fn load(path: &Path) -> (Option<LoadedFile>, Problems) {
    let env = Environment::from([("HOME".to_owned(), "/home/fuzz".to_owned())]);
    let sources = BTreeMap::new();
    let inputs = Inputs {
        env: &env,
        source_roots: &sources,
        runs: None,
        mcp_config: None,
        judge_given: false,
    };
    let mut problems = Problems::default();
    let loaded = load_any(path, &inputs, &mut problems);
    (loaded, problems)
}

fn fails_silence(case: &Case, silent: &FoldedTrial) {
    let ended = graded_generously(CaseChecks::of(case), silent);
    assert_ne!(ended.outcome, Outcome::Passed, "{case:?}");
}

fn reads_the_same_as_json(text: &str) {
    let parse = |text: &str| {
        let mut problems = Problems::default();
        let source = SourceText::new("document", text.to_owned());
        let document = document::parse(&source, &mut problems);
        document.filter(|_| !problems.has_errors())
    };
    let Some(document) = parse(text) else {
        return;
    };
    let json = document.root.to_json();
    let written = json.to_string();
    if written.len() <= MAX_JSON {
        let again = parse(&written).expect("JSON is YAML");
        assert_eq!(again.root.to_json(), json);
    }
}
