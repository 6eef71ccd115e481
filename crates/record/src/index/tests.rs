//! Indexes that are written, damaged, stale, of another run, old and missing.

use std::fs;
use std::path::{Path, PathBuf};

use crate::event::{
    Actor, CheckEvaluated, ConnectionId, ConnectionOpened, Direction, EventKind, Outcome,
    RECORD_VERSION, RunStarted, TrialStarted, WireKind,
};
use crate::record::{RecordOptions, RunWriter};
use crate::redact::Redactor;
use crate::verdict::Verdict;

use super::*;

const TRIALS: &str = "trials";

fn create(folder: &Path, started: &str) -> RunWriter {
    let started = RunStarted {
        record: RECORD_VERSION,
        proctor: "0.1.0".to_owned(),
        started: started.to_owned(),
        name: "suite".to_owned(),
        command: Vec::new(),
        context: None,
    };
    RunWriter::create(folder, Redactor::default(), started).unwrap()
}

fn begin(run: &RunWriter, name: &str, attempt: u32) -> TrialWriter {
    let started = TrialStarted {
        case: format!("tasks/{name}.yaml#{name}"),
        agent: Some("loop".to_owned()),
        repeat: 1,
        attempt,
    };
    let mut trial = run.trial(1, name, started).unwrap();
    let opened = EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fs".to_owned(),
        actor: Actor::Loop,
        transport: WireKind::Stdio,
        target: String::new(),
    });
    trial.append(2, opened).unwrap();
    trial
}

fn frame(trial: &mut TrialWriter, at: u64, direction: Direction, text: &str) {
    let frame = trial.append_frame(at, ConnectionId(1), None, direction, text.as_bytes());
    frame.unwrap();
}

fn end(trial: TrialWriter, outcome: Outcome) {
    let reason = (outcome != Outcome::Passed).then(|| "because".to_owned());
    let ended = TrialEnded {
        outcome,
        reason,
        blame: None,
    };
    end_trial(trial, 9, ended).unwrap();
}

/// A run with two ended trials, `a` and `b`, and an abandoned one, `c`.
fn three(folder: &Path) -> RunReader {
    let run = create(folder, "2026-11-15T05:00:00Z");
    end(begin(&run, "b", 1), Outcome::Failed);
    end(begin(&run, "a", 1), Outcome::Passed);
    drop(begin(&run, "c", 1));
    drop(run);
    RunReader::open(folder).unwrap()
}

fn index_of(folder: &Path) -> PathBuf {
    folder.join(INDEX)
}

fn files(entries: &[IndexEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.file.as_str()).collect()
}

/// Overwrites a file's bytes, and keeps its length.
fn blank(path: &Path) {
    let length = fs::metadata(path).unwrap().len();
    let file = fs::File::create(path).unwrap();
    file.set_len(length).unwrap();
}

fn lines(folder: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(index_of(folder)).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_trial_has_a_line_when_it_begins_and_one_when_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path(), "2026-11-15T05:00:00Z");
    let a = begin(&run, "a", 1);
    let b = begin(&run, "b", 2);
    run.flush();
    let reader = RunReader::open(folder.path()).unwrap();
    let named = |began: &[TrialBegan]| -> Vec<String> {
        began.iter().map(|began| began.file.clone()).collect()
    };
    assert_eq!(named(&under_way(&reader)), ["a.1.jsonl", "b.2.jsonl"]);
    // A writer that was killed may have left the line of a trial without a file.
    let (part, away) = (
        folder.path().join("trials/b.2.jsonl.part"),
        folder.path().join("away"),
    );
    fs::rename(&part, &away).unwrap();
    assert_eq!(named(&under_way(&reader)), ["a.1.jsonl"]);
    fs::rename(&away, &part).unwrap();
    end(a, Outcome::Passed);
    let left = under_way(&reader);
    assert_eq!(named(&left), ["b.2.jsonl"]);
    assert_eq!((left[0].trial.attempt, left[0].at), (2, 1));
    end(b, Outcome::Failed);
    assert!(under_way(&reader).is_empty());
    let kinds: Vec<String> = lines(folder.path())
        .iter()
        .map(|line| line.as_object().unwrap().keys().next().unwrap().clone())
        .collect();
    assert_eq!(kinds, ["began", "began", "ended", "ended"]);
}

