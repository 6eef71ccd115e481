//! A connection that several records share.

use super::*;

/// A peer that two share: they wait for 1 and 2, and the connection itself for 3.
fn shared() -> (Peer, [Arc<ConnectionTap>; 2], [PendingAnswer; 3]) {
    let peer = peer();
    let recorder = Recorder::nothing();
    let taps = [0, 1].map(|_| peer.attach(&recorder, Actor::Loop));
    let waiting = [&taps[0], &taps[1], peer.tap()].map(|tap| peer.expect(tap));
    (peer, taps, waiting)
}

#[test]
fn a_message_belongs_to_the_record_that_its_request_is_in() {
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
    // An answer that came is remembered, but holds no record.
    receive(&peer, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    check(progress, &[&a]);
}

#[test]
fn what_an_exchange_brings_stays_there_unless_it_belongs_to_another() {
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
fn what_is_wrong_is_noted_where_the_message_belongs() {
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
fn a_message_that_was_cut_is_noted_by_all_who_may_have_waited_for_it() {
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
fn what_is_too_late_for_a_share_goes_to_the_connection_in_the_same_record_too() {
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
