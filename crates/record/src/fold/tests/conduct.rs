//! Calls without a response, and servers that ended.

use super::*;
use crate::event::{ConnectionClosed, ConnectionEnd, EndedBy, HttpFailure, HttpHead, ProcessEnd};

impl Trial {
    fn closed(self, conn: u32, end: Option<ConnectionEnd>) -> Self {
        self.event(EventKind::ConnectionClosed(ConnectionClosed {
            conn: ConnectionId(conn),
            reason: "was closed".to_owned(),
            stderr: None,
            end,
        }))
    }

    fn head(self, exchange: u64, direction: Direction, line: &str) -> Self {
        self.http_event(exchange, direction, line, None)
    }

    fn breaks(self, exchange: u64, line: &str, failure: HttpFailure) -> Self {
        self.http_event(exchange, Direction::ToClient, line, Some(failure))
    }

    fn http_event(
        self,
        exchange: u64,
        direction: Direction,
        line: &str,
        failure: Option<HttpFailure>,
    ) -> Self {
        self.event(EventKind::Http(HttpHead {
            conn: ConnectionId(1),
            exchange,
            direction,
            line: line.to_owned(),
            headers: std::collections::BTreeMap::new(),
            failure,
        }))
    }
}

fn end(
    by: EndedBy,
    process: impl Into<Option<ProcessEnd>>,
    signalled: bool,
) -> Option<ConnectionEnd> {
    let process = process.into();
    let end = ConnectionEnd::by(by);
    Some(end).map(|end| ConnectionEnd {
        process,
        signalled,
        ..end
    })
}

fn causes(folded: &FoldedTrial) -> Vec<(NoAnswer, Option<Excuse>)> {
    let all = folded.conduct.unanswered.iter();
    all.map(|one| (one.cause.clone(), one.excuse)).collect()
}

const CANCEL: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
const LATE: &str = r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"McpError: MCP error -32001: Request timed out"}}"#;

#[test]
fn on_stdio_the_exit_of_the_process_decides() {
    let exited = |code| Some(ProcessEnd::Exited(code));
    let died = |code| NoAnswer::ServerEnded(ProcessEnd::Exited(code));
    for (end, cause) in [
        (end(EndedBy::Server, exited(3), false), died(3)),
        (end(EndedBy::Client, exited(3), false), died(3)),
        (end(EndedBy::Proctor, exited(3), false), died(3)),
        (end(EndedBy::Client, exited(0), false), died(0)),
        (
            end(EndedBy::Client, Some(ProcessEnd::Signalled(11)), false),
            NoAnswer::ServerEnded(ProcessEnd::Signalled(11)),
        ),
        (end(EndedBy::Client, exited(3), true), NoAnswer::ClientLeft),
        (
            end(EndedBy::Server, exited(3), true),
            NoAnswer::ServerClosed,
        ),
        (end(EndedBy::Server, None, false), NoAnswer::ServerClosed),
        (end(EndedBy::Client, None, false), NoAnswer::ClientLeft),
        (None, NoAnswer::ClientLeft),
    ] {
        let folded = Trial::stdio().calls("1", "a").closed(1, end).folded();
        assert_eq!(causes(&folded), [(cause, None)], "{end:?}");
        assert_eq!(kinds(&folded), [FindingKind::Unanswered]);
        assert_eq!(folded.breaches, folded.findings);
        let is_server = end.is_some_and(|end| end.by == EndedBy::Server);
        assert_eq!(folded.conduct.ended.len(), usize::from(is_server));
    }
    let folded = Trial::stdio().calls("1", "a").folded();
    assert_eq!(causes(&folded), [], "an answer may still come");
}

