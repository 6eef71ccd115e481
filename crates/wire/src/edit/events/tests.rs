use proptest::prelude::*;

use super::super::output::Part;
use super::super::samples::{CommandEditor, DELAY, Identity, conversation};
use super::*;

#[test]
fn the_edit_decides_about_events() {
    let check = |text: &str, expected: &str| {
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            let mut stream = EventStreamEditor::new(&conversation(CommandEditor));
            let parts = [
                stream.take(head).bytes,
                stream.take(tail).bytes,
                stream.end(),
            ];
            let out = String::from_utf8(parts.concat()).unwrap();
            assert_eq!(out, expected, "{text:?} at {at}");
        }
    };
    check("data: drop\n\ndata: a\n\n", "data: a\n\n");
    check(
        ": c\r\nid: 1\r\ndata:replace\r\n\r\n",
        ": c\r\nid: 1\r\ndata:new\r\n\r\n",
    );
    check("data: \u{feff}replace\n\n", "data: \u{feff}new\n\n");
    check("data: lines\n\n", "data: {  1 }\n\n");
    // The lines of the data stay where they are.
    let three = "data: three\rdata:lines\revent: message\rdata: of it\rid: 2\r\r";
    let after = "data: 1\rdata:  2\revent: message\rdata: 3\rid: 2\r\r";
    check(three, after);
    check("data: two\ndata: lines\n\n", "data: one\ndata: \n\n");
    // Clients take no notice of events with other names, and an edit has no say in them.
    check(
        "event: endpoint\ndata: drop\n\n",
        "event: endpoint\ndata: drop\n\n",
    );
    check(
        "event: drop\n\n: drop\n\ndata: dro",
        "event: drop\n\n: drop\n\ndata: dro",
    );
}

#[test]
fn a_delay_applies_to_later_events_too() {
    let mut stream = EventStreamEditor::new(&conversation(CommandEditor));
    let parts = stream.take(b"data: delay\n\ndata: b\n\n").parts();
    let all = Part::Bytes(b"data: delay\n\ndata: b\n\n".to_vec());
    assert_eq!(parts, [Part::Wait(DELAY), all, Part::Gap]);
}

#[test]
fn no_more_than_the_limit_is_held() {
    let mut stream = EventStreamEditor::new(&conversation(Identity(100)));
    let long = format!("data: {}\n\n", "x".repeat(1_000));
    let mut out = Vec::new();
    for chunk in long.as_bytes().chunks(7) {
        out.extend(stream.take(chunk).bytes);
        assert!(stream.held.len() <= 100);
    }
    assert_eq!(out, long.as_bytes());
    assert!(stream.is_between_events());
}

proptest! {
    #[test]
    fn the_identity_edit_changes_no_stream_of_events(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec!["data: {}", "data:", "event: message", ": c", "\r", "\n", "\r\n", "\n\n", "\u{feff}"])
                .prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..20),
        ], 0..30),
        limit in 0_usize..80,
    ) {
        let mut stream = EventStreamEditor::new(&conversation(Identity(limit)));
        let mut out = Vec::new();
        for piece in &pieces {
            out.extend(stream.take(piece).bytes);
        }
        out.extend(stream.end());
        prop_assert_eq!(out, pieces.concat());
    }

    /// A replacement keeps what is around it, and is the data of the event that comes out.
    #[test]
    fn a_client_parses_the_replaced_message(
        message in "[ a-z{}\n]{0,30}",
        lines in prop::collection::vec("[a-z]{1,5}", 1..4),
        space in any::<bool>(),
    ) {
        let colon = if space { "data: " } else { "data:" };
        let lines: Vec<String> = lines.iter().map(|line| format!("{colon}{line}\n")).collect();
        let event = format!("id: 7\n{}\n", lines.concat());
        let replaced = EventData::of(event.as_bytes()).replaced(event.as_bytes(), message.as_bytes());
        let data = EventData::of(&replaced).text;
        let plain = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\n', " ").trim_end().to_owned();
        prop_assert_eq!(plain(&data), plain(message.as_bytes()));
        prop_assert!(replaced.starts_with(b"id: 7\n"));
    }
}
