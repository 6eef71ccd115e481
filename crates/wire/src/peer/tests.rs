mod shared;

use proctor_record::event::{Actor, WireKind};
use tokio::sync::oneshot::error::TryRecvError;

use super::*;
use crate::recorder::Recorder;

fn peer() -> Peer {
    let tap = Recorder::nothing().open("s", Actor::Person, WireKind::Stdio, "x");
    Peer::new(tap, ServerRequestReplies::default())
}

fn expect(peer: &Peer) -> PendingAnswer {
    peer.expect(peer.tap())
}

fn unasked(peer: &Peer) -> MessageSource<'_> {
    MessageSource {
        tap: peer.tap(),
        exchange: None,
        own: None,
    }
}

fn receive(peer: &Peer, message: &str) -> Vec<String> {
    let answers = peer.receive(message.as_bytes(), &unasked(peer)).into_iter();
    let ready = answers.map(|answer| match answer {
        AnswerMessage::Ready(bytes) => String::from_utf8(bytes).unwrap(),
        AnswerMessage::Later(_) => panic!("no immediate answer to {message}"),
    });
    ready.collect()
}

fn kinds(peer: &Peer) -> Vec<(FindingKind, u64)> {
    // Most messages of these tests have no `jsonrpc` member.
    let findings = peer.tap().findings().into_iter();
    let findings = findings.filter(|(kind, ..)| *kind != FindingKind::Protocol);
    findings.map(|(kind, _, count)| (kind, count)).collect()
}

