//! One stdio session: the streams of a client and a new server process.
//!
//! Its main type is [`ProxySession`]. It has no timeouts and no queues: a side that does not read
//! blocks the other one, as it would without a proxy. If the record can't be written, the session
//! continues.

mod errors;
mod pending_calls;
mod pump;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::Server;
use proctor_record::event::{ConnectionEnd, Direction, EndedBy};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::timeout;

pub(crate) use self::errors::Errors;
use self::pending_calls::PendingCallIds;
use self::pump::{Pump, PumpEnd};
use super::ProxyOptions;
use super::server_process::{ServerProcess, ServerStartError};
use crate::recorder::ConnectionTap;
use crate::worker::BoxedFuture;
use proctor_contain::process::{Process, ProcessExit};

/// How long a server may take to exit after its client disconnected.
const GOODBYE: Duration = Duration::from_millis(500);
/// The same for a server with a pending call: it may be crashing, and its exit status matters.
const GOODBYE_IN_CALL: Duration = Duration::from_secs(3);
/// How long the last input of a client may take to be forwarded.
const LAST_INPUT: Duration = Duration::from_millis(200);
/// How long the last output of a stopped server may take to be forwarded.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The output of a client or server, which the session reads.
pub(crate) type ClientInput = Box<dyn AsyncRead + Send + Unpin>;
/// The input of a client or server, which the session writes.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

pub struct ClientStreams {
    pub(crate) input: ClientInput,
    pub(crate) output: Output,
    pub(crate) errors: Errors,
}

/// Why a session ends before its server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEndReason {
    /// The client disconnected, or announced that it will.
    Client,
    /// The trial is over, or the user stopped Proctor.
    Proctor,
}

/// What ended a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended by itself while its client was connected.
    Server,
    /// The client closed its stdin, and it ended by itself.
    Closed,
    /// The client disconnected, and Proctor stopped the server.
    ClientLeft,
    /// Proctor stopped, and stopped the server.
    Stopped,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd {
    pub how: ProcessExit,
    pub cause: Cause,
    /// Whether Proctor sent it a signal before it ended.
    pub signalled: bool,
    /// The number of client messages.
    pub to_server: u64,
    /// The number of server messages.
    pub to_client: u64,
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = self.how;
        match self.cause {
            Cause::Server => write!(f, "{how}"),
            Cause::Closed => write!(f, "{how} after its client closed the connection"),
            Cause::ClientLeft => write!(
                f,
                "{how}; Proctor stopped it because its client disconnected"
            ),
            Cause::Stopped => write!(f, "{how}; Proctor stopped it"),
        }
    }
}

impl SessionEnd {
    /// Returns the end as the record stores it.
    fn facts(&self) -> ConnectionEnd {
        ConnectionEnd {
            by: match self.cause {
                Cause::Server => EndedBy::Server,
                Cause::Closed | Cause::ClientLeft => EndedBy::Client,
                Cause::Stopped => EndedBy::Proctor,
            },
            process: Some(self.how.into()),
            signalled: self.signalled,
        }
    }
}

/// Starts a server and connects a client to it, until either has ended or `leave` resolves.
pub fn serve<'a>(
    server: &'a Server,
    options: &'a ProxyOptions,
    client: ClientStreams,
    leave: BoxedFuture<'a, SessionEndReason>,
) -> BoxedFuture<'a, Result<SessionEnd, ServerStartError>> {
    Box::pin(async move {
        let (started, stderr) = ServerProcess::start_with_stderr(server, options)?;
        let session = ProxySession::new(started, stderr, client);
        Ok(session.run(leave).await.0)
    })
}

/// A client and its server process.
pub(crate) struct ProxySession {
    tap: Arc<ConnectionTap>,
    process: Process,
    input: Pump<ClientInput, Output>,
    output: Pump<ClientInput, Output>,
    /// The client's calls without a response.
    awaited: Arc<PendingCallIds>,
    errors: JoinHandle<Errors>,
}

