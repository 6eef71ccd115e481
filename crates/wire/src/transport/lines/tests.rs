use tokio::io::{AsyncReadExt, duplex};

use super::*;

/// What happened to each line, in order.
#[derive(Default)]
struct Seen(Vec<String>);

impl LineHandler for Seen {
    fn record(&mut self, line: &[u8]) {
        self.0.push(format!("line {}", text(line)));
    }

    fn message(&mut self, bytes: &[u8]) {
        self.0.push(format!("message {}", text(bytes)));
    }

    fn noise(&mut self, noise: Noise<'_>) {
        let Noise { what, line, .. } = noise;
        let about = if noise.is_message { "message" } else { "line" };
        self.0.push(format!("{about}: {what}: {}", text(line)));
    }

    fn oversized(&mut self, cut: &Oversized) {
        self.0.push(format!("oversized {}", cut.bytes));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

async fn seen(written: &str) -> Vec<String> {
    let mut seen = Seen::default();
    read(written.as_bytes(), 20, &mut seen).await;
    seen.0
}

#[tokio::test]
async fn a_line_is_recorded_as_it_came_before_it_is_taken() {
    let check = async |written: &str, expected: &[&str]| {
        assert_eq!(seen(written).await, expected, "{written:?}");
    };
    check("", &[]).await;
    check("{}\n", &["line {}", "message {}"]).await;
    check(" [ {} ]\n", &["line  [ {} ]", "message [ {} ]"]).await;
    let no_message = "line: a line that is no message: ";
    let log = format!("{no_message}[INFO] up");
    check("[INFO] up\n", &["line [INFO] up", &log]).await;
    check("  up\n", &["line   up", &format!("{no_message}  up")]).await;
    check("\n", &["line ", &format!("line: {BLANK_LINE}: ")]).await;
    let returned = "message: a carriage return at the end of a line: ";
    check("{}\r\n", &["line {}\\r", returned, "message {}"]).await;
    let mark = "message: a byte order mark before a message: ";
    let marked = ["line \\u{feff}{}", mark, "message {}"];
    check("\u{feff}{}\n", &marked).await;
    let unended = "message: the last line has no end: {}";
    check("{}", &["line {}", unended, "message {}"]).await;
    let torn = "line: the last line has no end: {1";
    check("{1", &["line {1", torn]).await;
    let long = format!("{}\n{{}}\n", "x".repeat(21));
    check(&long, &["oversized 21", "line {}", "message {}"]).await;
}

fn writer(stdin: impl AsyncWrite + Unpin + Send + 'static) -> LineWriter<()> {
    LineWriter::start(stdin, 2, None, || {})
}

#[tokio::test]
async fn all_that_was_sent_is_written_before_stdin_is_closed() {
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
async fn what_does_not_fit_is_not_waited_for() {
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
