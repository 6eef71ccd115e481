//! The JSON Schemas and the decoders accept the same files.
//!
//! Random mutations of valid files go to both. Only rules that a schema can express are compared:
//! whether a server exists or a pattern compiles is the job of the loader.

#![recursion_limit = "256"]

mod broken;
mod complete;

use std::cell::RefCell;

use proctor_core::decode::{Context, Decode};
use proctor_core::document;
use proctor_core::script::script_file::ScriptFile;
use proctor_core::suite::agent_file::AgentFile;
use proctor_core::suite::eval_file::SuiteFile;
use proctor_core::suite::mcp_file::McpFile;
use proctor_core::suite::schema::{FileKind, schema};
use proctor_core::suite::selection_file::SelectionFile;
use proctor_core::suite::task_file::TaskFile;
use proctor_record::problem::{Code, Problem, Problems, Severity, SourceText};
use serde_json::{Value, json};

use complete::complete;

const KINDS: [FileKind; 6] = [
    FileKind::Eval,
    FileKind::Task,
    FileKind::Agent,
    FileKind::McpConfig,
    FileKind::Script,
    FileKind::Selection,
];

/// What the decoder says: no error, and no key that it does not know.
fn decode(kind: FileKind, value: &Value) -> Result<(), String> {
    let counts = |p: &&Problem| p.severity == Severity::Error || p.code == Code::UnknownKey;
    match problems(kind, value).iter().find(counts) {
        Some(problem) => Err(problem.message.clone()),
        None => Ok(()),
    }
}

/// Everything that the decoder says.
fn problems(kind: FileKind, value: &Value) -> Vec<Problem> {
    let mut parsed = Problems::default();
    let source = SourceText::new("file.json", value.to_string());
    let document = document::parse(&source, &mut parsed).expect("a tree");
    let problems = RefCell::new(parsed);
    let cx = Context::new(source, &problems);
    match kind {
        FileKind::Eval => drop(SuiteFile::decode(&document.root, &cx)),
        FileKind::Task => drop(TaskFile::decode(&document.root, &cx)),
        FileKind::Agent => drop(AgentFile::decode(&document.root, &cx)),
        FileKind::McpConfig => drop(McpFile::decode(&document.root, &cx)),
        FileKind::Script => drop(ScriptFile::decode(&document.root, &cx)),
        FileKind::Selection => drop(SelectionFile::decode(&document.root, &cx)),
    }
    problems.into_inner().iter().cloned().collect()
}

#[test]
fn a_file_that_uses_every_key_is_accepted_by_both() {
    for kind in KINDS {
        let value = complete(kind);
        assert_eq!(decode(kind, &value), Ok(()), "{kind:?}");
        let validator = jsonschema::validator_for(&schema(kind)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|e| e.to_string())
            .collect();
        assert!(errors.is_empty(), "{kind:?}: {errors:?}");
    }
}

/// Otherwise breaking the files would never reach it.
#[test]
fn the_complete_files_leave_no_key_out() {
    let alternatives = [
        "agent",
        "agentFile",
        "env",
        "steps",
        "raw",
        "exact",
        "file",
        "rowsFrom",
    ];
    for kind in KINDS {
        let text = complete(kind).to_string();
        let schema = schema(kind);
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            // The older forms stand instead of the newer ones.
            if name.starts_with("Legacy") || name == "JudgeEnvFile" {
                continue;
            }
            // The steps of a run have no answer to judge.
            if matches!(kind, FileKind::Eval) && name == "JudgeStepFile" {
                continue;
            }
            for key in definition["properties"]
                .as_object()
                .into_iter()
                .flat_map(|p| p.keys())
            {
                let used =
                    text.contains(&format!("\"{key}\"")) || alternatives.contains(&key.as_str());
                assert!(used, "{kind:?} never uses `{key}` of {name}");
            }
        }
    }
}

