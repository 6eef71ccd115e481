//! What is derived from a run beside its trials: the index, the overview, what servers offer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use proctor_core::overview::{Answer, Overview};
use proctor_e2e::session::Session;
use proctor_e2e::suite::SuiteFixture;
use proctor_record::event::{EventKind, Surface};
use proctor_record::index::{self, IndexScrutiny};
use proctor_record::record::RunReader;
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

fn trial_of(record: &Path, task: &str) -> PathBuf {
    let entries = fs::read_dir(record.join("trials")).unwrap();
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| path.to_str().unwrap().contains(task);
    paths.find(is_it).unwrap()
}

#[test]
fn a_run_that_is_stopped_opens_no_trial_that_has_ended() {
    let suite = suite(&[("a-quick", json!({})), ("slow", json!({}))]);
    let running = suite.check(&["--jobs", "1"]).start();
    running.wait_for("600000");
    let path = trial_of(running.record(), "a-quick");
    let length = fs::metadata(&path).unwrap().len();
    // What it says is gone, and only its length is what it was.
    fs::File::create(&path).unwrap().set_len(length).unwrap();
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    let said = &seen.stdout;
    assert!(said.contains("1/1"), "{said}");
}

/// Every report that is made from the record says that it decides nothing.
fn stays_inconclusive(record: &Path, what: &str) {
    let path = record.join("summary.json");
    let stored: Overview = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(stored.gate, Answer::Inconclusive, "{what}");
    fs::remove_file(&path).unwrap();
    let made = Overview::load(&RunReader::open(record).unwrap()).unwrap();
    assert_eq!(made, stored, "{what}");
    let junit = record.join("junit.xml");
    let told = json_of(record, &["--junit", junit.to_str().unwrap()]);
    let gate = &told["proctor"]["gate"];
    assert_ne!(gate["answer"], "met", "{what}");
    let reasons = gate["reasons"].to_string();
    assert!(reasons.contains("was changed"), "{what}: {reasons}");
    let xml = fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("was changed after the trial ended"), "{xml}");
    fs::remove_file(junit).unwrap();
}

/// What `result show` says of a run.
fn json_of(record: &Path, options: &[&str]) -> Value {
    let mut show = Command::new(proctor_e2e::proctor());
    show.args(["result", "show", "-o", "json"]).args(options);
    serde_json::from_slice(&show.arg(record).output().unwrap().stdout).unwrap()
}

#[test]
fn a_record_that_is_changed_during_the_run_decides_nothing() {
    // As an agent could, which runs as the same user.
    let forge = |what: &str| {
        let script = format!("cd RECORD && {what}");
        json!({"verify": [{"script": {"inline": script}}]})
    };
    for what in [
        "sed -i s/failed/passed/ index.jsonl",
        "sed -i s/failed/passed/ trials/*bad*.jsonl && rm index.jsonl",
        "f=$(ls trials/*bad*.1.jsonl); \
         sed 's/failed/passed/;s/\"attempt\":1/\"attempt\":2/' $f > $(echo $f | sed s/.1.jsonl/.2.jsonl/)",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let record = folder.path().join("run");
        let spec = forge(what)
            .to_string()
            .replace("RECORD", record.to_str().unwrap());
        let suite = suite(&[
            ("a-bad", json!({})),
            ("b-good", serde_json::from_str(&spec).unwrap()),
        ]);
        let seen = suite.check(&["--jobs", "1"]).record_in(&record).run();
        assert_eq!(
            seen.code,
            Some(3),
            "{what}\n{}\n{}",
            seen.stdout,
            seen.stderr
        );
        let words: Vec<&str> = seen.stdout.split_whitespace().collect();
        let said = words.join(" ");
        assert!(said.contains("changed after the trial ended"), "{said}");
        assert!(!said.contains("Gate met"), "{said}");
        stays_inconclusive(&record, what);
        // A trial that seems to have passed is not run again, and still decides nothing.
        let again = Session::new(&["check"]).resume(&record).run();
        assert_eq!(again.code, Some(3), "{what}\n{}", again.stdout);
        stays_inconclusive(&record, what);
    }
}

