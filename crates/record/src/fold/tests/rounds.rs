//! Calls that take several rounds.

use std::time::Duration;

use super::*;

fn asks(id: &str, state: &str) -> String {
    format!(
        r#"{{"id":{id},"result":{{"resultType":"input_required","inputRequests":{{"q":{{}}}}{state}}}}}"#
    )
}

fn again(id: &str, tool: &str, more: &str) -> String {
    format!(
        r#"{{"id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":"again"}},{more}}}}}"#
    )
}

#[test]
fn the_rounds_of_a_call_are_one_call() {
    let folded = Trial::stdio()
        .calls("1", "a")
        .gets(&asks("1", ""))
        .sends(&again("2", "a", r#""inputResponses":{"q":1}"#))
        .gets(&asks("2", r#","requestState":"s2""#))
        .sends(&again("3", "a", r#""requestState":"s2""#))
        .gets(&result("3", "done"))
        .calls("4", "a")
        .folded();
    assert_eq!(brief(&folded), ["a=done", "a?"]);
    let call = &folded.transcript.calls[0];
    assert_eq!(
        (call.seq, call.duration),
        (2, Some(Duration::from_micros(5)))
    );
    let CallRequest::Tool {
        arguments: Payload::Value(arguments),
        ..
    } = &call.request
    else {
        panic!("{call:?}");
    };
    assert_eq!(arguments.to_string(), r#"{"n":1}"#);
    assert_eq!(kinds(&folded), []);
}

#[test]
fn a_round_belongs_to_the_call_whose_state_it_brings_back() {
    let folded = Trial::stdio()
        .calls("1", "a")
        .calls("2", "a")
        .gets(&asks("1", r#","requestState":"one""#))
        .gets(&asks("2", r#","requestState":"two""#))
        .sends(&again("3", "a", r#""requestState":"two""#))
        .sends(&again("4", "a", r#""requestState":"one""#))
        .gets(&result("3", "TWO"))
        .gets(&result("4", "ONE"))
        .folded();
    assert_eq!(brief(&folded), ["a=ONE", "a=TWO"]);
}

#[test]
fn a_call_that_is_never_continued_has_no_response() {
    let folded = Trial::stdio()
        .calls("1", "a")
        .gets(&asks("1", ""))
        // Another tool, and a call of its own.
        .sends(&again("2", "b", r#""inputResponses":{}"#))
        .calls("3", "a")
        .folded();
    assert_eq!(brief(&folded), ["a?", "b?", "a?"]);
}

#[test]
fn rounds_go_over_http_too() {
    let folded = Trial::http()
        .posts(1, &call("1", "a"))
        .replies(1, &asks("1", r#","requestState":{"k":1}"#))
        .posts(
            2,
            &again("1", "a", r#""requestState":{"k":1},"inputResponses":{}"#),
        )
        .replies(2, r#"{"id":1,"error":{"code":-32000,"message":"gave up"}}"#)
        .folded();
    assert_eq!(brief(&folded), ["a!-32000"]);
}
