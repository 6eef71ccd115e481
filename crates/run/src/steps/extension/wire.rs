//! The message channel to an extension: one request at a time, answers by id, and bounded sizes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proctor_record::event::FindingKind;
use proctor_record::json;
use proctor_record::message::{Id, Message};
use proctor_record::redact::Redactor;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use proctor_contain::process;
use proctor_contain::tail::Tail;
use proctor_wire::recorder::OversizedMessage;
use proctor_wire::rpc::{
    self, FindingSubject, MessageHandler, PastRequest, PeerClose, Requests, RpcError,
};
use proctor_wire::transport::lines::{self, LineHandler, LineWriter, Noise};

/// The maximum size of a message.
const MAX_MESSAGE: usize = 8 << 20;
/// The maximum number of queued messages.
const QUEUE: usize = 16;

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExtensionWireError {
    #[error("it answered with error {}: {}", .0.code, .0.message)]
    Rpc(RpcError),
    #[error("no response within {}", proctor_record::duration::render(*.0))]
    TimedOut(Duration),
    #[error("malformed response: {0}")]
    Malformed(String),
    #[error("it closed its streams")]
    Gone,
    #[error("it {0}")]
    Ended(process::ProcessExit),
}

type Waiter = oneshot::Sender<Result<Box<RawValue>, RpcError>>;

pub(super) struct ExtensionStreams {
    writer: LineWriter<()>,
    incoming: ExtensionOutput,
    reading: JoinHandle<()>,
}

impl ExtensionStreams {
    pub(super) fn start(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
    ) -> Self {
        let incoming = ExtensionOutput::default();
        let mut reader = incoming.clone();
        Self {
            writer: LineWriter::start(stdin, QUEUE, None, || {}),
            incoming,
            reading: tokio::spawn(async move {
                lines::read(stdout, MAX_MESSAGE, &mut reader).await;
                reader.lock().end(PeerClose::Closed);
            }),
        }
    }

    /// Sends a request and waits for its answer. Late answers to earlier requests are ignored.
    pub(super) async fn request(
        &mut self,
        method: &str,
        params: &Value,
        limit: Duration,
    ) -> Result<Box<RawValue>, ExtensionWireError> {
        let (to, answer) = oneshot::channel();
        let id = self.incoming.ask(to);
        let params = to_raw_value(params).ok();
        let message = rpc::request(id, method, params.as_deref());
        let answered = async {
            let sent = self.writer.send((), message).await;
            sent.map_err(|_| ExtensionWireError::Gone)?;
            let answer = answer.await.map_err(|_| ExtensionWireError::Gone)?;
            answer.map_err(ExtensionWireError::Rpc)
        };
        timeout(limit, answered)
            .await
            .unwrap_or(Err(ExtensionWireError::TimedOut(limit)))
    }

    /// The log since the last call.
    pub(super) fn take_log(&self, redactor: &Redactor) -> String {
        self.incoming.log.take(redactor)
    }

    /// Closes the extension's stdin, and waits until its stdout ends.
    pub(super) async fn close(self) {
        self.writer.close();
        let _ = self.reading.await;
    }
}

/// The output of an extension: answers and a log.
#[derive(Clone, Default)]
struct ExtensionOutput {
    requests: Arc<Mutex<Requests<Waiter>>>,
    log: Tail,
}

impl ExtensionOutput {
    /// Registers a new request. The previous one is over, with or without an answer.
    fn ask(&self, waiter: Waiter) -> u64 {
        let mut requests = self.lock();
        if let Some(before) = requests.only() {
            requests.close(before, PastRequest::Unwanted);
        }
        requests.open(waiter)
    }

    fn lock(&self) -> MutexGuard<'_, Requests<Waiter>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_line(&self, line: &[u8]) {
        self.log.push(&[line, b"\n"].concat());
    }
}

impl LineHandler for ExtensionOutput {
    /// Logs text that is not a message.
    fn noise(&mut self, noise: Noise<'_>) {
        if !noise.is_message {
            self.log_line(noise.line);
        }
    }

    fn oversized(&mut self, cut: &OversizedMessage) {
        let left_out = format!("[a message of {} bytes left out]", cut.bytes);
        self.log_line(left_out.as_bytes());
    }
}

/// Requests of an extension are refused: the protocol has none.
impl MessageHandler for ExtensionOutput {
    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        if method == "log" {
            self.log.push(log_line(params).as_bytes());
        }
    }

    fn answer(&mut self, id: &Id, message: &Message<'_>) {
        let mut requests = self.lock();
        let meant = requests.meant(id);
        if let Ok(waiter) = requests.answered(meant) {
            // The receiver may be gone.
            let _ = waiter.send(outcome(message));
        }
    }

    fn finding(&mut self, about: FindingSubject<'_>, _: FindingKind, _: String) {
        if let FindingSubject::Bytes(bytes) = about {
            self.log_line(bytes);
        }
    }
}

fn outcome(message: &Message<'_>) -> Result<Box<RawValue>, RpcError> {
    match (message.error, message.result) {
        (None, Some(result)) => Ok(result.to_owned()),
        (Some(error), _) => Err(json::from_str(error.get()).unwrap_or(RpcError {
            code: 0,
            message: error.get().to_owned(),
            data: None,
        })),
        (None, None) => Ok(RawValue::NULL.to_owned()),
    }
}

#[derive(Deserialize)]
struct LogMessage {
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
    let Ok(log) = json::from_str::<LogMessage>(params.get()) else {
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

#[cfg(test)]
mod tests;
