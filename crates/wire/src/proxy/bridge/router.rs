//! Decides which stream a server message goes to.
//!
//! Its main type is [`Router`]: the open streams and pending requests of one process. It is pure
//! state: callers report events, and it returns the consequences.
//!
//! A response goes to the POST with its request, progress to the POST with its token, and a
//! subscription's message to the POST that listens. On stdio, other messages name no request. A log
//! message goes to the only POST with a pending request, so a client gets it before the response
//! and in order with progress. Otherwise, and for requests of the server, it goes to the GET
//! stream, else to the newest POST, else it waits for the next stream. A response that matches no
//! pending request is dropped, because some clients accept any response on a POST as theirs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::worker;
use bytes::Bytes;
use proctor_record::json;
use proctor_record::message::{Id, Message, MessageKind};
use serde_json::value::RawValue;

/// The maximum number of messages that wait for a stream, and their maximum total size.
const WAITING: usize = 64;
const WAITING_BYTES: usize = 1 << 20;

/// The id of an open response.
pub(super) type StreamId = u64;

/// A request of the client.
#[derive(Debug, Clone)]
pub(super) struct ClientRequest {
    pub(super) id: Id,
    /// The raw JSON of the id.
    pub(super) written: String,
    /// The token in the progress notifications of this request.
    pub(super) token: Option<Id>,
    /// Whether it subscribes to notifications.
    pub(super) listens: bool,
    /// Whether closing the POST cancels it, as in the stateless era. In the handshake era a broken
    /// connection means nothing, and clients send a cancellation.
    pub(super) ends_with_its_post: bool,
}

/// Where a server message goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MessageRoute {
    To(StreamRoute),
    /// It waits for the next stream, and this many older messages are dropped.
    Waits {
        dropped: usize,
    },
    /// It is dropped, because no client could use it.
    Nowhere,
}

/// How a message goes to a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamRoute {
    pub(super) stream: StreamId,
    /// Whether it is a response.
    pub(super) answers: bool,
    /// Whether it is the last response that the stream waits for.
    pub(super) is_last: bool,
    /// The code of an error response.
    pub(super) error: Option<i64>,
    /// Streams that get nothing more, because their responses went to another stream in a batch.
    pub(super) left_out: Vec<StreamId>,
}

/// The open streams and pending requests of one process.
#[derive(Debug, Default)]
pub(super) struct Router {
    last: StreamId,
    asked: HashMap<Id, RoutedRequest>,
    streams: BTreeMap<StreamId, RouterStream>,
    waiting: VecDeque<Bytes>,
    waiting_bytes: usize,
}

#[derive(Debug)]
struct RoutedRequest {
    /// `None` if the client closed the stream.
    stream: Option<StreamId>,
    ask: ClientRequest,
}

#[derive(Debug)]
enum RouterStream {
    Get,
    Post {
        /// The number of pending responses.
        left: usize,
        /// Whether it accepts messages other than its responses.
        takes_more: bool,
        listens: bool,
    },
}

impl Router {
    /// Whether an id or progress token is already in use.
    pub(super) fn has_taken(&self, asks: &[ClientRequest]) -> bool {
        asks.iter().any(|ask| {
            let token = ask.token.as_ref();
            self.asked.contains_key(&ask.id)
                || token.is_some_and(|token| self.with_token(token).is_some())
        })
    }

    /// Whether a request is pending.
    pub(super) fn knows(&self, id: &Id) -> bool {
        self.asked.contains_key(id)
    }

    /// Whether all pending requests have lost their client.
    pub(super) fn is_deserted(&self) -> bool {
        self.streams.is_empty() && self.asked.values().all(|asked| asked.stream.is_none())
    }

    /// Opens the stream of a POST. Returns it with the messages that waited for a stream.
    pub(super) fn open_post(
        &mut self,
        asks: Vec<ClientRequest>,
        takes_more: bool,
    ) -> (StreamId, Vec<Bytes>) {
        self.last += 1;
        let stream = RouterStream::Post {
            left: asks.len(),
            takes_more,
            listens: asks.iter().any(|ask| ask.listens),
        };
        self.streams.insert(self.last, stream);
        for ask in asks {
            let stream = Some(self.last);
            self.asked
                .insert(ask.id.clone(), RoutedRequest { stream, ask });
        }
        let waiting = if takes_more {
            self.take_waiting()
        } else {
            Vec::new()
        };
        (self.last, waiting)
    }

