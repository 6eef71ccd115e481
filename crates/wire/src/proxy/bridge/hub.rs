//! The server processes of a bridge, and the sessions that use them.
//!
//! Its main type is [`Hub`].

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proctor_core::suite::Server;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::inbound::Inbound;
use super::outlet::StreamReceiver;
use super::upstream::{RunningUpstream, StreamRefusal, UpstreamProcess};
use crate::proxy::ProxyOptions;
use crate::proxy::refusals::Refusals;
use crate::proxy::server_process::{ServerProcess, ServerStartError};
use crate::proxy::token::AccessToken;
use crate::transport::MAX_MESSAGE;

/// The maximum number of open sessions.
const SESSIONS: usize = 256;
/// The maximum number of processes for requests without a session.
const SHARED: usize = 16;
/// The maximum number of bytes that wait to be written to processes.
pub(super) const BODIES: usize = 2 * MAX_MESSAGE;

/// The state that all requests of a bridge share.
pub(super) struct Hub {
    server: Server,
    options: ProxyOptions,
    pub(super) refusals: Arc<Refusals>,
    /// The memory budget for messages that wait to be written.
    pub(super) bodies: Arc<Semaphore>,
    processes: Mutex<Processes>,
}

#[derive(Default)]
struct Processes {
    sessions: HashMap<String, RunningUpstream>,
    /// Ended sessions: some clients send one more request.
    past: HashSet<String>,
    shared: Vec<RunningUpstream>,
    /// The tasks that watch the processes.
    keeping: Vec<JoinHandle<()>>,
    is_closed: bool,
}

/// The process and streams for a message.
pub(super) struct Destination {
    pub(super) upstream: Arc<UpstreamProcess>,
    /// The responses; `None` without a request.
    pub(super) receiver: Option<StreamReceiver>,
    /// The session that the message opened.
    pub(super) opened: Option<PendingSession>,
}

/// A session whose id the client does not know yet. Dropping it ends the session.
pub(super) struct PendingSession {
    hub: Arc<Hub>,
    id: Option<String>,
}

/// Why a message could not be delivered.
pub(super) enum DeliveryError {
    /// The session is unknown or has ended.
    NoSession,
    /// An id or progress token is already in use in the session.
    Taken(Arc<UpstreamProcess>),
    /// Too many processes are running.
    TooMany,
    /// The process did not start.
    Start(ServerStartError),
}

impl Hub {
    pub(super) fn new(server: &Server, options: &ProxyOptions, refusals: Arc<Refusals>) -> Self {
        Self {
            server: server.clone(),
            options: options.clone(),
            refusals,
            bodies: Arc::new(Semaphore::new(BODIES)),
            processes: Mutex::default(),
        }
    }

    /// Finds or starts the process for a message, and opens a stream for its responses.
    pub(super) fn place(
        self: &Arc<Self>,
        session: Option<&str>,
        inbound: &Inbound,
        takes_more: bool,
    ) -> Result<Destination, DeliveryError> {
        if let Some(id) = session {
            let upstream = self.session(id).ok_or(DeliveryError::NoSession)?;
            return place(upstream, inbound, takes_more);
        }
        let mut processes = self.lock();
        if !inbound.is_initialize {
            return self.share(&mut processes, inbound, takes_more);
        }
        processes.forget();
        if processes.sessions.len() >= SESSIONS {
            return Err(DeliveryError::TooMany);
        }
        let id = AccessToken::random().ok_or(DeliveryError::TooMany)?;
        let running = self.start(&mut processes)?;
        let upstream = running.upstream.clone();
        let id = id.reveal().to_owned();
        processes.sessions.insert(id.clone(), running);
        drop(processes);
        let opened = PendingSession {
            hub: self.clone(),
            id: Some(id),
        };
        let mut place = place(upstream, inbound, takes_more)?;
        place.opened = Some(opened);
        Ok(place)
    }

    /// Returns the process of an open session.
    pub fn session(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let upstream = self.lock().sessions.get(id)?.upstream.clone();
        Some(upstream).filter(|upstream| !upstream.has_ended())
    }

