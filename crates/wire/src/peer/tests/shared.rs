//! A connection that several records share.

use super::*;

/// A peer with two shares that wait for responses 1 and 2, and a connection that waits for 3.
fn shared() -> (Peer, [Arc<ConnectionTap>; 2], [PendingAnswer; 3]) {
    let peer = peer();
    let recorder = Recorder::nothing();
    let taps = [0, 1].map(|_| peer.attach(&recorder, Actor::Loop));
    let waiting = [&taps[0], &taps[1], peer.tap()].map(|tap| peer.expect(tap));
    (peer, taps, waiting)
}

#[test]
fn a_message_goes_into_the_record_of_its_request() {
    let (peer, [a, b], _waiting) = shared();
    let home = peer.tap().clone();
    let check = |message: &str, expected: &[&Arc<ConnectionTap>]| {
        let found = peer.taps_of(message.as_bytes(), &unasked(&peer));
        let same = found.len() == expected.len()
            && found.iter().zip(expected).all(|(f, e)| Arc::ptr_eq(f, e));
        assert!(same, "{message}");
    };
    check(r#"{"id":1,"result":{}}"#, &[&a]);
    check(r#"{"id":2.0,"error":{"code":1,"message":""}}"#, &[&b]);
    check(r#"{"id":3,"result":{}}"#, &[&home]);
    for unattributed in [
        r#"{"id":4,"result":{}}"#,
        r#"{"id":"1","result":{}}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"method":"notifications/message","params":{"progressToken":1}}"#,
        r#"{"method":"notifications/progress","params":{"progressToken":"1"}}"#,
        r#"{"id":null,"error":{"code":-32700,"message":"which?"}}"#,
        r#"{"id":1,"#,
        "[INFO] started",
        "",
    ] {
        check(unattributed, &[&home]);
    }
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":1}}"#;
    check(progress, &[&a]);
    check(r#"[{"id":2,"result":{}},{"id":1,"result":{}}]"#, &[&b, &a]);
    check(r#"[{"id":2,"result":{}},{"method":"x"}]"#, &[&b, &home]);
    // A completed request is remembered, but keeps no record open.
    receive(&peer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    check(progress, &[&a]);
}

#[test]
fn messages_of_an_exchange_stay_in_its_record() {
    let (peer, [a, b], _waiting) = shared();
    let from = MessageSource {
        tap: &a,
        exchange: Some(1),
        own: Some(1),
    };
    let of = |message: &str| peer.taps_of(message.as_bytes(), &from).remove(0);
    assert!(Arc::ptr_eq(&of(r#"{"method":"x"}"#), &a));
    assert!(Arc::ptr_eq(&of("nonsense"), &a));
    assert!(Arc::ptr_eq(&of(r#"{"error":{"code":1}}"#), &a));
    assert!(Arc::ptr_eq(&of(r#"{"id":2,"result":{}}"#), &b));
}

#[test]
fn findings_go_into_the_record_of_the_message() {
    let (peer, [a, b], _waiting) = shared();
    let kinds = |tap: &ConnectionTap| {
        let findings = tap.findings().into_iter();
        findings.map(|(kind, ..)| kind).collect::<Vec<_>>()
    };
    receive(&peer, r#"{"id":1,"result":{},"error":{}}"#);
    receive(&peer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let expected = [
        FindingKind::Protocol,
        FindingKind::ResultAndError,
        FindingKind::DuplicateAnswer,
    ];
    assert_eq!(kinds(&a), expected);
    peer.give_up(2);
    b.close("done".to_owned(), None);
    receive(&peer, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
    drop(a);
    receive(&peer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(kinds(&b), []);
    let expected = [FindingKind::LateAnswer, FindingKind::DuplicateAnswer];
    assert_eq!(kinds(peer.tap()), expected);
}

#[test]
fn an_oversized_message_is_a_finding_for_all_possible_receivers() {
    let (peer, [a, b], mut waiting) = shared();
    let answer = oversized(99, "{\"result\"");
    let route = peer.route_of_cut(&answer, &unasked(&peer));
    assert_eq!((route.taps.len(), route.meant), (3, None));
    let notification = oversized(99, "{\"method\"");
    let route = peer.route_of_cut(&notification, &unasked(&peer));
    assert_eq!((route.taps.len(), route.meant), (1, None));
    assert!(Arc::ptr_eq(&route.taps[0], peer.tap()));
    peer.give_up(1);
    peer.give_up(3);
    peer.oversized(&answer, &unasked(&peer));
    let failed = waiting[1].answer.try_recv();
    assert!(matches!(
        failed,
        Ok(Err(RequestFailure::TooLarge { bytes: 99 }))
    ));
    assert_eq!((a.findings().len(), b.findings().len()), (0, 1));
}

#[test]
fn late_messages_of_a_share_go_to_the_connection() {
    let recorder = Recorder::nothing();
    let home = recorder.open("s", Actor::Person, WireKind::Stdio, "x");
    let share = home.attach(&recorder, Actor::Loop);
    let share_of_share = share.attach(&recorder, Actor::Loop);
    share.finding(FindingKind::Noise, "one");
    share.close("done".to_owned(), None);
    share.finding(FindingKind::Noise, "two");
    share.frame(None, Direction::ToClient, b"x");
    let count = |tap: &ConnectionTap| tap.findings().iter().map(|(.., n)| n).sum::<u64>();
    assert_eq!((count(&share), count(&home)), (1, 1));
    recorder.take_trial();
    share_of_share.finding(FindingKind::Noise, "three");
    assert_eq!((count(&share_of_share), count(&home)), (0, 2));
}
