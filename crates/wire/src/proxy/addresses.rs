//! The addresses that a server of the older HTTP announces, seen from both sides.
//!
//! Its main types are [`Addresses`], which knows how a client must say what the server calls
//! something, and [`AnnouncedEndpoint`], which knows what was announced, and by whom.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use reqwest::Url;

/// How many announced addresses are known; the oldest is forgotten.
const KNOWN: usize = 1_000;

/// Both sides of the proxy.
#[derive(Clone)]
pub(crate) struct Addresses {
    /// The server's own address.
    pub(crate) server: Url,
    /// Where the client comes in: `http://127.0.0.1:1234`.
    pub(crate) door: String,
    /// What stands before every path there.
    pub(crate) prefix: String,
}

impl Addresses {
    /// The path and query of an announced address, if it is one of the server's own.
    pub(crate) fn path(&self, written: &str) -> Option<String> {
        path_of(&self.server, written)
    }

    /// The address in the client's terms, if it must be another one to lead here. As much of it as can
    /// stays as it is.
    pub(crate) fn changed(&self, written: &str) -> Option<String> {
        let Self { door, prefix, .. } = self;
        let path = self.path(written)?;
        let mut base = Url::parse(&format!("{door}{prefix}{}", self.server.path())).ok()?;
        // The client does not have it, and must not be told: it is added to what asks for this path.
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
            // There are clients that resolve it against the origin, which loses the prefix. Without a
            // path and query of its own it stands for the server's address, which may hold a secret.
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

/// The path and query of an address that a server announced, if it is one of its own.
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

/// What was announced, and on which stream: `T` is what is known of it.
pub(crate) struct AnnouncedEndpoint<T>(Mutex<VecDeque<(String, Weak<T>)>>);

impl<T> Default for AnnouncedEndpoint<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> AnnouncedEndpoint<T> {
    /// A stream named an address.
    pub(crate) fn add(&self, path: String, stream: &Arc<T>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != path);
        if known.len() == KNOWN {
            known.pop_front();
        }
        known.push_back((path, Arc::downgrade(stream)));
    }

    /// The stream to which a path and query belong, if they were announced.
    pub(crate) fn exactly(&self, path_and_query: &str) -> Option<Weak<T>> {
        self.last(|known| known == path_and_query)
    }

    /// The last stream that announced a path, whatever the query.
    pub(crate) fn path(&self, path: &str) -> Option<Weak<T>> {
        self.last(|known| known.split('?').next() == Some(path))
    }

    fn last(&self, is_it: impl Fn(&str) -> bool) -> Option<Weak<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().rev().find(|(path, _)| is_it(path));
        found.map(|(_, stream)| stream.clone())
    }
}