/// The places of a value, as pointers.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                pointers(item, &format!("{at}/{key}"), found);
            }
        }
        _ => {}
    }
}

/// Everything below these places decides a verdict.
fn decides(pointer: &str) -> bool {
    let parts: Vec<&str> = pointer.split('/').skip(1).collect();
    match parts[..] {
        ["config", "taskSets", _, key, ..] => key == "assertions",
        ["config", key, ..] => matches!(
            key,
            "llmJudge" | "gates" | "knownFailures" | "surface" | "lint"
        ),
        ["spec" | "steps", key, ..] => matches!(key, "verify" | "replies" | "turns"),
        _ => false,
    }
}

/// Maps whose keys are the user's own.
fn is_free(pointer: &str) -> bool {
    let free = [
        "arguments",
        "result",
        "headers",
        "env",
        "json",
        "labels",
        "annotations",
        "content",
        "replies",
        "when",
    ];
    let inside = |name: &str| pointer.contains(&format!("/{name}/"));
    let is = |name: &str| pointer.ends_with(&format!("/{name}"));
    free.iter().any(|name| is(name))
        || inside("arguments")
        || inside("result")
        || inside("annotations")
}

/// An assertion or a step that is added later can't be forgotten: strictness comes with the place.
#[test]
fn an_unknown_key_is_an_error_just_where_it_would_change_a_verdict() {
    let mut strict = 0;
    let legacy = json!({
        "kind": "Task", "metadata": {"name": "n"},
        "steps": {"prompt": {"inline": "p"}, "setup": {"inline": "s"}, "verify": {"contains": "x"}},
    });
    let files = [
        (FileKind::Eval, complete(FileKind::Eval)),
        (FileKind::Task, complete(FileKind::Task)),
        (FileKind::Task, legacy),
    ];
    for (kind, file) in files {
        let mut places = Vec::new();
        pointers(&file, "", &mut places);
        for place in places {
            let mut changed = file.clone();
            let Some(Value::Object(map)) = changed.pointer_mut(&place) else {
                continue;
            };
            map.insert("xyzzy".to_owned(), json!(1));
            let found = problems(kind, &changed);
            let unknown = found.iter().find(|p| p.message.contains("`xyzzy`"));
            let expected = if decides(&place) {
                Severity::Error
            } else {
                Severity::Warning
            };
            match unknown {
                // A second type of a step, or a key in a map of operators, is an error anywhere.
                Some(found) if found.code != Code::UnknownKey => {}
                Some(found) => {
                    strict += usize::from(expected == Severity::Error);
                    assert_eq!(found.severity, expected, "{kind:?} {place}");
                }
                None => assert!(
                    !decides(&place) || is_free(&place),
                    "{kind:?} {place}: an unknown key goes unnoticed"
                ),
            }
        }
    }
    assert!(strict >= 25, "only {strict} strict places were seen");
}

/// A typo in the name of a part that holds checks would drop them all.
#[test]
fn a_key_that_is_near_one_that_decides_is_an_error() {
    let severity = |kind: FileKind, value: &Value, key: &str| {
        let found = problems(kind, value);
        let found = found
            .iter()
            .find(|p| p.message.contains(&format!("unknown key `{key}`")));
        found.map(|problem| problem.severity)
    };
    let mut eval = complete(FileKind::Eval);
    eval["config"]["taskSets"][0]["asertions"] = json!({});
    eval["config"]["taskSets"][0]["labelSelektor"] = json!({});
    assert_eq!(
        severity(FileKind::Eval, &eval, "asertions"),
        Some(Severity::Error)
    );
    assert_eq!(
        severity(FileKind::Eval, &eval, "labelSelektor"),
        Some(Severity::Warning)
    );
    let mut task = complete(FileKind::Task);
    task["spec"]["verfy"] = json!([]);
    assert_eq!(
        severity(FileKind::Task, &task, "verfy"),
        Some(Severity::Error)
    );
}
