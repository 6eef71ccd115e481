//! Result files of mcpchecker: written from a real run, by hand, and read by every command.

use std::fs;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// Written by hand, after the format's description, in both forms.
const NEW: &str = include_str!("../../../core/tests/results/mcpchecker-shop-out.json");
const OLD: &str = include_str!("../../../core/tests/results/gevals-shop-out.json");

#[track_caller]
fn done(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = suite.proctor(words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = suite.proctor(words);
    assert_eq!(output.status.code(), Some(2), "{words:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A suite with a run of three cases with three trials each, of which one case fails.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    suite.task("good too", &json!({}));
    let words = ["check", "eval.yaml", "-n", "3", "--record", "run"];
    assert_eq!(suite.proctor(&words).status.code(), Some(1));
    for (name, text) in [("new.json", NEW), ("old.json", OLD)] {
        fs::write(suite.path(name), text).unwrap();
    }
    let to = ["result", "convert", "run", "--to", "mcpchecker"];
    let out = ["--out", "mcpchecker-real-out.json"];
    done(&suite, &[&to[..], &out].concat());
    suite
}

/// Each trial of a run as `result show -o json` gives it: case, number, and whether it passed.
fn trials(suite: &SuiteFixture, run: &str) -> Vec<(String, u64, bool)> {
    let text = done(suite, &["result", "show", run, "-o", "json"]);
    let document: Value = serde_json::from_str(&text).unwrap();
    let results = document["results"].as_array().unwrap();
    results
        .iter()
        .map(|entry| {
            let name = entry["taskName"].as_str().unwrap().to_owned();
            let passed = entry["taskPassed"] == true && entry["allAssertionsPassed"] == true;
            assert_eq!(passed, entry["proctor"]["outcome"] == "passed", "{entry}");
            (name, entry["runIndex"].as_u64().unwrap(), passed)
        })
        .collect()
}

#[test]
fn a_run_written_in_the_form_of_mcpchecker_reads_as_the_run() {
    let suite = suite();
    let text = fs::read_to_string(suite.path("mcpchecker-real-out.json")).unwrap();
    assert!(!text.contains("\"proctor\""));
    let expected = trials(&suite, "run");
    assert_eq!(expected.len(), 9);
    assert_eq!(expected.iter().filter(|trial| trial.2).count(), 6);
    assert_eq!(trials(&suite, "mcpchecker-real-out.json"), expected);
    // Also the bare array of older versions.
    let document: Value = serde_json::from_str(&text).unwrap();
    let array = document["results"].to_string();
    fs::write(suite.path("array.json"), array).unwrap();
    assert_eq!(trials(&suite, "array.json"), expected);
    // And Proctor's own document.
    done(
        &suite,
        &[
            "result", "convert", "run", "--to", "json", "--out", "own.json",
        ],
    );
    assert_eq!(trials(&suite, "own.json"), expected);

    let view = |run: &str| done(&suite, &["result", "view", run, "good", "2"]);
    let shown = view("mcpchecker-real-out.json");
    for part in [
        "PASS  good",
        "trial 2 of 3",
        "fixture.echo",
        r#"{"text":"hi"}"#,
        "done",
    ] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
        assert!(view("run").contains(part), "{part}");
    }
}

#[test]
fn files_written_by_hand_are_shown_viewed_and_converted() {
    let suite = suite();
    for (file, count, passed, exit) in [("new.json", 5, 1, 1), ("old.json", 3, 1, 1)] {
        let all = trials(&suite, file);
        assert_eq!(all.len(), count, "{file}");
        assert_eq!(all.iter().filter(|trial| trial.2).count(), passed, "{file}");
        let text = done(&suite, &["result", "show", file]);
        assert!(
            text.contains(&format!("Exit      {exit}: the gate is missed")),
            "{text}"
        );
        assert!(
            text.contains("toolsUsed: buy_item was never called"),
            "{text}"
        );
        let view = done(&suite, &["result", "view", file, "buy-lamp", "1"]);
        for part in [
            "shop.find_item",
            "12345678901234567890123",
            "tool error",
            "error -32002",
        ] {
            assert!(view.contains(part), "{part} is not in\n{view}");
        }
        for format in ["junit", "json", "markdown", "mcpchecker", "otlp"] {
            let text = done(&suite, &["result", "convert", file, "--to", format]);
            assert!(text.contains("buy-lamp"), "{format}");
            assert!(!text.contains("very-secret"), "{format}");
        }
        let junit = done(&suite, &["result", "convert", file, "--to", "junit"]);
        assert!(junit.contains("<failure"), "{junit}");
    }
}

#[test]
fn result_files_are_summarised_and_graded_again() {
    let suite = suite();
    let real = "mcpchecker-real-out.json";
    let text = done(&suite, &["result", "summary", real]);
    assert!(text.contains("MISSED  bad"), "{text}");
    assert!(text.contains("6/9 passed"), "{text}");
    let text = done(&suite, &["result", "summary", "new.json"]);
    assert!(text.contains("MISSED  buy-lamp"), "{text}");
    assert!(text.contains("2 of 2 tools called"), "{text}");
    let text = done(&suite, &["result", "coverage", "new.json"]);
    assert!(text.contains("find_item        3     33%"), "{text}");

    let error = refused(&suite, &["result", "regrade", real]);
    assert!(error.contains("name an eval file with `--with`"), "{error}");
    let regrade = |file: &str, eval: &str| {
        let words = ["result", "regrade", file, "--with", eval, "-o", "json"];
        let output = suite.proctor(&words);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let results = document["results"].as_array().unwrap();
        let passed = results
            .iter()
            .filter(|e| e["proctor"]["outcome"] == "passed");
        (output.status.code(), results.len(), passed.count())
    };
    assert_eq!(regrade(real, "eval.yaml"), (Some(1), 9, 6));
    // Other checks give other verdicts: no call is a pass now.
    let none = json!({"toolsNotUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": none}));
    assert_eq!(regrade(real, "eval.yaml"), (Some(1), 9, 3));
    // A task that failed for another reason than its assertions stays failed.
    let text = fs::read_to_string(suite.path(real)).unwrap();
    let text = text.replace("\"taskPassed\":true", "\"taskPassed\":false");
    fs::write(suite.path("failed.json"), text).unwrap();
    assert_eq!(regrade("failed.json", "eval.yaml"), (Some(1), 9, 0));
}

