//! The conversations with an HTTP server, and the streams on which their clients listen.
//!
//! Its main type is [`Conversations`].

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::edit::conversation::Conversation;
use crate::edit::events::event;

/// The maximum number of sessions and streams; the oldest are forgotten.
const KNOWN: usize = 1_000;
/// How many of our events may wait for a slow client.
const EVENTS: usize = 16;

/// A stream on which a client listens.
pub(super) struct Stream {
    session: Option<String>,
    pub(super) conversation: Arc<Conversation>,
    say: Sender<Vec<u8>>,
}

impl Stream {
    /// Returns a stream of a conversation, and the receiver for our own events on it.
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

    /// Sends a message as soon as there is room. Returns whether the client still listens.
    pub(super) async fn say(&self, message: Vec<u8>) -> bool {
        self.say.send(event(message)).await.is_ok()
    }
}

/// Conversations by session id. All clients without a session share one.
#[derive(Default)]
pub(super) struct Conversations {
    sessions: Mutex<VecDeque<(Option<String>, Arc<Conversation>)>>,
    streams: Mutex<VecDeque<Weak<Stream>>>,
}

impl Conversations {
    /// Stores the conversation of a session.
    pub(super) fn keep(&self, id: Option<String>, conversation: &Arc<Conversation>) {
        let mut sessions = lock(&self.sessions);
        sessions.retain(|(known, _)| *known != id);
        if sessions.len() == KNOWN {
            sessions.pop_front();
        }
        sessions.push_back((id, conversation.clone()));
    }

    /// Returns the conversation of a session.
    pub(super) fn of(&self, id: Option<&str>) -> Option<Arc<Conversation>> {
        let sessions = lock(&self.sessions);
        let found = sessions.iter().find(|(known, _)| known.as_deref() == id);
        found.map(|(_, conversation)| conversation.clone())
    }

    /// Adds a stream on which a client listens.
    pub(super) fn listen(&self, stream: &Arc<Stream>) {
        let mut streams = lock(&self.streams);
        streams.retain(|stream| stream.strong_count() > 0);
        if streams.len() == KNOWN {
            streams.pop_front();
        }
        streams.push_back(Arc::downgrade(stream));
    }

    /// Sends each session its notification, on one of its streams.
    pub(super) fn tell(&self) {
        let mut told: Vec<String> = Vec::new();
        for stream in lock(&self.streams).iter().filter_map(Weak::upgrade) {
            if stream.session.as_ref().is_some_and(|id| told.contains(id)) {
                continue;
            }
            let Some(news) = stream.conversation.news() else {
                continue;
            };
            // If the queue is full, the client already has enough notifications to list again.
            if stream.say.try_send(event(news)).is_ok() {
                told.extend(stream.session.clone());
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
