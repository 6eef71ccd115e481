//! The processes of a bridge, and who goes to which.
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
use crate::proxy::started::{ServerProcess, ServerStartError};
use crate::proxy::token::AccessToken;
use crate::transport::MAX_MESSAGE;

/// How many sessions may be open.
const SESSIONS: usize = 256;
/// How many processes requests without a session may share.
const SHARED: usize = 16;
/// How many bytes of messages may be on their way to processes.
pub(super) const BODIES: usize = 2 * MAX_MESSAGE;

/// What all requests of a bridge share.
pub(super) struct Hub {
    server: Server,
    options: ProxyOptions,
    pub(super) refusals: Arc<Refusals>,
    /// Room for messages on their way to processes.
    pub(super) bodies: Arc<Semaphore>,
    processes: Mutex<Processes>,
}

#[derive(Default)]
struct Processes {
    sessions: HashMap<String, RunningUpstream>,
    /// Sessions that were there: clients come back once more to some.
    past: HashSet<String>,
    shared: Vec<RunningUpstream>,
    /// What ends with each process.
    keeping: Vec<JoinHandle<()>>,
    is_closed: bool,
}

/// Where a message goes.
pub(super) struct Destination {
    pub(super) upstream: Arc<UpstreamProcess>,
    /// What comes back, if something was asked.
    pub(super) inflow: Option<StreamReceiver>,
    /// The session that was opened for it.
    pub(super) opened: Option<PendingSession>,
}

/// A session that the client does not know yet. It ends if the client never does.
pub(super) struct PendingSession {
    hub: Arc<Hub>,
    id: Option<String>,
}

/// Why a message goes nowhere.
pub(super) enum DeliveryError {
    /// There is no such session, or no more.
    NoSession,
    /// It can't be told from another of its session.
    Taken(Arc<UpstreamProcess>),
    /// There are too many processes.
    TooMany,
    /// There is no process.
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

    /// Finds or starts the process for a message, and opens a stream if something is asked.
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

    /// The process of a session that has not ended.
    pub fn session(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let upstream = self.lock().sessions.get(id)?.upstream.clone();
        Some(upstream).filter(|upstream| !upstream.has_ended())
    }

    /// The process of a session that has ended.
    pub fn past_session(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let upstream = self.lock().sessions.get(id)?.upstream.clone();
        Some(upstream).filter(|upstream| upstream.has_ended())
    }

    /// Whether there ever was such a session.
    pub(super) fn knows(&self, id: &str) -> bool {
        let processes = self.lock();
        processes.sessions.contains_key(id) || processes.past.contains(id)
    }

    /// Ends a session, and its process.
    pub fn end(&self, id: &str) -> Option<Arc<UpstreamProcess>> {
        let mut processes = self.lock();
        let running = processes.sessions.remove(id)?;
        processes.past.insert(id.to_owned());
        Some(running.upstream.clone()).filter(|upstream| !upstream.has_ended())
    }

    /// Ends all processes.
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

    /// A process for what has no session. Clients that know nothing of each other number their
    /// requests alike; a server that got one id twice could answer neither so that the answers are
    /// told apart, so the second goes to a further process. Nothing is lost by that: such requests
    /// stand for themselves.
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
    /// Makes room for new sessions.
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
    /// The client is told of the session.
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
    let inflow = if inbound.asks.is_empty() {
        None
    } else {
        match upstream.open_post(&inbound.asks, takes_more) {
            Ok(inflow) => Some(inflow),
            Err(StreamRefusal::Ended) => return Err(DeliveryError::NoSession),
            Err(StreamRefusal::Taken) => return Err(DeliveryError::Taken(upstream)),
        }
    };
    Ok(Destination {
        upstream,
        inflow,
        opened: None,
    })
}
