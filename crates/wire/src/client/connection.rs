//! What all clients of one connection share, and how it ends.
//!
//! Its main type is [`Connection`]. It ends with its [`Owner`], whoever else still has it.

use std::sync::Arc;
use std::time::Duration;

use proctor_core::event::{ConnectionEnd, EndedBy};
use rustix::process::Signal;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout, timeout_at};

use super::{ServerIdentity, Timeouts};
use crate::peer::{Peer, PeerClose};
use crate::recorder::ConnectionTap;
use crate::transport::Link;
use proctor_contain::process::{self, Process};

/// How long a process has to end by itself once its stdin is closed.
pub(super) const GOODBYE: Duration = Duration::from_secs(2);

/// A connection to a server that has been introduced.
pub(super) struct Connection {
    pub(super) peer: Arc<Peer>,
    pub(super) link: Link,
    /// Held while the connection lasts, so that the process does.
    pub(super) process: Mutex<Option<Process>>,
    pub(super) identity: ServerIdentity,
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

/// The handle that a connection ends with.
pub(super) struct Owner(pub(super) Arc<Connection>);

impl Drop for Owner {
    fn drop(&mut self) {
        let Self(connection) = self;
        connection.peer.end(PeerClose::ByUs);
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
        // The server's last words come before its end.
        let _ = timeout(GOODBYE, reading).await;
    }
    peer.tap().ended(reason, stderr, Some(end));
}

/// Who ended a connection.
fn ended_by(ended: &PeerClose) -> EndedBy {
    match ended {
        PeerClose::ByUs => EndedBy::Proctor,
        PeerClose::Closed | PeerClose::Stuck | PeerClose::Broken(_) => EndedBy::Server,
    }
}

/// Ends a process whose stdin is closed, and tells how, and by whom.
pub(crate) async fn stop(mut process: Process, by: EndedBy) -> (String, ConnectionEnd) {
    let facts = |how: process::ProcessExit, signalled: bool| ConnectionEnd {
        by,
        process: Some(how.into()),
        signalled,
    };
    if let Ok(ended) = timeout(GOODBYE, process.wait()).await {
        return (ended.to_string(), facts(ended, process.was_signalled()));
    }
    let waited = proctor_core::duration::brief(GOODBYE);
    let why =
        format!("did not exit within {waited} after its stdin was closed, so Proctor stopped it");
    let ended = process.stop(Duration::ZERO).await;
    let reason = match ended {
        process::ProcessExit::Signalled(signal) if signal == Signal::TERM.as_raw() => why,
        ended => format!("{why} (it {ended})"),
    };
    (reason, facts(ended, true))
}

/// Why the connection ended, in words.
fn ending(ended: Option<PeerClose>) -> String {
    match ended {
        Some(PeerClose::Stuck) => "the server does not read its input".to_owned(),
        Some(PeerClose::Broken(why)) => format!("the connection broke: {why}"),
        Some(PeerClose::ByUs) => "Proctor closed the connection".to_owned(),
        Some(PeerClose::Closed) | None => "the server closed the connection".to_owned(),
    }
}