    /// Opens the GET stream, and returns the messages that waited; `None` if there already is one.
    pub(super) fn open_get(&mut self) -> Option<(StreamId, Vec<Bytes>)> {
        let mut streams = self.streams.values();
        if streams.any(|stream| matches!(stream, RouterStream::Get)) {
            return None;
        }
        self.last += 1;
        self.streams.insert(self.last, RouterStream::Get);
        Some((self.last, self.take_waiting()))
    }

    /// Closes a stream. Returns the raw ids of the requests that this cancels. Their ids stay in
    /// use, because a response may still arrive.
    pub(super) fn close(&mut self, stream: StreamId) -> Vec<String> {
        self.streams.remove(&stream);
        let mut cancelled = Vec::new();
        for asked in self.asked.values_mut() {
            if asked.stream == Some(stream) {
                asked.stream = None;
                if asked.ask.ends_with_its_post {
                    cancelled.push(asked.ask.written.clone());
                }
            }
        }
        cancelled.sort();
        cancelled
    }

    pub(super) fn is_get(&self, stream: StreamId) -> bool {
        matches!(self.streams.get(&stream), Some(RouterStream::Get))
    }

    /// Decides where a message of the server goes.
    pub(super) fn route(&mut self, bytes: &Bytes) -> MessageRoute {
        let mut found = LineRouting::default();
        // A malformed part goes with the rest of its line.
        let _ = worker::each_message(bytes, &mut |message| self.one(message, &mut found));
        let left_out: Vec<StreamId> = found
            .settled
            .iter()
            .filter(|stream| Some(**stream) != found.stream && self.is_done(**stream))
            .copied()
            .collect();
        for stream in &left_out {
            self.streams.remove(stream);
        }
        let Some(stream) = found.stream else {
            return if found.waits {
                self.wait(bytes)
            } else {
                MessageRoute::Nowhere
            };
        };
        let is_last = self.is_done(stream);
        if is_last {
            self.streams.remove(&stream);
        }
        MessageRoute::To(StreamRoute {
            stream,
            answers: !found.settled.is_empty(),
            is_last,
            error: found.error,
            left_out,
        })
    }

    /// Handles a message that exceeds the size limit. Returns the stream of the response, if there
    /// is only one candidate; otherwise all streams keep waiting.
    pub(super) fn cut(&mut self, head: &[u8]) -> Option<StreamId> {
        if memchr::memmem::find(head, b"\"method\"").is_some() {
            return None;
        }
        let id = self.only_id()?;
        let stream = self.asked.remove(&id)?.stream?;
        self.streams.remove(&stream);
        Some(stream)
    }

    fn one(&mut self, message: &Message<'_>, found: &mut LineRouting) {
        match message.kind() {
            MessageKind::Answer { id } => self.answered(id, message, found),
            // A response without result and error; the client may see it.
            MessageKind::Neither => {
                if let Some(id) = message.id {
                    self.answered(Id::of(id), message, found);
                }
            }
            MessageKind::Notification { method } => {
                let about = message
                    .params
                    .map(NotificationFields::of)
                    .unwrap_or_default();
                if let Some(id) = about.subscription {
                    let asked = self.asked.get(&id);
                    found.add(asked.and_then(|asked| asked.stream));
                    return;
                }
                let told = about.token.filter(|_| method == "notifications/progress");
                let asked = told.and_then(|token| self.with_token(&token));
                if let Some(asked) = asked {
                    found.add(asked.stream);
                    return;
                }
                let is_change = is_change(method);
                let only = self.only_post().filter(|_| !is_change);
                found.add_or_wait(only.or_else(|| self.any(is_change)));
            }
            MessageKind::Request { .. } => found.add_or_wait(self.any(false)),
        }
    }

    fn answered(&mut self, id: Id, message: &Message<'_>, found: &mut LineRouting) {
        // A server that could not parse a request can't name its id.
        let id = match id {
            Id::Absent => self.only_id(),
            id @ Id::Value(_) => Some(id),
        };
        let Some(asked) = id.and_then(|id| self.asked.remove(&id)) else {
            return;
        };
        let Some(stream) = asked.stream else { return };
        if let Some(RouterStream::Post { left, .. }) = self.streams.get_mut(&stream) {
            *left -= 1;
        }
        found.settled.insert(stream);
        found.error = message.error.and_then(code);
        found.add(Some(stream));
    }