#[test]
fn a_cancelled_call_is_excused_unless_it_timed_out_or_the_server_died() {
    let exited = |code| end(EndedBy::Client, Some(ProcessEnd::Exited(code)), false);
    for (cancel, end, cause, excuse) in [
        (
            CANCEL,
            exited(0),
            NoAnswer::ClientLeft,
            Some(Excuse::Cancelled),
        ),
        (LATE, exited(0), NoAnswer::TimedOut, None),
        (
            CANCEL,
            exited(3),
            NoAnswer::ServerEnded(ProcessEnd::Exited(3)),
            None,
        ),
    ] {
        let trial = Trial::stdio().calls("1", "a").sends(cancel);
        let folded = trial.closed(1, end).folded();
        assert_eq!(causes(&folded), [(cause, excuse)], "{cancel} {end:?}");
        assert_eq!(
            kinds(&folded),
            [FindingKind::Unanswered],
            "the finding stays"
        );
        assert_eq!(folded.breaches.is_empty(), excuse.is_some());
    }
    let late = Trial::stdio()
        .calls("1", "a")
        .sends(LATE)
        .gets(&result("1", "A"));
    let late = late.closed(1, exited(0)).folded();
    assert_eq!(
        causes(&late),
        [(NoAnswer::TimedOut, None)],
        "a response after the client left"
    );
}

#[test]
fn a_call_that_was_repeated_successfully_is_excused() {
    let arguments = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{{"name":"a","arguments":{text}}}}}"#
        )
    };
    let died = || {
        let trial = Trial::stdio().sends(&arguments(r#"{"x":1.0,"y":2}"#));
        let process = Some(ProcessEnd::Exited(3));
        let trial = trial.closed(1, end(EndedBy::Client, process, false));
        trial.event(EventKind::ConnectionOpened(ConnectionOpened {
            conn: ConnectionId(2),
            server: "s1".to_owned(),
            actor: Actor::Agent,
            transport: WireKind::Stdio,
            target: String::new(),
        }))
    };
    let again = |trial: Trial, text: &str, answer: &str| {
        let sent = Body::Text(arguments(text));
        let trial = trial.frame(2, None, Direction::ToServer, sent);
        let answer = Body::Text(answer.to_owned());
        let folded = trial.frame(2, None, Direction::ToClient, answer).folded();
        folded.conduct.unanswered[0].excuse
    };
    let good = result("9", "A");
    let same = r#"{"y":2,"x":1}"#;
    assert_eq!(again(died(), same, &good), Some(Excuse::Repeated));
    assert_eq!(
        again(died(), r#"{"y":2,"x":2}"#, &good),
        None,
        "other arguments"
    );
    let error = r#"{"id":9,"error":{"code":-32603,"message":""}}"#;
    assert_eq!(again(died(), same, error), None, "an error is no success");
    let tool_error = r#"{"id":9,"result":{"isError":true}}"#;
    assert_eq!(again(died(), same, tool_error), None);
}

#[test]
fn on_http_a_body_without_json_rpc_is_not_a_response() {
    let closed = end(EndedBy::Proctor, None, false);
    let responses = [
        ("500 Internal Server Error", "oops", NoAnswer::Status(500)),
        ("404 Not Found", "<html>no</html>", NoAnswer::Status(404)),
        ("302 Found", "", NoAnswer::Status(302)),
        (
            "401 Unauthorized",
            r#"{"error":"invalid_token"}"#,
            NoAnswer::Status(401),
        ),
        (
            "403 Forbidden",
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}"#,
            NoAnswer::Status(403),
        ),
        ("200 OK", "<html>hi</html>", NoAnswer::NotJsonRpc),
        ("202 Accepted", "", NoAnswer::NotJsonRpc),
    ];
    for (line, body, cause) in responses {
        let mut trial = Trial::http().posts(1, &call("1", "a"));
        trial = trial.head(1, Direction::ToClient, line);
        if !body.is_empty() {
            trial = trial.replies(1, body);
        }
        let folded = trial.closed(1, closed).folded();
        assert_eq!(brief(&folded), ["a?"], "{line}");
        assert_eq!(causes(&folded), [(cause, None)], "{line}");
        assert!(kinds(&folded).contains(&FindingKind::Unanswered), "{line}");
    }
}

#[test]
fn on_http_a_json_rpc_error_is_a_response_with_any_status() {
    for (line, id) in [
        ("500 x", "1"),
        ("404 x", "1"),
        ("401 x", "1"),
        ("400 x", "null"),
    ] {
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-5,"message":""}}}}"#);
        let trial = Trial::http().posts(1, &call("1", "a"));
        let trial = trial.head(1, Direction::ToClient, line).replies(1, &error);
        let folded = trial.closed(1, None).folded();
        assert_eq!(brief(&folded), ["a!-5"], "{line}");
        assert_eq!(causes(&folded), []);
    }
}

