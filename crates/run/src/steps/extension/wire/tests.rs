use proctor_core::suite::Environment;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

use super::*;

/// A connection, and the extension's end of its streams.
fn wire() -> (ExtensionStreams, DuplexStream, DuplexStream) {
    let (stdin, its_stdin) = duplex(1 << 20);
    let (its_stdout, stdout) = duplex(1 << 20);
    (
        ExtensionStreams::start(stdin, stdout),
        its_stdin,
        its_stdout,
    )
}

const LONG: Duration = Duration::from_mins(3);
const SHORT: Duration = Duration::from_millis(20);

/// Sends a request while the extension writes.
async fn ask(
    wire: &mut ExtensionStreams,
    stdout: &mut DuplexStream,
    written: &str,
    limit: Duration,
) -> String {
    let asking = wire.request("x", &Value::Null, limit);
    let (answer, written) = tokio::join!(asking, stdout.write_all(written.as_bytes()));
    written.unwrap();
    match answer {
        Ok(result) => result.get().to_owned(),
        Err(error) => error.to_string(),
    }
}

fn log(wire: &ExtensionStreams) -> String {
    wire.take_log(&Redactor::from_environment(&Environment::new()))
}

#[tokio::test]
async fn an_answer_is_found_by_its_id() {
    let (mut wire, _stdin, mut stdout) = wire();
    let late = "no response within 20ms";
    let mut check = async |written: &str, expected: &str| {
        let limit = if expected == late { SHORT } else { LONG };
        let found = ask(&mut wire, &mut stdout, &format!("{written}\n"), limit).await;
        assert_eq!(found, expected, "{written}");
    };
    let first = r#"{"jsonrpc":"2.0","id":1,"result":{"n":1}}"#;
    check(first, r#"{"n":1}"#).await;
    check(first, late).await;
    // The late answer to the second request must not be taken for another one.
    let both = r#"{"id":2,"result":"second"}
{"id":3,"result":"third"}"#;
    check(both, "\"third\"").await;
    check(
        r#"{"id":4,"error":{"code":7,"message":"no"}}"#,
        "it answered with error 7: no",
    )
    .await;
    check(
        r#"{"id":5,"error":"no"}"#,
        "it answered with error 0: \"no\"",
    )
    .await;
    // An extension that could not parse the request can't name its id.
    check(
        r#"{"id":null,"error":{"code":-32700,"message":"what?"}}"#,
        "it answered with error -32700: what?",
    )
    .await;
    check(r#"{"id":"7","result":{}}"#, late).await;
    check(
        r#"{"error":{"code":-32700,"message":"what?"}}"#,
        "it answered with error -32700: what?",
    )
    .await;
}

#[tokio::test]
async fn unexpected_answers_replace_no_other_answer() {
    let (mut wire, _stdin, mut stdout) = wire();
    let flood = r#"{"id":99,"result":{}}"#.to_owned() + "\n";
    let written = flood.repeat(500) + r#"{"id":1,"result":"mine"}"# + "\n";
    assert_eq!(
        ask(&mut wire, &mut stdout, &written, LONG).await,
        "\"mine\""
    );
}

#[tokio::test]
async fn lines_that_are_not_messages_are_logged() {
    let (mut wire, _stdin, mut stdout) = wire();
    let written = r#"starting
[INFO] up
{broken
{"id":"a","method":"ask"}
{"method":"log","params":{"level":"info","message":"half","data":[1]}}
{"id":1,"result":{}}
"#;
    assert_eq!(ask(&mut wire, &mut stdout, written, LONG).await, "{}");
    let expected = "starting\n[INFO] up\n{broken\ninfo: half [1]\n";
    assert_eq!(log(&wire), expected);
    let large = "x".repeat(MAX_MESSAGE + 1) + "\n{\"id\":2,\"result\":{}}\r\n";
    assert_eq!(ask(&mut wire, &mut stdout, &large, LONG).await, "{}");
    let expected = format!("[a message of {} bytes left out]\n", MAX_MESSAGE + 1);
    assert_eq!(log(&wire), expected);
}

#[tokio::test]
async fn the_end_of_the_stream_ends_the_wait() {
    let (mut wire, mut stdin, mut stdout) = wire();
    let asking = wire.request("x", &Value::Null, LONG);
    let ending = async {
        let torn = br#"{"id":1,"result":"torn"}"#;
        stdout.write_all(torn).await.unwrap();
        drop(stdout);
    };
    let (answer, ()) = tokio::join!(asking, ending);
    assert_eq!(answer.unwrap().get(), "\"torn\"");
    let gone = wire.request("x", &Value::Null, LONG).await;
    assert!(matches!(gone, Err(ExtensionWireError::Gone)));
    wire.close().await;
    let mut written = String::new();
    stdin.read_to_string(&mut written).await.unwrap();
    assert_eq!(
        written.lines().next(),
        Some(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":null}"#)
    );
}
