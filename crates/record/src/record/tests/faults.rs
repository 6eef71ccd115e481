//! Writers that are killed, rejected or concurrent, and damaged files.

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::event::RunEnded;

use super::*;

#[test]
fn a_part_torn_at_any_byte_reads_up_to_its_last_whole_line() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "torn", trial_started(1)).unwrap();
    trial.append(1, opened()).unwrap();
    frame(&mut trial, 2, "{\"é\":\"漢\"}".as_bytes()).unwrap();
    drop(trial);
    let run = RunReader::open(folder.path()).unwrap();
    let file = only_trial(&run);
    assert!(!file.ended);
    let whole = events_of(&run, &file);
    let bytes = fs::read(&file.path).unwrap();
    for length in 0..=bytes.len() {
        fs::write(&file.path, &bytes[..length]).unwrap();
        let mut reader = run.trial(&file).unwrap();
        let events: Vec<Event> = reader.by_ref().map(Result::unwrap).collect();
        let lines = bytes[..length].split(|b| *b == b'\n').count() - 1;
        assert_eq!(events, whole[..lines]);
        let last = bytes[..length]
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        let torn = (last < length).then_some(TornLine {
            bytes: (length - last) as u64,
        });
        assert_eq!(reader.torn(), torn);
        assert!(reader.next().is_none());
    }
}

#[test]
fn a_panic_of_the_thread_that_syncs_fails_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let other = run.trial(0, "other", trial_started(1)).unwrap();
    let (tell, told) = mpsc::channel::<()>();
    let first = run.trial(0, "first", trial_started(1)).unwrap();
    first.end_then(1, passed(), move |_| {
        let _dropped = tell;
        panic!("whoever waits has a bug")
    });
    told.recv().unwrap_err();
    // The panic is on its way to the record.
    let deadline = Instant::now() + Duration::from_mins(3);
    for number in 0.. {
        if run.trial(0, &number.to_string(), trial_started(1)).is_err() {
            break;
        }
        assert!(Instant::now() < deadline, "the record never failed");
        std::thread::yield_now();
    }
    let (tell, told) = mpsc::channel();
    other.end_then(2, passed(), move |ended| tell.send(ended).unwrap());
    let ended = told.recv_timeout(Duration::from_mins(1)).unwrap();
    assert!(matches!(ended.unwrap_err(), RecordError::WriterGone));
    run.flush();
    let error = run.end(3, RunEnded::default()).unwrap_err();
    assert!(matches!(error, RecordError::WriterGone), "{error}");
}

#[test]
fn a_killed_run_resumes_after_its_last_complete_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = create(folder.path());
    run.append(1, opened()).unwrap();
    run.trial(2, "done", trial_started(1))
        .unwrap()
        .end(3, passed())
        .unwrap();
    drop(run.trial(2, "open", trial_started(1)).unwrap());
    let resume = || RunWriter::resume(folder.path(), redactor(), RecordOptions::default());
    assert!(matches!(resume().unwrap_err(), RecordError::Locked { .. }));
    drop(run);
    let path = folder.path().join(RUN);
    let mut text = fs::read(&path).unwrap();
    text.truncate(text.len() - 5);
    fs::write(&path, text).unwrap();
    fs::remove_file(folder.path().join(INDEX)).unwrap();

    let mut run = resume().unwrap();
    assert_eq!(run.append(4, opened()).unwrap(), 2);
    run.trial(5, "open", trial_started(2))
        .unwrap()
        .end(6, passed())
        .unwrap();
    run.end(
        7,
        RunEnded {
            exit: 0,
            reason: None,
            ..RunEnded::default()
        },
    )
    .unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    assert_eq!(run.events().unwrap().map(Result::unwrap).count(), 3);
    assert_eq!(crate::index::ended(&run).unwrap().len(), 2);
    let ended: Vec<bool> = run
        .trials()
        .unwrap()
        .iter()
        .map(|trial| trial.ended)
        .collect();
    assert_eq!(ended, [true, false, true]);
}

