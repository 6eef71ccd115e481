//! HTTP requests on a small server of our own that tells what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use proctor_core::suite::step::{Action, ContentCheck, HttpBody, HttpStep, PatternTemplate};
use proctor_record::event::{Blame, Phase};
use serde_json::json;

use crate::stage::{Stage, cannot_tell, equals, fails, passes, text, value};

/// A server that answers by the path, and hands over every request.
struct Server {
    origin: String,
    requests: Receiver<String>,
}

impl Server {
    /// `/away` sends elsewhere.
    fn start(elsewhere: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let (seen, requests) = channel();
        let elsewhere = elsewhere.to_owned();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, elsewhere) = (seen.clone(), elsewhere.clone());
                std::thread::spawn(move || answer(stream, &seen, &elsewhere));
            }
        });
        Self { origin, requests }
    }

    fn request(&self) -> String {
        let limit = Duration::from_mins(3);
        self.requests.recv_timeout(limit).expect("a request")
    }
}

fn answer(mut stream: TcpStream, seen: &Sender<String>, elsewhere: &str) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") {
        if reader.read_line(&mut request).unwrap_or(0) == 0 {
            return;
        }
    }
    let lower = request.to_lowercase();
    let length = lower.split("content-length: ").nth(1);
    let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    request.push_str(&String::from_utf8_lossy(&body));
    let path = request.split(' ').nth(1).unwrap_or("").to_owned();
    let _ = seen.send(request);
    let (status, header, body) = match &*path {
        "/note" => (
            "200 OK",
            "X-Kind: note",
            r#"{"id": 7, "tags": ["a"]}"#.to_owned(),
        ),
        "/near" => ("302 Found", "Location: /note", String::new()),
        "/round" => ("302 Found", "Location: /round", String::new()),
        "/away" => ("302 Found", elsewhere, String::new()),
        "/big" => ("200 OK", "X-Kind: big", "x".repeat(9 << 20)),
        "/slow" => {
            std::thread::sleep(Duration::from_secs(5));
            return;
        }
        "/text" => ("200 OK", "X-Kind: text", "pong".to_owned()),
        _ => ("404 Not Found", "X-Kind: none", "no such thing".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}

fn get(server: &Server, path: &str) -> HttpStep {
    HttpStep {
        url: text(&format!("{}{path}", server.origin)),
        method: "GET".to_owned(),
        headers: [].into(),
        body: None,
        timeout: None,
        status: None,
        content: None,
    }
}

fn action(http: HttpStep) -> Action {
    Action::Http(Box::new(http))
}

fn matching(pattern: &str) -> ContentCheck {
    ContentCheck {
        pattern: Some(PatternTemplate(text(pattern))),
        fields: Vec::new(),
    }
}

#[tokio::test]
async fn the_response_is_what_is_expected_or_not() {
    let server = Server::start("X: y");
    let mut stage = Stage::new();
    // Around the agent's work, without an expectation any response will do.
    passes(&stage.setup(action(get(&server, "/nothing"))).await);
    let check = |path: &str, status, content| {
        action(HttpStep {
            status,
            content,
            ..get(&server, path)
        })
    };
    passes(
        &stage
            .verify(check("/note", Some(200), Some(equals("id", &json!(7)))))
            .await,
    );
    passes(
        &stage
            .verify(check("/note", None, Some(equals("tags.0", &json!("a")))))
            .await,
    );
    passes(
        &stage
            .verify(check("/text", None, Some(matching("^pong$"))))
            .await,
    );
    let wrong = stage.verify(check("/nothing", Some(200), None)).await;
    let says = "expected status 200, found 404 Not Found: `no such thing`";
    fails(&wrong, Blame::Agent, says);
    let wrong = stage
        .verify(check("/note", Some(201), Some(equals("id", &json!(8)))))
        .await;
    fails(&wrong, Blame::Agent, "; `id`: expected 8, found 7");
    let wrong = stage
        .setup(check("/text", None, Some(matching("ping"))))
        .await;
    fails(
        &wrong,
        Blame::Suite,
        "the body does not match `ping`: `pong`",
    );
    let wrong = stage
        .verify(check("/text", None, Some(equals("id", &json!(7)))))
        .await;
    fails(
        &wrong,
        Blame::Agent,
        "is not JSON, so it has no fields: `pong`",
    );
    stage.close().await;
}

#[tokio::test]
async fn a_verification_that_names_no_status_wants_success() {
    let server = Server::start("Location: http://127.0.0.1:1/");
    let mut stage = Stage::new();
    passes(&stage.verify(action(get(&server, "/note"))).await);
    let none = HttpStep {
        content: Some(matching("no such")),
        ..get(&server, "/nothing")
    };
    for http in [get(&server, "/nothing"), none] {
        let wrong = stage.verify(action(http)).await;
        let says = "expected status 2xx, found 404 Not Found: `no such thing`";
        fails(&wrong, Blame::Agent, says);
    }
    let wrong = stage.verify(action(get(&server, "/away"))).await;
    fails(&wrong, Blame::Agent, "expected status 2xx, found 302 Found");
    let wanted = HttpStep {
        status: Some(404),
        ..get(&server, "/nothing")
    };
    passes(&stage.verify(action(wanted)).await);
    stage.close().await;
}

#[tokio::test]
async fn a_request_is_filled_in_and_gives_outputs() {
    let server = Server::start("X: y");
    let mut stage = Stage::new();
    passes(
        &stage
            .run(Phase::Setup, "made", action(get(&server, "/note")))
            .await,
    );
    server.request();
    assert_eq!(
        stage.fill("{steps.made.status} {steps.http.header-x-kind}"),
        "200 note"
    );
    assert_eq!(
        stage.fill("{steps.made.body}"),
        r#"{"id": 7, "tags": ["a"]}"#
    );
    let http = HttpStep {
        method: "POST".to_owned(),
        headers: [("X-Id".to_owned(), text("{random.id}"))].into(),
        body: Some(HttpBody::Json(value(
            &json!({"was": "{steps.made.status}", "n": 1.50}),
        ))),
        ..get(&server, "/note?for={agent.prompt}")
    };
    passes(&stage.setup(action(http)).await);
    let request = server.request();
    let id = stage.fill("{random.id}");
    assert!(
        request.starts_with("POST /note?for=count%20the%20notes HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains(&format!("x-id: {id}\r\n")), "{request}");
    assert!(
        request.contains("content-type: application/json\r\n"),
        "{request}"
    );
    assert!(
        request.ends_with(r#"{"was":"200","n":1.5}"#)
            || request.ends_with(r#"{"n":1.5,"was":"200"}"#),
        "{request}"
    );
    let raw = HttpStep {
        method: "PUT".to_owned(),
        body: Some(HttpBody::Raw(text("{agent.prompt}"))),
        ..get(&server, "/text")
    };
    passes(&stage.setup(action(raw)).await);
    let request = server.request();
    assert!(request.ends_with("\r\n\r\ncount the notes"), "{request}");
    assert!(!request.contains("content-type"), "{request}");
    stage.close().await;
}

#[tokio::test]
async fn redirects_stay_within_an_origin() {
    let other = Server::start("X: y");
    let server = Server::start(&format!("Location: {}/note", other.origin));
    let mut stage = Stage::new();
    let check = |path: &str| {
        action(HttpStep {
            headers: [("Authorization".to_owned(), text("Bearer b"))].into(),
            status: Some(200),
            ..get(&server, path)
        })
    };
    passes(&stage.verify(check("/near")).await);
    let away = stage.verify(check("/away")).await;
    let says = format!(
        "expected status 200, found 302 Found, to `{}/note`",
        other.origin
    );
    fails(&away, Blame::Agent, &says);
    assert!(other.requests.try_recv().is_err());
    fails(
        &stage.verify(check("/round")).await,
        Blame::Agent,
        "more than 10 redirects",
    );
    stage.close().await;
}

#[tokio::test]
async fn what_is_too_large_slow_or_absent_is_said() {
    let server = Server::start("X: y");
    let mut stage = Stage::new();
    let big = HttpStep {
        content: Some(matching("y")),
        ..get(&server, "/big")
    };
    let big = stage.verify(action(big)).await;
    cannot_tell(&big, Blame::Suite, "larger than the limit of 8 MiB");
    passes(&stage.verify(action(get(&server, "/big"))).await);
    let slow = HttpStep {
        timeout: Some(Duration::from_millis(200)),
        ..get(&server, "/slow")
    };
    fails(
        &stage.verify(action(slow)).await,
        Blame::Agent,
        "within 200ms",
    );
    let port = stage.fill("{random.port}");
    let nobody = HttpStep {
        url: text(&format!("http://127.0.0.1:{port}/x")),
        ..get(&server, "")
    };
    let nobody = stage.verify(action(nobody)).await;
    fails(
        &nobody,
        Blame::Agent,
        &format!("no response from http://127.0.0.1:{port}: "),
    );
    let no_url = HttpStep {
        url: text("{agent.prompt}"),
        ..get(&server, "")
    };
    cannot_tell(
        &stage.verify(action(no_url)).await,
        Blame::Suite,
        "count the notes",
    );
    stage.close().await;
}