impl ProxySession {
    /// Creates a session of a client with a started server.
    pub(crate) fn new(
        started: ServerProcess,
        stderr: pipe::Receiver,
        client: ClientStreams,
    ) -> Self {
        let ServerProcess {
            tap,
            process,
            stdin,
            stdout,
        } = started;
        let ClientStreams {
            input,
            output,
            errors,
        } = client;
        let awaited = Arc::new(PendingCallIds::default());
        Self {
            input: Pump::new(input, stdin, &tap, Direction::ToServer).watched(&awaited),
            output: Pump::new(stdout, output, &tap, Direction::ToClient).watched(&awaited),
            awaited,
            errors: tokio::spawn(errors.tell(stderr, process.stderr())),
            tap,
            process,
        }
    }

    /// Forwards everything until the end. Returns the target of stderr, if all of it was forwarded.
    pub(crate) async fn run(
        mut self,
        leave: impl Future<Output = SessionEndReason>,
    ) -> (SessionEnd, Option<Errors>) {
        let (how, cause) = match self.pass_on(leave).await {
            Ok(ended) => ended,
            Err(SessionEndReason::Client) => (self.stop().await, Cause::ClientLeft),
            Err(SessionEndReason::Proctor) => (self.stop().await, Cause::Stopped),
        };
        let errors = timeout(LAST_WORDS, &mut self.errors).await;
        let end = SessionEnd {
            how,
            cause,
            signalled: self.process.was_signalled(),
            to_server: self.input.messages(),
            to_client: self.output.messages(),
        };
        let stderr = self.process.stderr_tail(self.tap.redactor());
        let stderr = Some(stderr).filter(|text| !text.is_empty());
        self.tap.ended(end.to_string(), stderr, Some(end.facts()));
        (end, errors.ok().and_then(Result::ok))
    }

    /// Forwards until the server has ended by itself, or until one side leaves.
    async fn pass_on(
        &mut self,
        leave: impl Future<Output = SessionEndReason>,
    ) -> Result<(ProcessExit, Cause), SessionEndReason> {
        let Self {
            process,
            input,
            output,
            ..
        } = self;
        let mut leave = pin!(leave);
        let mut cause = Cause::Server;
        loop {
            tokio::select! {
                // The input first: a client that has closed it left before a server that has ended.
                biased;
                dry = input.run(), if input.is_open() => match dry {
                    PumpEnd::Ended if output.is_open() => cause = Cause::Closed,
                    // The output ends because the server did.
                    PumpEnd::Ended => {}
                    // The server no longer reads, and the client must notice.
                    PumpEnd::Unwanted => input.close(),
                },
                dry = output.run(), if output.is_open() => match dry {
                    PumpEnd::Ended => {}
                    PumpEnd::Unwanted => return Err(SessionEndReason::Client),
                },
                how = process.wait(), if !output.is_open() => {
                    input.close();
                    return Ok((how, cause));
                }
                who = &mut leave => return Err(who),
            }
        }
    }

    /// Stops the server. Its last output is forwarded if the client still reads.
    async fn stop(&mut self) -> ProcessExit {
        let Self {
            process,
            input,
            output,
            awaited,
            ..
        } = self;
        // The server gets the last input of its client, as it would without a relay.
        let _ = timeout(LAST_INPUT, input.run()).await;
        let _ = timeout(LAST_INPUT, input.flush()).await;
        input.close();
        let patience = if awaited.is_empty() {
            GOODBYE
        } else {
            GOODBYE_IN_CALL
        };
        let how = {
            let mut stopping = pin!(process.stopped(patience));
            let mut words = pin!(async {
                if output.run().await == PumpEnd::Unwanted {
                    output.last_words().await;
                }
            });
            tokio::select! {
                how = &mut stopping => {
                    // Without an error if this fails: a stopped session has no reader.
                    let _ = timeout(LAST_WORDS, &mut words).await;
                    how
                }
                () = &mut words => stopping.await,
            }
        };
        // A program that the server left behind may keep the output open in the middle of a line.
        let _ = timeout(LAST_INPUT, output.flush()).await;
        output.close();
        how
    }
}

impl Drop for ProxySession {
    fn drop(&mut self) {
        self.errors.abort();
    }
}