    /// Returns the stream for a message that names no request.
    fn any(&self, is_change: bool) -> Option<StreamId> {
        let newest = |wanted: &dyn Fn(&RouterStream) -> bool| {
            let mut streams = self.streams.iter().rev();
            streams
                .find(|(_, stream)| wanted(stream))
                .map(|(id, _)| *id)
        };
        let posts = |listening: bool| {
            newest(&|stream| match stream {
                RouterStream::Get => false,
                RouterStream::Post {
                    takes_more,
                    listens,
                    ..
                } => *takes_more && *listens == listening,
            })
        };
        newest(&|stream| matches!(stream, RouterStream::Get))
            .or_else(|| posts(is_change))
            .or_else(|| posts(!is_change))
    }

    /// Returns the only POST with a pending response, if it accepts other messages too.
    /// Subscriptions don't count.
    fn only_post(&self) -> Option<StreamId> {
        let mut posts = self.streams.iter().filter_map(|(id, stream)| match stream {
            RouterStream::Get | RouterStream::Post { listens: true, .. } => None,
            RouterStream::Post { takes_more, .. } => Some((*id, *takes_more)),
        });
        let (only, takes_more) = posts.next()?;
        (posts.next().is_none() && takes_more).then_some(only)
    }

    fn wait(&mut self, bytes: &Bytes) -> MessageRoute {
        self.waiting.push_back(bytes.clone());
        self.waiting_bytes += bytes.len();
        let mut dropped = 0;
        while self.waiting.len() > WAITING || self.waiting_bytes > WAITING_BYTES {
            let Some(oldest) = self.waiting.pop_front() else {
                break;
            };
            self.waiting_bytes -= oldest.len();
            dropped += 1;
        }
        MessageRoute::Waits { dropped }
    }

    fn take_waiting(&mut self) -> Vec<Bytes> {
        self.waiting_bytes = 0;
        self.waiting.drain(..).collect()
    }

    fn is_done(&self, stream: StreamId) -> bool {
        matches!(
            self.streams.get(&stream),
            Some(RouterStream::Post { left: 0, .. })
        )
    }

    fn with_token(&self, token: &Id) -> Option<&RoutedRequest> {
        let mut asked = self.asked.values();
        asked.find(|asked| asked.ask.token.as_ref() == Some(token))
    }

    fn only_id(&self) -> Option<Id> {
        let mut ids = self.asked.keys();
        ids.next().filter(|_| self.asked.len() == 1).cloned()
    }
}

/// The routing of all messages in a line.
#[derive(Default)]
struct LineRouting {
    stream: Option<StreamId>,
    waits: bool,
    error: Option<i64>,
    settled: BTreeSet<StreamId>,
}

impl LineRouting {
    fn add(&mut self, stream: Option<StreamId>) {
        self.stream = self.stream.or(stream);
    }

    fn add_or_wait(&mut self, stream: Option<StreamId>) {
        self.waits |= stream.is_none();
        self.add(stream);
    }
}

/// The fields of a notification that the router reads.
#[derive(Default)]
struct NotificationFields {
    token: Option<Id>,
    subscription: Option<Id>,
}

impl NotificationFields {
    fn of(params: &RawValue) -> Self {
        #[derive(serde::Deserialize)]
        struct Params<'a> {
            #[serde(borrow, default, rename = "progressToken")]
            token: Option<&'a RawValue>,
            #[serde(borrow, default, rename = "_meta")]
            meta: Option<&'a RawValue>,
        }
        #[derive(serde::Deserialize)]
        struct Meta<'a> {
            #[serde(borrow, default, rename = "io.modelcontextprotocol/subscriptionId")]
            subscription: Option<&'a RawValue>,
        }
        let Ok(params) = json::from_str::<Params>(params.get()) else {
            return Self::default();
        };
        let meta = params.meta.map(RawValue::get);
        let meta = meta.and_then(|meta| json::from_str::<Meta>(meta).ok());
        let subscription = meta.and_then(|meta| meta.subscription);
        Self {
            token: params.token.map(Id::of),
            subscription: subscription.map(Id::of),
        }
    }
}

/// Whether a notification announces a change, so that subscriptions get it.
fn is_change(method: &str) -> bool {
    method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

fn code(error: &RawValue) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct RpcErrorCode {
        code: i64,
    }
    json::from_str::<RpcErrorCode>(error.get())
        .ok()
        .map(|error| error.code)
}

#[cfg(test)]
mod tests;
