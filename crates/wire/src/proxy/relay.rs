//! A server as an agent starts it: `proctor __relay SOCKET`, and what listens on the socket.
//!
//! Its main type is [`Relay`]. Whoever connects must be a process of the same user, below the agent;
//! it hands over its streams, and gets a fresh process of the server. The socket is in a folder that
//! nobody else can enter.

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
use super::session::{ClientInput, ClientStreams, Errors, Output, ProxySession, SessionEndReason};
use super::started::ServerProcess;
use super::streams::{input, output};
use crate::relay::COMMAND;

/// How long somebody who was let in may say nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody is let in after the system refused to.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest path of a socket, in bytes.
const LONGEST: usize = 100;

/// A server that an agent can start as often as it likes, until this is closed or dropped.
pub struct Relay {
    socket: PathBuf,
    guard: PathBuf,
    admit: watch::Sender<AdmissionPolicy>,
    stop: watch::Sender<bool>,
    accepting: JoinHandle<()>,
    /// Removed when nobody listens any more.
    _folder: TempDir,
}

/// What all sessions share.
struct RelayState {
    server: Server,
    options: ProxyOptions,
    refusals: Refusals,
    admit: watch::Receiver<AdmissionPolicy>,
    stop: watch::Receiver<bool>,
}

impl Relay {
    /// Listens for those who will start the server. They wait until somebody is admitted. Must be
    /// called within a tokio runtime.
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

    /// The program that stands for the server, and its arguments.
    pub fn command(&self) -> (PathBuf, Vec<String>) {
        let socket = self.socket.display().to_string();
        (self.guard.clone(), vec![COMMAND.to_owned(), socket])
    }

    /// From here on this process and those below it may start the server.
    pub fn admit(&self, pid: Pid) {
        self.admit_all(AdmissionPolicy::Descendants(pid));
    }

    /// From here on these may start the server.
    pub fn admit_all(&self, admit: AdmissionPolicy) {
        self.admit.send_replace(admit);
    }

    /// Ends all sessions, and waits until their ends are in the record.
    pub async fn close(mut self) {
        self.stop.send_replace(true);
        // A session that panicked has left its end to its tap.
        let _ = (&mut self.accepting).await;
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A folder that nobody else can enter, whose path is short enough for a socket.
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
                // Out of files, most likely: some will be free again.
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
        // Whoever could close the relay drops it, which ends this.
        std::future::pending::<()>().await;
    }
}

/// Everything about one who came.
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

/// What a client writes and reads.
type Streams = (ClientInput, Output);

/// The streams of one who may come in; nothing, if it went away; or why it may not.
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

/// Starts the server for a client, and tells the relay how it ended.
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

/// Waits until the relay or the run has to leave.
async fn leave(reader: OwnedReadHalf, shared: &RelayState) -> SessionEndReason {
    let mut stop = shared.stop.clone();
    let told = tokio::select! {
        () = stopped(&mut stop) => return SessionEndReason::Proctor,
        told = control::listen(reader) => told,
    };
    if let RelayMessage::Nonsense(why) = told {
        shared.refusals.refused(&why);
    }
    SessionEndReason::Client
}
