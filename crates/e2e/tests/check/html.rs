//! `--report` and `result convert --to html`: a page never shows a run as better than `result show` does.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use data_encoding::BASE64;
use flate2::read::DeflateDecoder;
use proctor_e2e::suite::SuiteFixture;
use rustix::process::Signal;
use serde_json::{Value, json};

const RULES: &str = r"
  - when: {prompt: bad}
    reply: {text: I would rather not.}
  - when: {prompt: slow, results: 0}
    reply: {calls: [{tool: sleep, arguments: {ms: 600000}}]}
  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn suite(tasks: &[(&str, Value)]) -> SuiteFixture {
    let suite = SuiteFixture::new(RULES, &[]);
    let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    for (task, spec) in tasks {
        suite.task(task, spec);
    }
    suite
}

/// The data that the first page of a report shows.
fn index(page: &Path) -> Value {
    let text = fs::read_to_string(page).unwrap();
    let start = "id=\"index\">";
    let from = text.find(start).unwrap() + start.len();
    let end = from + text[from..].find("</script>").unwrap();
    let bytes = BASE64.decode(&text.as_bytes()[from..end]).unwrap();
    let mut json = String::new();
    DeflateDecoder::new(&bytes[..])
        .read_to_string(&mut json)
        .unwrap();
    serde_json::from_str(&json).unwrap()
}

fn proctor(words: &[&str], record: &Path) -> Vec<u8> {
    let mut command = Command::new(proctor_e2e::proctor());
    let output = command.args(words).arg(record).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    output.stdout
}

/// Compares a report with what `result show` says of the run, and returns its gate.
fn agrees(page: &Path, record: &Path) -> Value {
    let shown = proctor(&["result", "show", "-o", "json"], record);
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    let shown = &shown["proctor"];
    let overview = index(page)["overview"].take();
    let gate = &overview["gate"];
    let answer = match shown["gate"]["answer"].as_str().unwrap() {
        "open" => "inconclusive",
        answer => answer,
    };
    assert_eq!(gate["answer"], answer);
    assert_eq!(gate["reasons"], shown["gate"]["reasons"]);
    assert_eq!(gate["exit"], shown["exit"]["code"]);
    for key in [
        "passed",
        "failed",
        "timedOut",
        "errored",
        "cancelled",
        "notRun",
    ] {
        assert_eq!(overview["counts"][key], shown["trials"][key], "{key}");
    }
    gate.clone()
}

/// The same for a report that is made from the record.
fn converted(record: &Path) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let out = page.to_str().unwrap();
    proctor(&["result", "convert", "--to", "html", "--out", out], record);
    agrees(&page, record)
}

