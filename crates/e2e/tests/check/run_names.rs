//! How people name a run, and `proctor result list`.

use std::fs;
use std::process::Output;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The last line of stderr, which says what is wrong.
fn refused(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = suite.proctor(words);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    stderr(&output).trim_end().to_owned()
}

/// A suite with one case that passes, and one that fails, and a run of each.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    for (case, exit) in [("bad", 1), ("good", 0)] {
        let record = format!(".proctor/runs/{case}-run");
        let output = suite.proctor(&["check", "eval.yaml", "-r", case, "--record", &record]);
        assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
    }
    suite
}

#[test]
fn every_command_takes_latest_and_part_of_a_name() {
    let suite = suite();
    let whole = stdout(&suite.proctor(&["result", "show", ".proctor/runs/bad-run"]));
    assert!(whole.contains("FAIL"), "{whole}");
    assert_eq!(stdout(&suite.proctor(&["result", "show", "bad"])), whole);
    let latest = stdout(&suite.proctor(&["result", "show", "latest"]));
    assert!(latest.contains(".proctor/runs/good-run"), "{latest}");
    let view = |run| stdout(&suite.proctor(&["result", "view", run, "-o", "json"]));
    assert!(!view("good").is_empty());
    assert_eq!(view("latest"), view(".proctor/runs/good-run"));
    for flag in ["--resume", "--retry-errors"] {
        let output = suite.proctor(&["check", flag, "good"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let output = suite.proctor(&["check", "--replay", "bad", "--record", "again"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn a_name_that_leads_nowhere_is_refused() {
    let suite = suite();
    let error = refused(&suite, &["result", "show", "run"]);
    assert_eq!(
        error,
        "error: `run` matches 2 runs: `good-run`, `bad-run`; write more of the name"
    );
    let typo = "error: run `godo-run` not found: not a folder, and not part of a name in \
                `.proctor/runs`; did you mean `good-run`?";
    assert_eq!(refused(&suite, &["result", "view", "godo-run"]), typo);
    assert_eq!(refused(&suite, &["check", "--resume", "godo-run"]), typo);
    assert_eq!(refused(&suite, &["check", "--replay", "godo-run"]), typo);
    fs::remove_dir_all(suite.path(".proctor/runs/bad-run")).unwrap();
    let error = refused(&suite, &["result", "show", ".proctor/runs/bad-run"]);
    assert!(
        error.contains("`.proctor/runs/bad-run` not found"),
        "{error}"
    );
    fs::remove_dir_all(suite.path(".proctor")).unwrap();
    let error = refused(&suite, &["result", "show", "latest"]);
    assert_eq!(
        error,
        "error: run `latest` not found: `.proctor/runs` contains no runs; `proctor check` creates one"
    );
}

#[test]
fn runs_are_listed_with_rate_and_gate_from_the_newest() {
    let suite = suite();
    let document = |suite: &SuiteFixture| -> Value {
        let output = suite.proctor(&["result", "list", "-o", "json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let all = document(&suite);
    assert_eq!(all["folder"], ".proctor/runs");
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    let (good, bad) = (&all["runs"][0], &all["runs"][1]);
    assert_eq!(good["name"], "good-run");
    assert_eq!(good["state"], "ended");
    assert_eq!(good["suite"], "suite");
    assert_eq!(good["gate"], "met");
    assert_eq!(good["rate"]["passed"], 1);
    assert_eq!(good["agents"][0]["name"], "llm-agent");
    assert_eq!(good["agents"][0]["model"], "scripted:model.yaml");
    assert_eq!(
        (&bad["name"], &bad["gate"]),
        (&json!("bad-run"), &json!("missed"))
    );
    let text = stdout(&suite.proctor(&["result", "list"]));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert!(lines[0].starts_with("RUN "), "{text}");
    assert!(
        lines[1].starts_with("good-run ") && lines[1].contains(" 1/1 "),
        "{text}"
    );
    assert!(
        lines[2].starts_with("bad-run ") && lines[2].contains(" missed "),
        "{text}"
    );
}

#[test]
fn unfinished_torn_and_unreadable_runs_are_listed_as_such() {
    let suite = suite();
    // A run that is being written: no end yet, and the last line is torn.
    let path = suite.path(".proctor/runs/good-run/run.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let end = text.trim_end().rfind('\n').unwrap();
    fs::write(&path, &text[..end + 20]).unwrap();
    fs::write(
        suite.path(".proctor/runs/bad-run/run.jsonl"),
        "nothing\n{}\n",
    )
    .unwrap();
    fs::create_dir(suite.path(".proctor/runs/empty")).unwrap();
    let output = suite.proctor(&["result", "list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line("good-run").contains(" unfinished "), "{text}");
    assert!(line("bad-run").contains("unreadable: line 1 of "), "{text}");
    let reason = "unreadable: `.proctor/runs/empty` is not a run: it has no `run.jsonl`";
    assert!(line("empty").contains(reason), "{text}");
    let output = suite.proctor(&["result", "list", "-o", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let states: Vec<&Value> = all["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| &run["state"])
        .collect();
    assert_eq!(states, ["unfinished", "unreadable", "unreadable"]);
}

#[test]
fn a_folder_without_runs_is_an_empty_list() {
    let suite = SuiteFixture::good_and_bad();
    let output = suite.proctor(&["result", "list"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(stdout(&output), "");
    assert_eq!(
        stderr(&output),
        "`.proctor/runs` contains no runs; `proctor check` creates one\n"
    );
    let output = suite.proctor(&["result", "list", "-o", "json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["runs"], json!([]));
}
