//! What all clients of one connection share, and how it ends.
//!
//! Its main type is [`Connection`]. It ends with its [`Owner`], whoever else still has it.

use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::peer::{Ended, Peer};
use super::{Identity, Timeouts};
use crate::process::{self, Process};
use crate::recorder::Tap;
use crate::transport::Link;

/// How long a process has to end by itself once its stdin is closed.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// A connection to a server that has been introduced.
pub(super) struct Connection {
    pub(super) peer: Arc<Peer>,
    pub(super) link: Link,
    /// Held while the connection lasts, so that the process does.
    pub(super) process: Mutex<Option<Process>>,
    pub(super) identity: Identity,
    pub(super) timeouts: Timeouts,
}

impl Connection {
    /// How the server went, with the end of what it wrote to its stderr.
    pub(super) async fn farewell(&self) -> (String, String) {
        // Before the lock: all who ask at the same time wait at the same time.
        let deadline = Instant::now() + GOODBYE;
        let mut process = self.process.lock().await;
        farewell(process.as_mut(), &self.peer, deadline).await
    }

    /// Ends the connection for everybody, and the process with it.
    pub(super) async fn close(&self) {
        let process = self.process.lock().await.take();
        close(&self.peer, &self.link, process).await;
    }

    /// Ends the connection in the record of one who shares it.
    pub(super) async fn leave(&self, tap: &Arc<Tap>) {
        self.link.settle(tap).await;
        let (reason, stderr) = if self.peer.ended().is_some() {
            let (how, stderr) = self.farewell().await;
            (how, Some(stderr).filter(|text| !text.is_empty()))
        } else {
            ("the connection is shared, and goes on".to_owned(), None)
        };
        tap.close(reason, stderr);
    }
}

/// The handle that a connection ends with.
pub(super) struct Owner(pub(super) Arc<Connection>);

impl Drop for Owner {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.peer.end(Ended::ByUs);
        connection.link.let_go();
        // Whoever holds the lock waits for the end of the process.
        if let Ok(mut process) = connection.process.try_lock() {
            process.take();
        }
    }
}

/// How a server went, and the end of what it wrote to its stderr.
pub(super) async fn farewell(
    process: Option<&mut Process>,
    peer: &Peer,
    deadline: Instant,
) -> (String, String) {
    let ended = peer.ended();
    let Some(process) = process else {
        return (ending(ended), String::new());
    };
    // A process whose stdout is closed is about to end, or hangs.
    let how = match timeout_at(deadline, process.wait()).await {
        Ok(how) => format!("the server {how}"),
        Err(_) => ending(ended),
    };
    (how, process.stderr_tail(peer.tap().redactor()))
}

/// Ends a connection, and the process with it, and writes how.
pub(super) async fn close(peer: &Peer, link: &Link, process: Option<Process>) {
    peer.end(Ended::ByUs);
    // For a process this closes the last handle to its stdin.
    let reading = match link {
        Link::Http(link) => {
            link.close(peer.tap()).await;
            None
        }
        Link::Legacy(link) => {
            link.close().await;
            None
        }
        Link::Stdio(link) => link.close(),
    };
    let (reason, stderr) = match process {
        Some(process) => {
            let stderr = process.stderr();
            let how = stop(process).await;
            (how, Some(stderr.redacted(peer.tap().redactor())))
        }
        None => ("was closed".to_owned(), None),
    };
    if let Some(reading) = reading {
        // The server's last words come before its end.
        let _ = timeout(GOODBYE, reading).await;
    }
    peer.tap().close(reason, stderr);
}

/// Ends a process whose stdin is closed, and tells how, and by whom.
pub(crate) async fn stop(mut process: Process) -> String {
    if let Ok(ended) = timeout(GOODBYE, process.wait()).await {
        return ended.to_string();
    }
    let waited = proctor_core::duration::brief(GOODBYE);
    let why =
        format!("was ended by Proctor: it did not end within {waited} after its stdin was closed");
    match process.stop(Duration::ZERO).await {
        process::Ended::Signalled(signal) if signal == Signal::TERM.as_raw() => why,
        ended => format!("{why} (it {ended})"),
    }
}

/// Why the connection ended, in words.
fn ending(ended: Option<Ended>) -> String {
    match ended {
        Some(Ended::Stuck) => "the server does not read what it is sent".to_owned(),
        Some(Ended::Broken(why)) => format!("the connection broke: {why}"),
        Some(Ended::ByUs) => "the connection was closed".to_owned(),
        Some(Ended::Closed) | None => "the server closed the connection".to_owned(),
    }
}