#[test]
fn an_incomplete_index_is_rebuilt_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = three(folder.path());
    let all = load(&run, IndexScrutiny::Length).unwrap();
    assert_eq!(files(&all), ["a.1.jsonl", "b.1.jsonl", "c.1.jsonl.part"]);
    assert_eq!(all[2].attempt.ended, None);
    assert_eq!(all[0].events, 3);
    let whole = fs::read_to_string(index_of(folder.path())).unwrap();
    assert_eq!(
        whole.lines().count(),
        3,
        "the one that was left is named, too"
    );
    let first = whole.lines().next().unwrap();
    let old = r#"{"file":"a.1.jsonl","started":{"case":"x","agent":"loop","repeat":1,"attempt":1},"startedAt":1,"ended":{"outcome":"passed","reason":null},"endedAt":9,"events":3,"bytes":1}"#;
    for (damaged, what) in [
        (String::new(), "empty"),
        (whole[..whole.len() - 9].to_owned(), "torn"),
        (format!("{whole}{{}}\n"), "an invalid line"),
        (format!("{whole}{whole}"), "twice"),
        (
            format!("{whole}{}\n", first.replace("passed", "failed")),
            "two of one file",
        ),
        (format!("{old}\n"), "an older version"),
        (
            whole.replace("\"version\":3", "\"version\":2"),
            "another version",
        ),
        (
            whole.replace("a.1.jsonl", "z.1.jsonl"),
            "of a file that is not there",
        ),
        (
            whole.replace("2026-11-15T05:00:00Z", "2026-11-16T05:00:00Z"),
            "of another run",
        ),
        (
            whole.replace("\"attempt\":1", "\"attempt\":2"),
            "of another attempt",
        ),
        (
            whole.replacen("\"file\":\"b", "\"file\":\"a.1.jsonl\",\"file\":\"b", 1),
            "of two files in one line",
        ),
        (
            whole.replacen("{\"ended\":{", "{ \"ended\" : {", 1),
            "a line that another program wrote",
        ),
    ] {
        fs::write(index_of(folder.path()), damaged).unwrap();
        assert_eq!(load(&run, IndexScrutiny::Length).unwrap(), all, "{what}");
        let again = fs::read_to_string(index_of(folder.path())).unwrap();
        assert_eq!(again, whole, "{what}");
    }
    fs::remove_file(index_of(folder.path())).unwrap();
    assert_eq!(ended(&run).unwrap(), all[..2]);
    assert!(!index_of(folder.path()).exists());
}

#[test]
fn a_run_read_in_parts_has_the_same_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    let run = create(&path, "now");
    for name in ["e", "b", "d", "a", "c"] {
        end(begin(&run, name, 1), Outcome::Passed);
    }
    // An attempt that a killed process left, and its retry.
    drop(begin(&run, "f", 1));
    end(begin(&run, "f", 2), Outcome::Failed);
    drop(run);
    let reader = RunReader::open(&path).unwrap();
    // One entry is of another file, and one is missing.
    let text = fs::read_to_string(index_of(&path)).unwrap();
    let kept = text
        .lines()
        .filter(|line| !line.contains("\"ended\":{\"version\":3,\"run\":\"now\",\"file\":\"c."));
    let kept: Vec<String> = kept
        .map(|line| line.replace("\"a.1.jsonl\"", "\"z.1.jsonl\""))
        .collect();
    assert!(kept.len() < text.lines().count());
    fs::write(index_of(&path), kept.join("\n")).unwrap();
    let before = fs::read(index_of(&path)).unwrap();
    for names in 1..9 {
        let mut found = Vec::new();
        let take = |file: &TrialFile, entry: IndexEntry| found.push((file.clone(), entry));
        each_in_parts(&reader, IndexScrutiny::Length, names, take).unwrap();
        let mut expected = Vec::new();
        each_folded(&reader, |entry| expected.push(entry)).unwrap();
        let entries: Vec<IndexEntry> = found.into_iter().map(|(_, entry)| entry).collect();
        assert_eq!(entries, expected, "{names} names at a time");
        assert_eq!(entries.len(), 7);
    }
    assert_eq!(
        fs::read(index_of(&path)).unwrap(),
        before,
        "it is not changed"
    );
}

