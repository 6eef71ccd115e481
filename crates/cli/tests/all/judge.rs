//! `proctor judge calibrate` with recorded verdicts and with scripted judges.

use serde_json::Value;

use crate::proctor::{Output, proctor, write_files};

/// A judge that passes every answer with "22 degrees", and quotes it.
const JUDGE: &str = r"kind: Script
rules:
  - when: {mustCall: verdict, user: 'unclear'}
    reply:
      calls: [{tool: verdict, arguments: {reason: It does not say., evidence: [], verdict: unknown}}]
  - when: {mustCall: verdict, user: 'It is (now )?22 degrees in Paris'}
    reply:
      calls: [{tool: verdict, arguments: {reason: It is there., evidence: ['{match.0}'], verdict: pass}}]
  - when: {mustCall: verdict}
    reply:
      calls: [{tool: verdict, arguments: {reason: It is not there., evidence: [], verdict: fail}}]
";

const RIGHT: &str = "It is 22 degrees in Paris.";
const WRONG: &str = "It rains all day.";

fn label(id: &str, answer: &str, human: &str, more: &str) -> String {
    format!(
        r#"{{"id":"{id}","contains":"22 degrees","prompt":"How warm?","answer":"{answer}","human":"{human}"{more}}}"#
    )
}

/// Labels that the judge grades as people do, and those given.
fn labels(count: usize, more: &[String]) -> String {
    let mut lines: Vec<String> = (0..count)
        .map(|n| label(&format!("right-{n}"), RIGHT, "pass", ""))
        .collect();
    lines.extend(more.iter().cloned());
    lines.extend((0..count).map(|n| label(&format!("wrong-{n}"), WRONG, "fail", "")));
    lines.join("\n")
}

fn calibrate(labels: &str, flags: &[&str]) -> Output {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let eval = r"kind: Eval
metadata: {name: judged}
config:
  agent: {type: builtin.llm-agent, model: 'scripted:judge.yaml'}
  mcpConfigFile: mcp.json
  llmJudge: {ref: {type: builtin.llm-agent, model: 'scripted:judge.yaml'}, votes: 3}
  taskSets: [{path: task.yaml, assertions: {minToolCalls: 1}}]
";
    let task = "kind: Task\napiVersion: mcpchecker/v1alpha2\nmetadata: {name: t}\nspec: {prompt: {inline: hi}}\n";
    write_files(
        folder.path(),
        &[
            ("labels.jsonl", labels),
            ("judge.yaml", JUDGE),
            ("eval.yaml", eval),
            ("task.yaml", task),
            ("mcp.json", r#"{"mcpServers": {"a": {"command": "true"}}}"#),
            (
                "outage.yaml",
                "kind: Script\nrules:\n  - reply: {error: {kind: key, detail: no such key}}\n",
            ),
        ],
    );
    proctor(["judge", "calibrate", "labels.jsonl"].iter().chain(flags))
        .current_dir(folder.path())
        .output()
}

#[test]
fn a_judge_is_compared_with_people() {
    let tricky = label(
        "tricky",
        "It is now 22 degrees in Paris, says nobody.",
        "fail",
        "",
    );
    let unclear = label("unclear", "This is unclear to me.", "pass", "");
    let text = labels(11, &[tricky, unclear]);
    let output = calibrate(&text, &["--judge", "scripted:judge.yaml"]);
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!(output.stdout);
}

#[test]
fn the_document_has_every_number() {
    let tricky = label(
        "tricky",
        "It is now 22 degrees in Paris, says nobody.",
        "fail",
        "",
    );
    let text = labels(10, &[tricky]);
    let output = calibrate(&text, &["--with", "eval.yaml", "-o", "json"]);
    assert_eq!(output.code, Some(0), "{output}");
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["judge"]["votes"], 3);
    assert_eq!(json["table"]["peopleFail"]["judgePass"], 1);
    assert_eq!(json["agreement"]["count"], 20);
    assert_eq!(json["agreement"]["of"], 21);
    assert_eq!(json["sensitivity"]["share"], 1.0);
    let specificity = json["specificity"]["share"].as_f64().unwrap();
    assert!((specificity - 10.0 / 11.0).abs() < 1e-12);
    let kappa = json["kappa"]["value"].as_f64().unwrap();
    // (20/21 - 220/441) / (1 - 220/441)
    assert!(
        (kappa - (420.0 - 220.0) / (441.0 - 220.0)).abs() < 1e-12,
        "{kappa}"
    );
    assert!(json["kappa"]["low95"].as_f64().unwrap() < kappa);
    assert_eq!(json["shortage"], Value::Null);
    assert_eq!(json["disagreements"][0]["id"], "tricky");
    assert_eq!(json["disagreements"][0]["line"], 11);
    assert_eq!(json["disagreements"][0]["judge"], "pass");
}

