use proptest::prelude::*;

use super::super::output::Part as Out;
use super::super::samples::{CommandEditor, DELAY, Identity, conversation};
use super::*;

fn bytes(text: &str) -> Out {
    Out::Bytes(text.into())
}

#[test]
fn the_edit_decides_about_lines() {
    let check = |text: &str, expected: &str| {
        let conversation = conversation(CommandEditor);
        let mut lines = ServerLines::new(&conversation);
        let output = lines.take(text.as_bytes());
        assert_eq!(String::from_utf8(output.bytes).unwrap(), expected);
        let output = ClientLines::new(&conversation).take(text.as_bytes());
        assert_eq!(String::from_utf8(output.on.bytes).unwrap(), expected);
    };
    check("a\ndrop\nb\r\n", "a\nb\r\n");
    check("replace\nreplace\r\n", "new\nnew\r\n");
    check("\u{feff}replace\n", "\u{feff}new\n");
    // One line stays one.
    check("lines\n", "{  1 }\n");
    check(" drop\n\n\r\n", " drop\n\n\r\n");
}

#[test]
fn an_answered_request_is_not_forwarded() {
    let mut lines = ClientLines::new(&conversation(CommandEditor));
    let output = lines.take(b"a\nanswer\nb");
    assert_eq!(output.on.bytes, b"a\n");
    assert_eq!(output.answers, [b"{\r\n}"]);
    assert_eq!(lines.end(), b"b");
}

#[test]
fn a_delay_applies_to_later_lines_too() {
    let mut lines = ServerLines::new(&conversation(CommandEditor));
    let parts = lines.take(b"a\ndelay\nb\n").parts();
    let expected = [
        bytes("a\n"),
        Out::Wait(DELAY),
        bytes("delay\nb\n"),
        Out::Gap,
    ];
    assert_eq!(parts, expected);
}

#[test]
fn no_more_than_the_limit_is_held() {
    let conversation = conversation(Identity(100));
    let (mut client, mut server) = (
        ClientLines::new(&conversation),
        ServerLines::new(&conversation),
    );
    for _ in 0..50 {
        client.take(b"0123456");
        server.take(b"0123456");
        assert!(client.held.line.len() <= 100 && server.held.line.len() <= 100);
    }
    assert!(!server.is_between_lines());
    server.take(b"\nnext");
    assert!(server.is_between_lines());
}

proptest! {
    #[test]
    fn the_identity_edit_changes_no_stream_of_lines(
        chunks in prop::collection::vec(
            prop::collection::vec(prop_oneof![
                6 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b'{'),
            ], 0..60),
            0..12,
        ),
        limit in 0_usize..80,
    ) {
        let conversation = conversation(Identity(limit));
        let (mut client, mut server) = (
            ClientLines::new(&conversation),
            ServerLines::new(&conversation),
        );
        let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
        for chunk in &chunks {
            let output = client.take(chunk);
            prop_assert!(output.answers.is_empty());
            to_server.extend(output.on.bytes);
            to_client.extend(server.take(chunk).bytes);
        }
        to_server.extend(client.end());
        to_client.extend(server.end());
        prop_assert_eq!(&to_server, &chunks.concat());
        prop_assert_eq!(&to_client, &chunks.concat());
    }
}