#[test]
fn a_trial_is_named_by_the_index_without_opening_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let run = three(folder.path());
    let named = || -> Vec<(String, Option<String>)> {
        let mut all = Vec::new();
        let take = |file: TrialFile, trial: Option<TrialStarted>| {
            all.push((file.file_name().to_owned(), trial.map(|trial| trial.case)));
        };
        each_identity(&run, take).unwrap();
        all
    };
    let case = |name: &str| Some(format!("tasks/{name}.yaml#{name}"));
    let expected = [
        ("a.1.jsonl", "a"),
        ("b.1.jsonl", "b"),
        ("c.1.jsonl.part", "c"),
    ];
    let expected = expected.map(|(file, name)| (file.to_owned(), case(name)));
    assert_eq!(named(), expected);
    let before = fs::read_to_string(index_of(folder.path())).unwrap();
    let trials = folder.path().join(TRIALS);
    let text = fs::read(trials.join("a.1.jsonl")).unwrap();
    blank(&trials.join("a.1.jsonl"));
    assert_eq!(named(), expected);
    // A file of another length is another file, and says itself what it is.
    let other = String::from_utf8(text)
        .unwrap()
        .replace("tasks/a.yaml#a", "tasks/other.yaml#other");
    fs::write(trials.join("a.1.jsonl"), other).unwrap();
    assert_eq!(named()[0].1, case("other"));
    fs::write(
        index_of(folder.path()),
        before.replace("2026-11-15T05", "2026-11-15T06"),
    )
    .unwrap();
    assert_eq!(named()[1..], expected[1..]);
    fs::remove_file(index_of(folder.path())).unwrap();
    assert_eq!(named()[1..], expected[1..]);
    assert!(!index_of(folder.path()).exists());
}

#[test]
fn an_index_of_a_newer_version_is_not_used_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let run = three(folder.path());
    let all = load(&run, IndexScrutiny::Length).unwrap();
    let whole = fs::read_to_string(index_of(folder.path())).unwrap();
    let newer = whole
        .replace("\"version\":3", "\"version\":4")
        .replace("passed", "pardoned");
    fs::write(index_of(folder.path()), &newer).unwrap();
    assert_eq!(load(&run, IndexScrutiny::Length).unwrap(), all);
    assert_eq!(fs::read_to_string(index_of(folder.path())).unwrap(), newer);
}

#[test]
fn an_index_is_not_replaced_while_the_run_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path(), "2026-11-15T05:00:00Z");
    end(begin(&run, "a", 1), Outcome::Passed);
    let reader = RunReader::open(folder.path()).unwrap();
    fs::write(index_of(folder.path()), "").unwrap();
    assert_eq!(load(&reader, IndexScrutiny::Length).unwrap().len(), 1);
    assert_eq!(fs::read_to_string(index_of(folder.path())).unwrap(), "");
}

#[test]
fn a_resumed_run_writes_behind_a_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    three(folder.path());
    let path = index_of(folder.path());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 9]).unwrap();
    let options = RecordOptions::default();
    let run = RunWriter::resume(folder.path(), Redactor::default(), options).unwrap();
    end(begin(&run, "c", 2), Outcome::Passed);
    let reader = RunReader::open(folder.path()).unwrap();
    let files = reader.trial_names().unwrap();
    let resumed = files
        .iter()
        .position(|name| &**name == "c.2.jsonl")
        .unwrap();
    let mut stored = StoredIndex::read(&reader, &files);
    assert!(stored.entry(resumed, "c.2.jsonl").is_some());
}

