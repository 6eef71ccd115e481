//! Records of every version stay readable, and their folds don't change.
//!
//! The files under `records/` never change. See the README there.

use std::path::{Path, PathBuf};

use proctor_record::event::{
    Actor, Body, ConnectionClosed, ConnectionId, ConnectionOpened, Direction, EventKind, Finding,
    FindingKind, Frame, HttpHead, Outcome, Phase, RunEnded, RunStarted, TrialEnded, TrialStarted,
    WireKind,
};
use proctor_record::fold::{FoldOptions, FoldedTrial, fold_trial};
use proctor_record::index::{self, IndexScrutiny};
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader, RunWriter, TrialWriter};
use proctor_record::redact::Redactor;
use serde_json::Value;

fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records")
}

#[test]
fn version_1_reads_and_folds_as_ever() {
    let run = RunReader::open(&records().join("v1")).unwrap();
    assert_eq!(run.started().record, 1);
    let events: Vec<_> = run.events().unwrap().map(Result::unwrap).collect();
    assert_eq!(events.len(), 2);
    let trials = run.trials().unwrap();
    let listed: Vec<(&str, u32, bool)> = trials
        .iter()
        .map(|trial| (trial.stem.as_str(), trial.attempt, trial.ended))
        .collect();
    assert_eq!(
        listed,
        [
            ("http", 1, true),
            ("stdio", 1, true),
            ("unfinished", 2, false)
        ]
    );
    let index = index::ended(&run).unwrap();
    assert_eq!(index.len(), 2);
    for trial in &trials {
        let folded = fold_trial(&run, trial, &FoldOptions::default()).unwrap();
        let expected = records()
            .join("v1-folded")
            .join(format!("{}.json", trial.stem));
        let expected = std::fs::read_to_string(expected).unwrap();
        let expected = serde_json::from_str(&expected).unwrap();
        let shown = shown(&folded);
        assert!(
            json::equal(&shown, &expected),
            "{} folds to {shown:#}",
            trial.stem
        );
    }
}

/// The index of version 1 has no more than outcomes. It is made again, in a copy.
#[test]
fn an_index_of_version_1_is_made_again_once() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("v1");
    for entry in walkdir::WalkDir::new(records().join("v1")) {
        let entry = entry.unwrap();
        let to = copy.join(entry.path().strip_prefix(records().join("v1")).unwrap());
        if entry.file_type().is_dir() {
            std::fs::create_dir_all(to).unwrap();
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
    let run = RunReader::open(&copy).unwrap();
    let entries = index::load(&run, IndexScrutiny::Length).unwrap();
    let shown: Vec<(&str, Option<Outcome>, u64)> = entries
        .iter()
        .map(|entry| {
            let ended = entry.attempt.ended.as_ref();
            (
                entry.file.as_str(),
                ended.map(|ended| ended.outcome),
                entry.bytes,
            )
        })
        .collect();
    let left = std::fs::metadata(copy.join("trials/unfinished.2.jsonl.part")).unwrap();
    assert_eq!(
        shown,
        [
            ("http.1.jsonl", Some(Outcome::Passed), 2846),
            ("stdio.1.jsonl", Some(Outcome::Failed), 2262),
            ("unfinished.2.jsonl.part", None, left.len()),
        ]
    );
    let made = std::fs::read_to_string(copy.join("index.jsonl")).unwrap();
    assert_eq!(made.matches("\"version\":3").count(), 3);
    assert_eq!(index::load(&run, IndexScrutiny::Digest).unwrap(), entries);
    assert_eq!(
        std::fs::read_to_string(copy.join("index.jsonl")).unwrap(),
        made
    );
}

/// Writes a record of the current version beside the test's other output, and folds it: what this
/// program writes is what it reads. Copied by hand, once for each version, into `records/`.
#[test]
fn the_current_version_is_written_as_it_is_read() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("record");
    let _ = std::fs::remove_dir_all(&place);
    write(&place.join("v1")).unwrap();
    let run = RunReader::open(&place.join("v1")).unwrap();
    std::fs::create_dir_all(place.join("v1-folded")).unwrap();
    for trial in run.trials().unwrap() {
        let folded = fold_trial(&run, &trial, &FoldOptions::default()).unwrap();
        assert!(!folded.transcript.calls.is_empty());
        let path = place.join("v1-folded").join(format!("{}.json", trial.stem));
        std::fs::write(path, format!("{:#}\n", shown(&folded))).unwrap();
    }
}

fn shown(folded: &FoldedTrial) -> Value {
    serde_json::json!({
        "started": folded.started,
        "ended": folded.ended,
        "transcript": folded.transcript,
        "findings": folded.findings.iter().map(kind).collect::<Vec<_>>(),
        "unreadRequests": folded.transcript.unread,
        "torn": folded.torn.map(|torn| torn.bytes),
    })
}

/// Not the details: they quote the JSON parser, whose words are not ours to keep.
fn kind(finding: &Finding) -> Value {
    serde_json::json!([finding.conn, finding.kind, finding.count])
}

