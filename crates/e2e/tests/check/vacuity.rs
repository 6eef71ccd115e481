//! No example and no broken file has a case that any agent passes: each is run with an agent that says
//! and does nothing, with one that only says that it is done, and with one that calls every tool once.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use proctor_e2e::session::Session;
use serde_json::{Map, Value, json};

/// A suite, and the case in it.
type Case = (String, String);

/// What an agent's trials came to.
#[derive(Debug, Default)]
struct Verdicts {
    passed: BTreeSet<Case>,
    failed: BTreeSet<Case>,
}

/// What the test stands on: stand-ins for servers, and scripts for agents.
struct Ground {
    folder: tempfile::TempDir,
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn examples() -> PathBuf {
    here().join("../../examples")
}

fn broken() -> PathBuf {
    here().join("../cli/tests/broken")
}

impl Ground {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let kubectl = folder.path().join("kubectl");
        std::os::unix::fs::symlink(proctor_e2e::kubernetes(), kubectl).unwrap();
        let ground = Self { folder };
        ground.write("null.yaml", "kind: Script\nrules: [{reply: {text: ''}}]\n");
        ground.write(
            "talker.yaml",
            "kind: Script\nrules: [{reply: {text: Done.}}]\n",
        );
        let unsure = json!({"reason": "it can't be told", "evidence": [], "verdict": "unknown"});
        let call = json!({"calls": [{"tool": "verdict", "arguments": unsure}]});
        let judge = json!({"kind": "Script", "rules": [{"reply": call}]});
        ground.write("judge.yaml", &judge.to_string());
        ground
    }

    /// The server of that name, with nothing that has to be fetched.
    fn stand_in(&self, name: &str) -> Value {
        let list = match name {
            "library" => return json!({"command": proctor_e2e::proctor(), "args": ["__demo"]}),
            "kubernetes" => {
                return json!({"command": proctor_e2e::kubernetes(), "args": [self.cluster()]});
            }
            "files" => "filesystem",
            "everything" | "memory" | "git" => name,
            _ => return json!({"command": proctor_e2e::fixture(), "args": []}),
        };
        let list = here().join(format!("tests/tool-lists/{list}.json"));
        let program = here().join("tests/check/vacuity/standin.py");
        json!({"command": "python3", "args": [program, list]})
    }

    fn cluster(&self) -> PathBuf {
        self.folder.path().join("cluster.json")
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a script for an agent that calls every tool of these servers once.
    fn caller(&self, servers: &Value) {
        let mut calls = Vec::new();
        for server in servers.as_object().unwrap().values() {
            let mut words = vec![
                "tools",
                "-o",
                "json",
                "--",
                server["command"].as_str().unwrap(),
            ];
            words.extend(
                server["args"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(Value::as_str),
            );
            let listed = printed(&words).unwrap();
            for tool in listed["tools"].as_array().unwrap() {
                calls.push(
                    json!({"tool": tool["name"], "arguments": arguments(&tool["inputSchema"])}),
                );
            }
        }
        let rules = json!([
            {"when": {"results": 0}, "reply": {"calls": calls}},
            {"reply": {"text": "Done."}},
        ]);
        self.write(
            "caller.yaml",
            &json!({"kind": "Script", "rules": rules}).to_string(),
        );
    }

    /// Runs a suite with an agent, and notes what passed.
    fn check(&self, suite: &Path, config: &Path, agent: &str, verdicts: &mut Verdicts) {
        let script = |name: &str| format!("scripted:{}", self.folder.path().join(name).display());
        let shown = suite.display().to_string();
        let judge = if ["quickstart", "compare"]
            .iter()
            .any(|name| shown.contains(name))
        {
            let own = examples().join("quickstart/judge.yaml");
            format!("scripted:{}", own.display())
        } else {
            script("judge.yaml")
        };
        // There is one cluster.
        let jobs = if shown.contains("kubernetes") {
            "1"
        } else {
            "4"
        };
        let words = [
            "check",
            &shown,
            "--model",
            &script(&format!("{agent}.yaml")),
            "--judge",
            &judge,
            "--mcp-config-file",
            &config.display().to_string(),
            "--runs",
            "1",
            "--jobs",
            jobs,
            "-o",
            "json",
        ];
        let folder = self.folder.path().display();
        let seen = Session::new(&words)
            .env(
                "PATH",
                &format!("{folder}:{}", std::env::var("PATH").unwrap()),
            )
            .env("FIXTURE_CLUSTER", &self.cluster().display().to_string())
            .within(Duration::from_mins(3))
            .run();
        let Ok(result) = serde_json::from_str::<Value>(&seen.stdout) else {
            panic!("{shown}: {}", seen.stderr);
        };
        for trial in result["results"].as_array().unwrap() {
            let case = (
                shown.clone(),
                trial["taskName"].as_str().unwrap().to_owned(),
            );
            match trial["proctor"]["outcome"].as_str() {
                Some("passed") => verdicts.passed.insert(case),
                Some("failed") => verdicts.failed.insert(case),
                _ => continue,
            };
        }
    }
}

/// `proctor` with these words, for what it prints.
fn printed(words: &[&str]) -> Option<Value> {
    let output = Command::new(proctor_e2e::proctor())
        .args(words)
        .output()
        .unwrap();
    output.status.success().then_some(())?;
    serde_json::from_slice(&output.stdout).ok()
}

/// The least that a schema asks for.
fn arguments(schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if required.contains(&json!(name)) {
            arguments.insert(name.clone(), value(property));
        }
    }
    Value::Object(arguments)
}

fn value(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([value(&schema["items"])]),
        Some("object") => arguments(schema),
        _ => json!("x"),
    }
}

fn kind_of(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("kind: "))?;
    Some(line.trim().to_owned())
}

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

