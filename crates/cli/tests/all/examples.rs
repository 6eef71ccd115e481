//! The files under `examples` are what they claim to be.

use std::fs;
use std::path::{Path, PathBuf};

use proctor_core::document;
use proctor_core::suite::schema::{FileKind, schema};
use proctor_record::problem::{Problems, SourceText};
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

/// Runs a suite, keeps nothing but its result, and returns it.
fn result(eval: &str, more: &[&str], code: i32) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("run").display().to_string();
    let words = [
        "check", eval, "-o", "json", "--keep", "none", "--record", &record,
    ];
    let output = proctor([&words, more].concat()).output();
    assert_eq!(output.code, Some(code), "{output}");
    serde_json::from_str(&output.stdout).expect("it is JSON")
}

/// The verdict and the reason of each verify step of a trial.
fn steps(trial: &Value) -> Vec<(&str, &str)> {
    let checks = trial["proctor"]["checks"]
        .as_array()
        .expect("a list")
        .iter();
    let steps = checks.filter(|check| check["kind"] == "step");
    steps
        .map(|check| {
            let reason = check["reason"].as_str().unwrap_or_default();
            (check["verdict"].as_str().expect("a text"), reason)
        })
        .collect()
}

#[test]
fn the_quickstart_does_not_believe_an_agent_that_lies() {
    let eval = root().join("examples/quickstart/failing.yaml");
    let document = result(eval.to_str().unwrap(), &[], 1);
    let mut trials = document["results"].as_array().unwrap().iter();
    let trial = trials
        .find(|trial| trial["taskName"] == "borrow-book")
        .unwrap();
    // The model says that all went well, and the words alone would convince the judge.
    assert!(trial.to_string().contains("grace has Solaris for 14 days."));
    assert_eq!(trial["taskPassed"], false);
    let [(verdict, reason)] = steps(trial)[..] else {
        panic!("{trial:#}");
    };
    assert_eq!(verdict, "fail");
    assert!(reason.contains("Solaris is not lent to grace"), "{reason}");
}

#[test]
fn the_suite_of_init_does_not_believe_an_agent_that_lies() {
    let folder = tempfile::tempdir().unwrap();
    let init = proctor(["init", "."]).current_dir(folder.path()).output();
    assert_eq!(init.code, Some(0), "{init}");
    let eval = folder.path().join("eval.yaml").display().to_string();
    assert_eq!(result(&eval, &[], 0)["results"][0]["taskPassed"], true);
    let liar = folder.path().join("liar.yaml");
    let script = "kind: Script\nrules: [{reply: {text: Grace has Solaris for 14 days.}}]\n";
    fs::write(&liar, script).unwrap();
    let model = format!("scripted:{}", liar.display());
    let document = result(&eval, &["--model", &model], 1);
    let verdicts = steps(&document["results"][0]);
    assert_eq!(verdicts[0].0, "fail", "{verdicts:?}");
}

#[test]
fn the_comparison_names_the_cases_that_one_agent_passed() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run").display().to_string();
    let eval = root().join("examples/compare/eval.yaml");
    let eval = eval.to_str().unwrap();
    let words = [
        "check", eval, "-n", "2", "--keep", "none", "--record", &record,
    ];
    let output = proctor(words).output();
    assert_eq!(output.code, Some(1), "{output}");
    let only = "only careful passed: find-books, borrow-book\n";
    assert!(output.stdout.contains(only), "{output}");
    assert!(
        output.stdout.contains("Trials    8/12 trials passed"),
        "{output}"
    );
}
