//! Which messages the bridge accepts and rejects.

use super::*;

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(*name, value.parse().expect("it is a header"));
    }
    headers
}

fn read(body: &str, pairs: &[(&'static str, &str)]) -> Result<Inbound, i64> {
    Inbound::read(body.as_bytes(), &headers(pairs)).map_err(|rejection| rejection.code)
}

const STATELESS_CALL: &str = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"größe","_meta":{"progressToken":4,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

#[test]
fn requests_and_notifications_are_distinguished() {
    let call = read(STATELESS_CALL, &[]).unwrap();
    assert!(call.is_stateless && !call.is_initialize);
    let [ask] = &call.asks[..] else {
        panic!("one request")
    };
    assert_eq!((ask.written.as_str(), ask.listens), ("\"a\"", false));
    assert!(ask.token.is_some() && ask.ends_with_its_post);
    let old = read(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, &[]).unwrap();
    assert!(old.is_initialize && !old.is_stateless && !old.asks[0].ends_with_its_post);
    let listen = r#"{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}"#;
    let version = [("mcp-protocol-version", "2026-07-28")];
    let listen = read(listen, &version).unwrap();
    assert!(listen.asks[0].listens && listen.is_stateless);
    for quiet in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        r#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"result":{}}]"#,
    ] {
        assert_eq!(read(quiet, &[]).unwrap().asks.len(), 0, "{quiet}");
    }
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert!(read(cancel, &[]).unwrap().cancels.is_some());
}

#[test]
fn invalid_messages_are_rejected() {
    let table = [
        ("", -32700),
        ("{", -32700),
        ("hello", -32700),
        ("[]", -32700),
        ("{}", -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, -32600),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"x"},{"jsonrpc":"2.0","id":1.0,"method":"x"}]"#,
            -32600,
        ),
    ];
    for (body, code) in table {
        assert_eq!(read(body, &[]).unwrap_err(), code, "{body}");
    }
    assert!(Inbound::read(b"{\"id\":\"\xff\"}", &HeaderMap::new()).is_err());
}

#[test]
fn headers_must_not_contradict_the_message() {
    let wrapped = "=?base64?Z3LDtsOfZQ==?=";
    let fits: [&[(&str, &str)]; 4] = [
        &[],
        &[("mcp-method", "tools/call"), ("mcp-name", wrapped)],
        &[("mcp-protocol-version", "2026-07-28")],
        &[("mcp-param-x", "anything")],
    ];
    for pairs in fits {
        assert!(read(STATELESS_CALL, pairs).is_ok(), "{pairs:?}");
    }
    let contradicts: [&[(&str, &str)]; 6] = [
        &[("mcp-method", "tools/list")],
        &[("mcp-method", "tools/call"), ("mcp-name", "other")],
        &[("mcp-name", "=?base64?!!?=")],
        &[("mcp-protocol-version", "2025-11-25")],
        &[("mcp-method", "tools/call"), ("mcp-method", "tools/call")],
        &[("mcp-method", "")],
    ];
    for pairs in contradicts {
        let read = Inbound::read(STATELESS_CALL.as_bytes(), &headers(pairs));
        let rejection = read.unwrap_err();
        assert_eq!(
            (rejection.code, rejection.id.as_str()),
            (-32020, "\"a\""),
            "{pairs:?}"
        );
    }
    // The handshake era has no such headers.
    let old = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert!(read(old, &[("mcp-method", "tools/call")]).is_ok());
}

#[test]
fn statuses_follow_the_stateless_era() {
    let table = [
        (None, 200),
        (Some(-32601), 404),
        (Some(-32020), 400),
        (Some(-32021), 400),
        (Some(-32022), 400),
        (Some(-32023), 200),
        (Some(-32602), 200),
        (Some(0), 200),
    ];
    for (error, expected) in table {
        assert_eq!(status(error).as_u16(), expected, "{error:?}");
    }
}

#[test]
fn only_line_breaks_are_changed() {
    let mut message = b"{\r\n\"a\":\"\\n\"}\n".to_vec();
    into_line(&mut message);
    assert_eq!(message, b"{  \"a\":\"\\n\"} ");
}
