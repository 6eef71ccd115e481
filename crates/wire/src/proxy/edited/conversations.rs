//! The conversations of a server on HTTP, and the streams on which their clients listen.
//!
//! Its main type is [`Conversations`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::edit::conversation::Conversation;
use crate::edit::events::event;

/// How many sessions and streams are known; the oldest are forgotten.
const KNOWN: usize = 1_000;
/// How many events of ours may wait for a client that reads slowly.
const EVENTS: usize = 16;

/// A stream on which a client listens.
pub(super) struct Stream {
    session: Option<String>,
    pub(super) conversation: Arc<Conversation>,
    say: Sender<Vec<u8>>,
}

impl Stream {
    /// A stream of a conversation, and what is to be said on it.
    pub(super) fn new(
        session: Option<String>,
        conversation: Arc<Conversation>,
    ) -> (Arc<Self>, Receiver<Vec<u8>>) {
        let (say, ours) = channel(EVENTS);
        let stream = Self {
            session,
            conversation,
            say,
        };
        (Arc::new(stream), ours)
    }

    /// Says a message, once there is room for it. Whether anybody listens.
    pub(super) async fn say(&self, message: Vec<u8>) -> bool {
        self.say.send(event(message)).await.is_ok()
    }
}

/// Conversations by the id of their session; without one, all clients share theirs.
#[derive(Default)]
pub(super) struct Conversations {
    sessions: Mutex<VecDeque<(Option<String>, Arc<Conversation>)>>,
    streams: Mutex<VecDeque<Weak<Stream>>>,
}

impl Conversations {
    /// A session begins, or goes on.
    pub(super) fn keep(&self, id: Option<String>, conversation: &Arc<Conversation>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|(known, _)| *known != id);
        if sessions.len() == KNOWN {
            sessions.pop_front();
        }
        sessions.push_back((id, conversation.clone()));
    }

    /// The conversation of a session.
    pub(super) fn of(&self, id: Option<&str>) -> Option<Arc<Conversation>> {
        let sessions = lock(&self.sessions);
        let found = sessions.iter().find(|(known, _)| known.as_deref() == id);
        found.map(|(_, conversation)| conversation.clone())
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

    /// Tells clients what is new: on one of the streams of a session.
    pub(super) fn tell(&self) {
        let mut told: Vec<String> = Vec::new();
        for stream in lock(&self.streams).iter().filter_map(Weak::upgrade) {
            if stream.session.as_ref().is_some_and(|id| told.contains(id)) {
                continue;
            }
            let Some(news) = stream.conversation.news() else {
                continue;
            };
            // Who does not read has as many reasons waiting to ask again.
            if stream.say.try_send(event(news)).is_ok() {
                told.extend(stream.session.clone());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
