//! Pairing responses with calls.

use std::time::Duration;

use super::*;
use FindingKind::{DuplicateAnswer, Malformed, Noise, ResultAndError, UnknownId};

#[test]
fn answers_are_found_by_id_in_any_order() {
    let folded = Trial::stdio()
        .calls("1", "a")
        .calls("\"1\"", "b")
        .calls("2", "c")
        .gets(&result("\"1\"", "B"))
        .gets(&result("1.0", "A"))
        .gets(r#"{"id":2,"error":{"code":-32602,"message":"no"}}"#)
        .folded();
    assert_eq!(brief(&folded), ["a=A", "b=B", "c!-32602"]);
    let first = &folded.transcript.calls[0];
    assert_eq!((first.seq, first.server.as_str()), (2, "s1"));
    assert_eq!(first.duration, Some(Duration::from_micros(4)));
    assert_eq!(kinds(&folded), []);
}

#[test]
fn an_id_is_its_value_however_it_is_spelled() {
    let check = |asked: &str, answered: &str, same: bool| {
        let folded = Trial::stdio()
            .calls(asked, "a")
            .gets(&result(answered, "A"))
            .folded();
        assert_eq!(brief(&folded) == ["a=A"], same, "{asked} {answered}");
    };
    check("100", "1e2", true);
    check("1.50", "1.5", true);
    check("18446744073709551617", "18446744073709551617.0", true);
    check("18446744073709551617", "18446744073709551616", false);
    check("9007199254740993", "9007199254740992", false);
    check("\"\\u0061\"", "\"a\"", true);
    check("1", "\"1\"", false);
    check("1", "true", false);
}

#[test]
fn incomplete_responses_are_findings() {
    let check = |answers: &[&str], calls: &[&str], found: &[FindingKind]| {
        let trial = Trial::stdio().calls("1", "a");
        let folded = answers
            .iter()
            .fold(trial, |trial, text| trial.gets(text))
            .folded();
        assert_eq!(brief(&folded), calls, "{answers:?}");
        assert_eq!(kinds(&folded), found, "{answers:?}");
    };
    let good = result("1", "A");
    check(&[], &["a?"], &[]);
    check(&[&good, &result("1", "B")], &["a=A"], &[DuplicateAnswer]);
    check(&[&result("\"1\"", "B"), &good], &["a=A"], &[UnknownId]);
    check(&[&result("7", "B")], &["a?"], &[UnknownId]);
    check(
        &[r#"{"id":1,"result":{},"error":{"code":5,"message":""}}"#],
        &["a!5"],
        &[ResultAndError],
    );
    check(
        &["listening on stdio", "", &good],
        &["a=A"],
        &[Noise, Noise],
    );
    check(&["{\"id\":1,", &good], &["a=A"], &[Malformed]);
    check(&["[1]", "[]", "{}", &good], &["a=A"], &[Malformed; 3]);
    check(
        &[r#"{"id":null,"error":{"code":-32700,"message":""}}"#],
        &["a?"],
        &[UnknownId],
    );
    check(
        &["\u{feff}", &format!("\u{feff}{good}\r")],
        &["a=A"],
        &[Noise],
    );
    check(&[r#"{"id":1,"result":null}"#], &["a=…"], &[]);
    check(
        &[r#"{"id":1,"error":{"code":"x"}}"#],
        &[r#"a=Unreadable { reason: "invalid error code \"x\"" }"#],
        &[],
    );
}

#[test]
fn endless_nesting_is_only_unreadable() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let folded = Trial::stdio()
        .calls("1", "a")
        .gets(&format!(r#"{{"id":1,"result":{deep}}}"#))
        .calls(&deep, "b")
        .folded();
    assert!(
        brief(&folded)[0].starts_with("a=Unreadable"),
        "{:?}",
        brief(&folded)
    );
}

#[test]
fn a_cancelled_call_has_no_response() {
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    let folded = Trial::stdio()
        .calls("1", "a")
        .calls("2", "b")
        .sends(cancel)
        .gets(&result("1", "A"))
        .gets(&result("2", "B"))
        .folded();
    assert_eq!(brief(&folded), ["a?", "b=B"]);
    assert_eq!(kinds(&folded), [FindingKind::LateAnswer]);
}

#[test]
fn a_response_to_a_disconnected_client_is_no_finding() {
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"no longer wanted"}}"#;
    let folded = Trial::stdio()
        .calls("1", "a")
        .sends(cancel)
        .gets(&result("1", "A"))
        .gets(&result("1", "A"))
        .folded();
    assert_eq!(brief(&folded), ["a?"]);
    assert_eq!(kinds(&folded), [FindingKind::DuplicateAnswer]);
}

#[test]
fn a_batch_is_its_messages() {
    let both = format!("[{},{}]", call("1", "a"), call("2", "b"));
    let answers = format!("[{},{}]", result("2", "B"), result("1", "A"));
    let folded = Trial::stdio().sends(&both).gets(&answers).folded();
    assert_eq!(brief(&folded), ["a=A", "b=B"]);
    assert_eq!(folded.transcript.calls[1].seq, 2);
}

#[test]
fn http_pairs_by_exchange_first() {
    // Two clients behind one address, with the same ids.
    let folded = Trial::http()
        .posts(1, &call("1", "a"))
        .posts(2, &call("1", "b"))
        .replies(2, &result("1", "B"))
        .replies(1, &result("1", "A"))
        .folded();
    assert_eq!(brief(&folded), ["a=A", "b=B"]);
    // An answer over another exchange; an error that names nothing.
    let folded = Trial::http()
        .posts(1, &call("1", "a"))
        .posts(2, &call("2", "b"))
        .replies(9, &result("1", "A"))
        .replies(
            2,
            r#"{"id":null,"error":{"code":-32020,"message":"header"}}"#,
        )
        .folded();
    assert_eq!(brief(&folded), ["a=A", "b!-32020"]);
    assert_eq!(kinds(&folded), []);
    // An error in an exchange without a request rejects the exchange; on stdio it answers no request.
    let refused = r#"{"id":null,"error":{"code":-32000,"message":"no GET"}}"#;
    let folded = Trial::http().replies(1, refused).folded();
    assert_eq!(kinds(&folded), []);
    let folded = Trial::stdio().gets(refused).folded();
    assert_eq!(kinds(&folded), [FindingKind::UnknownId]);
    // Clearly no response to any request.
    let folded = Trial::http()
        .posts(1, &call("1", "a"))
        .posts(2, &call("1", "b"))
        .replies(3, &result("1", "?"))
        .replies(2, "Internal Server Error")
        .folded();
    assert_eq!(brief(&folded), ["a?", "b?"]);
    assert_eq!(
        kinds(&folded),
        [FindingKind::UnknownId, FindingKind::Malformed]
    );
}

#[test]
fn only_calls_of_selected_clients_count() {
    let read = r#"{"id":1,"method":"resources/read","params":{"uri":"file:///a"}}"#;
    let prompt = r#"{"id":2,"method":"prompts/get","params":{"name":"greet"}}"#;
    let list = r#"{"id":3,"method":"tools/list"}"#;
    let trial = Trial::stdio().open(2, Actor::Step, WireKind::Stdio);
    let by_step = Body::Text(call("1", "setup"));
    let folded = trial
        .frame(2, None, Direction::ToServer, by_step.clone())
        .sends(read)
        .sends(prompt)
        .sends(list)
        .gets(&result("3", "list"))
        // A server that calls: not the agent's doing.
        .gets(&call("1", "reverse"))
        .folded();
    assert_eq!(brief(&folded), ["file:///a?", "greet?"]);
    assert_eq!(kinds(&folded), []);
    let options = FoldOptions {
        actors: vec![Actor::Step],
        ..FoldOptions::default()
    };
    let trial = Trial::stdio().open(2, Actor::Step, WireKind::Stdio);
    let folded = trial
        .frame(2, None, Direction::ToServer, by_step)
        .sends(read)
        .folded_with(&options);
    assert_eq!(brief(&folded), ["setup?"]);
}

#[test]
fn a_truncated_response_is_unreadable() {
    let cut = |bytes| Body::Cut {
        bytes,
        sha256: String::new(),
    };
    let folded = Trial::stdio()
        .calls("1", "a")
        .calls("2", "b")
        .frame(1, None, Direction::ToClient, cut(99))
        .gets(&result("1", "A"))
        .frame(1, None, Direction::ToServer, cut(7))
        .folded();
    assert_eq!(brief(&folded), ["a=A", "b=Cut { bytes: 99 }"]);
    let unread = folded.transcript.unread.iter().map(|one| one.seq);
    assert_eq!(unread.collect::<Vec<_>>(), [6]);
    let folded = Trial::http()
        .posts(1, &call("1", "a"))
        .posts(2, &call("2", "b"))
        .frame(1, Some(2), Direction::ToClient, cut(9))
        .folded();
    assert_eq!(brief(&folded), ["a?", "b=Cut { bytes: 9 }"]);
}

#[test]
fn ambiguous_json_is_unreadable_and_lone_surrogates_are_kept() {
    let folded = Trial::stdio()
        .calls("1", "a")
        .gets(r#"{"id":1,"result":{"content":"\ud800"}}"#)
        .calls("2", "b")
        .gets(r#"{"id":2,"result":{"isError":true,"isError":false}}"#)
        .calls("3", "c")
        .gets(r#"{"id":3,"error":{"code":5,"message":"\udfff"}}"#)
        .sends(r#"{"id":4,"method":"tools/call","params":{"name":"d","arguments":{"x":1,"x":2}}}"#)
        .folded();
    let answer = |call: usize| &folded.transcript.calls[call].answer;
    let CallOutcome::Result(Payload::Value(kept)) = answer(0) else {
        panic!("{:?}", answer(0));
    };
    let written = crate::json::spelled(&kept.to_string()).into_owned();
    assert_eq!(written, r#"{"content":"\ud800"}"#);
    assert!(matches!(
        answer(1),
        CallOutcome::Result(Payload::Unreadable { reason }) if reason.contains("duplicate key `isError`")
    ));
    assert!(matches!(answer(2), CallOutcome::Error { code: 5, .. }));
    let CallRequest::Tool { name, arguments } = &folded.transcript.calls[3].request else {
        panic!("it is a tool");
    };
    assert_eq!(name, "d");
    assert!(
        matches!(arguments, Payload::Unreadable { reason } if reason.contains("duplicate key `x`"))
    );
    assert_eq!(folded.transcript.unread, []);
}

/// `serde_json` would read the JSON in a text as the arguments; the server gets an object.
#[test]
fn a_call_with_a_reserved_key_is_unread() {
    let call = |arguments: &str| {
        format!(
            r#"{{"id":1,"method":"tools/call","params":{{"name":"a","arguments":{arguments}}}}}"#
        )
    };
    for arguments in [
        r#"{"$serde_json::private::RawValue":"{\"path\":\"ok.txt\"}"}"#,
        r#"{"x":{"$serde_json::private::Number":"5"}}"#,
        r#"{"p":1,"p":2,"pad":{"\u0024serde_json::private::RawValue":"{\"x\":1,\"y\":2}"}}"#,
    ] {
        let folded = Trial::stdio()
            .sends(&call(arguments))
            .gets(&result("1", "A"))
            .folded();
        assert_eq!(folded.transcript.calls, [], "{arguments}");
        assert_eq!(folded.transcript.unread.len(), 1, "{arguments}");
        assert_eq!(folded.transcript.unread[0].name.as_deref(), Some("a"));
    }
}

#[test]
fn an_answer_to_a_request_that_only_lenient_servers_read_is_one() {
    let call = r#"{"id":7,"method":"tools/call","params":{"name":"a","arguments":{"x":NaN}}}"#;
    let list = r#"{"id":8,"method":"tools/list","params":{"x":NaN}}"#;
    let folded = Trial::stdio()
        .sends(call)
        .gets(&result("7", "A"))
        .sends(list)
        .gets(&result("8", "B"))
        .folded();
    assert_eq!(kinds(&folded), [FindingKind::ClientMessage; 2]);
    assert_eq!(folded.transcript.unread.len(), 1);
    assert_eq!(folded.transcript.unread[0].name.as_deref(), Some("a"));
}

#[test]
fn payloads_past_the_limit_are_cut() {
    let options = FoldOptions {
        payload_bytes: 30,
        ..FoldOptions::default()
    };
    let folded = Trial::stdio()
        .calls("1", "a")
        .gets(&result("1", "A"))
        .calls("2", "b")
        .gets(&result("2", "B"))
        .folded_with(&options);
    assert_eq!(brief(&folded), ["a=A", "b=Omitted { bytes: 15 }"]);
}

#[test]
fn repeated_findings_are_counted() {
    let mut trial = Trial::stdio();
    for _ in 0..100 {
        trial = trial.gets("noise");
    }
    let folded = trial.folded();
    assert_eq!(folded.findings.len(), 21);
    assert_eq!(
        folded
            .findings
            .iter()
            .map(|finding| finding.count)
            .sum::<u64>(),
        100
    );
    let recorded = Finding {
        conn: ConnectionId(1),
        kind: FindingKind::Noise,
        detail: "a banner".to_owned(),
        count: 1,
    };
    let folded = Trial::stdio()
        .gets("banner")
        .event(EventKind::Finding(recorded.clone()))
        .folded();
    assert_eq!(folded.findings, [recorded]);
}

proptest::proptest! {
    #[test]
    fn anything_folds_and_every_call_is_there(
        steps in proptest::collection::vec((0..9_u8, 0..4_u8, 0..4_u64), 0..60)
    ) {
        let mut trial = Trial::http().open(2, Actor::Agent, WireKind::Stdio);
        let mut made = 0;
        for (what, id, exchange) in steps {
            let id = ["1", "\"1\"", "2", "null"][usize::from(id)];
            let (direction, text) = match what {
                0..3 => (Direction::ToServer, call(id, "a")),
                3..6 => (Direction::ToClient, result(id, "A")),
                6 => (Direction::ToClient, format!("[{},{{}}]", result(id, "A"))),
                7 => (Direction::ToClient, "{\"id\":".to_owned()),
                _ => {
                    let params = format!(r#"{{"requestId":{id}}}"#);
                    let method = "notifications/cancelled";
                    (Direction::ToServer, format!(r#"{{"method":"{method}","params":{params}}}"#))
                }
            };
            made += usize::from(what < 3);
            let exchange = (exchange > 0).then_some(exchange);
            let conn = if exchange.is_some() { 1 } else { 2 };
            trial = trial.frame(conn, exchange, direction, Body::Text(text));
        }
        let folded = trial.folded();
        proptest::prop_assert_eq!(folded.transcript.calls.len(), made);
    }
}