#[test]
fn a_stored_run_is_shown_by_its_files_whatever_the_index_says() {
    let suite = suite(&[("a-bad", json!({})), ("b-good", json!({}))]);
    let seen = suite.check(&[]).run();
    assert_eq!(seen.code, Some(1), "{}", seen.stderr);
    let index = seen.record.join("index.jsonl");
    let whole = fs::read_to_string(&index).unwrap();
    let show = || {
        let mut show = Command::new(proctor_e2e::proctor());
        let output = show
            .args(["result", "show"])
            .arg(&seen.record)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let then = show();
    assert!(then.contains("1/2"), "{then}");
    for lie in [
        whole.replace("\"failed\"", "\"passed\""),
        String::new(),
        "{\n".to_owned(),
    ] {
        fs::write(&index, lie).unwrap();
        assert_eq!(show(), then);
    }
}

#[test]
fn a_run_leaves_an_index_and_an_overview_that_fit() {
    let suite = suite(&[("a-bad", json!({})), ("b-good", json!({}))]);
    let seen = suite.check(&[]).run();
    let path = seen.record.join("summary.json");
    let run = RunReader::open(&seen.record).unwrap();
    let kept = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let made = Overview::load(&run).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), kept);
    assert_eq!((made.gate, made.trials.passed), (Answer::Missed, 1));
    let before = fs::read_to_string(seen.record.join("index.jsonl")).unwrap();
    let entries = index::load(&run, IndexScrutiny::Digest).unwrap();
    let after = fs::read_to_string(seen.record.join("index.jsonl")).unwrap();
    assert_eq!((entries.len(), after), (2, before));
    assert!(index::under_way(&run).is_empty());
    // One that went on has another.
    let again = Session::new(&["check"]).resume(&seen.record).run();
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert_ne!(fs::read_to_string(&path).unwrap(), kept);
}

#[test]
fn all_that_a_server_offers_is_kept_once() {
    let suite = suite(&[("b-good", json!({}))]);
    let seen = suite.check(&[]).run();
    let again = Session::new(&["check", "-n", "1"])
        .resume(&seen.record)
        .run();
    drop(again);
    let run = RunReader::open(&seen.record).unwrap();
    let events: Vec<_> = run.events().unwrap().map(Result::unwrap).collect();
    let servers = events.iter().filter_map(|event| match &event.event {
        EventKind::ServerSeen(seen) => Some(seen),
        _ => None,
    });
    let bodies: Vec<_> = servers.map(|seen| seen.surface.clone().unwrap()).collect();
    assert!(matches!(
        bodies[0],
        proctor_record::event::Body::Blob { .. }
    ));
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    let bytes = run.body_bytes(&bodies[0]).unwrap().unwrap();
    let surface: Surface = serde_json::from_slice(&bytes).unwrap();
    let named = |all: &[Box<serde_json::value::RawValue>], key: &str| {
        all.iter()
            .any(|item| item.get().contains(&format!("\"{key}\"")))
    };
    assert!(named(&surface.tools, "inputSchema"), "{surface:?}");
    let told = json_of(&seen.record, &[]);
    let tools = told["summary"]["mcpServers"][0]["tools"]
        .as_array()
        .unwrap();
    assert_eq!(tools.len(), surface.tools.len());
    let mut keys: Vec<&String> = tools[0].as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["description", "inputSchema", "name"]);

    // As records of earlier versions have it.
    let path = seen.record.join("run.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let list = json!({"toolList": {"text": Value::Array(tools.clone()).to_string()}});
    let list = list.to_string();
    let older: String = text
        .lines()
        .map(|line| match line.split_once("\"surface\":") {
            Some((before, rest)) => {
                let (_, after) = rest.split_once("}}").unwrap();
                format!("{before}{}{after}\n", &list[1..list.len() - 1])
            }
            None => format!("{line}\n"),
        })
        .collect();
    assert_ne!(older, text);
    fs::write(&path, older).unwrap();
    assert_eq!(json_of(&seen.record, &[])["summary"], told["summary"]);
}

/// Short trials are folded while they run, for checks and index at once. The files give the same.
#[test]
fn the_entries_of_a_run_are_those_that_its_files_give() {
    let script = |text: &str| json!([{"script": {"inline": format!("#!/bin/sh\n{text}\n")}}]);
    let tasks = [
        ("good", json!({})),
        ("bad", json!({})),
        ("slow", json!({"limits": {"timeout": "300ms"}})),
        (
            "set-up",
            json!({"setup": script("echo hello"), "verify": script("exit 0")}),
        ),
        ("unset", json!({"setup": script("exit 1")})),
        ("unverified", json!({"verify": script("exit 1")})),
        ("dirty", json!({"cleanup": script("exit 1")})),
    ];
    for isolation in ["trial", "run"] {
        let suite = suite(&tasks);
        let assertions = json!({"toolsUsed": [{"server": "fixture", "tool": "echo"}]});
        suite.eval(
            &json!({"isolation": isolation}),
            &json!({"assertions": assertions}),
        );
        let seen = suite.check(&["--jobs", "2", "--runs", "2"]).run();
        assert_eq!(seen.code, Some(1), "{}", seen.stderr);
        let run = RunReader::open(&seen.record).unwrap();
        let mut folded = Vec::new();
        index::each_folded(&run, |entry| folded.push(entry)).unwrap();
        assert_eq!(folded.len(), 14);
        let stored = fs::read_to_string(seen.record.join("index.jsonl")).unwrap();
        for entry in &folded {
            let line = json!({"ended": entry}).to_string();
            let line: Value = serde_json::from_str(&line).unwrap();
            let mut lines = stored
                .lines()
                .map(|line| serde_json::from_str(line).unwrap());
            assert!(
                lines.any(|stored: Value| stored == line),
                "{line}\nnot in\n{stored}"
            );
        }
    }
}
