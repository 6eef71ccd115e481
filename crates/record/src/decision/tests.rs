use std::time::Duration;

use serde_json::json;

use super::*;
use crate::event::{ConnectionId, Finding, ProcessEnd};
use crate::fold::{Excuse, Fold, FoldOptions};
use crate::transcript::{CallRequest, UnreadMessage};

fn unanswered(cause: NoAnswer) -> UnansweredCall {
    UnansweredCall {
        seq: 7,
        conn: ConnectionId(1),
        server: "s".to_owned(),
        target: "echo".to_owned(),
        cause,
        waited: Duration::from_secs(3),
        excuse: None,
    }
}

fn ended(has_spoken: bool, reopened: bool) -> ServerEnd {
    ServerEnd {
        conn: ConnectionId(1),
        server: "s".to_owned(),
        how: "exited with code 3".to_owned(),
        stderr: Some("panic\n".to_owned()),
        has_spoken,
        reopened,
    }
}

fn decide(
    unanswered: Vec<UnansweredCall>,
    ended: Vec<ServerEnd>,
) -> Option<(Outcome, Option<Blame>)> {
    let failure = server_failure(&Conduct { unanswered, ended });
    failure.map(|failure| (failure.outcome, failure.blame))
}

#[test]
fn the_cause_of_a_missing_response_decides_the_outcome() {
    let by_server = Some((Outcome::Failed, Some(Blame::Server)));
    let by_infra = Some((Outcome::Errored, Some(Blame::Infra)));
    let unclear = Some((Outcome::Failed, None));
    for (cause, expected) in [
        (NoAnswer::ServerEnded(ProcessEnd::Exited(0)), by_server),
        (NoAnswer::ServerEnded(ProcessEnd::Exited(3)), by_server),
        (NoAnswer::ServerEnded(ProcessEnd::Signalled(9)), by_server),
        (NoAnswer::ServerClosed, by_server),
        (NoAnswer::Status(500), by_server),
        (NoAnswer::Status(503), by_server),
        (NoAnswer::Status(404), by_server),
        (NoAnswer::Status(302), by_server),
        (NoAnswer::Status(400), by_server),
        (NoAnswer::Status(401), by_infra),
        (NoAnswer::Status(403), by_infra),
        (NoAnswer::NoToken("expired".to_owned()), by_infra),
        (NoAnswer::NotJsonRpc, by_server),
        (NoAnswer::Broken("refused".to_owned()), by_server),
        (NoAnswer::TimedOut, by_server),
        (NoAnswer::ClientLeft, unclear),
    ] {
        let call = unanswered(cause.clone());
        assert_eq!(decide(vec![call.clone()], vec![]), expected, "{cause:?}");
        for excuse in [Excuse::Cancelled, Excuse::Repeated] {
            let excuse = Some(excuse);
            let call = UnansweredCall {
                excuse,
                ..call.clone()
            };
            assert_eq!(decide(vec![call], vec![]), None, "{cause:?}");
        }
    }
    assert_eq!(decide(vec![], vec![]), None);
}

#[test]
fn the_strongest_evidence_decides() {
    let call = |cause| unanswered(cause);
    let all = vec![
        call(NoAnswer::ClientLeft),
        call(NoAnswer::Status(401)),
        call(NoAnswer::Status(500)),
    ];
    assert_eq!(
        decide(all.clone(), vec![]),
        Some((Outcome::Failed, Some(Blame::Server)))
    );
    let two = all[..2].to_vec();
    assert_eq!(
        decide(two, vec![]),
        Some((Outcome::Errored, Some(Blame::Infra)))
    );
}

#[test]
fn a_server_that_ended_fails_the_trial_unless_its_calls_were_repeated() {
    let by_server = Some((Outcome::Failed, Some(Blame::Server)));
    let not_ready = Some((Outcome::Errored, Some(Blame::Server)));
    assert_eq!(decide(vec![], vec![ended(true, false)]), by_server);
    assert_eq!(decide(vec![], vec![ended(true, true)]), by_server);
    assert_eq!(decide(vec![], vec![ended(false, false)]), not_ready);
    assert_eq!(decide(vec![], vec![ended(false, true)]), None);
    let died = unanswered(NoAnswer::ServerEnded(ProcessEnd::Exited(3)));
    let repeated = UnansweredCall {
        excuse: Some(Excuse::Repeated),
        ..died.clone()
    };
    assert_eq!(
        decide(vec![repeated.clone()], vec![ended(true, true)]),
        None
    );
    assert_eq!(
        decide(vec![repeated, died], vec![ended(true, true)]),
        by_server
    );
    let conduct = Conduct {
        unanswered: vec![unanswered(NoAnswer::ServerEnded(ProcessEnd::Exited(3)))],
        ended: vec![ended(true, false)],
    };
    let reason = server_failure(&conduct).unwrap().reason;
    let expected = "the server `s` failed while the agent worked: it exited with code 3 during `echo`; \
                    the end of its stderr:\npanic";
    assert_eq!(reason, expected);
}

fn folded(answers: Vec<CallOutcome>) -> FoldedTrial {
    let mut folded = Fold::new(FoldOptions::default()).finish();
    folded.transcript.calls = answers
        .into_iter()
        .map(|answer| Call {
            seq: 1,
            server: "s".to_owned(),
            request: CallRequest::Tool {
                name: "echo".to_owned(),
                arguments: Payload::Absent,
            },
            answer,
            duration: None,
        })
        .collect();
    folded
}

#[test]
fn blame_is_stated_only_where_the_record_proves_it() {
    let result = |value| CallOutcome::Result(Payload::Value(value));
    let good = || result(json!({ "content": [] }));
    let error = |code| CallOutcome::Error {
        code,
        message: String::new(),
    };
    for (answers, expected) in [
        (vec![], Some(Blame::Agent)),
        (vec![good()], Some(Blame::Agent)),
        (
            vec![result(json!({ "isError": false }))],
            Some(Blame::Agent),
        ),
        (vec![good(), error(-32603)], Some(Blame::Server)),
        (vec![good(), error(-32602)], None),
        (vec![result(json!({ "isError": true })), good()], None),
        (vec![result(json!({ "isError": "yes" }))], None),
        (vec![CallOutcome::Result(Payload::Cut { bytes: 9 })], None),
        (
            vec![CallOutcome::Result(Payload::Omitted { bytes: 9 })],
            None,
        ),
        (vec![CallOutcome::None], None),
    ] {
        let about = format!("{answers:?}");
        assert_eq!(blame_for_failure(&folded(answers)), expected, "{about}");
    }
}

#[test]
fn a_server_that_breaks_the_protocol_is_to_blame_and_one_that_prints_is_not() {
    for (kind, expected) in [
        (FindingKind::Malformed, Some(Blame::Server)),
        (FindingKind::ResultAndError, Some(Blame::Server)),
        (FindingKind::Noise, Some(Blame::Agent)),
    ] {
        let mut folded = folded(vec![]);
        folded.breaches.push(Finding {
            conn: ConnectionId(1),
            kind,
            detail: String::new(),
            count: 1,
        });
        assert_eq!(blame_for_failure(&folded), expected, "{kind:?}");
        assert!(breach(&folded).is_some());
    }
}

#[test]
fn truncated_messages_prove_nothing() {
    let mut folded = folded(vec![]);
    folded.transcript.unread.push(UnreadMessage {
        seq: 3,
        server: "s".to_owned(),
        kind: None,
        name: None,
        reason: "it had to be cut".to_owned(),
    });
    assert_eq!(blame_for_failure(&folded), None);
}
