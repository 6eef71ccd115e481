//! `proctor result` and `proctor view` on generated runs of many trials: CPU time and memory of a summary, of a trial's
//! name, of coverage, of a gate, of a comparison, and of the first page.

#![expect(clippy::disallowed_methods, reason = "the binary itself has no guard")]
#![expect(clippy::print_stdout, reason = "the figures are the result")]

#[path = "results/generated.rs"]
mod generated;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use proctor_record::record::RunReader;

use self::generated::{RUNS, write};

const ROUNDS: usize = 5;

fn main() {
    let trials = std::env::var("PROCTOR_BENCH_TRIALS").ok();
    let trials: u32 = trials.and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let folder = tempfile::tempdir().expect("a folder can be made");
    let [base, run] = ["base", "run"].map(|name| folder.path().join(name));
    let cases = (trials / RUNS / 2).max(1);
    let start = Instant::now();
    write(&base, cases, 0);
    write(&run, cases, 1);
    let index = fs::metadata(run.join("index.jsonl")).expect("an index");
    println!(
        "2 runs of {} trials, {cases} cases by 2 agents, written in {:.1?}; index: {} MB, trials: {} MB",
        cases * RUNS * 2,
        start.elapsed(),
        index.len() / 1_000_000,
        RunReader::open(&run).expect("a run").bytes() / 1_000_000,
    );
    println!(
        "{:<34} {:>9} {:>9} {:>8}",
        "proctor result", "CPU", "wall", "peak MB"
    );
    let [base, run] = [&base, &run].map(|path| path.to_str().expect("a path"));
    let trial = format!("codex/case-{:05} 7", cases / 2);
    let typo = format!("codxe/case-{:05} 7", cases / 2);
    for (name, words) in [
        ("view RUN TRIAL", vec!["view", run, &trial]),
        ("view RUN TYPO", vec!["view", run, &typo]),
        ("summary RUN", vec!["summary", run]),
        ("summary RUN -o json", vec!["summary", run, "-o", "json"]),
        (
            "show RUN --case (one case)",
            vec!["show", run, "--case", "case-00007$"],
        ),
        ("coverage RUN", vec!["coverage", run]),
        ("verify RUN", vec!["verify", run]),
        (
            "verify RUN --task --assertion",
            vec!["verify", run, "--task", "0.5", "--assertion", "0.5"],
        ),
        ("diff BASE RUN", vec!["diff", base, run]),
    ] {
        measure(name, &words);
    }
    measure_viewer(run);
}

/// The time, CPU and memory of a viewer until it has sent the data of the first page.
fn measure_viewer(run: &str) {
    let (mut cpu, mut wall) = (Duration::MAX, Duration::MAX);
    let (mut peak, mut bytes) = (0, 0);
    for _ in 0..ROUNDS {
        let before = cpu_of_children();
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .args(["view", run])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("proctor starts");
        bytes = first_page(&mut child).len();
        wall = wall.min(start.elapsed());
        peak = peak.max(peak_kib(child.id()).unwrap_or(0));
        child.kill().expect("proctor runs");
        child.wait().expect("proctor ends");
        cpu = cpu.min(cpu_of_children().saturating_sub(before));
    }
    println!(
        "{:<34} {cpu:>9.2?} {wall:>9.2?} {:>8}  ({bytes} bytes)",
        "proctor view: first page",
        peak / 1024
    );
}

fn first_page(child: &mut Child) -> Vec<u8> {
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("a URL");
    let address = line.trim().strip_prefix("http://").expect("a URL");
    let (host, token) = address.split_once("/#token=").expect("a token");
    let mut stream = TcpStream::connect(host).expect("proctor listens");
    let request = format!(
        "GET /api/runs/run/overview HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\
         Connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("a request");
    let mut response = Vec::new();
    stream.read_to_end(&mut response).expect("a response");
    assert!(response.starts_with(b"HTTP/1.1 200 "), "an overview");
    response
}

/// Prints the least CPU time, the least wall time and the peak memory of several rounds.
fn measure(name: &str, words: &[&str]) {
    let (mut cpu, mut wall, mut peak) = (Duration::MAX, Duration::MAX, 0);
    for _ in 0..ROUNDS {
        let before = cpu_of_children();
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_proctor"))
            .arg("result")
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("proctor starts");
        // The system's count of children starts with the memory of this process.
        let status = loop {
            peak = peak.max(peak_kib(child.id()).unwrap_or(0));
            if let Some(status) = child.try_wait().expect("proctor can be waited for") {
                break status;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        wall = wall.min(start.elapsed());
        // A gate may be missed or inconclusive, and a typo names no trial.
        assert!(
            matches!(status.code(), Some(0 | 1 | 3 | 4)),
            "proctor result {words:?}: {status}"
        );
        cpu = cpu.min(cpu_of_children().saturating_sub(before));
    }
    println!("{name:<34} {cpu:>9.2?} {wall:>9.2?} {:>8}", peak / 1024);
}

/// The peak memory of a process so far; `None` where there is no `/proc`.
fn peak_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn cpu_of_children() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("usage can be read");
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.unsigned_abs())
}
