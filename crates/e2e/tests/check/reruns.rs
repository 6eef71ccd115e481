//! `--last-failed` and `--rerun-errors`: what is run again, and what nothing to rerun comes to.

use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the suite with these flags, and returns the names of its trials.
fn trials(suite: &SuiteFixture, words: &[&str], exit: i32) -> (Vec<String>, String) {
    let mut all = vec!["check", "eval.yaml", "-q", "-o", "json"];
    all.extend(words);
    let output = suite.proctor(&all);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(exit), "{words:?}: {stderr}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let results = document["results"].as_array().into_iter().flatten();
    let names = results.map(|result| result["taskName"].as_str().unwrap().to_owned());
    (names.collect(), stderr)
}

/// A suite with a case that passes, one that fails, and one whose setup fails.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::good_and_bad();
    suite.task(
        "broken",
        &json!({"setup": [{"script": {"inline": "exit 3"}}]}),
    );
    suite
}

#[test]
fn only_the_cases_that_failed_or_have_no_verdict_run_again() {
    let suite = suite();
    let (names, _) = trials(&suite, &["-n", "2"], 1);
    assert_eq!(names.len(), 6);
    let (names, said) = trials(&suite, &["--last-failed"], 1);
    assert_eq!(names, ["bad"]);
    assert!(said.contains("rerunning 1 case that failed in `"), "{said}");
    assert!(said.contains("`bad`"), "{said}");
    // The latest run has no case but `bad` now, which has a verdict.
    let (names, said) = trials(&suite, &["--rerun-errors"], 4);
    assert!(names.is_empty());
    assert!(
        said.contains("nothing to rerun: no case had trials"),
        "{said}"
    );
    trials(&suite, &[], 1);
    let (names, _) = trials(&suite, &["--rerun-errors"], 3);
    assert_eq!(names, ["broken"]);
    trials(&suite, &[], 1);
    let (names, _) = trials(&suite, &["--rerun-errors", "--last-failed", "-n", "2"], 1);
    assert_eq!(names, ["bad", "bad", "broken", "broken"]);
}

#[test]
fn a_failed_case_that_is_mended_passes_and_then_nothing_is_left() {
    let suite = suite();
    trials(&suite, &["-r", "good|bad"], 1);
    let passing = json!({"maxToolCalls": 1});
    suite.eval(&json!({}), &json!({"assertions": passing}));
    let (names, _) = trials(&suite, &["--last-failed"], 0);
    assert_eq!(names, ["bad"]);
    // Nothing to rerun is not a success.
    let (_, said) = trials(&suite, &["--last-failed"], 4);
    assert!(
        said.contains("nothing to rerun: no case failed in `"),
        "{said}"
    );
}

#[test]
fn without_a_matching_run_or_case_nothing_is_selected() {
    let suite = suite();
    let (_, said) = trials(&suite, &["--last-failed"], 4);
    assert!(said.contains("no earlier run of this suite"), "{said}");
    trials(&suite, &[], 1);
    let (_, said) = trials(&suite, &["--last-failed", "-r", "good"], 4);
    assert!(
        said.contains("the selection has no case that failed"),
        "{said}"
    );
    // A run of another suite is not looked at.
    suite.write(
        "other.yaml",
        &std::fs::read_to_string(suite.path("eval.yaml")).unwrap(),
    );
    let output = suite.proctor(&["check", "other.yaml", "--last-failed"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    // A case that is gone is named.
    std::fs::remove_file(suite.path("tasks/bad.yaml")).unwrap();
    let (_, said) = trials(&suite, &["--last-failed"], 4);
    assert!(said.contains("no longer in the suite: `bad`"), "{said}");
}

#[test]
fn a_run_to_resume_has_its_own_selection() {
    let suite = suite();
    for flag in ["--last-failed", "--rerun-errors"] {
        let output = suite.proctor(&["check", "--resume", "latest", flag]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    }
}

#[test]
fn shipped_evals_can_be_run_again_too() {
    let suite = suite();
    // What the fixture adds to every content.
    let extra = r#"{"n":12345678901234567890,"z":1.50,"a":1e2}"#;
    let extra: Value = serde_json::from_str(extra).unwrap();
    let eval = |id: &str, text: &str| {
        let content = json!([{"type": "text", "text": text, "x-unknown": extra}]);
        json!({
            "id": id,
            "name": id,
            "gradingType": "exact-match",
            "input": {"type": "execution", "toolName": "echo", "arguments": {"text": "hi"}},
            "expected": {"type": "exact-match", "content": content},
        })
    };
    let evals = json!({"evals": [eval("right", "hi"), eval("wrong", "ho")]});
    suite.write("evals.json", &evals.to_string());
    let server = proctor_e2e::fixture();
    let run = |words: &[&str], exit: i32| {
        let fixed = [
            "evals",
            "run",
            "--yes",
            "-q",
            "--evals",
            "evals.json",
            "-o",
            "json",
        ];
        let server = ["--", server.to_str().unwrap()];
        let output = suite.proctor(&[&fixed[..], words, &server].concat());
        assert_eq!(output.status.code(), Some(exit), "{}", stderr(&output));
        stderr(&output)
    };
    run(&[], 1);
    let said = run(&["--last-failed"], 1);
    assert!(said.contains("rerunning 1 case that failed"), "{said}");
    assert!(said.contains("`wrong`"), "{said}");
    run(&["--rerun-errors"], 4);
}

#[test]
fn a_quiet_run_shows_its_report_and_no_progress() {
    let suite = suite();
    let loud = suite.proctor(&["check", "eval.yaml", "-j", "2"]);
    assert!(stderr(&loud).contains("failed"), "{}", stderr(&loud));
    let quiet = suite.proctor(&["check", "eval.yaml", "-q", "-j", "2"]);
    assert_eq!(quiet.status.code(), loud.status.code());
    assert!(!stderr(&quiet).contains("failed"), "{}", stderr(&quiet));
    let shown = String::from_utf8_lossy(&quiet.stdout).into_owned();
    assert!(shown.contains("FAIL      bad"), "{shown}");
    let both = suite.proctor(&["check", "eval.yaml", "-q", "-v"]);
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn colours_can_be_forced_and_turned_off() {
    let suite = suite();
    let run = |words: &[&str], variables: &[(&str, &str)]| {
        let output = Command::new(proctor_e2e::proctor())
            .args(["check", "eval.yaml", "-q"])
            .args(words)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .envs(variables.iter().copied())
            .current_dir(suite.folder())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains('\u{1b}')
    };
    for (words, variables, expected) in [
        (&[][..], &[][..], false),
        (&["--color", "always"], &[], true),
        (&["--color", "never"], &[("CLICOLOR_FORCE", "1")], false),
        (&["--color", "auto"], &[("CLICOLOR_FORCE", "1")], true),
        (&[], &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], false),
        (&["--color", "always"], &[("NO_COLOR", "1")], true),
    ] {
        assert_eq!(run(words, variables), expected, "{words:?} {variables:?}");
    }
}