#[test]
fn a_file_with_another_length_is_folded_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = three(folder.path());
    load(&run, IndexScrutiny::Length).unwrap();
    let path = folder.path().join(TRIALS).join("a.1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"passed\"", "\"failed\" ")).unwrap();
    let all = load(&run, IndexScrutiny::Length).unwrap();
    let outcome = all[0].attempt.ended.as_ref().map(|ended| ended.outcome);
    assert_eq!(outcome, Some(Outcome::Failed));
}

#[test]
fn a_digest_detects_changes_of_equal_length() {
    let folder = tempfile::tempdir().unwrap();
    let run = three(folder.path());
    load(&run, IndexScrutiny::Length).unwrap();
    let outcome = |scrutiny| {
        let all = load(&run, scrutiny).unwrap();
        all[0].attempt.ended.as_ref().map(|ended| ended.outcome)
    };
    // The file is another one, of the same length.
    let path = folder.path().join(TRIALS).join("a.1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"passed\"", "\"failed\"")).unwrap();
    assert_eq!(outcome(IndexScrutiny::Length), Some(Outcome::Passed));
    assert_eq!(outcome(IndexScrutiny::Digest), Some(Outcome::Failed));
    assert_eq!(
        outcome(IndexScrutiny::Length),
        Some(Outcome::Failed),
        "it was made again"
    );
    // The entry lies, and names the right file.
    let index = fs::read_to_string(index_of(folder.path())).unwrap();
    let lie = index.replacen("\"failed\"", "\"passed\"", 1);
    fs::write(index_of(folder.path()), lie).unwrap();
    assert_eq!(outcome(IndexScrutiny::Digest), Some(Outcome::Failed));
}

#[test]
fn an_attempt_holds_its_calls_checks_and_tools() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path(), "2026-11-15T05:00:00Z");
    let mut trial = begin(&run, "a", 1);
    let call = |id: u32, name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#
        )
    };
    for (at, id, name, result) in [
        (10, 1, "read", r#"{"content":[]}"#),
        (30, 2, "read", r#"{"content":[],"isError":true}"#),
        (50, 3, "write", r#"{"content":[],"isError":false}"#),
    ] {
        frame(&mut trial, at, Direction::ToServer, &call(id, name));
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        frame(&mut trial, at + 5, Direction::ToClient, &answer);
    }
    frame(&mut trial, 70, Direction::ToServer, &call(4, "write"));
    let tools = crate::event::Body::Text("[]".to_owned());
    trial.append(80, EventKind::ToolsOffered { tools }).unwrap();
    let graded = |check: &str, verdict| {
        EventKind::Graded(crate::event::CheckEvaluated {
            check: check.to_owned(),
            id: None,
            details: vec!["not kept".to_owned()],
            verdict,
            evidence: vec![1],
            notes: Vec::new(),
        })
    };
    trial
        .append(81, graded("callOrder", Verdict::unknown("?")))
        .unwrap();
    trial
        .append(82, graded("toolsUsed", Verdict::fail("no")))
        .unwrap();
    end(trial, Outcome::Failed);
    let reader = RunReader::open(folder.path()).unwrap();
    let attempt = load(&reader, IndexScrutiny::Length)
        .unwrap()
        .remove(0)
        .attempt;
    let shown: Vec<(&str, u64, u64, u128)> = attempt
        .calls
        .iter()
        .map(|c| (c.name.as_str(), c.count, c.errors, c.time.as_micros()))
        .collect();
    assert_eq!(shown, [("read", 2, 1, 10), ("write", 2, 1, 5)]);
    assert_eq!(
        attempt.decisive().map(|check| check.check.as_str()),
        Some("toolsUsed")
    );
    assert_eq!(attempt.checks.len(), 2);
    let hash = "4f53cda18c2baa0c0354bb5f9a3ecbe5ed12ab4d8e11ba873c2f11161202b945";
    assert_eq!(attempt.tools, [hash]);
}

#[test]
fn an_entry_stays_small_with_many_targets() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path(), "2026-11-15T05:00:00Z");
    let mut trial = begin(&run, "a", 1);
    for id in 0..400 {
        let name = format!("{id}{}", "x".repeat(4000));
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"}}}}"#
        );
        frame(&mut trial, 10, Direction::ToServer, &call);
    }
    end(trial, Outcome::Passed);
    let reader = RunReader::open(folder.path()).unwrap();
    let attempt = load(&reader, IndexScrutiny::Length)
        .unwrap()
        .remove(0)
        .attempt;
    assert_eq!((attempt.calls.len(), attempt.other_calls), (256, 144));
    let length = fs::metadata(index_of(folder.path())).unwrap().len();
    assert!(length < 128 * 1024, "{length}");
}

