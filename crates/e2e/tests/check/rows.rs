//! Tasks with rows: one case per row, each with its own prompt, steps and assertions.

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

const RULES: &str = r#"
  - {when: {results: 0, prompt: "^say one"}, reply: {calls: [{tool: echo, arguments: {text: one}}]}}
  - {when: {results: 0, prompt: "^say two"}, reply: {calls: [{tool: echo, arguments: {text: wrong}}]}}
  - {reply: {text: "done"}}
"#;

fn suite(csv: &str) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let used = json!({"toolsUsed": [{
        "server": "fixture", "tool": "echo", "arguments": {"text": "{row.word}"},
    }]});
    suite.eval(&json!({}), &json!({"assertions": used}));
    let script = json!({"inline": "test \"$WORD\" != two", "env": {"WORD": "{row.word}"}});
    suite.task(
        "say",
        &json!({
            "prompt": {"inline": "say {row.word}"},
            "rowsFrom": "rows.csv",
            "verify": [{"script": script}],
        }),
    );
    suite.write("tasks/rows.csv", csv);
    suite
}

#[test]
fn each_row_is_graded_by_its_own_values() {
    let suite = suite("id,word,labels\na,one,size=s\nb,two,\n");
    let seen = suite.check(&["-o", "json"]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let result: Value = serde_json::from_str(&seen.stdout).unwrap();
    let entry = |at: usize| {
        let entry = &result["results"][at];
        let outcome = entry["proctor"]["outcome"].as_str().unwrap();
        (
            entry["taskName"].as_str().unwrap().to_owned(),
            outcome.to_owned(),
        )
    };
    assert_eq!(entry(0), ("say[a]".to_owned(), "passed".to_owned()));
    assert_eq!(entry(1), ("say[b]".to_owned(), "failed".to_owned()));
}

#[test]
fn rows_are_selected_by_their_labels() {
    let suite = suite("id,word,labels\na,one,size=s\nb,two,\n");
    let seen = suite.check(&["--label-selector", "size=s"]).run();
    assert_eq!(seen.code, Some(0), "{}\n{}", seen.stdout, seen.stderr);
    assert!(seen.stdout.contains("say[a]"), "{}", seen.stdout);
    assert!(!seen.stdout.contains("say[b]"), "{}", seen.stdout);
}

#[test]
fn a_bad_row_stops_the_run_before_it_starts() {
    let seen = suite("id,word\na,one\na,two\n").check(&[]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(seen.stderr.contains("rows.csv:3"), "{}", seen.stderr);
    assert!(
        seen.stderr.contains("duplicate row id `a`"),
        "{}",
        seen.stderr
    );
}
