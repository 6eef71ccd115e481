//! The commands of mcpchecker with its flags: scripts that call them keep working, on Proctor's own runs and on both
//! shapes of mcpchecker's result file.

use std::fs;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// The same run as a record, as a result file, and as the bare array of older versions.
const RUNS: [&str; 3] = ["run", "new.json", "old.json"];

/// Two cases that pass and one that fails, with two trials each.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    suite.task("good Two", &json!({}));
    let words = ["check", "eval.yaml", "-n", "2", "--record", "run"];
    assert_eq!(suite.proctor(&words).status.code(), Some(1));
    let file = [
        "result",
        "convert",
        "run",
        "--to",
        "mcpchecker",
        "--out",
        "new.json",
    ];
    done(&suite, &file, 0);
    let text = fs::read_to_string(suite.path("new.json")).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    suite.write("old.json", &document["results"].to_string());
    suite
}

#[track_caller]
fn done(suite: &SuiteFixture, words: &[&str], code: i32) -> String {
    let output = suite.proctor(words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{words:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap() + &stderr
}

#[test]
fn a_summary_has_the_flags_and_keys_of_mcpchecker() {
    let suite = suite();
    for run in RUNS {
        let summary = |words: &[&str], code| {
            done(
                &suite,
                &[&["result", "summary", run][..], words].concat(),
                code,
            )
        };
        // The name is a part of the task's name, in upper or lower case.
        let text = summary(&["--task", "GOOD"], 0);
        for part in [
            "4 of 6 trials, selected by `--task GOOD`",
            "2 of 2 cases met the pass rule",
            "the gate of the whole run is missed",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("MISSED"), "{text}");
        let lines = summary(&["--task", "bad", "--github-output"], 0);
        for line in [
            "tasks-total=2\n",
            "tasks-passed=0\n",
            "task-pass-rate=0.0000\n",
            "assertions-total=2\n",
            "assertions-passed=0\n",
            // A part of a run has no gate, so no script can take it for one.
            "gate=\n",
        ] {
            assert!(lines.contains(line), "{line} is not in\n{lines}");
        }
        let document: Value = serde_json::from_str(&summary(&["-o", "json"], 0)).unwrap();
        assert_eq!(document["resultsFile"], run);
        assert_eq!(document["tasksTotal"], 6);
        assert_eq!(document["tasksPassed"], 4);
        assert_eq!(document["taskPassRate"], 0.6666);
        assert_eq!(document["assertionsPassed"], 4);
        assert_eq!(document["gate"]["answer"], "missed");
        let tasks = document["tasks"].as_array().unwrap();
        let bad: Vec<&Value> = tasks.iter().filter(|task| task["name"] == "bad").collect();
        assert_eq!(bad.len(), 2);
        for task in bad {
            assert_eq!(task["taskPassed"], false);
            assert_eq!(task["assertionsPassed"], false);
            let failed = task["failedAssertions"][0].as_str().unwrap();
            assert!(failed.starts_with("toolsUsed: "), "{failed}");
        }
        let part: Value =
            serde_json::from_str(&summary(&["--task", "good", "-o", "json"], 0)).unwrap();
        assert_eq!(
            (&part["tasksTotal"], &part["gate"]),
            (&json!(4), &Value::Null)
        );
        assert_eq!(part["part"]["wholeRun"]["gate"]["answer"], "missed");
        let text = summary(&["--task", "no-such-task"], 4);
        assert!(
            text.contains("no trial matches `--task no-such-task`"),
            "{text}"
        );
    }
}

#[test]
fn a_view_has_the_flags_of_mcpchecker() {
    let suite = suite();
    for run in RUNS {
        let view =
            |words: &[&str]| done(&suite, &[&["result", "view", run][..], words].concat(), 0);
        let text = view(&["--task", "TWO"]);
        assert_eq!(text.matches("PASS  good Two").count(), 2, "{text}");
        assert!(!text.contains("FAIL"), "{text}");
        // Without a timeline, the calls and the answer are still there.
        let text = view(&["--task", "two", "--timeline=false"]);
        assert!(!text.contains("Model"), "{text}");
        assert!(text.contains("fixture.echo"), "{text}");
        assert!(text.contains("Answer") && text.contains("done"), "{text}");
        assert_eq!(
            view(&["--task", "two", "--timeline"]),
            view(&["--task", "two"])
        );
        done(
            &suite,
            &["result", "view", run, "--task", "no-such-task"],
            4,
        );
        done(
            &suite,
            &["result", "view", run, "--full", "--max-output-lines", "3"],
            2,
        );
    }
}

#[test]
fn a_view_is_as_long_as_the_flags_of_mcpchecker_say() {
    let rules = r"
  - when: {results: 3}
    reply: {text: done}
  - reply: {calls: [{tool: echo, arguments: {text: TEXT}}]}
";
    let lines: Vec<String> = (1..=9).map(|number| format!("line {number}")).collect();
    let text = Value::from(format!("{}\n{}", lines.join("\n"), "word ".repeat(30)));
    let suite = SuiteFixture::new(&rules.replace("TEXT", &text.to_string()), &[]);
    suite.task("long", &json!({}));
    suite.eval(
        &json!({}),
        &json!({"assertions": {"toolsUsed": [{"server": "fixture", "tool": "echo"}]}}),
    );
    done(&suite, &["check", "eval.yaml", "--record", "run"], 0);
    let view = |words: &[&str]| done(&suite, &[&["result", "view", "run"][..], words].concat(), 0);
    let is_call = |line: &&str| line.starts_with('#') && line.contains("fixture.echo");
    let calls = |text: &str| text.lines().filter(is_call).count();
    let whole = view(&[]);
    assert_eq!(calls(&whole), 3, "{whole}");
    let few = view(&["--max-events", "2"]);
    assert_eq!(calls(&few), 1, "{few}");
    assert!(
        few.contains("… 5 more events left out; `--max-events 0` shows all …"),
        "{few}"
    );
    // The checks are there, and so is the answer, which is the last event.
    assert!(few.contains("toolsUsed") && few.contains("done"), "{few}");
    assert_eq!(calls(&view(&["--max-events", "0"])), 3);

    let short = view(&["--max-output-lines", "3"]);
    assert!(
        short.contains("\n    line 2\n") && !short.contains("\n    line 5\n"),
        "{short}"
    );
    assert!(short.contains("left out; --full shows them"), "{short}");
    let narrow = view(&["--max-line-length", "60"]);
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 60),
        "{narrow}"
    );
    assert!(
        whole.lines().any(|line| line.chars().count() > 60),
        "{whole}"
    );
}

