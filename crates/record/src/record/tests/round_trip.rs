//! Appended events read back.

use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::event::{Body, Frame, RunEnded};

use super::*;

#[test]
fn a_run_reads_back_without_its_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = create(folder.path());
    let mut trial = run.trial(5, "add", trial_started(1)).unwrap();
    assert_eq!(trial.append(6, opened()).unwrap(), 2);
    frame(&mut trial, 7, format!("{{\"p\":\"{SECRET}\"}}").as_bytes()).unwrap();
    trial.end(8, passed()).unwrap();
    let ended = RunEnded {
        exit: 0,
        reason: None,
        ..RunEnded::default()
    };
    run.append(9, opened()).unwrap();
    run.end(10, ended.clone()).unwrap();

    let run = RunReader::open(folder.path()).unwrap();
    assert_eq!(run.started(), &run_started());
    let events: Vec<Event> = run.events().unwrap().map(Result::unwrap).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[2].event, EventKind::RunEnded(ended));
    let file = only_trial(&run);
    assert!(file.ended);
    assert_eq!((file.stem.as_str(), file.attempt), ("add", 1));
    let events = events_of(&run, &file);
    assert_eq!(events[0].event, EventKind::TrialStarted(trial_started(1)));
    assert_eq!(events[1].event, redactor().what(opened()));
    let text = "{\"p\":\"[redacted:DB_PASSWORD]\"}";
    assert_eq!(body(&events[2]), &Body::Text(text.to_owned()));
    assert_eq!(events[3].event, EventKind::TrialEnded(passed()));
    for entry in walkdir::WalkDir::new(folder.path()) {
        let entry = entry.unwrap();
        if entry.file_type().is_file() {
            let text = std::fs::read(entry.path()).unwrap();
            assert!(memchr::memmem::find(&text, SECRET.as_bytes()).is_none());
        }
    }
}

#[test]
fn bodies_take_the_form_that_suits_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "bodies", trial_started(1)).unwrap();
    let long = vec![b'x'; MAX_INLINE + 1];
    let huge = vec![b'y'; MAX_FRAME + 1];
    let cases: [&[u8]; 6] = [b"{}", b"\xff\xfe\x00", &long[1..], &long, &long, &huge];
    for bytes in cases {
        frame(&mut trial, 1, bytes).unwrap();
    }
    let text = EventKind::Frame(Frame {
        conn: ConnectionId(1),
        exchange: Some(3),
        direction: Direction::ToClient,
        body: Body::Text(String::from_utf8(long.clone()).unwrap()),
    });
    trial.append(2, text).unwrap();
    let cut = Body::Cut {
        bytes: 1 << 40,
        sha256: blobs::hash(b""),
    };
    let known_as_cut = EventKind::Frame(Frame {
        conn: ConnectionId(1),
        exchange: None,
        direction: Direction::ToClient,
        body: cut.clone(),
    });
    trial.append(2, known_as_cut).unwrap();
    trial.end(3, passed()).unwrap();

    let run = RunReader::open(folder.path()).unwrap();
    let events = events_of(&run, &only_trial(&run));
    let blob = Body::Blob {
        sha256: blobs::hash(&long),
        bytes: long.len() as u64,
    };
    assert_eq!(body(&events[1]), &Body::Text("{}".to_owned()));
    assert_eq!(body(&events[2]), &Body::Base64("//4A".to_owned()));
    assert!(matches!(body(&events[3]), Body::Text(text) if text.len() == MAX_INLINE));
    for blobs in [4, 5, 7] {
        assert_eq!(body(&events[blobs]), &blob);
    }
    let sha256 = data_encoding::HEXLOWER.encode(&Sha256::digest(&huge));
    let bytes = huge.len() as u64;
    assert_eq!(body(&events[6]), &Body::Cut { bytes, sha256 });
    assert_eq!(
        std::fs::read_dir(folder.path().join(BLOBS))
            .unwrap()
            .count(),
        1
    );
    assert_eq!(body(&events[8]), &cut);
    for (event, bytes) in events[1..].iter().zip(&cases[..5]) {
        let read = run.body_bytes(body(event)).unwrap().unwrap();
        assert_eq!(read.as_ref(), *bytes);
    }
    assert!(run.body_bytes(body(&events[6])).unwrap().is_none());
}

fn body(event: &Event) -> &Body {
    match &event.event {
        EventKind::Frame(frame) => &frame.body,
        other => panic!("{other:?} is no frame"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn every_frame_reads_back_as_it_was_redacted(
        frames in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..200),
                "(hunter2-hunter2|[a-z\\\\\"\\n ]|\\PC){0,80}".prop_map(String::into_bytes),
                (0..3_usize).prop_map(|more| vec![b'z'; MAX_INLINE - 1 + more]),
            ],
            0..20,
        )
    ) {
        let folder = tempfile::tempdir().unwrap();
        let run = create(folder.path());
        let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
        for (at, bytes) in frames.iter().enumerate() {
            frame(&mut trial, at as u64 * 60_000, bytes).unwrap();
        }
        trial.end(9, passed()).unwrap();
        let run = RunReader::open(folder.path()).unwrap();
        let events = events_of(&run, &only_trial(&run));
        prop_assert_eq!(events.len(), frames.len() + 2);
        for (event, bytes) in events[1..].iter().zip(&frames) {
            let read = run.body_bytes(body(event)).unwrap().unwrap();
            let redacted = redactor().bytes(bytes).into_owned();
            prop_assert_eq!(read.as_ref(), redacted.as_slice());
        }
    }
}