#[test]
fn recorded_verdicts_need_no_judge() {
    let both =
        |human: &str, judge: &str| label("x", RIGHT, human, &format!(r#","judge":"{judge}""#));
    let lines = [
        vec![both("pass", "pass"); 10],
        vec![both("fail", "fail"); 10],
    ]
    .concat();
    let output = calibrate(&lines.join("\n"), &[]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains("Kappa        1.00"), "{output}");
    assert!(
        output.stdout.contains("the verdicts in the file"),
        "{output}"
    );
    // A judge that passes everything agrees with lenient people, and is not calibrated by them.
    let lenient = vec![both("pass", "pass"); 100].join("\n");
    let output = calibrate(&lenient, &[]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(
        output
            .stdout
            .contains("too few labels: people passed 100 and failed 0"),
        "{output}"
    );
    assert!(
        output.stdout.contains("Kappa        not defined"),
        "{output}"
    );
    // A named judge is asked about every line, whatever the file says.
    let wrong = [
        vec![both("fail", "fail"); 10],
        vec![both("pass", "pass"); 10],
    ]
    .concat();
    let output = calibrate(&wrong.join("\n"), &["--judge", "scripted:judge.yaml"]);
    assert!(output.stdout.contains("Specificity  0/10"), "{output}");
}

#[test]
fn what_says_nothing_is_inconclusive() {
    let output = calibrate(&labels(9, &[]), &["--judge", "scripted:judge.yaml"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(
        output.stdout.contains("label at least 10 of each"),
        "{output}"
    );
    let output = calibrate(&labels(20, &[]), &["--judge", "scripted:outage.yaml"]);
    assert_eq!(output.code, Some(3), "{output}");
    assert!(
        output
            .stdout
            .contains("the judge gave no answer to 40 of the labels"),
        "{output}"
    );
    assert!(output.stdout.contains("no such key"), "{output}");
}

#[test]
fn wrong_labels_and_flags_are_refused() {
    let check = |labels: &str, flags: &[&str], words: &str| {
        let output = calibrate(labels, flags);
        assert_eq!(output.code, Some(2), "{output}");
        assert!(output.stderr.contains(words), "{output}");
        assert_eq!(output.stdout, "", "{output}");
    };
    let good = label("a", RIGHT, "pass", "");
    check("", &[], "has no labels");
    check(&good, &[], "line 1 has no verdict of a judge");
    let two = format!("{good}\nnot json\n{{}}\n");
    check(
        &two,
        &["--judge", "scripted:judge.yaml"],
        "has 2 wrong lines\n  line 2: ",
    );
    check(
        &good.replace("pass", "maybe"),
        &[],
        "unknown variant `maybe`",
    );
    check(&good, &["--judge", "scripted:gone.yaml"], "gone.yaml");
    check(&good, &["--with", "gone.yaml"], "gone.yaml");
    check(
        &good,
        &["--judge", "scripted:judge.yaml", "--votes", "2"],
        "use an odd number",
    );
    check(&good, &["--votes", "3"], "`--votes` needs a judge");
}
