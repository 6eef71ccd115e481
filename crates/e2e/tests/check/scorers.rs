//! Verify scripts that read the transcript and report a verdict: two that work, and those that must never pass.

use proctor_e2e::session::SessionOutcome;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::EventKind;
use serde_json::{Value, json};

const RULES: &str = r#"
  - {when: {results: 0}, reply: {calls: [{tool: echo, arguments: {text: hello}}], usage: {input: 100, output: 5}}}
  - {reply: {text: "It said hello.", usage: {input: 200, output: 7}}}
"#;

/// A scorer in Python: the tool must have been called with the word that the answer has.
const PYTHON: &str = r#"#!/usr/bin/env python3
import json, os
with open(os.environ["PROCTOR_TRANSCRIPT"]) as file:
    transcript = json.load(file)
assert transcript["version"] == 1
calls = [call for call in transcript["calls"] if call["name"] == "echo"]
said = [call for call in calls if call["arguments"]["text"] in transcript["answer"]]
result = calls[0]["result"]["content"][0]["text"]
assert result == "hello", result
assert transcript["prompt"] == "greet"
assert len(transcript["turns"]) == 2 and transcript["usage"]["tokens"]["input"] == 300
verdict = "pass" if said else "fail"
print("looked at", len(calls), "calls")
print(json.dumps({"verdict": verdict, "reason": "said it", "score": 0.75,
                  "evidence": [call["seq"] for call in said]}))
"#;

/// A scorer in bash, which needs no more than grep.
const BASH: &str = r#"#!/usr/bin/env bash
if grep -q '"name":"echo"' "$PROCTOR_TRANSCRIPT"; then
  echo '{"verdict": "pass", "score": 1}'
else
  echo '{"verdict": "fail", "reason": "echo was not called"}'
fi
"#;

fn run(script: &str) -> SessionOutcome {
    run_within(script, "2m")
}

fn run_within(script: &str, timeout: &str) -> SessionOutcome {
    let suite = SuiteFixture::new(RULES, &[]);
    suite.task(
        "greet",
        &json!({"verify": [{"id": "score", "script": {"inline": script, "timeout": timeout}}]}),
    );
    suite.check(&["-o", "json"]).run()
}

/// The outcome, and the check of the script as the record has it.
fn graded(seen: &SessionOutcome) -> (String, Value) {
    let outcome = seen.outcome().map(|outcome| format!("{outcome:?}"));
    let check = seen.events.iter().find_map(|event| match &event.event {
        EventKind::Graded(check) if check.check == "score" => Some(json!(check)),
        _ => None,
    });
    (
        outcome.unwrap_or_else(|| panic!("{}\n{}", seen.stdout, seen.stderr)),
        check.unwrap_or_default(),
    )
}

#[test]
fn scorers_in_python_and_bash_read_the_transcript() {
    let seen = run(PYTHON);
    let (outcome, check) = graded(&seen);
    assert_eq!(outcome, "Passed", "{check}\n{}", seen.stdout);
    assert_eq!(check["notes"], json!(["score 0.75", "said it"]));
    assert_eq!(
        check["evidence"].as_array().map(Vec::len),
        Some(1),
        "{check}"
    );
    assert_eq!(seen.code, Some(0));
    let seen = run(BASH);
    let (outcome, check) = graded(&seen);
    assert_eq!(outcome, "Passed", "{check}");
    assert_eq!(check["notes"], json!(["score 1"]));
    let other = BASH.replace("\"name\":\"echo\"", "\"name\":\"other\"");
    let (outcome, check) = graded(&run(&other));
    assert_eq!(outcome, "Failed");
    assert_eq!(
        check["verdict"]["fail"]["reason"], "echo was not called",
        "{check}"
    );
}