#[test]
fn a_reader_continues_at_an_earlier_position() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(1, "x", trial_started(1)).unwrap();
    run.flush();
    let reader = RunReader::open(folder.path()).unwrap();
    let file = only_trial(&reader);
    let follow = |from: Position| {
        let mut events = reader.trial_from(&file, from).unwrap();
        let seen: Vec<u64> = events.by_ref().map(|event| event.unwrap().seq).collect();
        (seen, events.position(), events.torn().is_some())
    };
    let (seen, first, _) = follow(Position::default());
    assert_eq!((seen, first.events), (vec![1], 1));
    assert_eq!(follow(first), (vec![], first, false));

    trial.append(2, opened()).unwrap();
    run.flush();
    // A line that is being written is there later.
    let whole = std::fs::read(&file.path).unwrap();
    for cut in [first.bytes + 1, whole.len() as u64 - 1] {
        std::fs::write(&file.path, &whole[..usize::try_from(cut).unwrap()]).unwrap();
        assert_eq!(follow(first), (vec![], first, true));
    }
    std::fs::write(&file.path, &whole).unwrap();
    let (seen, second, torn) = follow(first);
    assert_eq!(
        (seen, second.bytes, torn),
        (vec![2], whole.len() as u64, false)
    );

    // A place within a line is invalid.
    let within = Position {
        bytes: 3,
        events: 0,
    };
    let first = reader.trial_from(&file, within).unwrap().next().unwrap();
    assert!(matches!(first, Err(RecordError::Corrupt { line: 1, .. })));
    let own = reader.events_from(Position::default()).unwrap();
    assert_eq!(own.map(Result::unwrap).count(), 1);
}

#[test]
fn trials_that_write_at_once_keep_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let write = |name: usize| {
        let mut trial = run.trial(0, &name.to_string(), trial_started(1))?;
        for at in 1..=2_000 {
            let text = format!("{name} {at}");
            assert_eq!(frame(&mut trial, at, text.as_bytes())?, at + 1);
        }
        trial.end(2_001, passed()).map(drop)
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|name| scope.spawn(move || write(name)))
            .collect();
        for writer in writers {
            writer.join().unwrap().unwrap();
        }
    });
    let run = RunReader::open(folder.path()).unwrap();
    let trials = run.trials().unwrap();
    assert_eq!(trials.len(), 8);
    for trial in trials {
        assert!(trial.ended);
        let events = events_of(&run, &trial);
        let said = events.iter().filter_map(|event| match &event.event {
            EventKind::Frame(frame) => Some((event.at, frame.body.clone())),
            _ => None,
        });
        assert_eq!(events.len(), 2_002);
        let body = |at| (at, Body::Text(format!("{} {at}", trial.stem)));
        assert!(said.eq((1..=2_000).map(body)), "{}", trial.stem);
    }
}

#[test]
fn appended_events_can_be_read_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    for at in 1..=50 {
        frame(&mut trial, at, b"{}").unwrap();
        let events = trial.written().open().unwrap();
        let last = events.last().unwrap().unwrap();
        assert_eq!((last.seq, last.at), (at + 1, at));
    }
}

#[test]
fn a_short_record_is_read_from_memory_as_its_file_is() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    let reader = RunReader::open(folder.path()).unwrap();
    let mut was_short = Vec::new();
    for at in 1..=80 {
        frame(
            &mut trial,
            at,
            format!("{SECRET}{}", "x".repeat(500)).as_bytes(),
        )
        .unwrap();
        was_short.push(trial.is_short());
        let events: Vec<Event> = trial
            .written()
            .open()
            .unwrap()
            .map(Result::unwrap)
            .collect();
        run.flush();
        assert_eq!(events, events_of(&reader, &only_trial(&reader)));
    }
    // Both kinds were seen.
    assert_eq!((was_short[0], was_short[79]), (true, false));
}

#[test]
fn events_are_followed_from_memory_as_their_file_holds_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    let reader = RunReader::open(folder.path()).unwrap();
    let mut position = Position::default();
    let mut followed = Vec::new();
    let mut sources = Vec::new();
    for at in 1..=80 {
        let text = format!("{SECRET}{}", "x".repeat(500));
        frame(&mut trial, at, text.as_bytes()).unwrap();
        // Sometimes several events are new.
        if at % 3 == 0 {
            continue;
        }
        let since = trial.written_since(position);
        sources.push(since.is_in_memory());
        let mut events = since.open().unwrap();
        followed.extend(events.by_ref().map(Result::unwrap));
        position = events.position();
        run.flush();
        let file = only_trial(&reader);
        assert_eq!(followed, events_of(&reader, &file));
        let mut whole = reader.trial(&file).unwrap();
        whole.by_ref().for_each(drop);
        assert_eq!(position, whole.position());
    }
    assert_eq!(
        (sources.first(), sources.last()),
        (Some(&true), Some(&false))
    );
}

#[test]
fn events_that_another_follower_took_are_read_from_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let run = create(folder.path());
    let mut trial = run.trial(0, "x", trial_started(1)).unwrap();
    frame(&mut trial, 1, b"{}").unwrap();
    let taken = trial.written_since(Position::default());
    assert!(taken.is_in_memory());
    frame(&mut trial, 2, b"[]").unwrap();
    let again = trial.written_since(Position::default());
    assert!(!again.is_in_memory());
    let read = |since: WrittenSince| -> Vec<u64> {
        let events = since.open().unwrap();
        events.map(|event| event.unwrap().seq).collect()
    };
    assert_eq!((read(taken), read(again)), (vec![1, 2], vec![1, 2, 3]));
}
