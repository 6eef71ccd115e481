use std::collections::BTreeMap;

use super::*;

/// Returns the head of a request as the server gets it: its URL, then its headers sorted by name.
fn prepared(url: &str, configured: &[(&str, &str)], sent: &[(&str, &str)]) -> Vec<String> {
    let configured: BTreeMap<String, String> = configured
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    let upstream = Upstream::new(url, &configured).unwrap();
    let mut request = http::Request::builder().method("POST").uri("/ignored");
    for (name, value) in sent {
        request = request.header(*name, *value);
    }
    let mut request = request.body(()).unwrap();
    upstream.prepare(&mut request, "/mcp?a=1").unwrap();
    let headers = request.headers().iter();
    let mut lines: Vec<String> = headers
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines.insert(0, request.uri().to_string());
    lines
}

const PLAIN: &str = "http://server:8000/mcp";

#[test]
fn a_request_gets_the_servers_host_and_keeps_its_headers() {
    let check = |sent: &[(&str, &str)], expected: &[&str]| {
        let mut all = vec!["/mcp?a=1"];
        all.extend(expected);
        all[1..].sort_unstable();
        assert_eq!(prepared(PLAIN, &[], sent), all, "{sent:?}");
    };
    let host = "host: server:8000";
    check(&[], &[host]);
    check(&[("Host", "127.0.0.1:9")], &[host]);
    check(
        &[
            ("Mcp-Session-Id", "x"),
            ("X-Unknown", "1"),
            ("X-Unknown", "2"),
        ],
        &[host, "mcp-session-id: x", "x-unknown: 1", "x-unknown: 2"],
    );
    check(
        &[("Authorization", "Bearer agent")],
        &[host, "authorization: Bearer agent"],
    );
    check(&[("Accept-Encoding", "gzip")], &[host]);
    check(
        &[("Origin", "http://127.0.0.1:9")],
        &[host, "origin: http://server:8000"],
    );
    for hop in [
        "Connection",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "Proxy-Authenticate",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
    ] {
        check(&[(hop, "x")], &[host]);
    }
    check(
        &[
            ("Connection", "close, X-Mine"),
            ("connection", " x-other ,"),
            ("x-mine", "1"),
            ("X-Other", "2"),
            ("X-Stays", "3"),
        ],
        &[host, "x-stays: 3"],
    );
    check(&[("Content-Length", "12")], &[host, "content-length: 12"]);
}

#[test]
fn what_is_configured_wins() {
    let sent = [
        ("authorization", "Bearer agent"),
        ("x-a", "1"),
        ("x-a", "2"),
    ];
    let configured = [("Authorization", "Bearer ours"), ("X-A", "3")];
    assert_eq!(
        prepared(PLAIN, &configured, &sent),
        [
            "/mcp?a=1",
            "authorization: Bearer ours",
            "host: server:8000",
            "x-a: 3"
        ]
    );
}

#[test]
fn credentials_in_the_url_become_a_header() {
    let check = |url: &str, configured: &[(&str, &str)], expected: &str| {
        let lines = prepared(url, configured, &[]);
        assert_eq!(lines[0], "/mcp?a=1");
        assert_eq!(lines[1..], [expected, "host: server"]);
    };
    // `me:p@ss%`
    let basic = "authorization: Basic bWU6cEBzcyU=";
    check("https://me:p%40ss%25@server/mcp", &[], basic);
    check("https://me:p%40ss%@server/mcp", &[], basic);
    check("https://me@server/x", &[], "authorization: Basic bWU6");
    let ours = [("authorization", "ours")];
    check("https://me:secret@server/", &ours, "authorization: ours");
}

#[test]
fn the_origin_has_no_secrets() {
    let upstream = |url: &str| Upstream::new(url, &BTreeMap::new()).unwrap().origin;
    assert_eq!(
        upstream("https://me:pw@server:443/a?key=1"),
        "https://server"
    );
    assert_eq!(upstream("http://[::1]:80/a"), "http://[::1]");
}

#[test]
fn invalid_paths_are_refused() {
    let upstream = Upstream::new(PLAIN, &BTreeMap::new()).unwrap();
    for target in ["/a b", "/\u{7f}", "/a\r\nX: y"] {
        let mut request = http::Request::new(());
        let refused = upstream.prepare(&mut request, target);
        assert!(
            matches!(refused, Err(UpstreamError::Target(_))),
            "{target:?}"
        );
    }
    assert!(Upstream::new("ftp://server/", &BTreeMap::new()).is_err());
}

#[test]
fn a_server_says_when_a_connection_ends() {
    let check = |version: Version, headers: &[(&'static str, &'static str)], expected: bool| {
        let mut response = http::Response::builder().version(version);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        assert_eq!(closes(&response.body(()).unwrap()), expected, "{headers:?}");
    };
    check(Version::HTTP_11, &[], false);
    check(Version::HTTP_11, &[("connection", "keep-alive")], false);
    check(Version::HTTP_11, &[("connection", "x, Close")], true);
    check(
        Version::HTTP_11,
        &[("connection", "x"), ("connection", "close")],
        true,
    );
    check(Version::HTTP_10, &[], true);
    check(Version::HTTP_10, &[("connection", "Keep-Alive")], false);
}
