//! A stream of the older HTTP, on which a server says where it takes messages.
//!
//! Its main type is [`RecordedStream`].

use std::sync::Arc;

use proctor_core::event::{ConnectionEnd, Direction, EndedBy};

use super::endpoints::Endpoints;
use super::exchange::ProxyExchange;
use crate::proxy::addresses::{Addresses, AnnouncedEndpoint};
use crate::recorder::{ConnectionTap, OversizedMessage};

/// A stream, which has a connection of its own in the record. That ends with it.
pub(super) struct RecordedStream {
    pub(super) addresses: Arc<Addresses>,
    pub(super) announced: Arc<AnnouncedEndpoint<ConnectionTap>>,
    pub(super) tap: Arc<ConnectionTap>,
}

impl RecordedStream {
    /// What changes the addresses on it.
    pub(super) fn endpoints(&self) -> Endpoints {
        Endpoints::new(self.addresses.clone())
    }

    /// The server said where it takes messages.
    pub(super) fn announce(
        &self,
        exchange: &ProxyExchange,
        written: &Result<Vec<u8>, OversizedMessage>,
    ) {
        exchange.aside(Direction::ToClient, "event `endpoint`", written);
        let text = written.as_ref().ok().map(|t| String::from_utf8_lossy(t));
        match text.and_then(|text| self.addresses.path(&text)) {
            Some(path) => self.announced.add(path, &self.tap),
            None => exchange.finding("the endpoint is not on this server".to_owned()),
        }
    }

    pub(super) fn close(self, why: &str, by: EndedBy) {
        self.tap
            .ended(why.to_owned(), None, Some(ConnectionEnd::by(by)));
    }
}
