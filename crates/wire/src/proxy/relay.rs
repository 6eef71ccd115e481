//! A server that an agent starts itself: `proctor __relay SOCKET`, and the listener on the socket.
//!
//! Its main type is [`Relay`]. Only processes of the same user below the agent can connect. Each
//! hands over its streams, and gets a new server process. The socket is in a private folder.

mod control;
mod peer;

use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proctor_core::suite::Server;
use rustix::process::Pid;
use tempfile::TempDir;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use self::control::{RelayMessage, hand_over};
pub use self::peer::AdmissionPolicy;
use super::ProxyOptions;
use super::refusals::Refusals;
use super::server_process::ServerProcess;
use super::session::{ClientInput, ClientStreams, Errors, Output, ProxySession, SessionEndReason};
use super::streams::{input, output};
use crate::relay::COMMAND;

/// How long an authorized process may take to send its first message.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the listener pauses after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// The maximum length of a socket path, in bytes.
const LONGEST: usize = 100;

/// A server that an agent can start any number of times, until this is closed or dropped.
pub struct Relay {
    socket: PathBuf,
    guard: PathBuf,
    admit: watch::Sender<AdmissionPolicy>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Removed when the listener ends.
    _folder: TempDir,
}

/// The state that all sessions share.
struct RelayState {
    server: Server,
    options: ProxyOptions,
    refusals: Refusals,
    admit: watch::Receiver<AdmissionPolicy>,
    stop: watch::Receiver<bool>,
}

impl Relay {
    /// Listens for relays. They wait until a process is admitted. Must be called within a tokio
    /// runtime.
    pub fn listen(server: &Server, options: &ProxyOptions) -> io::Result<Self> {
        let folder = own_folder()?;
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket)?;
        let (admit, admitted) = watch::channel(AdmissionPolicy::Nobody);
        let (stop, stopped) = watch::channel(false);
        let shared = Arc::new(RelayState {
            server: server.clone(),
            options: options.clone(),
            refusals: Refusals::new(&options.recorder, options.actor, server),
            admit: admitted,
            stop: stopped,
        });
        Ok(Self {
            socket,
            guard: options.guard.clone(),
            admit,
            stop,
            accepting: tokio::spawn(accept(listener, shared)),
            _folder: folder,
        })
    }

    /// Returns the program and arguments that an agent starts instead of the server.
    pub fn command(&self) -> (PathBuf, Vec<String>) {
        let socket = self.socket.display().to_string();
        (self.guard.clone(), vec![COMMAND.to_owned(), socket])
    }

    /// Allows this process and its descendants to start the server.
    pub fn admit(&self, pid: Pid) {
        self.admit_all(AdmissionPolicy::Descendants(pid));
    }

    /// Allows these processes to start the server.
    pub fn admit_all(&self, admit: AdmissionPolicy) {
        self.admit.send_replace(admit);
    }

    /// Ends all sessions, and waits until the record has their ends.
    pub async fn close(mut self) {
        self.stop.send_replace(true);
        // If a session panicked, its tap has recorded its end.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Creates a private folder whose path is short enough for a socket.
fn own_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let builder = builder.prefix("proctor-");
    let mode = Permissions::from_mode(0o700);
    let folder = builder.permissions(mode.clone()).tempdir()?;
    if folder.path().as_os_str().as_bytes().len() < LONGEST {
        return Ok(folder);
    }
    builder.permissions(mode).tempdir_in(Path::new("/tmp"))
}

async fn accept(listener: UnixListener, shared: Arc<RelayState>) {
    // Dropped with this task, and all sessions with it.
    let mut sessions = JoinSet::new();
    let mut stop = shared.stop.clone();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => drop(sessions.spawn(attend(stream, shared.clone()))),
                // Most likely out of descriptors; some will become free.
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = sessions.join_next() => {}
        }
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        // The owner of the relay can only drop it now, which ends this task.
        std::future::pending::<()>().await;
    }
}

/// Handles one connection from start to end.
async fn attend(stream: UnixStream, shared: Arc<RelayState>) {
    let mut stop = shared.stop.clone();
    let admitted = tokio::select! {
        () = stopped(&mut stop) => return,
        admitted = admit(&stream, &shared) => admitted,
    };
    let (reader, writer) = stream.into_split();
    match admitted {
        Ok(Some(streams)) => converse(streams, reader, writer, &shared).await,
        Ok(None) => {}
        Err(why) => {
            shared.refusals.refused(&why);
            control::refuse(writer, &why).await;
        }
    }
}

/// The input and output of a client.
type Streams = (ClientInput, Output);

/// Returns the streams of an authorized relay; `None` if it disconnected; an error if it is
/// refused.
async fn admit(stream: &UnixStream, shared: &RelayState) -> Result<Option<Streams>, String> {
    let mut admit = shared.admit.clone();
    let Ok(admit) = admit
        .wait_for(|admit| *admit != AdmissionPolicy::Nobody)
        .await
        .map(|admit| *admit)
    else {
        return Ok(None);
    };
    peer::check(stream, admit)?;
    let handed = timeout(PATIENCE, hand_over(stream)).await;
    let handed = handed.map_err(|_| "it sent no message in time".to_owned())??;
    let Some((from, to)) = handed else {
        return Ok(None);
    };
    let unusable = |error: io::Error| format!("can't use its streams: {error}");
    Ok(Some((
        input(from).map_err(unusable)?,
        output(to).map_err(unusable)?,
    )))
}

/// Starts the server for a client, and sends the relay its exit status.
async fn converse(
    (input, output): Streams,
    reader: OwnedReadHalf,
    writer: OwnedWriteHalf,
    shared: &RelayState,
) {
    let (started, stderr) = match ServerProcess::start_with_stderr(&shared.server, &shared.options)
    {
        Ok(started) => started,
        Err(error) => return control::refuse(writer, &error.to_string()).await,
    };
    let client = ClientStreams {
        input,
        output,
        errors: Errors::Relay(writer),
    };
    let session = ProxySession::new(started, stderr, client);
    let (end, errors) = session.run(leave(reader, shared)).await;
    if let Some(Errors::Relay(writer)) = errors {
        control::tell(writer, end.how).await;
    }
}

/// Waits until the relay disconnects or the run ends.
async fn leave(reader: OwnedReadHalf, shared: &RelayState) -> SessionEndReason {
    let mut stop = shared.stop.clone();
    let told = tokio::select! {
        () = stopped(&mut stop) => return SessionEndReason::Proctor,
        told = control::listen(reader) => told,
    };
    if let RelayMessage::Unexpected(why) = told {
        shared.refusals.refused(&why);
    }
    SessionEndReason::Client
}
