//! An HTTP+SSE stream, on which a server announces its endpoint.
//!
//! Its main type is [`RecordedStream`].

use std::sync::Arc;

use proctor_record::event::{ConnectionEnd, Direction, EndedBy};

use super::endpoints::Endpoints;
use super::exchange::ProxyExchange;
use crate::proxy::addresses::{Addresses, AnnouncedEndpoints};
use crate::recorder::{ConnectionTap, OversizedMessage};

/// A stream with its own connection in the record, which ends with it.
pub(super) struct RecordedStream {
    pub(super) addresses: Arc<Addresses>,
    pub(super) announced: Arc<AnnouncedEndpoints<ConnectionTap>>,
    pub(super) tap: Arc<ConnectionTap>,
}

impl RecordedStream {
    /// Returns the rewriter for the URLs on the stream.
    pub(super) fn endpoints(&self) -> Endpoints {
        Endpoints::new(self.addresses.clone())
    }

    /// Records the endpoint that the server announces.
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
