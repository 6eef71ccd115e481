//! What the disk costs a run of many trials at once: beside the same run on tmpfs, and with a slow sync.
//!
//! Runs take turns, so that a slow moment of the machine touches all of them.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use proctor_e2e::proctor;
use proctor_e2e::suite::SuiteFixture;
use serde_json::json;

/// How many tasks a suite has. More trials are more runs of each.
const TASKS: usize = 100;

/// How often everything is run, in turns. The best counts: what else the machine does only adds.
const ROUNDS: usize = 3;

/// Where there is no disk.
const TMPFS: &str = "/dev/shm";

/// How strace makes each sync take 100 ms longer, and leaves everything else alone.
const SLOW: [&str; 6] = [
    "-f",
    "--seccomp-bpf",
    "-o/dev/null",
    "-etrace=fsync,fdatasync",
    "--inject=fsync,fdatasync:delay_exit=100000",
    "--",
];

fn main() {
    let records = tempfile::tempdir().expect("a folder can be made");
    beside_tmpfs(records.path());
    slow_syncs(records.path());
}

/// 1,000 trials at once, with a model that takes half a second for each of three turns.
fn beside_tmpfs(disk: &Path) {
    if !Path::new(TMPFS).is_dir() {
        println!("no `{TMPFS}`: the comparison with tmpfs is left out");
        return;
    }
    let tmpfs = tempfile::tempdir_in(TMPFS).expect("a folder can be made");
    let suite = suite(TASKS, "500ms");
    let (mut slow, mut fast) = (Vec::new(), Vec::new());
    check(&[], &self::suite(1, "1ms"), &disk.join("one"), &[]);
    let alone = peak();
    for round in 0..ROUNDS {
        let name = format!("many-{round}");
        let words = ["--jobs", "1000", "--runs", "10"];
        fast.push(check(&[], &suite, &tmpfs.path().join(&name), &words));
        slow.push(check(&[], &suite, &disk.join(&name), &words));
    }
    let (disk, tmpfs) = (best(&slow), best(&fast));
    println!("1,000 trials at once, 3 turns of 500 ms:");
    println!(
        "  tmpfs {tmpfs:.2?}, disk {disk:.2?}, ratio {:.2}",
        ratio(disk, tmpfs)
    );
    println!("  rounds: tmpfs {fast:.2?}, disk {slow:.2?}");
    println!(
        "  disk beside the ideal 1.5 s: {:.2}; peak memory {:.1} MB, {:.0} KiB per concurrent trial",
        disk.as_secs_f64() / 1.5,
        peak() / 1024.0,
        (peak() - alone) / 1000.0
    );
}

/// 32 trials whose model takes next to no time, where each sync takes 100 ms.
fn slow_syncs(disk: &Path) {
    let strace = Command::new("strace")
        .arg("-V")
        .stdout(Stdio::null())
        .status();
    if !strace.is_ok_and(|status| status.success()) {
        println!("no `strace`: slow syncs are left out");
        return;
    }
    let suite = suite(32, "1ms");
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        for (jobs, times) in [("4", &mut few), ("16", &mut many)] {
            let record = disk.join(format!("slow-{jobs}-{round}"));
            let slow = [&["strace"], &SLOW[..]].concat();
            times.push(check(&slow, &suite, &record, &["--jobs", jobs]));
        }
    }
    println!("32 trials, each sync takes 100 ms longer:");
    let (few, many) = (best(&few), best(&many));
    println!(
        "  4 jobs {few:.2?}, 16 jobs {many:.2?}, ratio {:.2}",
        ratio(many, few)
    );
}

/// Trials that call, call again and answer, on a server that they share.
fn suite(tasks: usize, delay: &str) -> SuiteFixture {
    let rules = format!(
        r"
  - when: {{results: 0}}
    reply: {{calls: [{{tool: echo, arguments: {{text: one}}}}], delay: {delay}}}
  - when: {{results: 1}}
    reply: {{calls: [{{tool: echo, arguments: {{text: two}}}}], delay: {delay}}}
  - reply: {{text: done, delay: {delay}}}
"
    );
    let suite = SuiteFixture::new(&rules, &["--era", "handshake"]);
    let assertions = json!({"minToolCalls": 2, "maxToolCalls": 2});
    suite.eval(
        &json!({"isolation": "run"}),
        &json!({"assertions": assertions}),
    );
    for task in 0..tasks {
        suite.task(&format!("task-{task}"), &json!({}));
    }
    suite
}

/// How long `proctor check` takes, behind these words.
fn check(before: &[&str], suite: &SuiteFixture, record: &Path, words: &[&str]) -> Duration {
    let proctor = proctor();
    let (first, rest) = before.split_first().unzip();
    let mut command = Command::new(first.map_or(proctor.as_os_str(), |first| (*first).as_ref()));
    if let Some(rest) = rest {
        command.args(rest).arg(&proctor);
    }
    let started = Instant::now();
    let status = command
        .arg("check")
        .arg(suite.path("eval.yaml"))
        .arg("--record")
        .arg(record)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("proctor starts");
    assert!(status.success(), "proctor check ended with {status}");
    started.elapsed()
}

/// The most memory of a run so far, in KiB.
fn peak() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage can be read");
    f64::from(u32::try_from(usage.max_rss()).expect("less than a terabyte"))
}

fn best(times: &[Duration]) -> Duration {
    times.iter().copied().min().expect("a round")
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64()
}