fn write(folder: &Path) -> Result<(), RecordError> {
    let secrets = [("FIXTURE_TOKEN".to_owned(), "not-a-real-token".to_owned())];
    let started = RunStarted {
        record: 1,
        proctor: "0.1.0".to_owned(),
        started: "2026-11-15T06:00:00Z".to_owned(),
        name: "fixture".to_owned(),
        command: ["proctor", "run", "--token", "not-a-real-token"]
            .map(str::to_owned)
            .to_vec(),
        context: None,
    };
    let run = RunWriter::create(folder, Redactor::new(secrets), started)?;
    stdio(run.trial(10, "stdio", trial("tasks/add.yaml", 1))?)?;
    http(run.trial(20, "http", trial("tasks/read.yaml", 1))?)?;
    let mut unfinished = run.trial(30, "unfinished", trial("tasks/slow.yaml", 2))?;
    unfinished.append(31, opened(Actor::Person, WireKind::Stdio))?;
    send(
        &mut unfinished,
        32,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}"#,
    )?;
    send(
        &mut unfinished,
        33,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"torn"}}"#,
    )?;
    run.end(
        40,
        RunEnded {
            exit: 3,
            reason: Some("interrupted".to_owned()),
            ..RunEnded::default()
        },
    )
}

fn stdio(mut trial: TrialWriter) -> Result<(), RecordError> {
    trial.append(
        10,
        EventKind::PhaseStarted {
            phase: Phase::Drive,
        },
    )?;
    trial.append(11, opened(Actor::Agent, WireKind::Stdio))?;
    receive(&mut trial, 12, b"fixture server listening")?;
    trial.append(
        12,
        EventKind::Finding(Finding {
            conn: ConnectionId(1),
            kind: FindingKind::Noise,
            detail: "fixture server listening".to_owned(),
            count: 1,
        }),
    )?;
    send(
        &mut trial,
        100,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":18446744073709551617,"b":0.10,"token":"not-a-real-token"}}}"#,
    )?;
    receive(
        &mut trial,
        250,
        br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"3"}]}}"#,
    )?;
    receive(
        &mut trial,
        260,
        br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
    )?;
    receive(&mut trial, 270, br#"{"jsonrpc":"2.0","id":"#)?;
    receive(&mut trial, 280, b"\xff\xfe")?;
    send(
        &mut trial,
        300,
        r#"[{"jsonrpc":"2.0","id":"b","method":"resources/read","params":{"uri":"file:///large"}},{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"greet"}}]"#,
    )?;
    let large = format!(
        r#"{{"jsonrpc":"2.0","id":"b","result":{{"contents":["{}"]}}}}"#,
        "0123456789abcdef".repeat(2_100)
    );
    receive(&mut trial, 400, large.as_bytes())?;
    trial.append(
        500,
        EventKind::Frame(Frame {
            conn: ConnectionId(1),
            exchange: None,
            direction: Direction::ToClient,
            body: Body::Cut {
                bytes: 99_999_999,
                sha256: "0".repeat(64),
            },
        }),
    )?;
    trial.append(
        600,
        EventKind::ConnectionClosed(ConnectionClosed {
            conn: ConnectionId(1),
            reason: "exited with code 1".to_owned(),
            stderr: Some("Authorization: Bearer abcdef".to_owned()),
            end: None,
        }),
    )?;
    let reason = Some("the server ended".to_owned());
    trial
        .end(
            700,
            TrialEnded {
                outcome: Outcome::Failed,
                reason,
                blame: None,
            },
        )
        .map(drop)
}

fn http(mut trial: TrialWriter) -> Result<(), RecordError> {
    trial.append(20, opened(Actor::Loop, WireKind::Http))?;
    let rounds = [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"x":1}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create"}},"requestState":"s1"}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask","arguments":{"x":1},"inputResponses":{"q":{"action":"accept"}},"requestState":"s1"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[],"isError":false}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"gone"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"header mismatch"}}"#,
        ),
    ];
    for (exchange, (request, reply)) in (1..).zip(rounds) {
        let at = exchange * 100;
        for (direction, line, text) in [
            (Direction::ToServer, "POST /mcp", request),
            (Direction::ToClient, "200", reply),
        ] {
            let headers = [
                ("authorization", "Bearer x"),
                ("content-type", "application/json"),
            ];
            trial.append(
                at,
                EventKind::Http(HttpHead {
                    conn: ConnectionId(1),
                    exchange,
                    direction,
                    line: line.to_owned(),
                    headers: headers
                        .map(|(name, value)| (name.to_owned(), value.to_owned()))
                        .into(),
                    failure: None,
                }),
            )?;
            trial.append_frame(
                at + 7,
                ConnectionId(1),
                Some(exchange),
                direction,
                text.as_bytes(),
            )?;
        }
    }
    trial
        .end(
            700,
            TrialEnded {
                outcome: Outcome::Passed,
                reason: None,
                blame: None,
            },
        )
        .map(drop)
}

fn trial(case: &str, attempt: u32) -> TrialStarted {
    TrialStarted {
        case: case.to_owned(),
        agent: Some("scripted".to_owned()),
        repeat: 1,
        attempt,
    }
}

fn opened(actor: Actor, transport: WireKind) -> EventKind {
    EventKind::ConnectionOpened(ConnectionOpened {
        conn: ConnectionId(1),
        server: "fixture".to_owned(),
        actor,
        transport,
        target: "fixture --token not-a-real-token".to_owned(),
    })
}

fn send(trial: &mut TrialWriter, at: u64, text: &str) -> Result<u64, RecordError> {
    trial.append_frame(
        at,
        ConnectionId(1),
        None,
        Direction::ToServer,
        text.as_bytes(),
    )
}

fn receive(trial: &mut TrialWriter, at: u64, bytes: &[u8]) -> Result<u64, RecordError> {
    trial.append_frame(at, ConnectionId(1), None, Direction::ToClient, bytes)
}
