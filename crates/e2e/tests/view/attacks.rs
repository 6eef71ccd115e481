//! Clients that must not get anything, or not too much.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

use data_encoding::HEXLOWER;
use proctor_e2e::session::peak_kib;

use crate::viewer::{Viewer, run, suite, until};

/// The server answers as before.
fn assert_goes_on(viewer: &Viewer) {
    let overview = viewer.json("/api/runs/one/overview");
    assert_eq!(overview["overview"]["counts"]["failed"], 2, "{overview}");
}

#[test]
fn requests_from_elsewhere_are_refused_with_a_reason() {
    let suite = suite();
    run(&suite, "one");
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    let (port, token) = (viewer.port, viewer.token.clone());
    let path = "/api/runs/one/overview";
    let with = |headers: &str| format!("GET {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n");
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let bearer = format!("Authorization: Bearer {token}\r\n");
    let check = |request: String, status: u16, reason: &str| {
        let reply = viewer.send(&request);
        assert_eq!(reply.status, status, "{request}: {}", reply.error());
        assert!(
            reply.error().contains(reason),
            "{request}: {}",
            reply.error()
        );
        let body = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(!body.contains("overview\":{"), "{body}");
    };
    let foreign = [
        "Host: evil.example\r\n",
        "Host: 127.0.0.1\r\n",
        "Host: 127.0.0.1:1\r\n",
    ];
    for host in foreign {
        check(with(&format!("{host}{bearer}")), 403, "the Host header is");
    }
    check(with(&bearer), 403, "missing Host header");
    check(
        with(&format!("{own}{own}{bearer}")),
        403,
        "invalid `host` header",
    );
    for origin in [
        "http://evil.example",
        "null",
        "https://127.0.0.1",
        "http://localhost",
    ] {
        let origin = format!("Origin: {origin}\r\n");
        check(
            with(&format!("{own}{origin}{bearer}")),
            403,
            "the Origin header is",
        );
    }
    let absolute =
        format!("GET http://evil.example{path} HTTP/1.1\r\n{own}{bearer}Connection: close\r\n\r\n");
    check(absolute, 403, "for another host");
    check(with(&own), 401, "missing token");
    check(
        with(&format!(
            "{own}Authorization: Bearer {}\r\n",
            "0".repeat(64)
        )),
        401,
        "wrong token",
    );
    check(
        with(&format!("{own}Authorization: Basic {token}\r\n")),
        401,
        "missing token",
    );
    check(
        with(&format!("{own}Cookie: token={token}\r\n")),
        401,
        "missing token",
    );
    let in_query = format!("GET {path}?token={token} HTTP/1.1\r\n{own}Connection: close\r\n\r\n");
    check(in_query, 401, "missing token");
    for method in [
        "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE",
    ] {
        let request = viewer.request(method, path);
        let reply = viewer.send(&request);
        assert!(
            matches!(reply.status, 405 | 403 | 400),
            "{method}: {}",
            reply.status
        );
    }
    // HEAD has no body, so it has no reason either.
    assert_eq!(viewer.send(&viewer.request("HEAD", path)).status, 405);
    assert_eq!(viewer.send("nonsense\r\n\r\n").status, 400);
    assert_goes_on(&viewer);
    let page = viewer.send(&format!("GET / HTTP/1.1\r\n{own}Connection: close\r\n\r\n"));
    assert_eq!(page.status, 200);
    assert!(
        page.head.contains("frame-ancestors 'none'"),
        "{}",
        page.head
    );
    assert!(page.head.contains("connect-src 'self'"), "{}", page.head);
    assert!(!String::from_utf8_lossy(&page.body).contains(&token));
    assert_eq!(viewer.stop(), Some(0));
}