fn words<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["result", "diff"][..], words].concat()
}

#[test]
fn a_diff_takes_its_runs_by_flags() {
    let suite = suite();
    let changed = suite.proctor(&["check", "eval.yaml", "-n", "2", "--record", "other"]);
    assert_eq!(changed.status.code(), Some(1));
    for run in RUNS {
        let by_place = suite.proctor(&words(&[run, "other", "-o", "markdown"]));
        let by_flag = suite.proctor(&words(&[
            "--base",
            run,
            "--current",
            "other",
            "-o",
            "markdown",
        ]));
        assert!(!by_place.stdout.is_empty());
        assert_eq!(by_flag, by_place);
        done(&suite, &words(&["--base", run]), 2);
        done(&suite, &words(&["--current", run]), 2);
        done(
            &suite,
            &words(&[run, "--base", run, "--current", "other"]),
            2,
        );
        // A mistake in a script must not compare a run with itself.
        done(&suite, &words(&["--base", run, "--current", run]), 2);
    }
}

#[test]
fn thresholds_are_those_of_mcpchecker() {
    let suite = suite();
    for run in RUNS {
        let verify = |task: &str, assertion: &str, code| {
            let words = [
                "result",
                "verify",
                run,
                "--task",
                task,
                "--assertion",
                assertion,
            ];
            done(&suite, &words, code)
        };
        // The tasks have no verify steps. A result file says of each whether it passed.
        let is_file = run != "run";
        let text = verify("0.6", "0.6", if is_file { 0 } else { 3 });
        let expected = if is_file {
            "--assertion 60%"
        } else {
            "no task was evaluated"
        };
        assert!(text.contains(expected), "{run}: {text}");
        verify("0.6", "0.7", 1);
    }
}

#[test]
fn a_run_is_converted_to_junit_with_the_words_of_mcpchecker() {
    let suite = suite();
    for run in RUNS {
        let ours = done(&suite, &["result", "convert", run, "--to", "junit"], 0);
        assert_eq!(done(&suite, &["result", "convert", "junit", run], 0), ours);
        let words = [
            "result",
            "convert",
            "junit",
            run,
            "--task",
            "bad",
            "--output-file",
            "out.xml",
        ];
        assert_eq!(done(&suite, &words, 0), "");
        let part = fs::read_to_string(suite.path("out.xml")).unwrap();
        assert!(part.contains("(part: --task bad)"), "{part}");
        assert!(part.contains("bad") && !part.contains("good Two"), "{part}");
        done(
            &suite,
            &["result", "convert", "junit", run, "--task", "no-such-task"],
            4,
        );
        let text = done(&suite, &["result", "convert", "junt", run], 2);
        assert!(text.contains("unknown format `junt`"), "{text}");
        done(
            &suite,
            &["result", "convert", "junit", run, "--to", "json"],
            2,
        );
        let text = done(
            &suite,
            &["result", "convert", run, "--to", "otlp", "--task", "bad"],
            2,
        );
        assert!(text.contains("`--task` belongs to"), "{text}");
    }
    // Without a file, the first word is a run.
    fs::rename(suite.path("run"), suite.path("junit")).unwrap();
    done(&suite, &["result", "convert", "junit", "--to", "junit"], 0);
}

#[test]
fn the_version_is_a_command_too() {
    let suite = SuiteFixture::new("", &[]);
    let version = done(&suite, &["version"], 0);
    assert_eq!(version, done(&suite, &["--version"], 0));
    assert!(version.starts_with("proctor "), "{version}");
}
