//! The files under `examples` are what they claim to be.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_core::document;
use proctor_core::problem::{Problems, SourceText};
use proctor_core::suite::schema::{FileKind, schema};
use serde_json::Value;

use crate::proctor::proctor;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("the entry can be read").path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "yaml" || e == "json") {
            found.push(path);
        }
    }
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("the example is text");
    let mut problems = Problems::default();
    let parsed = document::parse(&SourceText::new(path, text), &mut problems);
    parsed.expect("the example is YAML").root.to_json()
}

#[test]
fn the_five_examples_of_the_format_validate_together() {
    let mut files: Vec<String> = fs::read_dir(root().join("examples/kubernetes"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file() && read(path)["kind"] == "Eval")
        .map(|path| path.display().to_string())
        .collect();
    files.sort();
    assert_eq!(files.len(), 5);
    let args = ["validate".to_owned(), "--strict".to_owned()]
        .into_iter()
        .chain(files);
    let output = proctor(args).output();
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.ends_with("5 files: 1 warning\n"), "{output}");
    assert!(
        output
            .stdout
            .contains("duplicate suite name `kubernetes-basic`"),
        "{output}"
    );
}

#[test]
fn every_example_validates_strictly_and_against_its_schema() {
    let mut files = Vec::new();
    yaml_files(&root().join("examples"), &mut files);
    yaml_files(&root().join("crates/cli/src/commands/init"), &mut files);
    assert!(files.len() > 15, "only {} examples", files.len());
    // What servers ship and engines run is no file of a suite, and is tested with them.
    let others = [
        "evals",
        "kubernetes-job",
        "python-server",
        "typescript-server",
    ];
    let others = others.map(|folder| root().join("examples").join(folder));
    let is_other = |path: &Path| others.iter().any(|folder| path.starts_with(folder));
    for path in files.into_iter().filter(|path| !is_other(path)) {
        let value = read(&path);
        let kind = match value["kind"].as_str() {
            Some("Eval") => FileKind::Eval,
            Some("Task") => FileKind::Task,
            Some("Agent") => FileKind::Agent,
            Some("Script") => FileKind::Script,
            _ => FileKind::McpConfig,
        };
        let validator = jsonschema::validator_for(&schema(kind)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}: {errors:#?}", path.display());
        let output = proctor([
            std::ffi::OsStr::new("validate"),
            "--strict".as_ref(),
            path.as_os_str(),
        ])
        .output();
        assert_eq!(output.code, Some(0), "{output}");
    }
}