#[test]
fn no_path_leads_out_of_the_runs() {
    let suite = suite();
    let folder = run(&suite, "one");
    fs::write(suite.path("secret.txt"), "top secret").unwrap();
    // A blob that leads elsewhere: its content does not have the hash of its name.
    let name = "a".repeat(64);
    fs::create_dir_all(folder.join("blobs")).unwrap();
    symlink(suite.path("secret.txt"), folder.join("blobs").join(&name)).unwrap();
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    for path in [
        "/../secret.txt",
        "/api/runs/../../secret.txt",
        "/api/runs/%2e%2e/overview",
        "/api/runs/..%2f..%2fsecret.txt/overview",
        "/api/runs//etc/passwd/overview",
        "/api/runs/%2fetc/overview",
        "/api/runs/one%00/overview",
        "/api/runs/one%2f/overview",
        "/api/runs/one%5c/overview",
        "/api/runs/%ff/overview",
        "/api/runs/./overview",
        "/api/runs/on/overview",
        "/api/runs/%6fne%20/overview",
        "/api/runs/eval.yaml/overview",
        "/api/runs/one/trials/../../secret.txt",
        "/api/runs/one/trials/run.jsonl",
        "/api/runs/one/trials/-1",
        "/api/runs/one/trials/4",
        "/api/runs/one/trials/99999999999999999999999",
        "/api/runs/one/trials/0?from=x",
        "/api/runs/one/trials/0/texts/abc",
        "/api/runs/one/blobs/..%2frun.jsonl",
        "/api/runs/one/blobs/run.jsonl",
        &format!("/api/runs/one/blobs/{}", "A".repeat(64)),
        &format!("/api/runs/one/blobs/{}", "b".repeat(64)),
        "/api/runs/one/diff/..",
        "/api/runs/one/diff/one",
        "/api/runs/one/diff/two",
        "/api/runs/one/events?from=-1",
        "/api",
        "/favicon.ico",
    ] {
        let reply = viewer.get(path);
        assert!(
            matches!(reply.status, 400 | 404),
            "{path}: {}",
            reply.status
        );
        assert_ne!(reply.error(), "", "{path}");
    }
    let damaged = viewer.get(&format!("/api/runs/one/blobs/{name}"));
    assert_eq!(damaged.status, 500);
    assert!(
        damaged.error().contains("hash mismatch"),
        "{}",
        damaged.error()
    );
    assert!(!String::from_utf8_lossy(&damaged.body).contains("top secret"));
    assert_goes_on(&viewer);
}

#[test]
fn a_thousand_connections_are_bounded_and_the_server_goes_on() {
    let suite = suite();
    run(&suite, "one");
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    let mut idle: Vec<TcpStream> = (0..1000).map(|_| viewer.connect()).collect();
    // Those without a place are refused with a reason. The last is one of them, unless the server was slow to take them all.
    let is_refused = |stream: &mut TcpStream| {
        let mut text = String::new();
        let _ = stream.read_to_string(&mut text);
        text.starts_with("HTTP/1.1 503 ") && text.contains("too many connections")
    };
    assert!(idle.iter_mut().rev().any(is_refused));
    let held = fs::read_dir(format!("/proc/{}/fd", viewer.id()))
        .unwrap()
        .count();
    assert!(held < 260, "{held} descriptors");
    // Idle clients lose their places after a while, although they stay.
    until("no connection became free", || {
        viewer.get("/").status == 200
    });
    assert_goes_on(&viewer);
    drop(idle);
    assert_goes_on(&viewer);
    assert_eq!(viewer.stop(), Some(0));
}

#[test]
fn slow_readers_take_a_bounded_amount_of_memory() {
    let suite = suite();
    let folder = run(&suite, "one");
    let blob = vec![b'x'; 30 * 1024 * 1024];
    let sha256 = sha256(&blob);
    fs::create_dir_all(folder.join("blobs")).unwrap();
    fs::write(folder.join("blobs").join(&sha256), &blob).unwrap();
    let viewer = Viewer::start(suite.folder(), &["runs"]);
    let path = format!("/api/runs/one/blobs/{sha256}");
    let ask = || {
        let mut stream = viewer.connect();
        stream
            .write_all(viewer.request("GET", &path).as_bytes())
            .unwrap();
        stream
    };
    let mut first = ask();
    // It is being sent; of the others, those that come late wait for a place.
    first.read_exact(&mut [0; 1]).unwrap();
    let slow: Vec<TcpStream> = (0..39).map(|_| ask()).collect();
    for _ in 0..20 {
        assert_goes_on(&viewer);
    }
    let peak = peak_kib(viewer.id()).unwrap();
    assert!(peak < 260 * 1024, "{peak} KiB");
    drop((first, slow));
    assert_eq!(viewer.get(&path).body, blob);
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::Digest;
    HEXLOWER.encode(&sha2::Sha256::digest(bytes))
}
