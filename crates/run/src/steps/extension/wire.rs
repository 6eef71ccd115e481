//! The way to an extension and back: one question at a time, answers by id, everything bounded.

use std::time::Duration;

use proctor_core::message::{Id, Kind, Message};
use proctor_core::redact::Redactor;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use proctor_contain::process::Ended;
use proctor_contain::tail::Tail;
use proctor_wire::rpc::{self, RpcError};
use proctor_wire::transport::frames::{Line, Lines};
use proctor_wire::worker;

/// The longest message that is taken in.
const MAX_MESSAGE: usize = 8 << 20;
/// How many messages may wait.
const QUEUE: usize = 16;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum WireError {
    #[error("it answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    #[error("no answer within {}", proctor_core::duration::render(*.0))]
    TimedOut(Duration),
    #[error("the answer makes no sense: {0}")]
    Nonsense(String),
    #[error("it closed its streams")]
    Gone,
    #[error("it {0}")]
    Ended(Ended),
}

/// An answer, by the id of its question.
struct Answer {
    id: Id,
    outcome: Result<Box<RawValue>, RpcError>,
}

/// The streams of an extension.
pub(super) struct Wire {
    questions: mpsc::Sender<Vec<u8>>,
    answers: mpsc::Receiver<Answer>,
    log: Tail,
    reading: JoinHandle<()>,
    asked: u64,
}

impl Wire {
    pub(super) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let (questions, to_write) = mpsc::channel(QUEUE);
        let (to_answer, answers) = mpsc::channel(QUEUE);
        let log = Tail::default();
        tokio::spawn(write(stdin, to_write));
        Self {
            questions,
            answers,
            reading: tokio::spawn(read(stdout, to_answer, log.clone())),
            log,
            asked: 0,
        }
    }

    /// Asks, and waits for the answer. Answers to earlier questions that nobody waits for any more
    /// are passed by.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Box<RawValue>, WireError> {
        self.asked += 1;
        let params = to_raw_value(params).ok();
        let message = rpc::request(self.asked, method, params.as_deref());
        let expected = Id::Value(self.asked.to_string());
        let answered = async {
            self.questions
                .send(message)
                .await
                .map_err(|_| WireError::Gone)?;
            loop {
                let answer = self.answers.recv().await.ok_or(WireError::Gone)?;
                // Who could not read the question can't name it.
                if answer.id == expected || answer.id == Id::Absent {
                    return answer.outcome.map_err(WireError::Rpc);
                }
            }
        };
        timeout_at(Instant::now() + limit, answered)
            .await
            .unwrap_or(Err(WireError::TimedOut(limit)))
    }

    /// What was logged since the last look.
    pub(super) fn take_log(&self, redactor: &Redactor) -> String {
        self.log.take(redactor)
    }

    /// Closes the extension's stdin, and waits for its last word.
    pub(super) async fn close(self) {
        drop(self.questions);
        drop(self.answers);
        let _ = self.reading.await;
    }
}

async fn write(mut stdin: impl AsyncWrite + Unpin, mut questions: mpsc::Receiver<Vec<u8>>) {
    while let Some(mut message) = questions.recv().await {
        message.push(b'\n');
        // The reader sees the end too.
        if stdin.write_all(&message).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

/// Reads to the end, so that an extension never blocks on what it has to say.
async fn read(stdout: impl AsyncRead + Unpin, answers: mpsc::Sender<Answer>, log: Tail) {
    let mut lines = Lines::new(stdout, MAX_MESSAGE);
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            Line::Whole(line) | Line::Torn(line) => line,
            Line::Oversized(cut) => {
                log.push(format!("[a message of {} bytes left out]\n", cut.bytes).as_bytes());
                continue;
            }
        };
        let Ok(message) = worker::parse::<Message<'_>>(&line) else {
            // What is no message may tell a person something.
            log.push(&line);
            log.push(b"\n");
            continue;
        };
        match message.kind() {
            Kind::Answer { id } => {
                // An extension that answers what nobody asked is not waited for.
                let _ = answers.try_send(Answer {
                    id,
                    outcome: outcome(&message),
                });
            }
            Kind::Notification { method: "log" } => {
                log.push(log_line(message.params).as_bytes());
            }
            // It has nothing to ask for.
            Kind::Notification { .. } | Kind::Request { .. } | Kind::Neither => {}
        }
    }
}

fn outcome(message: &Message<'_>) -> Result<Box<RawValue>, RpcError> {
    match (message.error, message.result) {
        (None, Some(result)) => Ok(result.to_owned()),
        (Some(error), _) => Err(serde_json::from_str(error.get()).unwrap_or(RpcError {
            code: 0,
            message: error.get().to_owned(),
            data: None,
        })),
        (None, None) => Ok(RawValue::NULL.to_owned()),
    }
}

#[derive(Deserialize)]
struct Log {
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Option<Value>,
}

fn log_line(params: Option<&RawValue>) -> String {
    let Some(params) = params else {
        return String::new();
    };
    let Ok(log) = serde_json::from_str::<Log>(params.get()) else {
        return format!("{params}\n");
    };
    let level = log.level.map(|level| format!("{level}: "));
    let data = log.data.filter(|data| !data.is_null());
    let data = data.map(|data| format!(" {data}"));
    format!(
        "{}{}{}\n",
        level.unwrap_or_default(),
        log.message,
        data.unwrap_or_default()
    )
}