#[test]
fn a_writer_that_is_dropped_leaves_no_ended_trial() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    trial.append(1, EventKind::TrialEnded(passed())).unwrap();
    drop(trial);
    drop(run);
    let run = RunReader::open(folder.path()).unwrap();
    assert!(!only_trial(&run).ended);
    assert!(crate::index::ended(&run).unwrap().is_empty());
}

#[test]
fn a_writer_that_is_dropped_leaves_all_that_was_appended() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    for attempt in 1..=50 {
        let mut trial = run.trial(0, "x", trial_started(attempt)).unwrap();
        frame(&mut trial, 1, b"{}").unwrap();
        drop(trial);
        let path = folder
            .path()
            .join(TRIALS)
            .join(format!("x.{attempt}{PART}"));
        assert_eq!(EventReader::open(&path).unwrap().count(), 2, "{attempt}");
    }
}

#[test]
fn a_folder_has_one_writer_and_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let again = || RunWriter::create(folder.path(), redactor(), run_started()).unwrap_err();
    let run = create(folder.path());
    let trial = run.trial(0, "x", trial_started(1)).unwrap();
    assert!(matches!(again(), RecordError::Locked { .. }));
    run.flush();
    let error = run.trial(0, "x", trial_started(1)).unwrap_err();
    assert!(matches!(error, RecordError::TrialExists { .. }));
    drop(run);
    // The trial's writer is at work still.
    assert!(matches!(again(), RecordError::Locked { .. }));
    trial.end(1, passed()).unwrap();
    assert!(matches!(again(), RecordError::HoldsARun { .. }));
}

#[test]
fn a_trial_that_is_started_twice_at_once_fails_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let one = run.trial(0, "x", trial_started(1)).unwrap();
    let Ok(two) = run.trial(0, "x", trial_started(1)) else {
        // The file of the first was there already.
        return;
    };
    let ended = [one.end(1, passed()), two.end(1, passed())];
    let exists = |result: &Result<EndedTrial, RecordError>| {
        matches!(result, Err(RecordError::TrialExists { .. }))
    };
    assert!(ended.iter().any(exists), "{ended:?}");
}

#[test]
fn a_folder_whose_run_has_neither_plan_nor_trial_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(RUN);
    drop(create(folder.path()));
    let started = fs::read(&path).unwrap();
    let torn = [&started[..], br#"{"seq":2,"at":0,"event":{"runPl"#].concat();
    for left in [&b""[..], &started[..1], &started[..80], &started, &torn] {
        fs::write(&path, left).unwrap();
        assert!(is_unused(folder.path()).unwrap());
        drop(create(folder.path()));
        assert_eq!(fs::read(&path).unwrap(), started);
    }
    let planned = [&started[..], b"{\"seq\":2,\"at\":0,\"event\":{}}\n"].concat();
    for left in [&b"somebody's own"[..], b"somebody's own\n", &planned] {
        fs::write(&path, left).unwrap();
        let error = RunWriter::create(folder.path(), redactor(), run_started()).unwrap_err();
        assert!(matches!(error, RecordError::HoldsARun { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), left);
    }
}

#[test]
fn after_a_failed_write_nothing_is_written_and_nothing_ends() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    let other = run.trial(0, "other", trial_started(1)).unwrap();
    // A removed folder takes no blobs, and no renames.
    fs::remove_dir_all(folder.path().join(BLOBS)).unwrap();
    let first = frame(&mut trial, 1, &vec![b'x'; MAX_INLINE + 1]).unwrap_err();
    assert!(
        matches!(first, RecordError::Io { doing: "write", .. }),
        "{first:?}"
    );
    let text = first.to_string();
    assert_eq!(frame(&mut trial, 2, b"{}").unwrap_err().to_string(), text);
    // What is not in the file is not graded.
    let since = trial.written_since(Position::default());
    assert!(since.is_in_memory());
    assert_eq!(since.open().unwrap_err().to_string(), text);
    assert_eq!(trial.end(3, passed()).unwrap_err().to_string(), text);
    assert_eq!(other.end(3, passed()).unwrap_err().to_string(), text);
    assert_eq!(run.append(4, opened()).unwrap_err().to_string(), text);
    assert!(run.trial(5, "new", trial_started(1)).is_err());
    let ended = RunEnded {
        exit: 0,
        reason: None,
        ..RunEnded::default()
    };
    assert_eq!(run.end(6, ended).unwrap_err().to_string(), text);
    let run = RunReader::open(folder.path()).unwrap();
    assert_eq!(
        run.trials()
            .unwrap()
            .iter()
            .filter(|trial| trial.ended)
            .count(),
        0
    );
}

