//! What differs from mcpchecker: a test for each line of the table in `docs/migrate.md`, and a test that there is one.

use std::path::Path;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

use crate::COMMAND_AGENT;

#[track_caller]
fn told(suite: &SuiteFixture, words: &[&str], code: i32) -> String {
    let output = suite.proctor(words);
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}: {text}");
    text
}

/// A suite whose only case passes, with more in its task.
fn suite(spec: &Value) -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    std::fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    suite.task("good", spec);
    suite
}

/// A suite with an agent that is a command.
fn by_command(spec: &Value, servers: &[&str]) -> SuiteFixture {
    let command = proctor_e2e::fixture();
    let servers = servers
        .iter()
        .map(|name| ((*name).to_owned(), json!({"command": command})));
    let suite = SuiteFixture::on("  - reply: {text: x}\n", &Value::Object(servers.collect()));
    suite.write("agent.py", COMMAND_AGENT);
    let script = suite.path("agent.py").display().to_string();
    let agent = json!({"kind": "Agent", "metadata": {"name": "mine"}, "commands": {
        "argTemplateMcpServer": "{{ .File }}",
        "runPrompt": format!("python3 {script} {{{{ .McpServerFileArgs }}}} \"{{{{ .Prompt }}}}\""),
    }});
    suite.write("agent.yaml", &agent.to_string());
    suite.eval(
        &json!({"agent": {"type": "file", "path": "agent.yaml"}}),
        &json!({}),
    );
    suite.task("good", spec);
    suite
}

/// A verify step that compares the agent's answer.
fn answers(expected: &str) -> Value {
    let script =
        format!("[ \"$ANSWER\" = '{expected}' ] || {{ echo \"found: $ANSWER\"; exit 1; }}");
    json!([{"script": {"env": {"ANSWER": "{agent.output}"}, "inline": script}}])
}

fn tool_step(expect: &Value, text: &str) -> Value {
    let step = json!({"fixture.echo": {"args": {"text": text}, "expect": expect}});
    json!({"requires": [{"mcpServer": "fixture"}], "verify": [step]})
}

#[test]
fn check_fails_when_a_task_fails() {
    let suite = SuiteFixture::good_and_bad();
    told(&suite, &["check", "eval.yaml"], 1);
    told(&suite, &["check", "eval.yaml", "-r", "good"], 0);
}

