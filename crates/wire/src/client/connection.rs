//! The state that all clients of one connection share, and how the connection ends.
//!
//! Its main type is [`Connection`]. It ends with its [`Owner`], even if shares still exist.

use std::sync::Arc;
use std::time::Duration;

use proctor_record::event::{ConnectionEnd, EndedBy};
use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::{ServerIdentity, Timeouts};
use crate::peer::{Peer, PeerClose};
use crate::recorder::ConnectionTap;
use crate::transport::Link;
use proctor_contain::process::{self, Process};

/// How long a process may take to exit after its stdin is closed.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// A connection after the handshake.
pub(super) struct Connection {
    pub(super) peer: Arc<Peer>,
    pub(super) link: Link,
    /// Keeps the process alive while the connection lasts.
    pub(super) process: Mutex<Option<Process>>,
    pub(super) identity: ServerIdentity,
    pub(super) timeouts: Timeouts,
}

impl Connection {
    /// Returns how the server ended, with the end of its stderr.
    pub(super) async fn farewell(&self) -> (String, String) {
        // Before the lock, so that concurrent callers wait at the same time.
        let deadline = Instant::now() + GOODBYE;
        let mut process = self.process.lock().await;
        farewell(process.as_mut(), &self.peer, deadline).await
    }

    /// Closes the connection for all clients, and stops its process.
    pub(super) async fn close(&self) {
        let process = self.process.lock().await.take();
        close(&self.peer, &self.link, process).await;
    }

    /// Writes the end of the connection into the record of one share.
    pub(super) async fn leave(&self, tap: &Arc<ConnectionTap>) {
        self.link.settle(tap).await;
        let Some(ended) = self.peer.ended() else {
            let end = ConnectionEnd::by(EndedBy::Proctor);
            tap.ended(
                "the connection is shared and stays open".to_owned(),
                None,
                Some(end),
            );
            return;
        };
        let (reason, stderr) = self.farewell().await;
        let mut end = ConnectionEnd::by(ended_by(&ended));
        let mut process = self.process.lock().await;
        if let Some(process) = process.as_mut()
            && let Ok(how) = timeout(Duration::ZERO, process.wait()).await
        {
            end.process = Some(how.into());
            end.signalled = process.was_signalled();
        }
        let stderr = Some(stderr).filter(|text| !text.is_empty());
        tap.ended(reason, stderr, Some(end));
    }
}

/// The handle whose drop closes the connection.
pub(super) struct Owner(pub(super) Arc<Connection>);

impl Drop for Owner {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.peer.end(PeerClose::ByUs);
        connection.link.let_go();
        // If the lock is held, its holder already waits for the process to end.
        if let Ok(mut process) = connection.process.try_lock() {
            process.take();
        }
    }
}

/// Returns how a server ended, and the end of its stderr.
pub(super) async fn farewell(
    process: Option<&mut Process>,
    peer: &Peer,
    deadline: Instant,
) -> (String, String) {
    let ended = peer.ended();
    let Some(process) = process else {
        return (ending(ended), String::new());
    };
    // A process that closed its stdout is about to end, or hangs.
    let how = match timeout_at(deadline, process.wait()).await {
        Ok(how) => format!("the server {how}"),
        Err(_) => ending(ended),
    };
    (how, process.stderr_tail(peer.tap().redactor()))
}

/// Closes a connection, stops its process, and records the reason.
pub(super) async fn close(peer: &Peer, link: &Link, process: Option<Process>) {
    peer.end(PeerClose::ByUs);
    let by = peer
        .ended()
        .map_or(EndedBy::Proctor, |ended| ended_by(&ended));
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
    let (reason, stderr, end) = match process {
        Some(process) => {
            let stderr = process.stderr();
            let (reason, end) = stop(process, by).await;
            (reason, Some(stderr.redacted(peer.tap().redactor())), end)
        }
        None => ("was closed".to_owned(), None, ConnectionEnd::by(by)),
    };
    if let Some(reading) = reading {
        // The server's last messages are recorded before its end.
        let _ = timeout(GOODBYE, reading).await;
    }
    peer.tap().ended(reason, stderr, Some(end));
}

/// Returns which side ended a connection.
fn ended_by(ended: &PeerClose) -> EndedBy {
    match ended {
        PeerClose::ByUs => EndedBy::Proctor,
        PeerClose::Closed | PeerClose::Stuck | PeerClose::Broken(_) => EndedBy::Server,
    }
}

/// Stops a process whose stdin is closed, and returns how it ended and who ended it.
pub(crate) async fn stop(mut process: Process, by: EndedBy) -> (String, ConnectionEnd) {
    let facts = |how: process::ProcessExit, signalled: bool| ConnectionEnd {
        by,
        process: Some(how.into()),
        signalled,
    };
    if let Ok(ended) = timeout(GOODBYE, process.wait()).await {
        return (ended.to_string(), facts(ended, process.was_signalled()));
    }
    let waited = proctor_record::duration::brief(GOODBYE);
    let why =
        format!("did not exit within {waited} after its stdin was closed, so Proctor stopped it");
    let ended = process.stop(Duration::ZERO).await;
    let reason = match ended {
        process::ProcessExit::Signalled(signal) if signal == Signal::TERM.as_raw() => why,
        ended => format!("{why} (it {ended})"),
    };
    (reason, facts(ended, true))
}

/// Describes why the connection ended.
fn ending(ended: Option<PeerClose>) -> String {
    match ended {
        Some(PeerClose::Stuck) => "the server does not read its input".to_owned(),
        Some(PeerClose::Broken(why)) => format!("the connection broke: {why}"),
        Some(PeerClose::ByUs) => "Proctor closed the connection".to_owned(),
        Some(PeerClose::Closed) | None => "the server closed the connection".to_owned(),
    }
}