#[test]
fn a_removed_folder_fails_the_end() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let run = create(&folder);
    let trial = run.trial(0, "x", trial_started(1)).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    assert!(trial.end(1, passed()).is_err());
    assert!(
        run.end(
            2,
            RunEnded {
                exit: 0,
                reason: None,
                ..RunEnded::default()
            }
        )
        .is_err()
    );
    assert!(matches!(
        RunReader::open(&folder).unwrap_err(),
        RecordError::NotARun { .. }
    ));
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_with_its_path() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let folder = file.path().join("run");
    let error = RunWriter::create(&folder, redactor(), run_started()).unwrap_err();
    let expected = format!("could not create `{}`", folder.display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_trial_beyond_its_size_limit_can_still_be_ended() {
    let folder = tempfile::tempdir().unwrap();
    let options = RecordOptions {
        max_trial: 100_000,
        ..RecordOptions::default()
    };
    let run = RunWriter::create_with(folder.path(), redactor(), run_started(), options).unwrap();
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    let long = vec![b'x'; 60_000];
    frame(&mut trial, 1, &long).unwrap();
    let error = frame(&mut trial, 2, &long).unwrap_err();
    assert!(matches!(
        error,
        RecordError::TrialTooLarge { limit: 100_000, .. }
    ));
    let blobs = || fs::read_dir(folder.path().join(BLOBS)).unwrap().count();
    assert!(frame(&mut trial, 2, &vec![b'y'; 60_000]).is_err());
    assert_eq!(blobs(), 1);
    frame(&mut trial, 3, b"small").unwrap();
    trial.end(4, passed()).unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    assert_eq!(events_of(&run, &only_trial(&run)).len(), 4);
}

#[test]
fn a_folder_without_a_run_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let open = || RunReader::open(folder.path()).map(|_| ()).unwrap_err();
    let path = folder.path().join(RUN);
    assert!(
        open()
            .to_string()
            .ends_with("is not a run: it has no `run.jsonl`")
    );
    fs::write(&path, "").unwrap();
    assert!(matches!(open(), RecordError::NotARun { .. }));
    fs::write(&path, "{\"seq\":1").unwrap();
    assert!(matches!(open(), RecordError::NotARun { .. }));
    fs::write(&path, "hello\n").unwrap();
    assert!(matches!(open(), RecordError::Corrupt { line: 1, .. }));
    let newer = r#"{"seq":1,"at":0,"event":{"runStarted":{"record":2,"other":[]}},"more":1}"#;
    fs::write(&path, format!("{newer}\n")).unwrap();
    assert!(matches!(
        open(),
        RecordError::NewerVersion {
            found: 2,
            known: 1,
            ..
        }
    ));
}

#[test]
fn a_trial_ends_whatever_the_length_of_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let trial = run.trial(0, "long", trial_started(1)).unwrap();
    // A server may send this much in an error message.
    let ended = TrialEnded {
        outcome: Outcome::Failed,
        reason: Some("é".repeat(MAX_LINE)),
        blame: None,
    };
    trial.end(1, ended).unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    let file = only_trial(&run);
    assert!(file.ended);
    let events = events_of(&run, &file);
    let EventKind::TrialEnded(ended) = &events.last().unwrap().event else {
        panic!("no end: {events:?}")
    };
    let reason = ended.reason.as_deref().unwrap();
    assert!(reason.starts_with("éé") && reason.ends_with("é…") && reason.len() < 70_000);
    assert_eq!(ended.outcome, Outcome::Failed);
}

