//! The HTTP+SSE transport.

use proctor_e2e::Fixture;

use crate::wire::{read_chunk, read_head, read_response, send};

#[test]
fn the_stream_names_the_endpoint_and_carries_the_answers() {
    let fixture = Fixture::sse(&[]);
    assert!(fixture.url().ends_with("/sse"));
    let mut stream = send(fixture.address(), "GET", "/sse", &[], "");
    assert!(read_head(&mut stream).contains("text/event-stream"));
    let event = String::from_utf8(read_chunk(&mut stream)).unwrap();
    let place = event
        .strip_prefix("event: endpoint\ndata: ")
        .unwrap()
        .trim_end();
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail"}}"#;
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", place, &[], call)).status,
        202
    );
    assert!(
        String::from_utf8(read_chunk(&mut stream))
            .unwrap()
            .contains("this always fails")
    );
    let elsewhere = "/messages?sessionId=wrong";
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", elsewhere, &[], call)).status,
        404
    );
    assert_eq!(
        read_response(&mut send(fixture.address(), "POST", "/sse", &[], call)).status,
        405
    );
}