#[test]
fn the_entry_of_an_ended_trial_is_that_of_its_file() {
    for calls in [1, 200] {
        let folder = tempfile::tempdir().unwrap();
        let run = create(folder.path(), "2026-11-15T05:00:00Z");
        let mut trial = begin(&run, "a", 1);
        for id in 0..calls {
            let call = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo{id}"}}}}"#
            );
            frame(&mut trial, 3, Direction::ToServer, &call);
            let reply = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[]}}}}"#);
            frame(&mut trial, 4, Direction::ToClient, &reply);
        }
        assert_eq!(trial.is_short(), calls == 1);
        end(trial, Outcome::Passed);
        drop(run);
        let written = fs::read(index_of(folder.path())).unwrap();
        let run = RunReader::open(folder.path()).unwrap();
        let mut entries = Vec::new();
        each_folded(&run, |entry| entries.push(entry)).unwrap();
        let [entry] = &entries[..] else {
            panic!("{entries:?}")
        };
        assert_eq!(entry.attempt.calls.len(), calls);
        let last = written
            .trim_ascii_end()
            .rsplit(|byte| *byte == b'\n')
            .next();
        assert_eq!(last, Some(&line(entry)[..]));
    }
}

#[test]
fn the_entry_of_a_trial_does_not_depend_on_how_it_was_folded() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path(), "2026-11-15T05:00:00Z");
    let graded = |name: &str| {
        let mut trial = begin(&run, name, 1);
        for length in [1_000, 1_500, 100_000] {
            let graded = CheckEvaluated {
                check: "script".to_owned(),
                id: None,
                verdict: Verdict::fail(format!("<{}>", "x".repeat(length))),
                details: Vec::new(),
                evidence: Vec::new(),
                notes: Vec::new(),
            };
            trial.append(3, EventKind::Graded(graded)).unwrap();
        }
        trial
    };
    let ended = || TrialEnded {
        outcome: Outcome::Failed,
        reason: None,
        blame: None,
    };
    let mut followed = graded("followed");
    let mut live = LiveFold::new(FoldOptions::for_checks());
    let written = followed.written_since(live.position());
    let blobs = written.blobs();
    live.follow(written.open().unwrap(), &blobs).unwrap();
    let mut followed = followed.end(9, ended()).unwrap();
    add_after(&mut followed, Some(live)).unwrap();
    end_trial(graded("once"), 9, ended()).unwrap();
    drop((followed, run));
    let reasons = |entries: &[IndexEntry]| -> Vec<Vec<Verdict>> {
        let checks = entries.iter().map(|entry| entry.attempt.checks.iter());
        checks
            .map(|checks| checks.map(|check| check.verdict.clone()).collect())
            .collect()
    };
    let stored = load(
        &RunReader::open(folder.path()).unwrap(),
        IndexScrutiny::Length,
    );
    let stored = reasons(&stored.unwrap());
    fs::remove_file(index_of(folder.path())).unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    let derived = reasons(&load(&run, IndexScrutiny::Length).unwrap());
    assert_eq!(stored, derived);
    assert_eq!(stored[0], stored[1]);
    let Verdict::Fail { reason } = &stored[0][1] else {
        panic!("{:?}", stored[0]);
    };
    assert!(reason.len() < 1_100, "{reason}");
}