#[test]
fn a_broken_line_in_the_middle_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    trial.append(1, opened()).unwrap();
    trial.end(2, passed()).unwrap();
    let run = RunReader::open(folder.path()).unwrap();
    let file = only_trial(&run);
    let text = fs::read_to_string(&file.path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let long = " ".repeat(MAX_LINE + 1);
    for second in ["{}", "", "\u{0}", lines[0], lines[2], &long] {
        fs::write(
            &file.path,
            format!("{}\n{second}\n{}\n", lines[0], lines[2]),
        )
        .unwrap();
        let mut reader = run.trial(&file).unwrap();
        assert!(reader.next().unwrap().is_ok());
        let error = reader.next().unwrap().unwrap_err();
        assert!(
            matches!(error, RecordError::Corrupt { line: 2, .. }),
            "{error}"
        );
        assert!(reader.next().is_none());
    }
}

#[test]
fn a_blob_is_read_only_if_its_hash_matches() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(BLOBS)).unwrap();
    let blobs = Blobs::of_run(folder.path());
    let sha256 = blobs::hash(b"body");
    let body = |sha256: &str, bytes| crate::event::Body::Blob {
        sha256: sha256.to_owned(),
        bytes,
    };
    let read = |sha256: &str, bytes| {
        let body = body(sha256, bytes);
        blobs
            .body_bytes(&body)
            .map(|bytes| bytes.map(std::borrow::Cow::into_owned))
    };
    assert!(matches!(read(&sha256, 4), Err(RecordError::Io { .. })));
    let path: PathBuf = folder.path().join(BLOBS).join(&sha256);
    fs::write(&path, "body").unwrap();
    assert_eq!(read(&sha256, 4).unwrap().unwrap(), b"body");
    assert!(matches!(
        read(&sha256, 5),
        Err(RecordError::DamagedBlob { .. })
    ));
    assert!(matches!(
        read(&sha256, 3),
        Err(RecordError::DamagedBlob { .. })
    ));
    fs::write(&path, "tree").unwrap();
    assert!(matches!(
        read(&sha256, 4),
        Err(RecordError::DamagedBlob { .. })
    ));
    let outside = format!("../{}", &sha256[3..]);
    fs::write(folder.path().join(&sha256[3..]), "body").unwrap();
    assert!(matches!(
        read(&outside, 4),
        Err(RecordError::DamagedBlob { .. })
    ));
}

#[test]
fn a_sync_that_fails_beside_the_writing_ends_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    frame(&mut trial, 1, &vec![b'x'; MAX_INLINE + 1]).unwrap();
    for blob in fs::read_dir(folder.path().join(BLOBS)).unwrap() {
        fs::remove_file(blob.unwrap().path()).unwrap();
    }
    // It is time for a sync, which another thread does.
    frame(&mut trial, 200_000, b"{}").unwrap();
    let error = (0..2_000).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        frame(&mut trial, 200_001, b"{}").err()
    });
    let error = error.unwrap();
    assert!(
        matches!(error, RecordError::Io { doing: "sync", .. }),
        "{error}"
    );
    assert!(run.trial(0, "other", trial_started(1)).is_err());
    assert!(trial.end(200_002, passed()).is_err());
    drop(run);
    let run = RunReader::open(folder.path()).unwrap();
    assert!(!only_trial(&run).ended);
}

#[test]
fn the_end_of_a_trial_may_be_the_last_owner_of_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let trial = run.trial(0, "last", trial_started(1)).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel();
    trial.end_then(1, passed(), move |ended| {
        released.recv().unwrap_err();
        drop(ended);
        tell.send(()).unwrap();
    });
    drop(run);
    drop(release);
    told.recv_timeout(Duration::from_mins(1))
        .expect("the thread goes on");
    RunWriter::resume(folder.path(), redactor(), RecordOptions::default()).unwrap();
}
