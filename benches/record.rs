//! The record: what it costs to append to it, and in how much memory it folds.
//!
//! Writers take turns, so that a slow moment of the machine touches both.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use proctor_record::event::{
    Actor, ConnectionId, ConnectionOpened, Direction, EventKind, Outcome, RECORD_VERSION,
    RunStarted, TrialEnded, TrialStarted, WireKind,
};
use proctor_record::fold::{FoldOptions, fold_trial};
use proctor_record::record::{RecordError, RunReader, RunWriter, TrialWriter};
use proctor_record::redact::Redactor;

const FRAMES: u64 = 200_000;
const ROUNDS: usize = 5;
const RESULT: usize = 4_000;

fn main() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    append(folder.path()).expect("the record can be written");
    let megabytes = std::env::var("PROCTOR_BENCH_MB").ok();
    let megabytes: usize = megabytes.and_then(|text| text.parse().ok()).unwrap_or(100);
    let calls = megabytes * 1_000_000 / (RESULT + 400);
    println!(
        "\n{:<28} {:>8} {:>10} {:>9}",
        "folding", "calls", "time", "peak MB"
    );
    // From small to large, since the peak never falls.
    fold(
        folder.path(),
        "many trials of 100 calls",
        calls.div_ceil(100),
        100,
    )
    .expect("it folds");
    fold(folder.path(), "one trial", 1, calls).expect("it folds");
}

fn append(folder: &Path) -> Result<(), RecordError> {
    let frame = br#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}"#;
    let mut record = Vec::new();
    let mut bare = Vec::new();
    for round in 0..ROUNDS {
        let run = start(&folder.join(format!("append-{round}")))?;
        let mut trial = run.trial(0, "append", started())?;
        let start = Instant::now();
        for at in 0..FRAMES {
            // A frame every 20 microseconds: a sync every 5,000 frames.
            trial.append_frame(at * 20, ConnectionId(1), None, Direction::ToServer, frame)?;
        }
        trial.end(FRAMES * 20, passed())?;
        record.push(start.elapsed());
        let path = run.folder().join("trials/append.1.jsonl");
        let text = fs::read(path).expect("the trial has ended");
        bare.push(write_bare(&folder.join("bare"), &text));
    }
    record.sort();
    bare.sort();
    let each = record[0].as_secs_f64() * 1e6 / 200_000.0;
    println!(
        "appending {FRAMES} frames: {:.1?} fastest, {:.1?} median, {each:.2} µs a frame",
        record[0],
        record[ROUNDS / 2]
    );
    println!(
        "bare write of the same:   {:.1?} fastest, {:.1?} median",
        bare[0],
        bare[ROUNDS / 2]
    );
    println!(
        "ratio of the fastest:     {:.2}",
        record[0].as_secs_f64() / bare[0].as_secs_f64()
    );
    Ok(())
}

fn write_bare(path: &Path, text: &[u8]) -> Duration {
    let mut file = File::create(path).expect("a file can be made");
    let start = Instant::now();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        file.write_all(line).expect("a line can be written");
    }
    file.sync_data().expect("a file can be synced");
    start.elapsed()
}

fn fold(folder: &Path, name: &str, trials: usize, calls: usize) -> Result<(), RecordError> {
    let folder = folder.join(name);
    let run = start(&folder)?;
    for number in 0..trials {
        write_trial(run.trial(0, &format!("trial-{number}"), started())?, calls)?;
    }
    let written = peak_megabytes();
    let run = RunReader::open(&folder)?;
    let start = Instant::now();
    let mut found = 0;
    for trial in run.trials()? {
        found += fold_trial(&run, &trial, &FoldOptions::default())?
            .transcript
            .calls
            .len();
    }
    let elapsed = start.elapsed();
    assert_eq!(found, trials * calls, "every call is folded");
    println!(
        "{name:<28} {found:>8} {elapsed:>10.1?} {:>9}   ({written} before)",
        peak_megabytes()
    );
    fs::remove_dir_all(folder).expect("the run can be removed");
    Ok(())
}

fn write_trial(mut trial: TrialWriter, calls: usize) -> Result<(), RecordError> {
    let conn = ConnectionId(1);
    trial.append(
        0,
        EventKind::ConnectionOpened(ConnectionOpened {
            conn,
            server: "echo".to_owned(),
            actor: Actor::Loop,
            transport: WireKind::Stdio,
            target: "echo".to_owned(),
        }),
    )?;
    let text = "lorem ipsum ".repeat(RESULT / 12);
    for id in 0..calls {
        let at = id as u64 * 100;
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"n":{id}}}}}}}"#
        );
        trial.append_frame(at, conn, None, Direction::ToServer, request.as_bytes())?;
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        );
        trial.append_frame(at + 50, conn, None, Direction::ToClient, result.as_bytes())?;
    }
    trial.end(calls as u64 * 100, passed()).map(drop)
}

fn start(folder: &Path) -> Result<RunWriter, RecordError> {
    let secrets = [(
        "BENCH_TOKEN".to_owned(),
        "a-secret-that-never-occurs".to_owned(),
    )];
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: String::new(),
        started: String::new(),
        name: "bench".to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(folder, Redactor::new(secrets), started)
}

fn started() -> TrialStarted {
    TrialStarted {
        case: "bench".to_owned(),
        agent: None,
        repeat: 1,
        attempt: 1,
    }
}

fn passed() -> TrialEnded {
    TrialEnded {
        outcome: Outcome::Passed,
        reason: None,
        blame: None,
    }
}

/// The most memory that this process ever had, as Linux tells it.
fn peak_megabytes() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<u64> =
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or("unknown".to_owned(), |kilobytes| {
        (kilobytes / 1024).to_string()
    })
}
