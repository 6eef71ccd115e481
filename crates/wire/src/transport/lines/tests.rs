use proctor_record::message::{Id, Message};
use serde_json::value::RawValue;
use tokio::io::{AsyncReadExt, duplex};

use super::*;
use crate::rpc::FindingSubject;

/// The calls of the handler, in order.
#[derive(Default)]
struct CallLog(Vec<String>);

impl MessageHandler for CallLog {
    fn notification(&mut self, method: &str, _: Option<&RawValue>) {
        self.0.push(format!("told {method}"));
    }

    fn answer(&mut self, id: &Id, _: &Message<'_>) {
        self.0.push(format!("answer with {id}"));
    }

    fn finding(&mut self, _: FindingSubject<'_>, kind: FindingKind, _: String) {
        self.0.push(format!("{kind:?}"));
    }
}

impl LineHandler for CallLog {
    fn record(&mut self, line: &[u8]) {
        self.0.push(format!("line {}", text(line)));
    }

    fn noise(&mut self, noise: Noise<'_>) {
        let Noise { what, line, .. } = noise;
        let about = if noise.is_message { "message" } else { "line" };
        self.0.push(format!("{about}: {what}: {}", text(line)));
    }

    fn oversized(&mut self, cut: &OversizedMessage) {
        self.0.push(format!("oversized {}", cut.bytes));
    }
}

/// A notification.
const TOLD: &str = r#"{"jsonrpc":"2.0","method":"x"}"#;
const NO_MESSAGE: &str = "line: line is not a JSON-RPC message: ";

fn line(line: &str) -> String {
    format!("line {}", text(line.as_bytes()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

async fn seen(written: &str) -> Vec<String> {
    let mut seen = CallLog::default();
    read(written.as_bytes(), 60, &mut seen).await;
    seen.0
}

#[tokio::test]
async fn a_line_is_recorded_before_it_is_parsed() {
    let check = async |written: &str, expected: &[&str]| {
        assert_eq!(seen(written).await, expected, "{written:?}");
    };
    check("", &[]).await;
    check("1{}\n", &["line 1{}", &format!("{NO_MESSAGE}1{{}}")]).await;
    check(&format!("{TOLD}\n"), &[&line(TOLD), "told x"]).await;
    let batch = format!(" [ {TOLD} ]");
    check(&format!("{batch}\n"), &[&line(&batch), "told x"]).await;
    let log = format!("{NO_MESSAGE}[INFO] up");
    check("[INFO] up\n", &["line [INFO] up", &log]).await;
    check("  up\n", &["line   up", &format!("{NO_MESSAGE}  up")]).await;
    check("\n", &["line ", &format!("line: {BLANK_LINE}: ")]).await;
    check("{x\n", &["line {x", "Malformed"]).await;
    let returned = "message: carriage return at the end of a line: ";
    let ended = [&*line(&format!("{TOLD}\r")), returned, "told x"];
    check(&format!("{TOLD}\r\n"), &ended).await;
    let mark = "message: byte order mark before a message: ";
    let marked = format!("\u{feff}{TOLD}");
    let expected = [&*line(&marked), mark, "told x"];
    check(&format!("{marked}\n"), &expected).await;
    let unended = format!(
        "message: the last line has no newline: {}",
        text(TOLD.as_bytes())
    );
    check(TOLD, &[&line(TOLD), &unended, "told x"]).await;
    let torn = "line: the last line has no newline: {1";
    check("{1", &["line {1", torn]).await;
    let oversized = format!("{}\n{TOLD}\n", "x".repeat(61));
    check(&oversized, &["oversized 61", &line(TOLD), "told x"]).await;
    let answer = "{\"id\":7,\"result\":1}\n";
    let expected = [&*line(answer.trim_end()), "Protocol", "answer with id `7`"];
    check(answer, &expected).await;
}

fn writer(stdin: impl AsyncWrite + Unpin + Send + 'static) -> LineWriter<()> {
    LineWriter::start(stdin, 2, None, || {})
}

#[tokio::test]
async fn all_messages_are_written_before_stdin_closes() {
    let (stdin, mut program) = duplex(4);
    let writer = writer(stdin);
    writer.send((), b"{\"id\":1}".to_vec()).await.unwrap();
    assert!(writer.send_soon((), b"{\"id\":2}".to_vec()));
    writer.close();
    assert!(!writer.send_soon((), b"{}".to_vec()));
    let late = writer.send((), b"{}".to_vec()).await;
    assert!(matches!(late, Err(SendError::Closed)));
    let mut written = String::new();
    program.read_to_string(&mut written).await.unwrap();
    assert_eq!(written, "{\"id\":1}\n{\"id\":2}\n");
}

#[tokio::test]
async fn send_soon_does_not_wait_for_room() {
    let (stdin, _program) = duplex(1);
    let writer = writer(stdin);
    let sent = (0..4).filter(|_| writer.send_soon((), b"{}".to_vec()));
    assert_eq!(sent.count(), 2);
}

#[tokio::test]
async fn a_program_that_does_not_read_is_stuck() {
    let (stdin, _program) = duplex(1);
    let (tell, told) = oneshot::channel();
    let stuck = move || tell.send(()).unwrap();
    let writer = LineWriter::start(stdin, 1, Some(Duration::from_millis(20)), stuck);
    writer.send((), b"{}".to_vec()).await.unwrap();
    told.await.unwrap();
    writer.settle().await;
    let late = writer.send((), b"{}".to_vec()).await;
    assert!(matches!(late, Err(SendError::Closed)));
}