#[test]
fn a_run_that_passed_is_good() {
    let suite = suite(&[("a", json!({})), ("b", json!({}))]);
    let page = suite.path("report.html");
    let seen = suite.check(&["--report", page.to_str().unwrap()]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(agrees(&page, &seen.record)["isGood"], true);
    assert_eq!(converted(&seen.record)["isGood"], true);
}

#[test]
fn a_run_that_failed_and_errored_is_not_good() {
    let broken = json!({"setup": [{"script": {"inline": "exit 3"}}]});
    let suite = suite(&[("a", json!({})), ("bad", json!({})), ("c", broken)]);
    let page = suite.path("report.html");
    let seen = suite.check(&["--report", page.to_str().unwrap()]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    for gate in [agrees(&page, &seen.record), converted(&seen.record)] {
        assert_eq!(gate["isGood"], false);
        assert_eq!(gate["answer"], "missed");
    }
}

#[test]
fn a_run_that_was_interrupted_is_not_good() {
    let suite = suite(&[("a", json!({})), ("slow", json!({}))]);
    let page = suite.path("report.html");
    let words = ["--jobs", "1", "--report", page.to_str().unwrap()];
    let running = suite.check(&words).start();
    running.wait_for("600000");
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    for gate in [agrees(&page, &seen.record), converted(&seen.record)] {
        assert_eq!(gate["isGood"], false);
        assert_eq!(gate["answer"], "inconclusive");
        assert_eq!(gate["exit"], 130);
    }
}

/// The confusion matrix of the page is the one of `result show`, cell by cell.
#[test]
fn a_page_shows_which_tools_a_model_confuses() {
    let suite = crate::selection::suite(&json!([
        {"id": "1", "prompt": "echo a", "expect": "echo"},
        {"id": "2", "prompt": "add a", "expect": "echo"},
        {"id": "3", "prompt": "hello", "expect": "add"},
        {"id": "4", "prompt": "invent", "expect": "echo"},
    ]));
    let page = suite.path("report.html");
    let seen = suite.check(&["--report", page.to_str().unwrap()]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let drawn = index(&page)["overview"]["selection"][0].take();
    let shown = proctor(&["result", "show", "-o", "json"], &seen.record);
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    let shown = &shown["proctor"]["selection"][0];
    assert_eq!(drawn["trials"], 4);
    let name = |choice: &Value| match choice["kind"].as_str().unwrap() {
        "tool" => choice["tool"].clone(),
        "invented" => json!("(invented name)"),
        _ => json!("(no call)"),
    };
    let mut expected: Vec<Value> = shown["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| {
            json!([
                name(&pair["expected"]),
                name(&pair["chosen"]),
                pair["count"]
            ])
        })
        .collect();
    let choice =
        |at: &Value| drawn["choices"][usize::try_from(at.as_u64().unwrap()).unwrap()].clone();
    let mut cells: Vec<Value> = drawn["confusion"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| json!([choice(&cell[0]), choice(&cell[1]), cell[2]]))
        .collect();
    for list in [&mut expected, &mut cells] {
        list.sort_by_key(ToString::to_string);
    }
    assert_eq!(cells, expected);
    assert_eq!(cells.len(), 4);
    let tools = drawn["tools"].as_array().unwrap();
    let echo = tools.iter().find(|tool| tool["name"] == "echo").unwrap();
    assert_eq!(
        (&echo["hits"], &echo["misses"], &echo["recall"]),
        (&json!(1), &json!(2), &json!("33.3%"))
    );
}

#[test]
fn a_record_that_was_changed_is_not_good() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("run");
    let forge = format!(
        "cd {} && sed -i s/failed/passed/ trials/*bad*.jsonl && rm index.jsonl",
        record.display()
    );
    let forge = json!({"verify": [{"script": {"inline": forge}}]});
    let suite = suite(&[("a-bad", json!({})), ("b-good", forge)]);
    let page = suite.path("report.html");
    let words = ["--jobs", "1", "--report", page.to_str().unwrap()];
    let seen = suite.check(&words).record_in(&record).run();
    assert_eq!(seen.code, Some(3), "{}", seen.stderr);
    for gate in [agrees(&page, &record), converted(&record)] {
        assert_eq!(gate["isGood"], false);
        assert_eq!(gate["answer"], "inconclusive");
        let reasons = gate["reasons"].to_string();
        assert!(reasons.contains("was changed"), "{reasons}");
    }
    // A stored run whose trial is changed later is graded by its files, whatever its index says.
    let index = fs::read_to_string(record.join("index.jsonl")).unwrap();
    fs::write(
        record.join("index.jsonl"),
        index.replace("failed", "passed"),
    )
    .unwrap();
    assert_eq!(converted(&record)["isGood"], false);
}

#[test]
fn a_run_that_did_not_start_replaces_the_report_of_an_earlier_one() {
    let suite = suite(&[("a", json!({}))]);
    let page = suite.path("report.html");
    fs::write(&page, "an earlier report").unwrap();
    suite.eval(&json!({}), &json!({"assertions": {"toolsUsd": []}}));
    let output = Command::new(proctor_e2e::proctor())
        .args(["check", "eval.yaml", "--report", "report.html"])
        .current_dir(suite.folder())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(index(&page)["refused"]["exit"], 2);
}

#[test]
fn a_report_keeps_its_limit() {
    let suite = suite(&[("a", json!({})), ("b", json!({}))]);
    let seen = suite.check(&[]).run();
    let convert = |size: &str| {
        Command::new(proctor_e2e::proctor())
            .args(["result", "convert", "--to", "html", "--max-size", size])
            .arg(&seen.record)
            .output()
            .unwrap()
    };
    let whole = convert("25MB");
    assert!(whole.status.success() && whole.stderr.is_empty());
    let small = convert("1kB");
    assert!(small.status.success());
    let said = String::from_utf8(small.stderr).unwrap();
    assert!(said.contains("the details of 0 of 2 trials"), "{said}");
    assert!(small.stdout.len() < whole.stdout.len());
    for wrong in ["0", "25 apples", "-1"] {
        let refused = convert(wrong);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
    }
    let other = Command::new(proctor_e2e::proctor())
        .args(["result", "convert", "--to", "json", "--max-size", "1MB"])
        .arg(&seen.record)
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(2));
}
