//! `proctor result view`: trials as conversations.

use std::fs;
use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

const RULES: &str = r"
  - when: {prompt: good, results: 0}
    reply: {text: I will., calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn view(suite: &SuiteFixture, words: &[&str]) -> Output {
    Command::new(proctor_e2e::proctor())
        .args(["result", "view", "run"])
        .args(words)
        .current_dir(suite.folder())
        .output()
        .unwrap()
}

fn shown(suite: &SuiteFixture, words: &[&str]) -> String {
    let output = view(suite, words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A run of two cases, three trials each: one passes, one makes no call.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task("good-10", &json!({}));
    suite.task("bad-2", &json!({}));
    let output = Command::new(proctor_e2e::proctor())
        .args(["check", "eval.yaml", "-n", "3", "--record", "run"])
        .current_dir(suite.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    suite
}

#[test]
fn a_trial_is_a_conversation_from_the_prompt_to_the_checks() {
    let suite = suite();
    let text = shown(&suite, &["good-10", "2"]);
    let mut rest = text.as_str();
    for part in [
        "PASS  good-10  (agent llm-agent (scripted:model.yaml), trial 2 of 3, ",
        "1 call, 2 model turns",
        "Prompt\n  good-10\n",
        "Model  ",
        "  I will.\n  calls `echo`\n",
        "fixture.echo  ",
        "decides toolsUsed\n  {\"text\":\"hi\"}\n  → ",
        "Answer  ",
        "  done\n",
        "Checks\nPASS  toolsUsed\n      #",
    ] {
        let at = rest.find(part);
        assert!(at.is_some(), "`{part}` is not in {rest}");
        rest = &rest[at.unwrap() + part.len()..];
    }
    assert_eq!(text.matches("PASS  good-10").count(), 1, "{text}");
    let text = shown(&suite, &["llm-agent/bad-2"]);
    assert_eq!(text.matches("FAIL  bad-2").count(), 3, "{text}");
    assert!(
        text.contains("FAIL  toolsUsed (eval.yaml:1)\n      `fixture` `echo` was never called"),
        "{text}"
    );
    let all = shown(&suite, &[]);
    assert!(
        all.find("bad-2").unwrap() < all.find("good-10").unwrap(),
        "{all}"
    );
    assert_eq!(
        shown(&suite, &["--trial", "good"])
            .matches("PASS  good-10")
            .count(),
        3
    );
}

#[test]
fn a_trial_that_does_not_exist_is_refused_with_the_nearest() {
    let suite = suite();
    let output = view(&suite, &["godo-10", "2"]);
    assert_eq!(output.status.code(), Some(4));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: trial `godo-10 2` not found in the run; did you mean `good-10 2`?\n"
    );
    assert_eq!(view(&suite, &["good-10", "4"]).status.code(), Some(4));
    assert_eq!(view(&suite, &["x", "--trial", "y"]).status.code(), Some(2));
}

#[test]
fn raw_and_json_show_the_events_of_the_trial() {
    let suite = suite();
    let raw = shown(&suite, &["good-10", "2", "--raw"]);
    assert_eq!(
        raw.matches("trial of tasks/good-10.yaml#good-10").count(),
        1,
        "{raw}"
    );
    let all = shown(&suite, &["--raw"]);
    assert!(
        all.starts_with("run suite\n     1 ") && all.contains(&raw),
        "{all}"
    );
    let json = shown(&suite, &["good-10", "2", "-o", "json"]);
    assert_eq!(json.matches("\"trialStarted\"").count(), 1, "{json}");
}

#[test]
fn a_trial_that_is_being_written_is_unfinished() {
    let suite = suite();
    let trials = fs::read_dir(suite.path("run/trials")).unwrap();
    let path = trials
        .map(|entry| entry.unwrap().path())
        .find(|path| path.to_string_lossy().contains("good"))
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let end = text.trim_end().rfind('\n').unwrap();
    let part = format!("{}.part", path.display());
    fs::write(part, &text[..end + 20]).unwrap();
    fs::remove_file(&path).unwrap();
    let text = shown(&suite, &["good-10"]);
    assert!(text.contains("UNFINISHED  good-10  "), "{text}");
    assert!(
        text.contains("the last line of the record is incomplete: 19 bytes skipped"),
        "{text}"
    );
    assert_eq!(text.matches("PASS  good-10").count(), 2, "{text}");
}
