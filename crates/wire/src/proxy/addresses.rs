//! The endpoint URLs that a server announces over HTTP+SSE, on both sides of the proxy.
//!
//! Its main types are [`Addresses`], which translates URLs of the server into URLs of the proxy,
//! and [`AnnouncedEndpoints`], which stores the announced URLs with their streams.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use reqwest::Url;

/// The maximum number of announced URLs; the oldest are forgotten.
const KNOWN: usize = 1_000;

/// The URLs of both sides of the proxy.
#[derive(Clone)]
pub(crate) struct Addresses {
    pub(crate) server: Url,
    /// The origin of the proxy: `http://127.0.0.1:1234`.
    pub(crate) door: String,
    /// The prefix of every path of the proxy.
    pub(crate) prefix: String,
}

impl Addresses {
    /// Returns the path and query of an announced URL, if it belongs to the server.
    pub(crate) fn path(&self, written: &str) -> Option<String> {
        path_of(&self.server, written)
    }

    /// Returns the URL that a client must use instead; `None` if it needs no change. Changes as
    /// little as possible.
    pub(crate) fn changed(&self, written: &str) -> Option<String> {
        let Self { door, prefix, .. } = self;
        let path = self.path(written)?;
        let mut base = Url::parse(&format!("{door}{prefix}{}", self.server.path())).ok()?;
        // The client does not know the query, which may be secret: the proxy adds it to requests
        // for this path.
        base.set_query(self.server.query());
        let wanted = Url::parse(&format!("{door}{prefix}{path}")).ok()?;
        let leads_here = |address: &str| {
            let leads = base.join(address).ok();
            leads.is_some_and(|mut leads| {
                leads.set_fragment(None);
                leads == wanted
            })
        };
        let text = written.trim_matches(|c: char| c <= ' ');
        if leads_here(written) {
            // Some clients resolve a relative URL against the origin, which loses the prefix. A URL
            // without path and query stands for the server's URL, which may hold a secret.
            let is_relative = !text.is_empty() && !text.starts_with(['/', '#']);
            let is_needed = is_relative && !prefix.is_empty();
            return is_needed.then(|| format!("{prefix}{path}"));
        }
        let nearest = format!("{prefix}{text}");
        Some(if text.starts_with('/') && leads_here(&nearest) {
            nearest
        } else {
            wanted.into()
        })
    }
}

/// Returns the path and query of an announced URL, if it belongs to the server.
pub(crate) fn path_of(server: &Url, written: &str) -> Option<String> {
    let joined = server.join(written).ok()?;
    if joined.origin() != server.origin() {
        return None;
    }
    Some(match joined.query() {
        Some(query) => format!("{}?{query}", joined.path()),
        None => joined.path().to_owned(),
    })
}

/// The announced URLs with their streams; `T` is the state of a stream.
pub(crate) struct AnnouncedEndpoints<T>(Mutex<VecDeque<(String, Weak<T>)>>);

impl<T> Default for AnnouncedEndpoints<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> AnnouncedEndpoints<T> {
    /// Adds a URL that a stream announced.
    pub(crate) fn add(&self, path: String, stream: &Arc<T>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != path);
        if known.len() == KNOWN {
            known.pop_front();
        }
        known.push_back((path, Arc::downgrade(stream)));
    }

    /// Returns the stream that announced exactly this path and query.
    pub(crate) fn exactly(&self, path_and_query: &str) -> Option<Weak<T>> {
        self.last(|known| known == path_and_query)
    }

    /// Returns the last stream that announced this path, with any query.
    pub(crate) fn path(&self, path: &str) -> Option<Weak<T>> {
        self.last(|known| known.split('?').next() == Some(path))
    }

    fn last(&self, is_it: impl Fn(&str) -> bool) -> Option<Weak<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().rev().find(|(path, _)| is_it(path));
        found.map(|(_, stream)| stream.clone())
    }
}