#[test]
fn the_first_response_reaches_its_request() {
    let peer = peer();
    let (mut first, mut second) = (expect(&peer), expect(&peer));
    receive(
        &peer,
        r#"{"jsonrpc":"2.0","id":2,"result":{"n":12345678901234567890}}"#,
    );
    receive(&peer, r#"{"jsonrpc":"2.0","id":2,"result":{"again":true}}"#);
    assert!(matches!(first.answer.try_recv(), Err(TryRecvError::Empty)));
    let answer = second.answer.try_recv().unwrap().unwrap();
    assert_eq!(answer.get(), r#"{"n":12345678901234567890}"#);
    assert_eq!(kinds(&peer), [(FindingKind::DuplicateAnswer, 1)]);
}

#[test]
fn an_unknown_response_is_a_finding() {
    let peer = peer();
    let mut waiting = expect(&peer);
    for stranger in [
        r#"{"id":9,"result":{}}"#,
        r#"{"id":"1","result":{}}"#,
        r#"{"id":1.5,"error":{"code":1}}"#,
    ] {
        assert_eq!(receive(&peer, stranger), Vec::<String>::new());
    }
    assert_eq!(kinds(&peer), [(FindingKind::UnknownId, 3)]);
    assert!(matches!(
        waiting.answer.try_recv(),
        Err(TryRecvError::Empty)
    ));
}

#[test]
fn a_response_after_a_timeout_is_late_not_unknown() {
    let peer = peer();
    let waiting = expect(&peer);
    peer.give_up(waiting.id);
    receive(&peer, r#"{"id":1,"result":{}}"#);
    assert_eq!(kinds(&peer), [(FindingKind::LateAnswer, 1)]);
}

#[test]
fn a_response_after_a_cancellation_is_not_a_finding() {
    let peer = peer();
    let waiting = expect(&peer);
    peer.abandon(waiting.id);
    receive(&peer, r#"{"id":1,"result":{}}"#);
    assert_eq!(kinds(&peer), []);
}

#[test]
fn a_late_response_to_the_probe_is_not_a_finding() {
    for answer in [
        r#"{"id":1,"result":{}}"#,
        r#"{"id":1,"error":{"code":-32601,"message":"x"}}"#,
        r#"{"id":null,"error":{"code":-32601,"message":"x"}}"#,
    ] {
        let peer = peer();
        let probe = expect(&peer);
        peer.abandon_probe(probe.id);
        let mut next = expect(&peer);
        receive(&peer, answer);
        assert_eq!(kinds(&peer), [], "{answer}");
        assert!(matches!(next.answer.try_recv(), Err(TryRecvError::Empty)));
        // Only one late response is expected.
        receive(
            &peer,
            r#"{"id":null,"error":{"code":-32601,"message":"x"}}"#,
        );
        assert!(matches!(
            next.answer.try_recv(),
            Ok(Err(RequestFailure::Rpc(_)))
        ));
    }
}

#[test]
fn malformed_messages_are_findings_and_get_no_response() {
    let peer = peer();
    for nonsense in [
        "{",
        "null",
        "{}",
        r#"{"id":1}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#,
        "[1]",
    ] {
        assert_eq!(receive(&peer, nonsense), Vec::<String>::new(), "{nonsense}");
    }
    // An error without an id is a response, though no request is pending.
    let expected = [(FindingKind::Malformed, 5), (FindingKind::UnknownId, 1)];
    assert_eq!(kinds(&peer), expected);
    let answers = peer.receive(b"{\"id\":1,\"result\":\"\xff\"}", &unasked(&peer));
    assert!(answers.is_empty());
}

#[test]
fn a_response_with_result_and_error_is_a_result_and_a_finding() {
    let peer = peer();
    let mut waiting = expect(&peer);
    receive(
        &peer,
        r#"{"id":1,"result":{},"error":{"code":1,"message":"x"}}"#,
    );
    assert!(waiting.answer.try_recv().unwrap().is_ok());
    assert_eq!(kinds(&peer), [(FindingKind::ResultAndError, 1)]);
}

#[test]
fn a_server_request_is_answered_with_its_id() {
    let peer = peer();
    assert_eq!(
        receive(&peer, r#"{"jsonrpc":"2.0","id":"a-1","method":"ping"}"#),
        [r#"{"jsonrpc":"2.0","id":"a-1","result":{}}"#]
    );
    assert_eq!(
        receive(
            &peer,
            r#"[{"id":1,"method":"ping"},{"id":2,"method":"roots/list"}]"#
        )
        .len(),
        2
    );
    assert!(receive(&peer, r#"{"id":3,"method":"x/y"}"#)[0].contains("-32601"));
}

#[test]
fn a_flood_of_notifications_leaves_nothing_behind() {
    let peer = peer();
    for _ in 0..10_000 {
        receive(
            &peer,
            r#"{"method":"notifications/message","params":{"data":"x"}}"#,
        );
    }
    receive(&peer, r#"{"method":"notifications/tools/list_changed"}"#);
    assert_eq!(peer.changes(), 1);
    assert_eq!(kinds(&peer), []);
}

#[test]
fn progress_reaches_its_request() {
    let peer = peer();
    let waiting = expect(&peer);
    let before = *waiting.progress.borrow();
    receive(
        &peer,
        r#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#,
    );
    assert!(!waiting.progress.has_changed().unwrap());
    receive(
        &peer,
        r#"{"method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    );
    assert!(waiting.progress.has_changed().unwrap());
    assert!(*waiting.progress.borrow() >= before);
}

#[test]
fn the_end_of_the_connection_fails_all_requests() {
    let peer = peer();
    let mut waiting = expect(&peer);
    peer.end(PeerClose::Broken("first".to_owned()));
    peer.end(PeerClose::Closed);
    assert!(matches!(
        waiting.answer.try_recv(),
        Err(TryRecvError::Closed)
    ));
    assert_eq!(peer.ended(), Some(PeerClose::Broken("first".to_owned())));
}

#[test]
fn a_message_without_a_version_is_accepted_with_a_finding() {
    let peer = peer();
    let mut waiting = expect(&peer);
    receive(&peer, r#"{"id":1,"result":{}}"#);
    assert!(waiting.answer.try_recv().unwrap().is_ok());
    assert_eq!(peer.tap().findings()[0].0, FindingKind::Protocol);
}

#[test]
fn an_oversized_message_fails_the_only_pending_request() {
    let peer = peer();
    let mut waiting = expect(&peer);
    peer.oversized(&oversized(99, "{\"result\""), &unasked(&peer));
    assert!(matches!(
        waiting.answer.try_recv(),
        Ok(Err(RequestFailure::TooLarge { bytes: 99 }))
    ));
    let (mut one, mut two) = (expect(&peer), expect(&peer));
    peer.oversized(&oversized(100, "{\"result\""), &unasked(&peer));
    assert!(matches!(one.answer.try_recv(), Err(TryRecvError::Empty)));
    assert!(matches!(two.answer.try_recv(), Err(TryRecvError::Empty)));
    let own = MessageSource {
        own: Some(one.id),
        ..unasked(&peer)
    };
    peer.oversized(&oversized(101, "{\"result\""), &own);
    assert!(matches!(
        one.answer.try_recv(),
        Ok(Err(RequestFailure::TooLarge { bytes: 101 }))
    ));
    // A large notification is not a response.
    peer.oversized(
        &oversized(102, "{\"method\":\"notifications/message\""),
        &unasked(&peer),
    );
    assert!(matches!(two.answer.try_recv(), Err(TryRecvError::Empty)));
}

fn oversized(bytes: u64, head: &str) -> OversizedMessage {
    OversizedMessage {
        bytes,
        sha256: String::new(),
        head: head.as_bytes().to_vec(),
    }
}

#[test]
fn a_null_result_is_valid_and_an_error_without_id_fails_the_only_request() {
    let peer = peer();
    let mut waiting = expect(&peer);
    receive(&peer, r#"{"jsonrpc":"2.0","id":1,"result":null}"#);
    assert_eq!(waiting.answer.try_recv().unwrap().unwrap().get(), "null");
    let mut waiting = expect(&peer);
    receive(
        &peer,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#,
    );
    assert!(
        matches!(waiting.answer.try_recv(), Ok(Err(RequestFailure::Rpc(error))) if error.code == -32700)
    );
    let mut waiting = expect(&peer);
    receive(&peer, r#"[5,{"jsonrpc":"2.0","id":3.0,"result":{}}]"#);
    assert!(waiting.answer.try_recv().unwrap().is_ok());
}
