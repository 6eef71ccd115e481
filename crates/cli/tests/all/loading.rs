//! What a suite's files come to, seen through `list`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::proctor::{proctor, write_files};

const AGENT: &str = "kind: Agent\nmetadata: {name: mine, version: 1.0}\nacp: {cmd: my-agent, args: [--port, 8080]}\n";
const MCP: &str = "mcpServers:\n  main: {command: server}\n";
const TASK: &str = "kind: Task\nmetadata: {name: NAME, labels: {size: SIZE}}\nsteps:\n  prompt: {inline: Do it.}\n  verify: {inline: test -f done}\n";

fn task(name: &str, size: &str) -> String {
    TASK.replace("NAME", name).replace("SIZE", size)
}

fn list(folder: &Path, args: &[&str]) -> Value {
    let mut all = vec!["list", "eval.yaml", "-o", "json"];
    all.extend(args);
    let output = proctor(all).current_dir(folder).output();
    assert_eq!(output.code, Some(0), "{output}");
    serde_json::from_str(&output.stdout).expect("the plan is JSON")
}

fn checks(case: &Value) -> Vec<&str> {
    let checks = case["checks"].as_array().expect("checks are a list");
    checks.iter().filter_map(|c| c["check"].as_str()).collect()
}

fn eval(config: &str) -> String {
    format!("kind: Eval\nmetadata: {{name: suite}}\nconfig:\n{config}")
}

#[test]
fn a_task_that_two_sets_match_is_one_case_with_the_checks_of_both() {
    let folder = tempfile::tempdir().unwrap();
    let config = "  agentFile: agent.yaml\n  mcpConfigFile: mcp.yaml\n  taskSets:\n    - {glob: 'tasks/**/*.yaml', assertions: {maxToolCalls: 3}}\n    - {path: ./tasks/../tasks/a.yaml, assertions: {noDuplicateCalls: true}}\n    - {glob: '**/*.yaml', labelSelector: {size: small}, assertions: {minToolCalls: 1}}\n";
    write_files(
        folder.path(),
        &[
            ("eval.yaml", &eval(config)),
            ("agent.yaml", AGENT),
            ("mcp.yaml", MCP),
            ("tasks/a.yaml", &task("a", "small")),
            ("tasks/deep/er/b.yaml", &task("b", "large")),
        ],
    );
    let plan = list(folder.path(), &[]);
    let cases = plan["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2);
    assert_eq!(
        checks(&cases[0]),
        ["maxToolCalls", "noDuplicateCalls", "minToolCalls"]
    );
    assert_eq!(checks(&cases[1]), ["maxToolCalls"]);
    assert_eq!(cases[0]["id"], "tasks/a.yaml#a");
    assert_eq!(
        plan["agents"],
        json!([{"name": "mine", "type": "acp", "model": null}])
    );
}

#[test]
fn a_server_can_come_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let config = "  agent: {type: builtin.claude-code}\n  taskSets:\n    - {path: a.yaml, assertions: {toolsUsed: [{server: default}]}}\n";
    write_files(
        folder.path(),
        &[("eval.yaml", &eval(config)), ("a.yaml", &task("a", "s"))],
    );
    let run = |env: &[(&str, &str)]| {
        let mut command = proctor(["list", "eval.yaml", "-o", "json"]).current_dir(folder.path());
        for (name, value) in env {
            command = command.env(name, value);
        }
        command.output()
    };
    assert_eq!(run(&[]).code, Some(2));
    let output = run(&[("MCP_URL", "http://localhost/mcp")]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(
        run(&[
            ("MCP_URL", "http://localhost/mcp"),
            ("MCP_SERVER_NAME", "other")
        ])
        .code,
        Some(2)
    );
    assert_eq!(
        run(&[("MCP_COMMAND", "x"), ("MCP_ARGS", "[")]).code,
        Some(2)
    );
}

#[test]
fn tasks_of_a_source_are_read_inside_its_root_and_their_servers_renamed() {
    let folder = tempfile::tempdir().unwrap();
    let config = "  agent: {type: builtin.claude-code}\n  mcpConfigFile: mcp.yaml\n  sources:\n    up: {repo: 'https://example.test/up.git', ref: v1, serverMapping: {theirs: main}}\n  taskSets:\n    - {glob: 'tasks/*.yaml', source: up, assertions: {toolsUsed: [{server: theirs}]}}\n";
    let required = "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {name: t}\nspec:\n  requires: [{mcpServer: theirs, as: it}]\n  setup: [{it.reset: {args: {id: '{random.id}'}}}]\n  prompt: {file: ../prompt.txt}\n";
    write_files(
        folder.path(),
        &[
            ("suite/eval.yaml", &eval(config)),
            ("suite/mcp.yaml", MCP),
            ("up/tasks/t.yaml", required),
            ("up/prompt.txt", "Do it."),
            ("secret.txt", "secret"),
        ],
    );
    let suite = folder.path().join("suite");
    let unfetched = list(&suite, &[]);
    assert_eq!(
        unfetched["unfetched"],
        json!([{"source": "up", "repo": "https://example.test/up.git", "ref": "v1"}])
    );
    let plan = list(&suite, &["--source", "up=../up"]);
    assert_eq!(plan["cases"][0]["id"], "up:tasks/t.yaml#t");
    assert_eq!(
        plan["cases"][0]["checks"][0]["entries"],
        json!(["`main` (any)"])
    );
    assert_eq!(
        plan["cases"][0]["setup"],
        json!([{"id": "setup_0", "type": "it.reset"}])
    );

    let validate = || {
        let output = proctor(["validate", "eval.yaml", "--source", "up=../up"])
            .current_dir(&suite)
            .output();
        assert_eq!(output.code, Some(2), "{output}");
        output.stdout
    };
    fs::write(
        folder.path().join("up/tasks/t.yaml"),
        required.replace("../prompt.txt", "../../secret.txt"),
    )
    .unwrap();
    assert!(validate().contains("`../../secret.txt` is outside the source `up`"));
    fs::write(folder.path().join("up/tasks/t.yaml"), required).unwrap();
    fs::remove_file(folder.path().join("up/prompt.txt")).unwrap();
    std::os::unix::fs::symlink("../secret.txt", folder.path().join("up/prompt.txt")).unwrap();
    assert!(validate().contains("`../prompt.txt` is outside the source `up`"));
    std::os::unix::fs::symlink("../../secret.txt", folder.path().join("up/tasks/link.yaml"))
        .unwrap();
    assert!(validate().contains("`link.yaml` is outside the source `up`"));
}

#[test]
fn both_versions_of_a_task_mean_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let config = "  agent: {type: builtin.claude-code}\n  mcpConfigFile: mcp.yaml\n  llmJudge: {env: {baseUrlKey: A, apiKeyKey: B, modelNameKey: C}}\n  taskSets: [{glob: '*.task'}]\n";
    let old = "kind: Task\nmetadata: {name: t}\nsteps:\n  setup: {inline: a}\n  verify: {contains: b}\n  cleanup: {file: c.sh}\n  prompt: {file: p.txt}\n";
    let new = "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {name: t}\nspec:\n  setup: [{script: {inline: a}}]\n  verify: [{llmJudge: {contains: b}}]\n  cleanup: [{script: {file: c.sh}}]\n  prompt: {inline: P}\n";
    write_files(
        folder.path(),
        &[
            ("eval.yaml", &eval(config)),
            ("mcp.yaml", MCP),
            ("old.task", old),
            ("new.task", new),
            ("c.sh", "exit 0"),
            ("p.txt", "P"),
        ],
    );
    let plan = list(folder.path(), &[]);
    let mut cases = plan["cases"].as_array().unwrap().clone();
    assert_eq!(cases.len(), 2);
    for case in &mut cases {
        case["id"] = json!(null);
        case["path"] = json!(null);
    }
    assert_eq!(cases[0], cases[1]);
}