#[test]
fn the_tables_are_read_by_other_programs() {
    const READ: &str = r#"
import csv, json, sys
folder = sys.argv[1]
def table(name):
    with open(f"{folder}/{name}.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert all(None not in row and None not in row.values() for row in rows), name
    return rows
key = lambda row: (row["run"], row["case_id"], row["agent"], row["trial"])
trials = {key(row): row for row in table("trials")}
calls, checks = table("calls"), table("checks")
assert all(key(row) in trials for row in calls + checks)
failing = {key(row) for row in checks if row["verdict"] == "fail"}
print(json.dumps({
    "trials": len(trials),
    "passed": sum(row["outcome"] == "passed" for row in trials.values()),
    "failing": sorted({trials[one]["outcome"] for one in failing}),
    "calls": len(calls),
    "arguments": sorted({row["arguments"] for row in calls}),
    "timed": sum(float(row["duration_ms"]) > 0 for row in calls if row["duration_ms"]),
    "counts": sum(int(row["calls"]) for row in trials.values() if row["calls"]),
}))
"#;
    let suite = suite();
    let read = |run: &str, folder: &str| -> Value {
        let words = ["result", "convert", run, "--to", "csv", "--out", folder];
        assert_eq!(done(&suite, &words), "");
        let python = Command::new("python3")
            .args(["-c", READ, folder])
            .current_dir(suite.folder())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&python.stderr);
        assert!(python.status.success(), "{stderr}");
        serde_json::from_slice(&python.stdout).unwrap()
    };
    let expected = json!({
        "trials": 9, "passed": 6, "failing": ["failed"], "calls": 6,
        "arguments": [r#"{"text":"hi"}"#], "timed": 6, "counts": 6,
    });
    assert_eq!(read("run", "tables"), expected);
    let again = read("run", "tables");
    assert_eq!(again, expected, "the tables are replaced");
    let imported = read("new.json", "imported");
    assert_eq!(imported["trials"], 5);
    assert_eq!(imported["calls"], 6);
    assert_eq!(imported["passed"], 1);
}

#[test]
fn flags_without_meaning_and_files_without_results_are_refused() {
    let suite = suite();
    let convert = |words: &[&str]| {
        let all = [&["result", "convert", "run"], words].concat();
        refused(&suite, &all)
    };
    let error = convert(&["--to", "csv"]);
    assert!(error.contains("CSV has several tables"), "{error}");
    let error = convert(&["--to", "json", "--table", "calls"]);
    assert!(error.contains("`--table` belongs to `--to csv`"), "{error}");
    let error = convert(&["--to", "json", "--agent", "x"]);
    assert!(error.contains("`--agent` belongs to"), "{error}");
    let error = convert(&["--to", "mcpchecker", "--agent", "nobody"]);
    assert!(error.contains("agent `nobody` not found"), "{error}");
    fs::write(suite.path("package.json"), r#"{"name": "x"}"#).unwrap();
    let error = refused(&suite, &["result", "show", "package.json"]);
    assert!(error.contains("missing field `results`"), "{error}");
    fs::write(suite.path("empty.json"), "[]").unwrap();
    let error = refused(&suite, &["result", "show", "empty.json"]);
    assert!(error.contains("holds no results"), "{error}");
    // A run is continued in its folder.
    let error = refused(&suite, &["check", "--resume", "new.json"]);
    assert!(error.contains("needs the folder of a run"), "{error}");
}

#[test]
fn result_files_are_verified_and_compared() {
    let suite = suite();
    let real = "mcpchecker-real-out.json";
    let verify = |words: &[&str]| {
        let output = suite.proctor(&[&["result", "verify"], words].concat());
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    for words in [
        &["--min-pass-rate", "0.6"][..],
        &["--min-pass-rate", "0.7"],
        &["--assertion", "0.66"],
        &["--assertion", "0.67"],
        &["--max-errors", "0"],
    ] {
        let file = verify(&[&[real], words].concat());
        assert_eq!(file, verify(&[&["run"], words].concat()), "{words:?}");
        let is_met = ["0.6", "0.66"].contains(&words[1]);
        assert_eq!(file.0, Some(i32::from(!is_met)), "{words:?}: {}", file.1);
    }
    // The file says that the tasks passed. The run shows that they have no verify steps.
    assert_eq!(verify(&[real, "--task", "1"]).0, Some(0));
    assert_eq!(verify(&["run", "--task", "1"]).0, Some(3));
    // The same verdicts in another file: no regression, and too few trials to show one.
    let diff = suite.proctor(&["result", "diff", real, "new.json"]);
    let text = String::from_utf8(diff.stdout).unwrap();
    assert_eq!(diff.status.code(), Some(3), "{text}");
    assert!(
        text.contains("REMOVED 3 cases not in the new run"),
        "{text}"
    );
    let text = fs::read_to_string(suite.path(real)).unwrap();
    let worse = text.replace("\"taskPassed\":true", "\"taskPassed\":false");
    assert_ne!(worse, text);
    fs::write(suite.path("worse.json"), worse).unwrap();
    let diff = suite.proctor(&["result", "diff", real, "worse.json"]);
    let text = String::from_utf8(diff.stdout).unwrap();
    assert_eq!(diff.status.code(), Some(1), "{text}");
    assert!(text.starts_with("Regression"), "{text}");
    let same = refused(&suite, &["result", "diff", real, real]);
    assert!(same.contains("BASE and NEW are the same run"), "{same}");
}

/// A result file has the times of calls, but not of responses.
#[test]
fn unknown_durations_are_not_shown_as_zero() {
    let suite = suite();
    for file in ["mcpchecker-real-out.json", "new.json", "old.json"] {
        for words in [
            &["show"][..],
            &["view"],
            &["summary"],
            &["summary", "--cases"],
        ] {
            let text = done(&suite, &[&["result", words[0], file], &words[1..]].concat());
            assert!(!text.contains("0µs"), "{file} {words:?}: {text}");
        }
    }
}
