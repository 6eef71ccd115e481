//! Large records: how much memory it takes to view and to regrade them.
//!
//! The records are generated from a real trial: its call is repeated until the record has the wanted size.
//! Peak memory must depend neither on the size of a record nor on the number of its trials, apart from what
//! a trial's calls take.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use proctor_e2e::session::peak_kib;
use proctor_e2e::suite::SuiteFixture;
use proctor_e2e::{fixture, proctor};
use serde_json::{Value, json};

const RULES: &str = "  - when: {results: 0}
    reply: {calls: [{tool: echo, arguments: {text: hi}}]}
  - reply: {text: done}
";

fn main() {
    let megabytes = std::env::var("PROCTOR_BENCH_MB").ok();
    let megabytes: u64 = megabytes.and_then(|text| text.parse().ok()).unwrap_or(200);
    println!(
        "{:<34} {:>8} {:>9} {:>12} {:>10} {:>9}",
        "record", "MB", "calls", "command", "CPU", "peak MB"
    );
    for (name, trials, result) in [
        ("one trial, results of 4 kB", 1, 4_000),
        ("one trial, results of 30 kB", 1, 30_000),
        ("many trials, results of 4 kB", 200, 4_000),
    ] {
        let suite = suite(trials);
        let calls = generate(&suite, megabytes * 1_000_000 / trials, result);
        let size = size(&suite.path("run/trials")) / 1_000_000;
        let commands: [(&str, &[&str]); 4] = [
            ("view", &["result", "view", "run"]),
            ("view --raw", &["result", "view", "run", "--raw"]),
            ("regrade", &["result", "regrade", "run"]),
            ("show", &["result", "show", "run"]),
        ];
        for (command, words) in commands {
            let (cpu, peak) = measured(&suite, words);
            println!(
                "{name:<34} {size:>8} {calls:>9} {command:>12} {cpu:>10.1?} {:>9}",
                peak / 1024
            );
        }
    }
}

/// A suite with a real run of this many trials in `run`.
fn suite(trials: u64) -> SuiteFixture {
    let suite = SuiteFixture::on(
        RULES,
        &json!({"fixture": {"command": fixture(), "args": []}}),
    );
    let assertions = json!({
        "toolsUsed": [{"server": "fixture", "tool": "echo", "isError": false}],
        "maxToolCalls": 1_000_000,
        "toolsNotUsed": [{"server": "fixture", "toolPattern": "delete.*"}],
    });
    suite.eval(&json!({}), &json!({"assertions": assertions}));
    suite.task(
        "large",
        &json!({"verify": [{"script": {"inline": "test -d /"}}]}),
    );
    let status = Command::new(proctor())
        .args([
            "check",
            "eval.yaml",
            "-q",
            "--record",
            "run",
            "-j",
            "4",
            "-n",
        ])
        .arg(trials.to_string())
        .current_dir(suite.folder())
        .stdout(Stdio::null())
        .status()
        .expect("proctor starts");
    assert!(status.success(), "the trials pass");
    suite
}

/// Repeats the call of every trial until its record has this many bytes. Returns the number of calls.
fn generate(suite: &SuiteFixture, bytes: u64, result: usize) -> u64 {
    let entries = fs::read_dir(suite.path("run/trials")).expect("the run has trials");
    let paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    paths.iter().map(|path| enlarge(path, bytes, result)).sum()
}

fn enlarge(path: &Path, bytes: u64, result: usize) -> u64 {
    let file = File::open(path).expect("the trial can be read");
    let lines: Vec<Value> = BufReader::new(file)
        .lines()
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("an event"))
        .collect();
    let is_call = |line: &Value| {
        let text = line["event"]["frame"]["body"]["text"].as_str();
        text.is_some_and(|text| text.contains("tools/call") || text.contains("\"content\""))
    };
    let first = lines
        .iter()
        .position(is_call)
        .expect("the trial has a call");
    let temporary = path.with_extension("tmp");
    let mut out = BufWriter::new(File::create(&temporary).expect("a file can be made"));
    let (mut seq, mut written, mut calls) = (0, 0, 0);
    let mut write = |line: &Value| {
        seq += 1;
        let mut line = line.clone();
        line["seq"] = seq.into();
        let line = line.to_string();
        writeln!(out, "{line}").expect("a line can be written");
        line.len() as u64 + 1
    };
    for line in &lines[..first + 2] {
        written += write(line);
    }
    let text = "lorem ipsum ".repeat(result / 12);
    while written < bytes {
        calls += 1;
        for line in &lines[first..first + 2] {
            let frame = &line["event"]["frame"];
            let message = frame["body"]["text"].as_str().expect("a message");
            let mut message: Value = serde_json::from_str(message).expect("a message");
            message["id"] = (1_000_000 + calls).into();
            if let Some(text) = message.pointer_mut("/params/arguments/text") {
                *text = format!("call {calls}").into();
            }
            if let Some(answer) = message.pointer_mut("/result/content/0/text") {
                *answer = text.clone().into();
            }
            let mut line = line.clone();
            line["event"]["frame"]["body"]["text"] = message.to_string().into();
            written += write(&line);
        }
    }
    for line in &lines[first + 2..] {
        write(line);
    }
    out.flush().expect("a file can be written");
    fs::rename(temporary, path).expect("a file can be renamed");
    calls + 1
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("the folder can be read");
    let lengths = entries.map(|entry| {
        let metadata = entry.and_then(|entry| entry.metadata());
        metadata.expect("the file can be read").len()
    });
    lengths.sum()
}

/// The CPU time of a command, and its peak memory in KiB.
fn measured(suite: &SuiteFixture, words: &[&str]) -> (Duration, u64) {
    let before = cpu_of_children();
    let mut child = Command::new(proctor())
        .args(words)
        .current_dir(suite.folder())
        .stdout(Stdio::null())
        .spawn()
        .expect("proctor starts");
    let mut peak = 0;
    loop {
        peak = peak.max(peak_kib(child.id()).unwrap_or(0));
        if let Some(status) = child.try_wait().expect("proctor can be waited for") {
            assert!(
                status.success(),
                "{words:?} in {}",
                suite.folder().display()
            );
            return (cpu_of_children().saturating_sub(before), peak);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage can be read");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.unsigned_abs())
}
