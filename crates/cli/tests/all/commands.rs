//! What each command prints, and how it ends.

use insta::assert_snapshot;

use crate::proctor::{proctor, write_files};

const SUITE: &[(&str, &str)] = &[
    (
        "eval.yaml",
        r#"
kind: Eval
metadata: {name: demo}
config:
  agents:
    - {type: builtin.claude-code}
    - {type: builtin.llm-agent, model: "anthropic:some-model"}
  mcpConfigFile: mcp.json
  defaultTaskLimits: {timeout: 3m}
  llmJudge: {ref: {type: builtin.openai-agent, model: gpt-x}, votes: 3}
  taskSets:
    - glob: tasks/*.yaml
      assertions:
        toolsUsed:
          - {server: files, tool: read_file, arguments: {path: {$match: "\\.txt$"}}, times: {max: 2}}
          - {server: web}
        maxToolCalls: 5
    - path: tasks/write.yaml
      pass: 2/3
      assertions: {noDuplicateCalls: true}
    - evals: {server: files, level: execution}
"#,
    ),
    (
        "mcp.json",
        r#"{"mcpServers": {
  "files": {"command": "files-server", "args": ["--root", "${PROCTOR_TEST_SECRET}"]},
  "web": {"url": "https://example.test/mcp", "headers": {"Authorization": "Bearer ${PROCTOR_TEST_SECRET}"}}
}}"#,
    ),
    (
        "tasks/read.yaml",
        "kind: Task\nmetadata: {name: read-a-file, labels: {suite: basic}}\nsteps:\n  prompt: {inline: Read it.}\n  verify: {inline: test -f done}\n",
    ),
    (
        "tasks/write.yaml",
        "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {name: write-a-file, runs: 3, difficulty: hard, labels: {suite: full, kind: write}}\nspec:\n  limits: {timeout: 90s, maxTurns: 7}\n  prompt: {inline: Write it.}\n  verify:\n    - llmJudge: {contains: done}\n    - script: {inline: test -f done}\n",
    ),
];

fn suite() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    write_files(folder.path(), SUITE);
    folder
}

fn run(args: &[&str]) -> String {
    let folder = suite();
    let output = proctor(args)
        .current_dir(folder.path())
        .env("PROCTOR_TEST_SECRET", "hunter2")
        .output();
    let shown = output.to_string();
    assert!(!shown.contains("hunter2"), "a secret is shown: {shown}");
    shown
}

#[test]
fn list_shows_the_plan() {
    assert_snapshot!(run(&["list", "eval.yaml"]));
}

#[test]
fn list_as_json_shows_the_plan() {
    assert_snapshot!(run(&["list", "eval.yaml", "-o", "json"]));
}

#[test]
fn list_selects_by_label_and_by_name() {
    let names = |args: &[&str]| {
        let mut all = vec!["list", "eval.yaml", "-o", "json"];
        all.extend(args);
        let output = proctor(all).current_dir(suite().path()).output();
        let plan: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let cases = plan["cases"].as_array().unwrap();
        let names: Vec<String> = cases
            .iter()
            .map(|c| c["name"].as_str().unwrap().to_owned())
            .collect();
        names.join(" ")
    };
    assert_eq!(names(&[]), "read-a-file write-a-file");
    assert_eq!(names(&["-l", "suite=basic"]), "read-a-file");
    assert_eq!(
        names(&["-l", "suite=basic,suite=full"]),
        "read-a-file write-a-file"
    );
    assert_eq!(names(&["-l", "suite=full,kind=write"]), "write-a-file");
    assert_eq!(names(&["-r", "^write"]), "write-a-file");
    assert_eq!(names(&["-r", "file$", "-l", "suite=basic"]), "read-a-file");
}

#[test]
fn flags_win_over_files_and_defaults_do_not() {
    let cases = |args: &[&str]| {
        let mut all = vec!["list", "eval.yaml", "-o", "json"];
        all.extend(args);
        let output = proctor(all).current_dir(suite().path()).output();
        let plan: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        let cases = plan["cases"].as_array().unwrap();
        let shown: Vec<String> = cases
            .iter()
            .map(|c| format!("{} {}", c["runs"], c["limits"]["timeout"].as_str().unwrap()))
            .collect();
        shown.join(", ")
    };
    assert_eq!(cases(&[]), "1 3m, 3 1m30s");
    assert_eq!(cases(&["-n", "2"]), "2 3m, 2 1m30s");
    assert_eq!(cases(&["--default-task-timeout", "1m"]), "1 1m, 3 1m30s");
    assert_eq!(cases(&["--task-timeout", "10s"]), "1 10s, 3 10s");
}

#[test]
fn a_selection_of_nothing_says_what_there_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = SUITE.to_vec();
    let without_shipped = SUITE[0]
        .1
        .replace("    - evals: {server: files, level: execution}\n", "");
    files[0].1 = &without_shipped;
    write_files(folder.path(), &files);
    let run = |args: &[&str]| {
        proctor(args)
            .current_dir(folder.path())
            .env("PROCTOR_TEST_SECRET", "x")
            .output()
    };
    assert_snapshot!(run(&["list", "eval.yaml", "-r", "nothing-like-it"]).to_string());
    assert_snapshot!(run(&["list", "eval.yaml", "-l", "suite=none", "-o", "json"]).to_string());
    for (command, flags, meant) in [
        ("list", ["-r", "^wirte-"], "did you mean `write-a-file`?"),
        ("list", ["-l", "siute=full"], "did you mean `suite`?"),
        ("check", ["-l", "suite=basc"], "did you mean `suite=basic`?"),
        ("check", ["-r", "read-file"], "did you mean `read-a-file`?"),
    ] {
        let output = run(&[command, "eval.yaml", flags[0], flags[1]]);
        assert_eq!(output.code, Some(4), "{output}");
        assert!(output.stderr.contains(meant), "{flags:?}: {output}");
    }
    let both = ["-l", "suite=basic,kind=write"];
    let output = run(&["list", "eval.yaml", both[0], both[1]]);
    assert_eq!(output.code, Some(4), "{output}");
    assert!(output.stderr.contains("no case matches all"), "{output}");
}

#[test]
fn list_of_a_broken_suite_is_a_usage_error() {
    assert_snapshot!(run(&["list", "mcp.json"]));
}

#[test]
fn validate_takes_every_kind_of_file() {
    assert_snapshot!(run(&[
        "validate",
        "eval.yaml",
        "mcp.json",
        "tasks/read.yaml"
    ]));
}

#[test]
fn validate_as_json_has_every_problem_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    write_files(
        folder.path(),
        &[(
            "a.yaml",
            "kind: Agent\nmetadata: {name: a, nam: b}\nbuiltin: {type: claude}\n",
        )],
    );
    let output = proctor(["validate", "-o", "json", "a.yaml", "b.yaml"])
        .current_dir(folder.path())
        .output();
    assert_snapshot!(output.to_string());
}

#[test]
fn unknown_keys_are_errors_only_when_strict() {
    let folder = tempfile::tempdir().unwrap();
    write_files(
        folder.path(),
        &[(
            "a.yaml",
            "kind: Agent\nmetadata: {name: a, nam: b}\nbuiltin: {type: claude-code}\n",
        )],
    );
    let code = |args: &[&str]| proctor(args).current_dir(folder.path()).output().code;
    assert_eq!(code(&["validate", "a.yaml"]), Some(0));
    assert_eq!(code(&["validate", "--strict", "a.yaml"]), Some(2));
}

#[test]
fn suites_of_the_same_name_are_a_warning() {
    let folder = suite();
    std::fs::copy(
        folder.path().join("eval.yaml"),
        folder.path().join("again.yaml"),
    )
    .unwrap();
    let output = proctor(["validate", "eval.yaml", "again.yaml"])
        .current_dir(folder.path())
        .env("PROCTOR_TEST_SECRET", "x")
        .output();
    assert_eq!(output.code, Some(0));
    assert!(
        output
            .stdout
            .contains("warning: duplicate suite name `demo`"),
        "{output}"
    );
}

#[test]
fn colours_are_for_terminals_only() {
    let folder = tempfile::tempdir().unwrap();
    let plain = proctor(["validate", "nowhere.yaml"])
        .current_dir(folder.path())
        .output();
    assert!(!plain.stdout.contains('\x1b'));
    let forced = proctor(["validate", "nowhere.yaml"])
        .current_dir(folder.path())
        .env("CLICOLOR_FORCE", "1")
        .output();
    assert!(forced.stdout.contains('\x1b'));
}

#[test]
fn schema_prints_a_schema_for_each_kind() {
    for kind in ["eval", "task", "agent", "mcp-config", "profiles"] {
        let output = proctor(["schema", kind]).output();
        assert_eq!(output.code, Some(0));
        let schema: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(
            schema["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
        jsonschema::meta::validate(&schema).unwrap();
    }
}

#[test]
fn init_writes_a_suite_that_validates_and_never_overwrites() {
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| proctor(args).current_dir(folder.path()).output();
    assert_snapshot!(run(&["init", "new"]).to_string());
    assert_snapshot!(run(&["validate", "--strict", "new/eval.yaml"]).to_string());
    let checked = run(&["check", "new/eval.yaml"]);
    assert_eq!(checked.code, Some(0), "{checked}");
    std::fs::write(folder.path().join("new/eval.yaml"), "mine").unwrap();
    assert_snapshot!(run(&["init", "new"]).to_string());
    std::fs::create_dir(folder.path().join("half")).unwrap();
    std::fs::write(folder.path().join("half/mcp-config.yaml"), "mine").unwrap();
    assert_eq!(run(&["init", "half"]).code, Some(2));
    assert!(!folder.path().join("half/eval.yaml").exists());
    assert_eq!(
        std::fs::read_to_string(folder.path().join("new/eval.yaml")).unwrap(),
        "mine"
    );
}

#[test]
fn the_help_of_call_teaches_how_arguments_are_typed() {
    assert_snapshot!(run(&["call", "--help"]));
}

#[test]
fn arguments_of_a_call_that_can_not_be_read_are_wrong_usage() {
    let wrong: [&[&str]; 7] = [
        &["text"],
        &["=x"],
        &["text=@"],
        &["text=@no-such-file"],
        &["text=x", "--args", "{}"],
        &["@eval.yaml"],
        &["--args", "[]"],
    ];
    let shown = wrong.map(|words| {
        let args = [&["call", "echo"], words, &["--", "false"]].concat();
        format!("$ proctor {}\n{}", args.join(" "), run(&args))
    });
    assert_snapshot!(shown.join("\n"));
}

#[test]
fn wrong_usage_ends_with_2() {
    for args in [
        &["frobnicate"][..],
        &["validate"],
        &["list", "a", "-r", "("],
        &["list", "a", "-l", "x"],
        &["list", "a", "--task-timeout", "5"],
        &["list", "a", "-n", "0"],
        &["validate", "--source", "x", "a"],
    ] {
        assert_eq!(proctor(args).output().code, Some(2), "{args:?}");
    }
}

#[test]
fn mistyped_commands_and_flags_are_answered_with_the_nearest() {
    for (words, meant) in [
        (&["chekc", "eval.yaml"][..], "'check'"),
        (&["result", "sumary", "latest"], "'summary'"),
        (&["check", "eval.yaml", "--fail-fats"], "'--fail-fast'"),
        (&["completions", "elvsh"], "'elvish'"),
    ] {
        let output = proctor(words).output();
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stderr.contains("similar"), "{output}");
        assert!(output.stderr.contains(meant), "{output}");
    }
}

#[test]
fn a_duration_of_nothing_is_wrong_usage() {
    for flag in [
        "--task-timeout",
        "--default-task-timeout",
        "--cleanup-timeout",
        "--default-cleanup-timeout",
    ] {
        for command in ["check", "list"] {
            let output = proctor([command, "eval.yaml", flag, "0s"]).output();
            assert_eq!(output.code, Some(2));
            assert!(output.stderr.contains("above zero"), "{output}");
        }
    }
    for flag in ["--timeout", "--connect-timeout", "--total-timeout"] {
        let output = proctor(["tools", flag, "0ms", "--", "false"]).output();
        assert_eq!(output.code, Some(2));
        assert!(output.stderr.contains("above zero"), "{output}");
    }
}

#[test]
fn every_way_to_ask_for_the_version_prints_the_same() {
    let version = format!("proctor {}\n", env!("CARGO_PKG_VERSION"));
    // With more words, the arguments are parsed.
    for args in [&["--version"][..], &["-V"], &["version"], &["-V", "check"]] {
        let output = proctor(args).output();
        assert_eq!(
            (output.code, output.stdout),
            (Some(0), version.clone()),
            "{args:?}"
        );
    }
    assert_eq!(proctor(["version", "check"]).output().code, Some(2));
}
