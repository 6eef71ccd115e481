//! Judges and shipped evals: recorded verdicts are kept, and a judge is asked only on request.

use proctor_e2e::suite::ECHO_IF_GOOD;

use super::*;

const JUDGE: &str = r"
kind: Script
rules:
  - reply: {calls: [{tool: verdict, arguments: {reason: VERDICT, evidence: ['done, and well done'], verdict: VERDICT}}]}
";

fn write_judge(suite: &SuiteFixture, verdict: &str) {
    suite.write("judge.yaml", &JUDGE.replace("VERDICT", verdict));
}

/// A suite whose only case is judged.
fn judged() -> SuiteFixture {
    let rules = ECHO_IF_GOOD.replace("text: done", "text: 'done, and well done'");
    let suite = SuiteFixture::new(&rules, &[]);
    suite.eval(
        &json!({"llmJudge": {"ref": {"type": "builtin.llm-agent", "model": "scripted:judge.yaml"}}}),
        &json!({"assertions": uses("echo")}),
    );
    suite.task(
        "good",
        &json!({"verify": [{"llmJudge": {"contains": "it is done"}}]}),
    );
    suite
}

#[test]
fn a_judge_is_asked_only_on_request() {
    let suite = judged();
    write_judge(&suite, "pass");
    check(&suite, 0);
    write_judge(&suite, "fail");
    let document = regrade(&suite, &[], 0);
    let judge = &document["results"][0]["proctor"]["checks"][1];
    assert_eq!(
        (&judge["kind"], &judge["origin"]),
        (&json!("judge"), &json!("recorded"))
    );
    let document = regrade(&suite, &["--judge"], 1);
    let trial = &document["results"][0]["proctor"];
    assert_eq!(trial["checks"][1]["origin"], "judged");
    assert_eq!(trial["changes"][0]["before"], "pass");
    suite.write("other.yaml", &JUDGE.replace("VERDICT", "pass"));
    regrade(&suite, &["--judge=scripted:other.yaml"], 0);
    // A judge without a usable verdict is no pass.
    suite.write(
        "silent.yaml",
        "kind: Script\nrules:\n  - reply: {text: well}\n",
    );
    let document = regrade(&suite, &["--judge=scripted:silent.yaml"], 3);
    assert_eq!(outcomes(&document)[0].1, "errored");
}

#[test]
fn another_criterion_needs_a_judge() {
    let suite = judged();
    write_judge(&suite, "pass");
    check(&suite, 0);
    suite.task(
        "good",
        &json!({"verify": [{"llmJudge": {"contains": "it is done twice"}}]}),
    );
    let document = regrade(&suite, &[], 3);
    assert_eq!(outcomes(&document)[0].1, "errored");
    regrade(&suite, &["--judge"], 0);
}

#[test]
fn the_grading_of_shipped_evals_is_kept() {
    let suite = SuiteFixture::new(ECHO_IF_GOOD, &[]);
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
    let words = [
        "evals",
        "run",
        "--yes",
        "-q",
        "--record",
        "run",
        "--evals",
        "evals.json",
        "--",
    ];
    let server = server.to_str().unwrap();
    let output = suite.proctor(&[&words[..], &[server]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    let document = regrade(&suite, &[], 1);
    let found: Vec<String> = outcomes(&document)
        .into_iter()
        .map(|found| found.1)
        .collect();
    assert_eq!(found, ["passed", "failed"]);
    let grading = &document["results"][0]["proctor"]["checks"][0];
    assert_eq!(
        (&grading["kind"], &grading["origin"]),
        (&json!("grading"), &json!("recorded"))
    );
}
