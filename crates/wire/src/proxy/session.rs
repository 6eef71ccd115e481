//! One stdio session: a client's streams on one side, a fresh process of the server on the other.
//!
//! Its main type is [`ProxySession`]. It has no time-outs and no queues: who does not read is waited for,
//! as if nothing stood between. A record that can't be kept does not stop it.

mod awaited;
mod errors;
mod pump;

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::event::{ConnectionEnd, Direction, EndedBy};
use proctor_core::suite::Server;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::awaited::PendingCallIds;
pub(crate) use self::errors::Errors;
use self::pump::{Pump, PumpEnd};
use super::ProxyOptions;
use super::started::{ServerProcess, ServerStartError};
use crate::recorder::ConnectionTap;
use proctor_contain::process::{Process, ProcessExit};

/// How long a server may take to end by itself when its client is gone.
const GOODBYE: Duration = Duration::from_millis(500);
/// The same for a server that owes an answer: it may be dying of the call, and its exit status tells.
const GOODBYE_IN_CALL: Duration = Duration::from_secs(3);
/// How long what a client wrote before it left may take to be read and passed on.
const LAST_INPUT: Duration = Duration::from_millis(200);
/// How long what a server wrote before its end may be on its way, when it was ended.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a client or a server writes.
pub(crate) type ClientInput = Box<dyn AsyncRead + Send + Unpin>;
/// What a client or a server reads.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// A client's streams.
pub struct ClientStreams {
    pub(crate) input: ClientInput,
    pub(crate) output: Output,
    pub(crate) errors: Errors,
}

/// Why a session is to end before its server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEndReason {
    /// The client is gone, or says that it goes.
    Client,
    /// Proctor goes.
    Proctor,
}

/// What ended a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// It ended by itself, while its client was there.
    Server,
    /// The client closed its stdin, and it ended by itself.
    Closed,
    /// The client was gone, and it was ended.
    ClientLeft,
    /// Proctor went, and it was ended.
    Stopped,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionEnd {
    /// How the server ended.
    pub how: ProcessExit,
    /// What ended it.
    pub cause: Cause,
    /// Whether Proctor sent it a signal before it ended.
    pub signalled: bool,
    /// How many messages the client sent.
    pub to_server: u64,
    /// How many the server sent.
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
    /// The same, as the record keeps it.
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

/// Starts a server, and lets a client talk to it until either has ended or somebody has to leave.
pub async fn serve(
    server: &Server,
    options: &ProxyOptions,
    client: ClientStreams,
    leave: impl Future<Output = SessionEndReason>,
) -> Result<SessionEnd, ServerStartError> {
    let (started, stderr) = ServerProcess::start_with_stderr(server, options)?;
    let session = ProxySession::new(started, stderr, client);
    Ok(session.run(leave).await.0)
}

/// A client and its server.
pub(crate) struct ProxySession {
    tap: Arc<ConnectionTap>,
    process: Process,
    input: Pump<ClientInput, Output>,
    output: Pump<ClientInput, Output>,
    /// What the client asked and the server has not answered.
    awaited: Arc<PendingCallIds>,
    errors: JoinHandle<Errors>,
}

impl ProxySession {
    /// A server that was just started, for a client.
    pub(crate) fn new(started: ServerProcess, stderr: ChildStderr, client: ClientStreams) -> Self {
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

    /// Passes everything on until the end, and gives back where its errors went, if they all did.
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

    /// Until the server has ended by itself; or until somebody leaves.
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
                dry = input.run(), if input.is_open() => match dry {
                    PumpEnd::Ended if output.is_open() => cause = Cause::Closed,
                    // It closes because the server did.
                    PumpEnd::Ended => {}
                    // The server reads no more, and its client is not left in the belief that it does.
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

    /// Ends the server. Its last words are passed on, if there is somebody to hear them.
    async fn stop(&mut self) -> ProcessExit {
        let Self {
            process,
            input,
            output,
            awaited,
            ..
        } = self;
        // What a client wrote before it left is the server's to read, as it would be without a relay.
        let _ = timeout(LAST_INPUT, input.run()).await;
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
                    // Also if they are not taken: nobody waits for a session that was stopped.
                    let _ = timeout(LAST_WORDS, &mut words).await;
                    how
                }
                () = &mut words => stopping.await,
            }
        };
        output.close();
        how
    }
}

impl Drop for ProxySession {
    fn drop(&mut self) {
        self.errors.abort();
    }
}