#[test]
fn a_score_never_turns_a_failure_into_a_pass() {
    let (outcome, check) = graded(&run(r#"echo '{"verdict": "fail", "score": 1.0}'"#));
    assert_eq!(outcome, "Failed", "{check}");
    assert_eq!(check["notes"], json!(["score 1"]));
    let (outcome, _) = graded(&run(r#"echo '{"verdict": "fail", "score": 1.0}'; exit 0"#));
    assert_eq!(outcome, "Failed");
}

#[test]
fn a_report_of_several_lines_is_read() {
    let seen = run(r#"echo log; printf '{\n  "verdict": "fail",\n  "reason": "no rows"\n}\n'"#);
    let (outcome, check) = graded(&seen);
    assert_eq!(outcome, "Failed", "{check}");
    assert_eq!(check["verdict"]["fail"]["reason"], "no rows", "{check}");
    assert_eq!(seen.code, Some(1));
}

#[test]
fn a_script_file_that_was_replaced_during_the_run_is_not_run() {
    let suite = SuiteFixture::new(RULES, &[]);
    // A setup step does what an agent could do.
    let steps = |setup: &str| {
        let verify = json!([{"id": "score", "script": {"file": "check.sh"}}]);
        let setup = json!([{"script": {"inline": setup}}]);
        suite.task("greet", &json!({"setup": setup, "verify": verify}));
        suite.write("tasks/check.sh", "#!/bin/sh\ntest -e \"$PWD/never\"\n");
        suite.check(&["-o", "json"]).run()
    };
    let seen = steps("echo 'exit 0' > check.sh; touch ran");
    let (outcome, check) = graded(&seen);
    assert_eq!(outcome, "Errored", "{check}\n{}", seen.stderr);
    let reason = check["verdict"]["unknown"]["reason"].as_str().unwrap();
    assert!(
        reason.contains("has changed since the suite was loaded"),
        "{reason}"
    );
    assert_eq!(seen.code, Some(3));
    let (outcome, _) = graded(&steps("rm check.sh"));
    assert_eq!(outcome, "Errored");
    let (outcome, _) = graded(&steps("touch check.sh"));
    assert_eq!(outcome, "Failed");
}

/// Reports a pass, and does not end.
const HANGS: &str = r#"echo '{"verdict": "pass"}'; sleep 600"#;

#[test]
fn reports_that_cannot_be_trusted_never_pass() {
    let huge = r#"printf '{"verdict": "pass", "reason": "'; head -c 300000 /dev/zero | tr '\0' x; echo '"}'"#;
    for script in [
        r#"echo '{"verdict": "pass"}'; exit 1"#,
        r#"echo '{"verdict": "pass"'; exit 0"#,
        r#"echo '{"verdict": "yes"}'"#,
        r#"echo '{"verdict": "pass", "score": 7}'"#,
        r#"echo '{"verdict": "pass", "evidence": [999999]}'"#,
        r#"echo '{"verdict": "fail"}'; echo '{"verdict": "pass"}'"#,
        r#"echo '{"verdict": "fail"}'; echo done"#,
        r#"echo '{"verdict": "fail"}'; yes x | head -n 100000"#,
        r#"echo '{"verdict": "fail"}'; yes x | head -n 100000; echo '{"verdict": "pass"}'"#,
        r#"echo '{"verdict": "unknown", "reason": "no idea"}'"#,
        r#"echo "{'verdict': 'fail'}""#,
        r#"echo 'result: {"verdict": "fail"}'"#,
        r#"echo '{"score": 0, "reason": "no"}'"#,
        r#"printf '\357\273\277{"verdict": "fail"}\n'"#,
        HANGS,
        r#"echo '{"verdict": "pass"}'; kill -9 $$"#,
        huge,
    ] {
        let timeout = if script == HANGS { "5s" } else { "2m" };
        let seen = run_within(script, timeout);
        let (outcome, check) = graded(&seen);
        assert_eq!(outcome, "Errored", "{script}\n{check}");
        assert_eq!(seen.code, Some(3), "{script}");
    }
}

#[test]
fn without_a_report_the_exit_code_decides() {
    assert_eq!(graded(&run("echo '{\"status\": \"fail\"}'")).0, "Passed");
    assert_eq!(graded(&run("test -s \"$PROCTOR_TRANSCRIPT\"")).0, "Passed");
    assert_eq!(graded(&run("echo ok; exit 1")).0, "Failed");
    assert_eq!(graded(&run("yes x | head -n 100000")).0, "Passed");
}
