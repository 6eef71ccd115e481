//! `proctor result summary`, `coverage` and the filters of `show`, on a run with several faults.

use std::fs;
use std::process::{Command, Output};

use proctor_e2e::suite::SuiteFixture;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {prompt: wrong, results: 0}
    reply: {calls: [{tool: echo, arguments: {text: no}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

/// Five cases with six trials each: one always fails, one fails once and may, one has a broken setup.
fn suite() -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let used = json!([{"server": "fixture", "tool": "echo", "arguments": {"text": "hi"}}]);
    suite.eval(
        &json!({}),
        &json!({"assertions": {"toolsUsed": used}, "pass": "5/6"}),
    );
    let count = "n=$(($(cat COUNT 2>/dev/null || echo 0) + 1)); echo $n > COUNT; ";
    let count = count.replace("COUNT", suite.path("count").to_str().unwrap());
    let flaky = format!("{count} [ $n != 3 ] || {{ echo \"bad state in run $n\"; exit 1; }}");
    suite.task("good", &json!({}));
    suite.task("also-good", &json!({}));
    suite.task("wrong", &json!({}));
    suite.task("flaky", &json!({"verify": [{"script": {"inline": flaky}}]}));
    suite.task(
        "broken",
        &json!({"setup": [{"script": {"inline": "echo no cluster; exit 3"}}]}),
    );
    let seen = proctor(
        &suite,
        &["check", "eval.yaml", "-n", "6", "--record", "run"],
    );
    assert_eq!(seen.status.code(), Some(1), "{}", stderr(&seen));
    suite
}

fn proctor(suite: &SuiteFixture, words: &[&str]) -> Output {
    Command::new(proctor_e2e::proctor())
        .args(words)
        .env("COLUMNS", "100")
        .env("LC_ALL", "C.UTF-8")
        .current_dir(suite.folder())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&stdout(output)).unwrap()
}

#[test]
fn a_summary_shows_every_fault_from_the_index_alone() {
    let suite = suite();
    let text = stdout(&proctor(&suite, &["result", "summary", "run"]));
    let at = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("no `{part}` in {text}"))
    };
    let order = [
        at("MISSED  wrong"),
        at("0/6  ▌▌▌▌▌▌"),
        at("toolsUsed (eval.yaml:1): "),
        at("INCONCL broken"),
        at("▯▯▯▯▯▯"),
        at("no cluster"),
        at("FLAKY   flaky"),
        at("5/6  ▖▖▌▖▖▖"),
        at("bad state in run 3"),
        at("3 of 5 cases met the pass rule, 1 of them flaky"),
        at("Trials    17/24 passed"),
        at("Gate      missed"),
        at("proctor result view run 'wrong 1'"),
    ];
    assert!(order.is_sorted(), "{order:?} {text}");
    assert!(
        text.contains("llm-agent with scripted:model.yaml"),
        "{text}"
    );
    assert!(text.contains("tools called"), "{text}");
    let told = stdout(&proctor(
        &suite,
        &["result", "summary", "run", "-o", "json"],
    ));
    // Only the index and the lengths of the trials are left.
    for entry in fs::read_dir(suite.path("run/trials")).unwrap() {
        let path = entry.unwrap().path();
        let length = fs::metadata(&path).unwrap().len();
        fs::File::create(&path).unwrap().set_len(length).unwrap();
    }
    assert_eq!(
        stdout(&proctor(&suite, &["result", "summary", "run"])),
        text
    );
    let again = stdout(&proctor(
        &suite,
        &["result", "summary", "run", "-o", "json"],
    ));
    assert_eq!(again, told);
}

#[test]
fn a_filtered_report_shows_its_part_and_no_gate() {
    let suite = suite();
    let show = |words: &[&str]| proctor(&suite, &[&["result", "show", "run"], words].concat());
    // Every trial of the part passed, and the gate of the whole run is missed.
    let text = stdout(&show(&["--case", "^good$"]));
    assert!(
        text.contains("6 of 30 trials, selected by `--case ^good$`"),
        "{text}"
    );
    assert!(text.contains("6/6 trials passed"), "{text}");
    assert!(
        text.contains("the gate of the whole run is missed"),
        "{text}"
    );
    assert!(!text.contains("Exit") && !text.contains("wrong"), "{text}");
    let told = document(&show(&["--case", "^good$", "-o", "json"]));
    let ours = &told["proctor"];
    assert_eq!((&ours["gate"], &ours["exit"]), (&Value::Null, &Value::Null));
    assert_eq!(ours["part"]["wholeRun"]["gate"]["answer"], "missed");
    assert_eq!(told["results"].as_array().unwrap().len(), 6);

    let text = stdout(&show(&["--failed"]));
    assert!(
        text.contains("13 of 30 trials, selected by `--failed`"),
        "{text}"
    );
    assert!(!text.contains("95% CI") && !text.contains("good"), "{text}");
    // Of the flaky case only the failure is shown, and it still meets its pass rule.
    assert!(text.contains("FLAKY 5/6, meets its pass rule"), "{text}");
    let told = document(&show(&["--failed", "-o", "json"]));
    assert_eq!(told["proctor"]["rate"], Value::Null);
    assert_eq!(told["results"].as_array().unwrap().len(), 13);
    let junit = suite.path("part.xml");
    stdout(&show(&[
        "--case",
        "^good$",
        "--junit",
        junit.to_str().unwrap(),
    ]));
    let xml = fs::read_to_string(junit).unwrap();
    assert!(xml.contains("part: --case ^good$"), "{xml}");
    let agent = stdout(&show(&["--agent", "llm-agent"]));
    assert!(agent.contains("30 of 30 trials"), "{agent}");
}