#[test]
fn on_http_the_failure_of_the_exchange_is_reported() {
    let refused = "could not connect: connection refused";
    for (failure, cause) in [
        (HttpFailure::Broken, NoAnswer::Broken(refused.to_owned())),
        (HttpFailure::TimedOut, NoAnswer::TimedOut),
        (HttpFailure::ClientLeft, NoAnswer::ClientLeft),
    ] {
        let trial = Trial::http().posts(1, &call("1", "a"));
        let folded = trial.breaks(1, refused, failure).closed(1, None).folded();
        assert_eq!(causes(&folded), [(cause, None)], "{failure:?}");
    }
    let trial = Trial::http().posts(1, &call("1", "a"));
    let trial = trial.head(1, Direction::ToClient, "200 OK");
    let folded = trial.breaks(1, "broke off", HttpFailure::Broken).folded();
    assert_eq!(
        causes(&folded),
        [(NoAnswer::Broken("broke off".to_owned()), None)]
    );
}

#[test]
fn on_http_cancelling_a_failed_call_changes_nothing() {
    let failed = |trial: Trial| trial.posts(2, CANCEL).closed(1, None).folded();
    let call = || Trial::http().posts(1, &call("1", "a"));
    let refused = call().head(1, Direction::ToClient, "500 Internal Server Error");
    let refused = failed(refused.replies(1, "oops"));
    assert_eq!(causes(&refused), [(NoAnswer::Status(500), None)]);
    let broken = failed(call().breaks(1, "reset", HttpFailure::Broken));
    assert_eq!(
        causes(&broken),
        [(NoAnswer::Broken("reset".to_owned()), None)]
    );
    let cancelled = failed(call());
    let excused = (NoAnswer::ClientLeft, Some(Excuse::Cancelled));
    assert_eq!(causes(&cancelled), [excused]);
}

#[test]
fn on_http_sse_the_status_of_the_post_is_found() {
    let trial = Trial { events: Vec::new() }.open(1, Actor::Agent, WireKind::Sse);
    let trial = trial.head(4, Direction::ToServer, "POST /messages");
    let trial = trial
        .calls("1", "a")
        .head(4, Direction::ToClient, "401 Unauthorized");
    let folded = trial.closed(1, end(EndedBy::Client, None, false)).folded();
    assert_eq!(causes(&folded), [(NoAnswer::Status(401), None)]);
}

#[test]
fn errors_of_the_client_are_not_violations_of_the_server() {
    let folded = Trial::stdio()
        .sends("{\"id\":1}")
        .sends("{nonsense")
        .folded();
    assert_eq!(kinds(&folded), [FindingKind::ClientMessage; 2]);
    assert_eq!(folded.breaches, []);
}

#[test]
fn the_unanswered_calls_of_a_batch_are_in_its_order() {
    let names: Vec<String> = (0..20).map(|number| format!("tool-{number}")).collect();
    let numbered = names.iter().zip(1..);
    let batch: Vec<String> = numbered
        .map(|(name, id)| call(&id.to_string(), name))
        .collect();
    let folded = Trial::stdio()
        .sends(&format!("[{}]", batch.join(",")))
        .closed(1, None)
        .folded();
    let unanswered = &folded.conduct.unanswered;
    let targets: Vec<&str> = unanswered.iter().map(|call| call.target.as_str()).collect();
    assert_eq!(targets, names);
}