    /// Returns the process of an ended session.
    pub fn past_session(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let upstream = self.lock().sessions.get(id)?.upstream.clone();
        Some(upstream).filter(|upstream| upstream.has_ended())
    }

    /// Whether the session exists or existed.
    pub(super) fn knows(&self, id: &str) -> bool {
        let processes = self.lock();
        processes.sessions.contains_key(id) || processes.past.contains(id)
    }

    /// Ends a session and its process.
    pub fn end(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let mut processes = self.lock();
        let running = processes.sessions.remove(id)?;
        processes.past.insert(id.to_owned());
        Some(running.upstream.clone()).filter(|upstream| !upstream.has_ended())
    }

    pub(super) async fn close(&self) {
        let keeping = {
            let mut processes = self.lock();
            processes.is_closed = true;
            processes.sessions.clear();
            processes.shared.clear();
            std::mem::take(&mut processes.keeping)
        };
        for one in keeping {
            let _ = one.await;
        }
    }

    /// Returns a process for a request without a session. Independent clients may use the same ids,
    /// and a server can't answer two requests with one id so that the responses can be told apart.
    /// The second request therefore goes to another process, which is safe because such requests
    /// are independent.
    fn share(
        &self,
        processes: &mut Processes,
        inbound: &Inbound,
        takes_more: bool,
    ) -> Result<Destination, DeliveryError> {
        processes.shared.retain(|one| !one.upstream.has_ended());
        let known = inbound.cancels.as_ref().and_then(|id| {
            let mut shared = processes.shared.iter();
            shared.position(|one| one.upstream.knows(id))
        });
        let upstreams = processes.shared.iter().skip(known.unwrap_or_default());
        for running in upstreams {
            if let Ok(place) = place(running.upstream.clone(), inbound, takes_more) {
                return Ok(place);
            }
        }
        if processes.shared.len() >= SHARED {
            processes.shared.retain(|one| !one.upstream.is_deserted());
        }
        if processes.shared.len() >= SHARED {
            return Err(DeliveryError::TooMany);
        }
        let running = self.start(processes)?;
        let upstream = running.upstream.clone();
        processes.shared.push(running);
        place(upstream, inbound, takes_more)
    }

    fn start(&self, processes: &mut Processes) -> Result<RunningUpstream, DeliveryError> {
        if processes.is_closed {
            return Err(DeliveryError::TooMany);
        }
        let started =
            ServerProcess::start(&self.server, &self.options).map_err(DeliveryError::Start)?;
        let (running, keeping) = RunningUpstream::new(started);
        processes.keeping.retain(|one| !one.is_finished());
        processes.keeping.push(keeping);
        Ok(running)
    }

    fn lock(&self) -> MutexGuard<'_, Processes> {
        let processes = self.processes.lock();
        processes.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Processes {
    /// Removes old sessions to make room for new ones.
    fn forget(&mut self) {
        let Self { sessions, past, .. } = self;
        past.extend(
            sessions
                .extract_if(|_, one| one.upstream.has_ended())
                .map(|(id, _)| id),
        );
    }
}

impl PendingSession {
    /// Keeps the session open, and returns its id for the client.
    pub(super) fn tell(mut self) -> Option<String> {
        self.id.take()
    }
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.hub.end(id);
        }
    }
}

fn place(
    upstream: Arc<UpstreamProcess>,
    inbound: &Inbound,
    takes_more: bool,
) -> Result<Destination, DeliveryError> {
    let receiver = if inbound.asks.is_empty() {
        None
    } else {
        match upstream.open_post(&inbound.asks, takes_more) {
            Ok(receiver) => Some(receiver),
            Err(StreamRefusal::Ended) => return Err(DeliveryError::NoSession),
            Err(StreamRefusal::Taken) => return Err(DeliveryError::Taken(upstream)),
        }
    };
    Ok(Destination {
        upstream,
        receiver,
        opened: None,
    })
}
