//! The conversations of a server on HTTP, and the streams on which their clients listen.
//!
//! Its main types are [`Sessions`], for the newer HTTP, and [`Announced`], for the older.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::super::events::event;
use super::super::list_changed;
use super::super::talk::Talk;

/// How many sessions, streams and addresses are known; the oldest are forgotten.
const KNOWN: usize = 1_000;
/// How many events of ours may wait for a client that reads slowly.
const EVENTS: usize = 16;

/// A stream on which a client listens.
pub(super) struct Stream {
    session: Option<String>,
    pub(super) talk: Arc<Talk>,
    pub(super) say: Sender<Vec<u8>>,
}

impl Stream {
    /// A stream of a conversation, and what is to be said on it.
    pub(super) fn new(session: Option<String>, talk: Arc<Talk>) -> (Arc<Self>, Receiver<Vec<u8>>) {
        let (say, said) = channel(EVENTS);
        let stream = Self { session, talk, say };
        (Arc::new(stream), said)
    }

    /// Says a message, once there is room for it. Whether anybody listens.
    pub(super) async fn say(&self, message: &[u8]) -> bool {
        self.say.send(event(message)).await.is_ok()
    }
}

/// Conversations by the id of their session; without one, all clients share theirs.
#[derive(Default)]
pub(super) struct Sessions {
    talks: Mutex<VecDeque<(Option<String>, Arc<Talk>)>>,
    streams: Mutex<VecDeque<Weak<Stream>>>,
}

impl Sessions {
    /// A session begins.
    pub(super) fn begin(&self, id: Option<String>, talk: &Arc<Talk>) {
        let mut talks = lock(&self.talks);
        talks.retain(|(known, _)| *known != id);
        if talks.len() == KNOWN {
            talks.pop_front();
        }
        talks.push_back((id, talk.clone()));
    }

    /// The conversation of a session.
    pub(super) fn talk(&self, id: Option<&str>) -> Option<Arc<Talk>> {
        let talks = lock(&self.talks);
        let found = talks.iter().find(|(known, _)| known.as_deref() == id);
        found.map(|(_, talk)| talk.clone())
    }

    /// Somebody listens.
    pub(super) fn listen(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        if streams.len() == KNOWN {
            streams.pop_front();
        }
        streams.push_back(Arc::downgrade(stream));
    }

    /// Tells clients that the evals have changed: on one of the streams of a session.
    pub(super) fn tell(&self) {
        let mut told: Vec<String> = Vec::new();
        for stream in lock(&self.streams).iter().filter_map(Weak::upgrade) {
            let is_done = |id: &String| told.contains(id);
            if !stream.talk.is_told() || stream.session.as_ref().is_some_and(is_done) {
                continue;
            }
            // Who does not read has as many reasons waiting to list again.
            if stream.say.try_send(event(&list_changed())).is_ok() {
                told.extend(stream.session.clone());
            }
        }
    }
}

/// The addresses that streams of the older HTTP announced.
#[derive(Default)]
pub(super) struct Announced(Mutex<VecDeque<(String, Weak<Stream>)>>);

impl Announced {
    /// A stream named an address.
    pub(super) fn add(&self, path: String, stream: &Arc<Stream>) {
        let mut known = lock(&self.0);
        known.retain(|(other, _)| *other != path);
        if known.len() == KNOWN {
            known.pop_front();
        }
        known.push_back((path, Arc::downgrade(stream)));
    }

    /// The stream that announced a path and query.
    pub(super) fn stream(&self, path_and_query: &str) -> Option<Arc<Stream>> {
        let known = lock(&self.0);
        let found = known.iter().find(|(path, _)| path == path_and_query);
        found.and_then(|(_, stream)| stream.upgrade())
    }

    /// Whether some stream announced a path, whatever the query.
    pub(super) fn knows(&self, path: &str) -> bool {
        let known = lock(&self.0);
        known
            .iter()
            .any(|(known, _)| known.split('?').next() == Some(path))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