/// Every suite of the examples and of the broken files; tasks that stand alone get one.
fn suites(ground: &Ground) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let folders = [
        "compare",
        "kubernetes",
        "matchers",
        "quickstart",
        "real-servers",
    ];
    for folder in folders {
        found.extend(yaml_files(&examples().join(folder)));
    }
    found.extend(yaml_files(&broken()));
    let mut suites = Vec::new();
    for path in found {
        match kind_of(&path).as_deref() {
            Some("Eval") => suites.push(path),
            Some("Task") => {
                let config = json!({
                    "agent": {"type": "builtin.claude-code"},
                    "mcpConfigFile": broken().join("shared/mcp.yaml"),
                    "llmJudge": {"ref": {"type": "builtin.claude-code"}},
                    "taskSets": [{"path": path}],
                });
                let suite = json!({"kind": "Eval", "metadata": {"name": "task"}, "config": config});
                let name = path.file_name().unwrap().to_str().unwrap();
                suites.push(ground.write(&format!("suite-of-{name}"), &suite.to_string()));
            }
            _ => {}
        }
    }
    suites
}

#[test]
fn no_case_passes_whatever_the_agent_does() {
    let ground = Ground::new();
    let [mut null, mut talker, mut caller] = [(); 3].map(|()| Verdicts::default());
    let mut run = Vec::new();
    for suite in suites(&ground) {
        // What does not load is never run.
        let Some(plan) = printed(&["list", suite.to_str().unwrap(), "-o", "json"]) else {
            continue;
        };
        let servers = plan["servers"].as_array().unwrap().iter();
        let names = servers.map(|server| server["name"].as_str().unwrap().to_owned());
        let servers: Map<String, Value> = names.map(|n| (n.clone(), ground.stand_in(&n))).collect();
        let servers = Value::Object(servers);
        let config = ground.write("mcp.json", &json!({"mcpServers": servers}).to_string());
        ground.caller(&servers);
        ground.check(&suite, &config, "null", &mut null);
        ground.check(&suite, &config, "talker", &mut talker);
        ground.check(&suite, &config, "caller", &mut caller);
        run.push(suite);
    }
    assert_eq!(
        null.passed,
        BTreeSet::new(),
        "an agent that does nothing passes"
    );
    let both: Vec<&Case> = talker.passed.intersection(&caller.passed).collect();
    assert!(
        both.is_empty(),
        "these pass whatever the agent does: {both:#?}"
    );
    // Otherwise the lists are empty since nothing was graded.
    assert!(run.len() >= 12, "only {run:#?}");
    for graded in [&null, &talker, &caller] {
        assert!(
            graded.failed.len() + graded.passed.len() >= 30,
            "{graded:#?}"
        );
    }
}

/// The test above would see such a case: one that only forbids what nobody does.
#[test]
fn a_case_that_passes_whatever_the_agent_does_is_seen() {
    let ground = Ground::new();
    let servers = json!({"fixture": ground.stand_in("fixture")});
    let config = ground.write("mcp.json", &json!({"mcpServers": servers}).to_string());
    ground.write(
        "task.yaml",
        "kind: Task\nmetadata: {name: weak}\nsteps: {prompt: {inline: do it}}\n",
    );
    let sets = json!([{"path": "task.yaml", "assertions": {"maxToolCalls": 1000}}]);
    let agent = json!({"type": "builtin.claude-code"});
    let suite = json!({"kind": "Eval", "metadata": {"name": "weak"}, "config": {"agent": agent, "mcpConfigFile": "mcp.json", "taskSets": sets}});
    let suite = ground.write("weak.yaml", &suite.to_string());
    ground.caller(&servers);
    for (agent, passes) in [("null", 0), ("talker", 1), ("caller", 1)] {
        let mut verdicts = Verdicts::default();
        ground.check(&suite, &config, agent, &mut verdicts);
        assert_eq!(verdicts.passed.len(), passes, "{agent}: {verdicts:?}");
    }
}

#[test]
fn no_shipped_eval_for_a_model_passes_whatever_the_model_does() {
    let ground = Ground::new();
    let text = json!({"type": "string"});
    let tools = json!({"tools": [
        {"name": "word_count", "inputSchema": {"type": "object", "required": ["text"], "properties": {"text": text}}},
        {"name": "add_note", "inputSchema": {"type": "object", "required": ["text"], "properties": {"text": text}}},
        {"name": "find_notes", "inputSchema": {"type": "object", "required": ["query"], "properties": {"query": text}}},
    ]});
    let list = ground.write("tools.json", &tools.to_string());
    let program = here().join("tests/check/vacuity/standin.py");
    let server = json!({"notes": {"command": "python3", "args": [program, list]}});
    ground.caller(&server);
    let evals = examples().join("evals/evals.json");
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&evals).unwrap()).unwrap();
    let script = |name: &str| format!("scripted:{}", ground.folder.path().join(name).display());
    for agent in ["null", "talker", "caller"] {
        let (model, judge) = (script(&format!("{agent}.yaml")), script("judge.yaml"));
        let evals = evals.display().to_string();
        let words = [
            "evals", "run", "--evals", &evals, "--yes", "--model", &model, "--judge", &judge, "-o",
            "json",
        ];
        let args = [program.to_str().unwrap(), list.to_str().unwrap()];
        let seen = Session::new(&words).on("python3", &args).run();
        let result: Value = serde_json::from_str(&seen.stdout).unwrap();
        for eval in result["results"].as_array().unwrap() {
            let all = written["evals"].as_array().unwrap();
            let of = all.iter().find(|one| one["id"] == eval["evalId"]).unwrap();
            // An execution has no agent.
            assert!(
                eval["passed"] == false || of["input"]["type"] == "execution",
                "{agent}: {eval}"
            );
        }
    }
}
