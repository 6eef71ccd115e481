//! Pairs responses with requests.
//!
//! On stdio, connection and id identify the request; on HTTP, exchange and id, or the id alone if
//! the response comes over another exchange (a resumed stream, HTTP+SSE).

use std::collections::{HashMap, HashSet, VecDeque};

use crate::event::ConnectionId;

use super::MessagePosition;
use crate::message::Id;

/// How many answered ids are remembered, to recognize duplicate responses.
const REMEMBERED: usize = 10_000;

/// A request without a response.
#[derive(Debug, Clone)]
pub(super) struct PendingRequest {
    /// The call that it belongs to, if any.
    pub(super) call: Option<usize>,
    /// The length of a truncated message that came while it waited, and that may be its response.
    pub(super) cut: Option<u64>,
    pub(super) exchange: Option<u64>,
    /// Why and when the client stopped waiting.
    pub(super) cancelled: Option<(CancelReason, u64)>,
}

/// Why a client stopped waiting for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelReason {
    /// The client cancelled the request.
    GivenUp,
    /// The client cancelled the request after a timeout.
    TimedOut,
    /// The client has disconnected.
    Unwanted,
}

/// The request that a response belongs to.
#[derive(Debug)]
pub(super) enum RequestMatch {
    Asked(PendingRequest),
    /// A request that the client has cancelled.
    Late(PendingRequest),
    /// A request whose client is gone, through no fault of the server.
    Unwanted,
    /// A request that is already answered.
    Again,
    Never,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Pairing {
    /// By connection and id, in order, since some clients reuse an id.
    waiting: HashMap<(ConnectionId, Id), VecDeque<PendingRequest>>,
    /// The open ids of an exchange.
    exchanges: HashMap<(ConnectionId, u64), Vec<Id>>,
    answered: HashSet<(ConnectionId, Id)>,
    order: VecDeque<(ConnectionId, Id)>,
}

impl Pairing {
    pub(super) fn asked(&mut self, place: MessagePosition, id: Id, call: Option<usize>) {
        if let Some(exchange) = place.exchange {
            let ids = self.exchanges.entry((place.conn, exchange)).or_default();
            ids.push(id.clone());
        }
        let key = (place.conn, id);
        self.answered.remove(&key);
        self.waiting
            .entry(key)
            .or_default()
            .push_back(PendingRequest {
                call,
                cut: None,
                exchange: place.exchange,
                cancelled: None,
            });
    }

    pub(super) fn answered(
        &mut self,
        place: MessagePosition,
        id: &Id,
        is_error: bool,
    ) -> RequestMatch {
        let Some(id) = self.asked_id(place, id, is_error) else {
            return RequestMatch::Never;
        };
        let key = (place.conn, id);
        match self.take(place, &key) {
            Some(asked) => {
                self.forget_exchange(&asked, &key);
                self.remember(key);
                match asked.cancelled {
                    Some((CancelReason::GivenUp | CancelReason::TimedOut, _)) => {
                        RequestMatch::Late(asked)
                    }
                    Some((CancelReason::Unwanted, _)) => RequestMatch::Unwanted,
                    None => RequestMatch::Asked(asked),
                }
            }
            None if self.answered.contains(&key) => RequestMatch::Again,
            None => RequestMatch::Never,
        }
    }

    pub(super) fn cancelled(&mut self, place: MessagePosition, id: &Id, why: CancelReason) {
        // On HTTP, a cancellation has its own exchange.
        let waiting = self.waiting.get_mut(&(place.conn, id.clone()));
        if let Some(asked) =
            waiting.and_then(|waiting| waiting.iter_mut().find(|a| a.cancelled.is_none()))
        {
            asked.cancelled = Some((why, place.at));
        }
    }

    /// A message to the client was truncated: it may answer any of the open requests.
    pub(super) fn cut(&mut self, place: MessagePosition, bytes: u64) {
        let is_here = |asked: &PendingRequest| asked.exchange == place.exchange;
        let mut waiting: Vec<&mut PendingRequest> = self
            .waiting
            .iter_mut()
            .filter(|((conn, _), _)| *conn == place.conn)
            .flat_map(|(_, waiting)| waiting)
            .filter(|asked| asked.cancelled.is_none())
            .collect();
        let any_here = waiting.iter().any(|asked| is_here(asked));
        for asked in waiting
            .iter_mut()
            .filter(|asked| !any_here || is_here(asked))
        {
            asked.cut.get_or_insert(bytes);
        }
    }

    /// Whether this is an HTTP exchange without an open request.
    pub(super) fn asks_nothing(&self, place: MessagePosition) -> bool {
        let exchange = place.exchange.map(|exchange| (place.conn, exchange));
        exchange.is_some_and(|exchange| !self.exchanges.contains_key(&exchange))
    }

    pub(super) fn into_unanswered(self) -> impl Iterator<Item = (ConnectionId, PendingRequest)> {
        let waiting = self.waiting.into_iter();
        waiting.flat_map(|((conn, _), asked)| asked.into_iter().map(move |asked| (conn, asked)))
    }

    /// The id that a response means. An error without an id answers the only request of its
    /// exchange.
    fn asked_id(&self, place: MessagePosition, id: &Id, is_error: bool) -> Option<Id> {
        if *id != Id::Absent {
            return Some(id.clone());
        }
        let ids = self.exchanges.get(&(place.conn, place.exchange?))?;
        match ids.as_slice() {
            [only] if is_error => Some(only.clone()),
            _ => None,
        }
    }

    fn take(&mut self, place: MessagePosition, key: &(ConnectionId, Id)) -> Option<PendingRequest> {
        let waiting = self.waiting.get_mut(key)?;
        let same = |asked: &PendingRequest| asked.exchange == place.exchange;
        let index = waiting.iter().position(same).or_else(|| {
            // Two clients behind one URL may use the same ids at the same time: an exchange without
            // a request may answer only an unambiguous one.
            let is_elsewhere = place.exchange.is_some() && waiting.len() > 1;
            (!is_elsewhere && !waiting.is_empty()).then_some(0)
        })?;
        let asked = waiting.remove(index);
        if waiting.is_empty() {
            self.waiting.remove(key);
        }
        asked
    }

    fn forget_exchange(&mut self, asked: &PendingRequest, (conn, id): &(ConnectionId, Id)) {
        let Some(exchange) = asked.exchange else {
            return;
        };
        if let Some(ids) = self.exchanges.get_mut(&(*conn, exchange)) {
            ids.retain(|other| other != id);
            if ids.is_empty() {
                self.exchanges.remove(&(*conn, exchange));
            }
        }
    }

    fn remember(&mut self, key: (ConnectionId, Id)) {
        if self.order.len() == REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.answered.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.answered.insert(key);
    }
}
