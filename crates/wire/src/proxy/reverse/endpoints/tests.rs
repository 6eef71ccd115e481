use proptest::prelude::*;

use super::*;

fn endpoints(prefix: &str) -> Endpoints {
    Endpoints::new(Arc::new(Addresses {
        server: "http://server:8000/a/sse?key=1".parse().unwrap(),
        door: "http://127.0.0.1:9".to_owned(),
        prefix: prefix.to_owned(),
    }))
}

fn passed(prefix: &str, chunks: &[&[u8]]) -> Vec<u8> {
    let mut endpoints = endpoints(prefix);
    let mut out: Vec<u8> = chunks.iter().flat_map(|c| endpoints.take(c)).collect();
    out.extend(endpoints.end());
    out
}

fn text(prefix: &str, text: &str) -> String {
    String::from_utf8(passed(prefix, &[text.as_bytes()])).unwrap()
}

#[test]
fn endpoint_urls_that_bypass_the_proxy_are_rewritten() {
    let check = |written: &str, header: &str, path: &str| {
        let event = |data: &str| format!(": hi\nevent: endpoint\ndata: {data}\n\ndata: {{}}\n\n");
        assert_eq!(text("", &event(written)), event(header), "{written}");
        assert_eq!(text("/tok", &event(written)), event(path), "{written}");
    };
    let both = |path: &str| {
        let door = "http://127.0.0.1:9";
        (format!("{door}{path}"), format!("{door}/tok{path}"))
    };
    for absolute in [
        "http://server:8000/m?s=1",
        "HTTP://Server:8000/m?s=1",
        "//server:8000/m?s=1",
        "http://server:8000/m?s=1#x",
        "http://me:pw@server:8000/m?s=1",
    ] {
        let (header, path) = both("/m?s=1");
        check(absolute, &header, &path);
    }
    let (header, path) = both("/");
    check("http://server:8000", &header, &path);
    check("/m?s=1", "/m?s=1", "/tok/m?s=1");
    check("/m?s=1#x", "/m?s=1#x", "/tok/m?s=1#x");
    // A client would lose the token.
    let (_, path) = both("/m");
    for above in ["/../m", "/%2e%2E/m", "/./../m", "../../m", "../../../m"] {
        check(above, above, &path);
    }
    check("/a/../m", "/a/../m", "/tok/a/../m");
    // White space inside makes it a URL with the server's name.
    let (header, path) = both("/m");
    check("/\t/server:8000/m", &header, &path);
    // Some clients resolve it against the origin, and would lose the token.
    check("m?s=1", "m?s=1", "/tok/a/m?s=1");
    check("?s=1", "?s=1", "/tok/a/sse?s=1");
    check("../m", "../m", "/tok/m");
    // The server's own URL, which the client has, or one of another server.
    for other in [
        "",
        "#x",
        "http://server/m",
        "https://server:8000/m",
        "http://other:8000/m",
        "//other/m",
        "http://server:8000@other/m",
        "http://",
    ] {
        check(other, other, other);
    }
}

#[test]
fn only_endpoint_events_are_rewritten() {
    let url = "http://server:8000/m";
    for same in [
        format!("data: {url}\n\n"),
        format!("event: message\ndata: {url}\n\n"),
        format!("event: endpoints\ndata: {url}\n\n"),
        format!("\n\u{feff}event: endpoint\ndata: {url}\n\n"),
        format!("event: endpoint\nevent: message\ndata: {url}\n\n"),
        format!("event: endpoint\n\ndata: {url}\n\n"),
        format!("event: endpoint\ndata: {url}\ndata: more\n\n"),
        format!("event: endpoint\nid: {url}\n: {url}\nretry: 1\ndata\n\n"),
        format!("event: endpoint\ndata: {url}\n"),
        format!("event: endpoint\ndata: {url}{}\n\n", "x".repeat(LONGEST)),
    ] {
        assert_eq!(text("/tok", &same), same);
    }
    let changed = "http://127.0.0.1:9/tok/m";
    for (event, expected) in [
        (
            "data: URL\nevent: endpoint\n\n",
            "data: URL\nevent: endpoint\n\n",
        ),
        (
            "\u{feff}event: endpoint\ndata: URL\n\n",
            "\u{feff}event: endpoint\ndata: URL\n\n",
        ),
        (
            "event:endpoint\r\ndata:URL\r\n\r\n",
            "event:endpoint\r\ndata:URL\r\n\r\n",
        ),
        (
            "event: endpoint\rdata: URL\r\r",
            "event: endpoint\rdata: URL\r\r",
        ),
        (
            "id: 1\nevent: endpoint\nid: 2\ndata: URL\n:x\n\n\n",
            "id: 1\nevent: endpoint\nid: 2\ndata: URL\n:x\n\n\n",
        ),
    ] {
        let sent = event.replace("URL", url);
        assert_eq!(text("/tok", &sent), expected.replace("URL", changed));
    }
}

#[test]
fn bytes_without_a_url_are_not_held_back() {
    let mut endpoints = endpoints("/tok");
    assert_eq!(endpoints.take(b": ping\n"), b": ping\n");
    assert_eq!(endpoints.take(b"event: endpoint\n"), b"event: endpoint\n");
    assert_eq!(endpoints.take(b"data: /"), b"");
    assert_eq!(endpoints.take(b"m\n\nda"), b"data: /tok/m\n\n");
    let long = "x".repeat(LONGEST);
    let out = endpoints.take(format!("ta: {long}").as_bytes());
    assert_eq!(out.len(), LONGEST + 6);
    assert_eq!(endpoints.take(b"yy"), b"yy");
    assert_eq!(endpoints.take(b"\n\n"), b"\n\n");
    assert_eq!(
        endpoints.take(b"event: endpoint\ndata: /m\n\n"),
        b"event: endpoint\ndata: /tok/m\n\n"
    );
}

/// Parts of streams, with all bytes that have a meaning.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"event: endpoint\n".to_vec()),
        Just(b"event: message\r\n".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"data".to_vec()),
        Just(b": ".to_vec()),
        Just(b"id: 7\n".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just(b"http://other/m".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

/// Splits the bytes into other chunks.
fn cut<'a>(bytes: &'a [u8], at: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<usize> = at.iter().map(|at| at % (bytes.len() + 1)).collect();
    at.extend([0, bytes.len()]);
    at.sort_unstable();
    at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect()
}

proptest! {
    #[test]
    fn all_bytes_leave_as_they_came(
        bytes in stream(),
        at in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        // Without a prefix, only a URL with the server's name changes.
        prop_assert_eq!(passed("", &cut(&bytes, &at)), bytes);
    }

    #[test]
    fn chunks_may_end_anywhere(
        bytes in stream(),
        before in stream(),
        at in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let endpoint = b"\n\nevent: endpoint\r\ndata: http://server:8000/m\r\n\r\n";
        let changed = b"\n\nevent: endpoint\r\ndata: http://127.0.0.1:9/m\r\n\r\n";
        let sent = [&before[..], endpoint, &bytes].concat();
        let expected = [&before[..], changed, &bytes].concat();
        prop_assert_eq!(passed("", &cut(&sent, &at)), expected);
    }
}
