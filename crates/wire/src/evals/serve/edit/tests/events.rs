use mcp_evals::Suite;
use proptest::prelude::*;

use super::*;
use crate::edit::events::EventStreamEditor;

const ADDED: &str = r#""evals":{"listChanged":true},"experimental":{"evals":{"listChanged":true}},"extensions":{"dev.mcp-proctor/evals":{"listChanged":true}}"#;

/// A stream on which the answer to the request 1 may come.
fn stream(waits: bool) -> EventStreamEditor {
    let editor: Arc<dyn Editor> = Arc::new(EvalsResponder::new(Suite::default(), Box::new(|_| {})));
    let conversation = Conversation::begin(&editor);
    if waits {
        conversation.on_client_message(br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
    }
    EventStreamEditor::new(&conversation)
}

fn passed(stream: &mut EventStreamEditor, chunks: &[&[u8]]) -> String {
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend(stream.take(chunk).bytes);
    }
    out.extend(stream.end());
    String::from_utf8(out).unwrap()
}

#[test]
fn e35_the_capability_is_added_to_one_data_line() {
    let check = |text: &str| {
        let expected = text.replace('@', ADDED);
        let text = text.replace('@', "");
        assert_eq!(passed(&mut stream(true), &[text.as_bytes()]), expected);
        for at in 0..=text.len() {
            let (head, tail) = text.as_bytes().split_at(at);
            assert_eq!(passed(&mut stream(true), &[head, tail]), expected, "{at}");
        }
    };
    check("data: {\"id\":1,\"result\":{\"capabilities\":{@}}}\n\n");
    check("id: 7\r\nevent: message\r\ndata:{\"id\":1,\"result\":{\"capabilities\":{@}}}\r\n\r\n");
    check(
        ": hi\n\ndata: {\"id\":2,\"result\":{\"capabilities\":{}}}\n\ndata: {\"id\":1,\"result\":{\"capabilities\":{@}}}\n\ndata: {\"id\":1,\"result\":{\"capabilities\":{}}}\n\n",
    );
    check("data: {\"id\":1,\rdata:\"result\":{ \"capabilities\":\rdata:  {@\rdata: }}}\r\r");
    check("\u{feff}data: {\"id\":1,\"result\":{\"capabilities\":{@}}}\n\n");
    check("\n\nretry: 5\n\ndata: {\"id\":1,\"error\":{}}\n\ndata: x\n\nda");
}

#[test]
fn e35_own_events_never_split_a_server_event() {
    let mut stream = stream(false);
    let check = |stream: &mut EventStreamEditor, text: &str, gap, between| {
        let said = stream.take(text.as_bytes());
        let seen = (said.gap, stream.is_between_events());
        assert_eq!(seen, (gap, between), "{text:?}");
    };
    check(&mut stream, "", Some(0), true);
    check(&mut stream, "\n", Some(1), true);
    check(&mut stream, "data: a", Some(0), false);
    check(&mut stream, "\n", None, false);
    check(&mut stream, "\ndata: b\n", Some(1), false);
    check(&mut stream, "data: c\r\n\r\n", Some(11), true);
    check(&mut stream, ": d\r\r: e", Some(5), false);
    check(&mut stream, "\r\n\r", Some(3), true);
    check(&mut stream, "\n", Some(1), true);
}

#[test]
fn e35_an_oversized_event_passes_unchanged() {
    let mut stream = stream(true);
    let long = format!("data: {}\n\n", "x".repeat(LIMIT));
    let mut out = Vec::new();
    for chunk in long.as_bytes().chunks(100_000) {
        out.extend(stream.take(chunk).bytes);
    }
    assert!(out == long.as_bytes());
    let next = "data: {\"id\":1,\"result\":{\"capabilities\":{}}}\n\n";
    assert!(passed(&mut stream, &[next.as_bytes()]).contains("evals"));
}

proptest! {
    #[test]
    fn e35_other_bytes_pass_unchanged(
        pieces in prop::collection::vec(prop_oneof![
            prop::sample::select(vec!["data: {\"id\":2,\"result\":{\"capabilities\":{}}}", "data", ": c", "id: 1", "\r", "\n", "\r\n", "\n\n", "data:{\"id\":1,\"method\":\"x\"}"]).prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..20),
        ], 0..30),
        waits in any::<bool>(),
    ) {
        let mut stream = stream(waits);
        let mut out = Vec::new();
        for piece in &pieces {
            let said = stream.take(piece);
            prop_assert!(said.gap.is_none_or(|gap| gap <= said.bytes.len()));
            out.extend(said.bytes);
        }
        out.extend(stream.end());
        prop_assert_eq!(out, pieces.concat());
    }
}