#[test]
fn the_result_file_is_converted_from_the_record() {
    let suite = suite(&json!({}));
    told(&suite, &["check", "eval.yaml"], 0);
    assert!(!suite.path("mcpchecker-suite-out.json").exists());
    let words = [
        "result",
        "convert",
        "latest",
        "--to",
        "mcpchecker",
        "--out",
        "out.json",
    ];
    told(&suite, &words, 0);
    let text = std::fs::read_to_string(suite.path("out.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["results"][0]["taskPassed"], true);
}

#[test]
fn an_expected_error_must_be_an_error() {
    let text = told(
        &suite(&tool_step(&json!({"isError": true}), "x")),
        &["check", "eval.yaml"],
        1,
    );
    assert!(text.contains("error"), "{text}");
    let expect = json!({"isError": false, "content": {"match": "x"}});
    told(&suite(&tool_step(&expect, "x")), &["check", "eval.yaml"], 0);
}

#[test]
fn a_failed_cleanup_is_an_error() {
    let cleanup = json!([{"script": {"inline": "echo still there; exit 1"}}]);
    let text = told(
        &suite(&json!({"cleanup": cleanup})),
        &["check", "eval.yaml"],
        3,
    );
    assert!(text.contains("still there"), "{text}");
}

#[test]
fn the_answer_has_no_last_newline() {
    let suite = by_command(&json!({"verify": answers("it says good")}), &["one"]);
    told(&suite, &["check", "eval.yaml"], 0);
    let suite = by_command(&json!({"verify": answers("it says good\n")}), &["one"]);
    told(&suite, &["check", "eval.yaml"], 1);
}

#[test]
fn a_path_may_have_numbers() {
    let text = r#"{"a": [{"b": 7}]}"#;
    for (path, equals, code) in [
        ("a.0.b", 7, 0),
        ("a[0].b", 7, 0),
        ("a.0.b", 8, 1),
        ("a.1.b", 7, 1),
    ] {
        let expect = json!({"content": {"fields": [{"path": path, "equals": equals}]}});
        told(
            &suite(&tool_step(&expect, text)),
            &["check", "eval.yaml"],
            code,
        );
    }
}

#[test]
fn a_command_agent_may_have_several_servers() {
    let suite = by_command(&json!({}), &["one", "two"]);
    let used = json!({"toolsUsed": [{"server": "one", "tool": "echo"}, {"server": "two", "tool": "echo"}]});
    let agent = json!({"agent": {"type": "file", "path": "agent.yaml"}});
    suite.eval(&agent, &json!({"assertions": used}));
    told(&suite, &["check", "eval.yaml"], 0);
}

#[test]
fn an_agent_gets_only_the_variables_that_it_is_given() {
    let check = |words: &[&str], expected: &str| {
        let suite = by_command(&json!({"verify": answers(expected)}), &["one"]);
        let mut command = std::process::Command::new(proctor_e2e::proctor());
        let command = command.args(["check", "eval.yaml"]).args(words);
        let output = command
            .current_dir(suite.folder())
            .env("MY_SETTING", "x")
            .output();
        let output = output.unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {stderr}");
    };
    check(&[], "it says good");
    check(&["--pass-env", "MY_SETTING"], "it says goodx");
}

#[test]
fn a_judge_is_never_assumed() {
    let suite = suite(&json!({"verify": [{"llmJudge": {"contains": "done"}}]}));
    let text = told(&suite, &["check", "eval.yaml"], 2);
    assert!(text.contains("judge"), "{text}");
}

#[test]
fn a_misspelt_assertion_is_an_error() {
    let suite = suite(&json!({}));
    suite.eval(
        &json!({}),
        &json!({"assertions": {"toolUsed": [{"server": "fixture"}]}}),
    );
    let text = told(&suite, &["check", "eval.yaml"], 2);
    assert!(text.contains("toolsUsed"), "{text}");
}

#[test]
fn only_passed_trials_count_as_tasks_passed() {
    let entry = json!({
        "taskName": "a", "taskPassed": true, "allAssertionsPassed": false,
        "assertionResults": {"toolsUsed": {"passed": false, "reason": "never called"}},
    });
    let suite = suite(&json!({}));
    suite.write(
        "out.json",
        &json!({"summary": {}, "results": [entry]}).to_string(),
    );
    let text = told(
        &suite,
        &["result", "summary", "out.json", "--github-output"],
        0,
    );
    assert!(text.contains("tasks-total=1\ntasks-passed=0\n"), "{text}");
}

#[test]
fn a_diff_fails_on_a_regression() {
    let suite = suite(&json!({}));
    told(
        &suite,
        &["check", "eval.yaml", "-n", "8", "--record", "base"],
        0,
    );
    suite.write(
        "model.yaml",
        "kind: Script\nrules:\n  - reply: {text: done}\n",
    );
    told(
        &suite,
        &["check", "eval.yaml", "-n", "8", "--record", "new"],
        1,
    );
    told(
        &suite,
        &["result", "diff", "--base", "base", "--current", "new"],
        1,
    );
    told(
        &suite,
        &["result", "diff", "--base", "new", "--current", "base"],
        0,
    );
}

#[test]
fn a_filter_that_selects_nothing_is_not_a_success() {
    let suite = suite(&json!({}));
    told(&suite, &["check", "eval.yaml"], 0);
    told(
        &suite,
        &["result", "summary", "latest", "--task", "renamed"],
        4,
    );
}

#[test]
fn every_line_of_the_page_has_a_test() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/migrate.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("## What differs").unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| "));
    let source = include_str!("migration.rs");
    let mut names = Vec::new();
    for row in rows.skip(1) {
        let name = row
            .split_once("<!-- ")
            .and_then(|(_, rest)| rest.split_once(" -->"));
        let (name, _) = name.unwrap_or_else(|| panic!("no test in the line: {row}"));
        let test = format!("#[test]\nfn {name}()");
        assert!(source.contains(&test), "there is no test `{name}`: {row}");
        names.push(name);
    }
    // And no test without a line: this one is about the page itself.
    assert_eq!(
        source.matches("\n#[test]\n").count(),
        names.len() + 1,
        "{names:?}"
    );
}