#[test]
fn another_mcp_config_can_stand_in() {
    let folder = tempfile::tempdir().unwrap();
    let config = "  agent: {type: builtin.claude-code}\n  mcpConfigFile: mcp.yaml\n  taskSets: [{path: a.yaml}]\n";
    write_files(
        folder.path(),
        &[
            ("eval.yaml", &eval(config)),
            ("mcp.yaml", MCP),
            (
                "other/mcp.json",
                r#"{"mcpServers": {"other": {"url": "http://localhost"}}}"#,
            ),
            ("a.yaml", &task("a", "s")),
        ],
    );
    let plan = list(folder.path(), &["--mcp-config-file", "other/mcp.json"]);
    assert_eq!(
        plan["servers"],
        json!([{"name": "other", "type": "http", "target": "http://localhost"}])
    );
}

#[test]
fn a_script_is_found_from_the_file_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let agent = "kind: Agent\nmetadata: {name: dry}\nbuiltin: {type: llm-agent, model: 'scripted:model.yaml'}\n";
    let config = "  agents:\n    - {type: file, path: agents/dry.yaml}\n    - {type: builtin.llm-agent, model: 'scripted:agents/model.yaml'}\n  mcpConfigFile: mcp.yaml\n  taskSets:\n    - {path: tasks/a.yaml}\n";
    let script = "kind: Script\nrules:\n  - reply: {text: done}\n";
    write_files(
        folder.path(),
        &[
            ("eval.yaml", &eval(config)),
            ("agents/dry.yaml", agent),
            ("agents/model.yaml", script),
            ("mcp.yaml", MCP),
            ("tasks/a.yaml", &task("a", "small")),
        ],
    );
    let agents = list(folder.path(), &[])["agents"].clone();
    assert_eq!(agents[0]["model"]["id"], "model.yaml");
    assert_eq!(agents[1]["model"]["id"], "agents/model.yaml");
    fs::remove_file(folder.path().join("agents/model.yaml")).unwrap();
    let output = proctor(["validate", "eval.yaml"])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.code, Some(2), "{output}");
    assert!(
        output.stdout.contains("`agents/model.yaml` does not exist"),
        "{output}"
    );
    assert!(output.stdout.contains("--> agents/dry.yaml:3:"), "{output}");
    assert!(output.stdout.contains("--> eval.yaml:6:"), "{output}");
}