#[test]
fn a_filter_without_a_match_is_an_error() {
    let suite = suite();
    let refused = |words: &[&str], hint: &str| {
        let output = proctor(&suite, &[&["result", "show", "run"], words].concat());
        assert_eq!(output.status.code(), Some(4), "{words:?}");
        assert!(output.stdout.is_empty(), "{words:?}");
        assert!(stderr(&output).contains(hint), "{}", stderr(&output));
    };
    refused(&["--case", "godo"], "cases: `");
    refused(&["--case", "godo"], "did you mean `good`?");
    refused(
        &["--case", "^good$", "--failed"],
        "`--failed` selects trials",
    );
    refused(&["--agent", "llm-agnt"], "did you mean `llm-agent");
    refused(&["--label", "area=x"], "labels: none");
    refused(&["--label", "area=x"], "no case has the label `area`");
    let output = proctor(&suite, &["result", "show", "run", "--label", "area"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn coverage_lists_what_no_case_touched() {
    let suite = suite();
    let told = document(&proctor(
        &suite,
        &["result", "coverage", "run", "-o", "json"],
    ));
    let tools = told["servers"][0]["tools"].as_array().unwrap();
    let tool = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let echo = tool("echo");
    // Six trials of four cases; the broken one never gets to its agent.
    assert_eq!((&echo["calls"], &echo["cases"]), (&json!(24), &json!(4)));
    assert_eq!(echo["arguments"][0]["given"], 24, "{echo}");
    assert_eq!(tool("sleep")["calls"], 0);
    assert!(echo["schemaTokens"].as_u64().unwrap() > 5, "{echo}");
    let text = stdout(&proctor(&suite, &["result", "coverage", "run"]));
    let row = text.lines().find(|line| line.contains("  sleep ")).unwrap();
    assert!(row.contains("(never called)"), "{text}");
    assert!(text.contains("Tokens are an estimate"), "{text}");
    let summary = document(&proctor(
        &suite,
        &["result", "summary", "run", "-o", "json"],
    ));
    let used = tools.iter().filter(|tool| tool["calls"] != 0).count();
    let expected = json!({"used": used, "offered": tools.len()});
    assert_eq!(summary["coverage"][0]["tools"], expected);
}

#[test]
fn tables_outputs_and_other_formats_of_a_summary() {
    let suite = suite();
    let summary = |words: &[&str]| {
        let all = [&["result", "summary", "run"], words].concat();
        stdout(&proctor(&suite, &all))
    };
    let failures = summary(&["--failures"]);
    for part in [
        "  FAILED  6 trials",
        "toolsUsed (eval.yaml:1): ",
        "proctor result view run 'wrong 1'",
        "  ERRORED 6 trials (blame: suite): broken 1, 2, 3, 4, 5, 6",
        "Gate      missed",
    ] {
        assert!(failures.contains(part), "{part} is not in\n{failures}");
    }
    assert!(!failures.contains("also-good"), "{failures}");
    let tables = summary(&["--cases", "--agents"]);
    for part in ["  PASSED  also-good", "  MISSED  wrong", "agent", "17/24"] {
        assert!(tables.contains(part), "{part} is not in\n{tables}");
    }
    // What a shell reads, it reads as it is.
    let outputs = summary(&["--github-output"]);
    let value = |key: &str| {
        let mut lines = outputs.lines().filter_map(|line| line.split_once('='));
        lines.find(|(name, _)| *name == key).unwrap().1
    };
    assert_eq!(value("results-file"), "run");
    assert_eq!((value("tasks-total"), value("tasks-passed")), ("30", "17"));
    assert_eq!(value("task-pass-rate"), "0.5666");
    assert_eq!(value("assertions-total"), "24");
    assert_eq!(value("assertions-passed"), "18");
    assert_eq!(value("gate"), "missed");

    let markdown = summary(&["-o", "markdown"]);
    assert!(
        markdown.starts_with("### Proctor: gate missed"),
        "{markdown}"
    );
    assert_eq!(
        markdown,
        stdout(&proctor(
            &suite,
            &["result", "show", "run", "-o", "markdown"]
        ))
    );
    let annotations = summary(&["-o", "github"]);
    let first = annotations.lines().next().unwrap();
    assert!(
        first.starts_with("::error file=eval.yaml,line=1,title=wrong%3A 0/6 trials passed::"),
        "{annotations}"
    );
    let both = proctor(
        &suite,
        &["result", "summary", "run", "--cases", "-o", "json"],
    );
    assert_eq!(both.status.code(), Some(2), "a flag without effect");
}

#[test]
fn check_prints_markdown_even_if_the_run_does_not_start() {
    let suite = suite();
    let words = [
        "check",
        "eval.yaml",
        "-q",
        "-n",
        "6",
        "--record",
        "again",
        "-o",
        "markdown",
    ];
    let output = proctor(&suite, &words);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("### Proctor: gate missed"), "{text}");
    let shown = ["result", "show", "again", "-o", "markdown"];
    assert_eq!(text, stdout(&proctor(&suite, &shown)));
    let output = proctor(&suite, &["check", "none.yaml", "-o", "markdown"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("`none.yaml` did not start"), "{text}");
    assert!(text.contains("Exit code 2"), "{text}");
}
