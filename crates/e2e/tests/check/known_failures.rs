//! Known failures with real runs: what they cover, their messages and exit codes.

use std::fs;
use std::process::Command;

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

/// A model that calls `echo` unless the task is bad, and has no key where the task says so.
const RULES: &str = r"
  - when: {prompt: bad}
    reply: {text: I would rather not.}
  - when: {prompt: outage}
    reply: {error: {kind: key, detail: no such key}}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(known: &Value, tasks: &[&str]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(
        &json!({"knownFailures": known}),
        &json!({"assertions": assertions}),
    );
    for task in tasks {
        suite.task(task, &json!({}));
    }
    suite
}

/// The exit code of a command, and what it prints.
fn proctor(words: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command.args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn check(known: &Value, tasks: &[&str], flags: &[&str], code: i32) -> String {
    let suite = suite(known, tasks);
    let seen = suite.check(flags).run();
    let text = format!("{}{}", seen.stdout, seen.stderr);
    assert_eq!(seen.code, Some(code), "{text}");
    if seen.record.join("run.jsonl").exists() {
        // The record judges the same.
        let record = seen.record.to_str().unwrap();
        let (found, text) = proctor(&["result", "verify", record]);
        assert_eq!(found, Some(code), "{text}");
        let (_, shown) = proctor(&["result", "show", record, "-o", "json"]);
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(shown["proctor"]["exit"]["code"], code, "{shown}");
        let (_, summary) = proctor(&["result", "summary", record, "-o", "json"]);
        let summary: Value = serde_json::from_str(&summary).unwrap();
        let answer = ["met", "missed", "", "inconclusive"][usize::try_from(code).unwrap()];
        assert_eq!(summary["gate"]["answer"], answer, "{summary}");
    }
    text
}

#[test]
fn a_known_failure_is_reported_and_does_not_miss_the_gate() {
    let known = json!([{"case": "bad", "reason": "issue 12"}]);
    let suite = suite(&known, &["bad", "good"]);
    let junit = suite.path("junit.xml");
    let seen = suite.check(&["--junit", junit.to_str().unwrap()]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    assert!(seen.stdout.contains("KNOWN     bad"), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("known failure: issue 12"),
        "{}",
        seen.stdout
    );
    assert!(
        seen.stdout.contains("1 of 2 cases passed, 1 known failure"),
        "{}",
        seen.stdout
    );
    // Skipped, not passed; nothing is a failure.
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("<skipped message=\"known failure: issue 12\" type=\"known failure\"/>"),
        "{xml}"
    );
    assert!(
        xml.contains("failures=\"0\"") && !xml.contains("<failure"),
        "{xml}"
    );
    assert!(xml.contains("skipped=\"1\""), "{xml}");
    let record = seen.record.to_str().unwrap();
    let (_, text) = proctor(&["result", "show", record, "-o", "markdown"]);
    assert!(
        text.contains("| known failure | `bad` | 0/1 | known failure: `issue 12`"),
        "{text}"
    );
    let (_, text) = proctor(&["result", "show", record, "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["proctor"]["cases"]["knownFailures"], 1, "{text}");
    assert_eq!(json["proctor"]["gate"]["answer"], "met");
    assert_eq!(json["results"][0]["proctor"]["knownFailure"], "issue 12");
    assert_eq!(json["results"][0]["proctor"]["outcome"], "failed");
    let (_, text) = proctor(&["result", "summary", record, "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["cases"][0]["verdict"], "known-failure", "{text}");
    let (code, text) = proctor(&["result", "verify", record]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("1 case met their pass rule"), "{text}");
    assert!(text.contains("`bad`: known failure: issue 12"), "{text}");
}

#[test]
fn each_way_to_a_green_gate_by_accident_is_closed() {
    let tasks = ["bad", "good"];
    let text = check(&json!([]), &tasks, &[], 1);
    assert!(!text.contains("known failure"), "{text}");
    // It covers everything.
    let all = json!([{"case": "*", "reason": "issue 12"}]);
    let text = check(&all, &["bad", "bad2"], &[], 3);
    assert!(text.contains("proves nothing"), "{text}");
    let text = check(&all, &tasks, &[], 1);
    assert!(
        text.contains("`good`: unexpected pass: 1 of 1 trials passed"),
        "{text}"
    );
    // A typo, also with a warning before the run.
    let typo = json!([{"case": "bda", "reason": "issue 12"}]);
    let text = check(&typo, &["good"], &[], 1);
    assert!(
        text.contains("the known failure `bda` matches no case of the suite"),
        "{text}"
    );
    let text = check(&typo, &tasks, &[], 1);
    assert!(text.contains("did you mean `bad`?"), "{text}");
    let unknown = json!([{"case": "bad", "agent": "codx", "reason": "issue 12"}]);
    let text = check(&unknown, &["good", "bad"], &[], 1);
    assert!(
        text.contains("the known failure `bad` by `codx` matches no case"),
        "{text}"
    );
    // An expired entry.
    let old = json!([{"case": "bad", "reason": "issue 12", "until": "2026-01-31"}]);
    let text = check(&old, &tasks, &[], 1);
    assert!(text.contains("expired on 2026-01-31 (issue 12)"), "{text}");
    let new = json!([{"case": "bad", "reason": "issue 12", "until": "2999-12-31"}]);
    check(&new, &tasks, &[], 0);
    // An errored case stays inconclusive.
    let outage = json!([{"case": "outage", "reason": "issue 12"}]);
    check(&outage, &["good", "outage"], &[], 3);
    // Every condition of the command line counts for the other cases.
    let bad = json!([{"case": "bad", "reason": "issue 12"}]);
    check(&bad, &tasks, &["--min-pass-rate", "90%"], 0);
    check(
        &bad,
        &["bad", "bad2", "good"],
        &["--min-pass-rate", "90%"],
        1,
    );
}

#[test]
fn entries_for_cases_that_are_not_selected_do_not_count() {
    let known = json!([
        {"case": "bad", "reason": "issue 12", "until": "2026-01-31"},
        {"case": "other", "reason": "issue 13"},
        {"case": "good", "agent": "codex", "reason": "issue 14"},
    ]);
    let tasks = ["bad", "good", "other"];
    check(&known, &tasks, &["-r", "^good$"], 0);
    // The case passes unexpectedly.
    check(&known, &tasks, &["-r", "^(good|other)$"], 1);
}

#[test]
fn a_wrong_entry_is_refused_before_anything_starts() {
    for (entry, words) in [
        (json!({"case": "bad"}), "`reason` is missing"),
        (json!({"reason": "issue 12"}), "`case` is missing"),
        (json!({"case": "bad", "reason": "  "}), "the text is empty"),
        (
            json!({"case": "", "reason": "issue 12"}),
            "the text is empty",
        ),
        (
            json!({"case": "bad", "reason": "a", "until": "2026-13-01"}),
            "invalid date `2026-13-01`",
        ),
        (
            json!({"case": "bad", "reason": "a", "until": "2026-02-30"}),
            "invalid date",
        ),
        (
            json!({"case": "bad", "reason": "a", "until": "2026-1-1"}),
            "invalid date",
        ),
        (
            json!({"case": "bad", "reason": "a", "until": "tomorrow"}),
            "invalid date",
        ),
        (
            json!({"case": "bad", "reason": "a", "untill": "2026-12-01"}),
            "did you mean `until`?",
        ),
        (json!({"task": "bad", "reason": "a"}), "unknown key `task`"),
        (json!("bad"), "expected"),
    ] {
        let text = check(&json!([entry]), &["bad", "good"], &[], 2);
        assert!(text.contains(words), "{entry}\n{text}");
    }
    // A misspelt list would silently list nothing.
    let suite = suite(&json!([]), &["good"]);
    suite.eval(
        &json!({"knownFailure": [{"case": "bad", "reason": "a"}]}),
        &json!({"assertions": {"toolsUsed": [{"server": "fixture", "tool": "echo"}]}}),
    );
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("did you mean `knownFailures`?"),
        "{}",
        seen.stderr
    );
}

#[test]
fn junit_shows_what_misses_the_gate() {
    let xml = |known: Value, tasks: &[&str], code: i32| {
        let suite = suite(&known, tasks);
        let path = suite.path("junit.xml");
        let seen = suite.check(&["--junit", path.to_str().unwrap()]).run();
        assert_eq!(seen.code, Some(code), "{}", seen.stdout);
        fs::read_to_string(path).unwrap()
    };
    let found = xml(
        json!([{"case": "good", "reason": "issue 12"}]),
        &["good", "other"],
        1,
    );
    assert!(found.contains("failures=\"1\""), "{found}");
    assert!(
        found.contains("message=\"unexpected pass; known failure: issue 12\""),
        "{found}"
    );
    // No trial failed, so the run itself is the error.
    let found = xml(
        json!([{"case": "gone", "reason": "issue 12"}]),
        &["good"],
        1,
    );
    assert!(
        found.contains("<error message=\"the known failure `gone` matches no case"),
        "{found}"
    );
    let found = xml(json!([{"case": "*", "reason": "issue 12"}]), &["bad"], 3);
    assert!(
        found.contains("<error message=\"every case of the run is listed"),
        "{found}"
    );
}

#[test]
fn a_resumed_run_keeps_its_known_failures() {
    let known = json!([{"case": "bad2", "reason": "issue 12"}]);
    let suite = suite(&known, &["bad1", "bad2"]);
    let seen = suite.check(&["--fail-fast"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    assert!(!seen.stdout.contains("KNOWN"), "{}", seen.stdout);
    // The list is gone from the file, and the run keeps its plan.
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    let record = seen.record.to_str().unwrap();
    let (code, text) = proctor(&["check", "--resume", record]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("KNOWN     bad2"), "{text}");
    assert!(text.contains("`bad1`: 0 of 1 trials passed"), "{text}");
}

#[test]
fn a_known_failure_does_not_end_a_run_with_fail_fast() {
    let known = json!([{"case": "a-bad", "reason": "issue 12"}]);
    let suite = suite(&known, &["a-bad", "good"]);
    let seen = suite.check(&["--fail-fast"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    let suite = self::suite(&json!([]), &["a-bad", "good"]);
    let seen = suite.check(&["--fail-fast"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    assert!(seen.stdout.contains("1 not run"), "{}", seen.stdout);
}

#[test]
fn diff_leaves_known_failures_out() {
    let tasks = ["a", "b", "c", "d", "e", "f", "g"];
    let suite = suite(&json!([]), &tasks);
    let base = suite.check(&["-n", "3", "--jobs", "4"]).run();
    assert_eq!(base.code, Some(0), "{}", base.stdout);
    let rules = format!("  - when: {{prompt: c}}\n    reply: {{text: no}}\n{RULES}");
    suite.write("model.yaml", &format!("kind: Script\nrules:\n{rules}"));
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(
        &json!({"knownFailures": [{"case": "c", "reason": "issue 12"}]}),
        &json!({"assertions": assertions}),
    );
    let new = suite.check(&["-n", "3", "--jobs", "4"]).run();
    assert_eq!(new.code, Some(0), "{}", new.stdout);
    let paths = [&base.record, &new.record].map(|path| path.to_str().unwrap());
    let (code, text) = proctor(&["result", "diff", paths[0], paths[1]]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("KNOWN   1 case with a known failure, not compared: c"),
        "{text}"
    );
    let (_, text) = proctor(&["result", "diff", paths[0], paths[1], "-o", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["knownFailures"][0]["name"], "c", "{text}");
}

#[test]
fn a_base_in_the_eval_file_is_compared_or_an_error() {
    let tasks = ["a", "b", "c", "d", "e", "f"];
    let suite = suite(&json!([]), &tasks);
    let base = suite.check(&[]).run();
    assert_eq!(base.code, Some(0), "{}", base.stdout);
    fs::rename(&base.record, suite.path("base.run")).unwrap();
    let assertions = json!({"assertions": {"toolsUsed": [{"server": "fixture", "tool": "echo"}]}});
    suite.eval(&json!({"gates": {"noRegression": "base.run"}}), &assertions);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stdout);
    suite.write(
        "model.yaml",
        "kind: Script\nrules:\n  - reply: {text: no}\n",
    );
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    assert!(
        seen.stdout.contains("Regression: 6/6 → 0/6 cases"),
        "{}",
        seen.stdout
    );
    // A flag replaces the key, and other gates don't remove it.
    let seen = suite.check(&["--min-pass-rate", "10%"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stdout);
    for missing in ["gone.run", "../base.run"] {
        suite.eval(&json!({"gates": {"noRegression": missing}}), &assertions);
        let seen = suite.check(&[]).run();
        assert_eq!(seen.code, Some(2), "{missing}\n{}", seen.stdout);
        assert!(seen.stderr.contains("`noRegression: "), "{}", seen.stderr);
    }
    for wrong in [json!(""), json!({}), json!([])] {
        suite.eval(&json!({"gates": {"noRegression": wrong}}), &assertions);
        let seen = suite.check(&[]).run();
        assert_eq!(seen.code, Some(2), "{wrong}\n{}", seen.stdout);
    }
}
