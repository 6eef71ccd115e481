//! The JSON Schemas and the decoders accept the same files.
//!
//! Random mutations of valid files go to both. Only rules that a schema can express are compared:
//! whether a server exists or a pattern compiles is the job of the loader.

use std::cell::RefCell;

use proctor_core::decode::{Context, Decode};
use proctor_core::document;
use proctor_core::problem::{Code, Problem, Problems, Severity, SourceText};
use proctor_core::script::script_file::ScriptFile;
use proctor_core::suite::agent_file::AgentFile;
use proctor_core::suite::eval_file::SuiteFile;
use proctor_core::suite::mcp_file::McpFile;
use proctor_core::suite::schema::{FileKind, schema};
use proctor_core::suite::task_file::TaskFile;
use proptest::prelude::*;
use serde_json::{Value, json};

const KINDS: [FileKind; 5] = [
    FileKind::Eval,
    FileKind::Task,
    FileKind::Agent,
    FileKind::McpConfig,
    FileKind::Script,
];

/// Files that use every key of their format.
fn complete(kind: FileKind) -> Value {
    match kind {
        FileKind::Eval => complete_eval(),
        FileKind::Task => json!({
            "$schema": "x.json", "kind": "Task", "apiVersion": "mcpchecker/v1alpha2",
            "metadata": {"name": "n", "difficulty": "easy", "labels": {"a": "b"}, "parallel": true, "runs": 3, "description": "d", "category": "c", "annotations": {}},
            "spec": {
                "requires": [{"extension": "e", "as": "x"}, {"mcpServer": "s"}],
                "limits": {"timeout": "1m", "cleanupTimeout": "1h30m", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": 0.5},
                "setup": [{"id": "a", "script": {"inline": "x", "env": {"A": 1}, "timeout": "5s", "continueOnError": true}}, {"x.do": {"any": [1]}}],
                "verify": [
                    {"http": {"url": "u", "method": "GET", "headers": {"A": "b"}, "body": {"json": {"a": 1}}, "timeout": "1s",
                        "expect": {"status": 200, "body": {"match": "x", "fields": [{"path": "a", "equals": 1, "type": "string", "match": "x", "exists": true}]}}}},
                    {"llmJudge": {"contains": "x", "reason": "r"}},
                ],
                "cleanup": [{"script": {"file": "a.sh"}}],
                "prompt": {"inline": "p"},
            },
        }),
        FileKind::Agent => json!({
            "$schema": "x.json", "kind": "Agent", "apiVersion": "mcpchecker/v1alpha1",
            "metadata": {"name": "n", "version": 1.0, "description": "d", "annotations": 1},
            "builtin": {"type": "claude-code", "model": "m", "baseUrl": "u", "apiKey": "K"},
            "acp": {"cmd": "c", "args": ["a", 1]},
            "commands": {"runPrompt": "r", "argTemplateMcpServer": "a", "argTemplateAllowedTools": "b", "allowedToolsJoinSeparator": ",", "dangerouslySkipPermissions": true, "useVirtualHome": true, "getVersion": "v"},
            "skills": {"mountPath": "p", "toolName": "t"}, "modelTap": false, "connects": "onUse", "env": {"A": "b"},
        }),
        FileKind::McpConfig => json!({"$schema": "x.json", "mcpServers": {
            "a": {"type": "stdio", "command": "c", "args": ["a", 1], "env": {"A": "b"}, "disabled": false, "alwaysAllow": ["t"], "enableAllTools": true},
            "b": {"type": "http", "url": "http://x", "headers": {"A": "b"}},
        }}),
        FileKind::Script => json!({
            "$schema": "x.json", "kind": "Script", "apiVersion": "proctor/v1",
            "metadata": {"name": "n", "description": "d", "annotations": 1},
            "rules": [
                {"when": {"turn": 1, "results": 0, "prompt": "p", "user": "u", "system": "s", "result": "r", "error": true,
                    "tool": "t", "toolPattern": "t", "mustCall": "v"},
                 "reply": {"text": "x", "thinking": "y", "delay": "1ms", "stop": "length", "usage": {"input": 1, "output": 2, "cached": 1, "reasoning": 1},
                    "calls": [{"tool": "t", "arguments": {"a": [1, "{result.x}"]}}, {"tool": "t", "malformed": "{"}]}},
                {"reply": {"refuse": "no"}},
                {"reply": {"error": {"kind": "rateLimit", "detail": "d", "retryAfter": "1s"}}},
            ],
        }),
    }
}

fn complete_eval() -> Value {
    let tool = json!({
        "server": "s", "tool": "t", "toolPattern": "t.*",
        "arguments": {"a": {"$min": 1}, "z": {"$max": 2}, "b": [1, {"c": {"$not": null}}]},
        "result": {"content": {"$contains": {"text": {"$match": "x"}}}, "d": {"$approx": {"value": 1, "tolerance": 0.5}}, "e": {"$type": ["string", "null"]}, "f": {"$oneOf": [1, 2]}, "g": {"$exact": {"$x": 1}}, "h": {"$unordered": [1]}},
        "isError": false, "maxDuration": "1s", "times": {"min": 1, "max": 2},
    });
    json!({
        "$schema": "x.json", "kind": "Eval", "apiVersion": "mcpchecker/v1alpha2",
        "metadata": {"name": "n", "description": "d", "category": "c", "labels": {"a": 1}, "annotations": {"x": [1]}},
        "config": {
            "agents": [{"type": "builtin.llm-agent", "model": "openai:x", "modelTap": true}, {"type": "file", "path": "a.yaml"}],
            "mcpConfigFile": "mcp.yaml",
            "llmJudge": {"ref": {"type": "builtin.llm-agent", "model": "openai:x"}, "votes": 3},
            "defaultTaskLimits": {"timeout": "1m", "cleanupTimeout": "1h30m", "maxTurns": 3, "maxTokens": 1000, "maxCostUsd": 0.5},
            "extensions": {"e": {"package": "./e", "config": {"a": 1}, "env": {"A": "b"}}},
            "sources": {"s": {"repo": "r", "ref": "v1", "serverMapping": {"a": "b"}}},
            "skills": {"sources": [{"type": "path", "path": "skills"}]},
            "isolation": "trial",
            "taskSets": [
                {"path": "a.yaml", "source": "s", "labelSelector": {"a": "b"}, "pass": "4/5", "assertions": {
                    "toolsUsed": [tool], "requireAny": [tool], "toolsNotUsed": [{"server": "s"}], "minToolCalls": 1, "maxToolCalls": 5,
                    "resourcesRead": [{"server": "s", "uri": "u", "uriPattern": "u"}], "resourcesNotRead": [{"server": "s"}],
                    "promptsUsed": [{"server": "s", "prompt": "p", "promptPattern": "p"}], "promptsNotUsed": [{"server": "s"}],
                    "callOrder": [{"type": "tool", "server": "s", "name": "t"}], "noDuplicateCalls": true,
                    "calls": {"mode": "inOrder", "list": [tool]},
                    "skillsLoaded": [{"skill": "a", "skillPattern": "b"}], "skillsNotLoaded": [{"skill": "a"}],
                }},
                {"glob": "*.yaml"},
                {"evals": {"server": "s", "level": "execution"}},
            ],
        },
    })
}

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
    let alternatives = ["agent", "agentFile", "env", "steps", "raw", "exact", "file"];
    for kind in KINDS {
        let text = complete(kind).to_string();
        let schema = schema(kind);
        for (name, definition) in schema["$defs"].as_object().unwrap() {
            // The older forms stand instead of the newer ones.
            if name.starts_with("Legacy") || name == "JudgeEnvFile" {
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
        ["config", key, ..] => key == "llmJudge",
        ["spec" | "steps", key, ..] => key == "verify",
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

#[derive(Debug, Clone)]
enum Change {
    Replace(Value),
    Remove,
    Rename(&'static str),
    Add(&'static str, Value),
}

fn change() -> impl Strategy<Value = Change> {
    let key = || {
        prop::sample::select(vec![
            "unknown",
            "file",
            "inline",
            "path",
            "glob",
            "exact",
            "raw",
            "url",
            "command",
            "env",
            "agent",
            "agentFile",
            "steps",
            "id",
            "script",
            "a.b",
            "$match",
        ])
    };
    let value = || {
        prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(5),
            json!(-1),
            json!(1.5),
            json!(""),
            json!("x"),
            json!("30s"),
            json!("file"),
            json!("1/2"),
            json!("Task"),
            json!([]),
            json!(["x"]),
            json!([{}]),
            json!({}),
            json!({"x": 1}),
            json!({"$x": 1}),
            json!({"$exists": true}),
            json!({"$exists": true, "x": 1}),
            json!({"inline": "x"}),
            json!({"file": "x", "inline": null}),
        ])
    };
    prop_oneof![
        4 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        1 => key().prop_map(Change::Rename),
        2 => (key(), value()).prop_map(|(key, value)| Change::Add(key, value)),
    ]
}

fn apply(value: &mut Value, pointer: &str, change: &Change) {
    let Some((parent, key)) = pointer.rsplit_once('/') else {
        return;
    };
    match change {
        Change::Replace(new) => {
            if let Some(place) = value.pointer_mut(pointer) {
                *place = new.clone();
            }
        }
        Change::Add(key, new) => {
            if let Some(Value::Object(map)) = value.pointer_mut(pointer) {
                map.insert((*key).to_owned(), new.clone());
            }
        }
        Change::Remove | Change::Rename(_) => match value.pointer_mut(parent) {
            Some(Value::Object(map)) => {
                let removed = map.remove(key);
                if let (Change::Rename(new), Some(removed)) = (change, removed) {
                    map.insert((*new).to_owned(), removed);
                }
            }
            Some(Value::Array(items)) => {
                items.remove(key.parse().expect("an index"));
            }
            _ => {}
        },
    }
}

thread_local! {
    static VALIDATORS: Vec<jsonschema::Validator> = KINDS
        .iter()
        .map(|kind| jsonschema::validator_for(&schema(*kind)).expect("a schema"))
        .collect();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn a_broken_file_is_refused_by_both_or_by_neither(
        kind in 0..KINDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 1..3),
    ) {
        let mut value = complete(KINDS[kind]);
        for (index, change) in changes {
            let mut found = Vec::new();
            pointers(&value, "", &mut found);
            apply(&mut value, &found[index.index(found.len())], &change);
        }
        let decoded = decode(KINDS[kind], &value);
        let by_schema = VALIDATORS.with(|all| {
            all[kind].validate(&value).map_err(|e| format!("{}: {e}", e.instance_path()))
        });
        prop_assert_eq!(
            decoded.is_ok(), by_schema.is_ok(),
            "decoder: {:?}\nschema: {:?}\n{}", decoded, by_schema, value
        );
    }
}
