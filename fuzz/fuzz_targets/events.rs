//! Events: what is read and written again is equal, a torn line is the end of the file and nothing else, and a reader can
//! continue after every event.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use proctor_fuzz::scratch;
use proctor_record::event::{Event, EventKind};
use proctor_record::record::{EventReader, Position};

fuzz_target!(|data: &[u8]| {
    let path = scratch("events").join("trial.jsonl");
    fs::write(&path, data).expect("a file of events");
    let mut reader = EventReader::open(&path).expect("a file");
    let mut events = Vec::new();
    let mut failed = false;
    while let Some(event) = reader.next() {
        match event {
            Ok(event) => events.push((event, reader.position())),
            Err(_) => failed = true,
        }
    }
    if !failed {
        let after = data
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let torn = reader.torn().map_or(0, |torn| torn.bytes);
        assert_eq!(torn, (data.len() - after) as u64);
        assert_eq!(reader.position().bytes, after as u64);
    }
    for (index, (event, position)) in events.iter().enumerate() {
        assert_eq!(position.events, index as u64 + 1);
        written_again(event);
    }
    if let Some((_, position)) = events.get(events.len() / 2) {
        let rest: Vec<Event> = from(&path, *position);
        let expected = events.iter().skip(events.len() / 2 + 1);
        assert!(rest.iter().eq(expected.map(|(event, _)| event)));
    }
});

fn from(path: &std::path::Path, position: Position) -> Vec<Event> {
    let reader = EventReader::open_at(path, position).expect("a file");
    reader.map_while(Result::ok).collect()
}

fn written_again(event: &Event) {
    let line = serde_json::to_string(event).expect("every event can be written");
    assert!(!line.contains('\n'));
    if matches!(event.event, EventKind::Unknown(_)) {
        return;
    }
    let again: Event = serde_json::from_str(&line).expect("what was written can be read");
    assert_eq!(&again, event);
    assert_eq!(serde_json::to_string(&again).expect("text"), line);
}
