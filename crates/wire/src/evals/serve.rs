//! Serves evals in front of a server that ships none: answers `evals/list`, adds the capability to
//! the handshake, and forwards everything else unchanged.
//!
//! Its main type is [`EvalsResponder`], an [`Editor`](crate::edit::Editor). It edits and records
//! nothing.

mod client_message;
mod edit;
mod http;
mod stdio;
mod watch;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use mcp_evals::splice::{self, Insertion, SpliceError};
use mcp_evals::{CAPABILITY, Capability, EvalFile, LIST_CHANGED, Suite, validate};
use proctor_core::evals::file::EvalsFile;
use proctor_record::json;
use proctor_record::problem::Problems;
use serde_json::{Map, Value};

pub use self::http::http;
pub use self::stdio::{ServeError, stdio};
pub use self::watch::{Stamp, stamp, watch};

use self::client_message::ListRequest;
use crate::rpc;
use tokio::sync::watch::Sender;

/// A notice for the user who serves evals.
#[derive(Debug)]
pub enum ServeNotice {
    /// The server has its own evals, which are hidden.
    OwnEvals,
    /// The capability could not be added to a response, which was forwarded unchanged.
    Undeclared(SpliceError),
    /// The server at the URL can't be reached, or its connection broke.
    Unreachable(String),
    /// A new version of the evals is served.
    Replaced { evals: usize, problems: Problems },
    /// The file is invalid, and the old evals are still served.
    Kept(Problems),
}

/// Receives notices. Must return quickly.
pub type NoticeHandler = Box<dyn Fn(&ServeNotice) + Send + Sync>;

/// Reads an eval file. If it returns `None`, the problems contain an error.
pub fn load(path: &Path, problems: &mut Problems) -> Option<Suite> {
    let file = EvalsFile::load(path, problems)?;
    let report = validate(&file.evals);
    file.tell(&report, problems);
    let file = EvalFile {
        evals: file.evals,
        ..EvalFile::default()
    };
    file.into_suite().ok()
}

/// Answers `evals/list` instead of the server.
pub struct EvalsResponder {
    suite: RwLock<Arc<Suite>>,
    /// The server's name and version, for results of the stateless era.
    server_info: RwLock<Option<Value>>,
    /// Fires when the evals change.
    changes: Sender<()>,
    tell: NoticeHandler,
}

/// An edited handshake response.
#[derive(Debug, Default, PartialEq, Eq)]
struct HandshakeSplice {
    insertions: Vec<Insertion>,
    /// Whether the response now declares `listChanged`.
    tells: bool,
}

impl EvalsResponder {
    pub fn new(suite: Suite, tell: NoticeHandler) -> Self {
        Self {
            suite: RwLock::new(Arc::new(suite)),
            server_info: RwLock::new(None),
            changes: Sender::new(()),
            tell,
        }
    }

    /// Serves these evals from now on, and notifies all clients if they have changed.
    fn replace(&self, suite: Suite, problems: Problems) {
        let evals = suite.items().len();
        let mut held = self.suite.write().unwrap_or_else(PoisonError::into_inner);
        let is_other = **held != suite;
        *held = Arc::new(suite);
        drop(held);
        if is_other {
            (self.tell)(&ServeNotice::Replaced { evals, problems });
            self.changes.send_replace(());
        }
    }

    /// Returns the response to `evals/list`, as one line without a newline.
    fn answer(&self, request: &ListRequest<'_>) -> Vec<u8> {
        let held = self.suite.read().unwrap_or_else(PoisonError::into_inner);
        let suite = held.clone();
        drop(held);
        match suite.answer(request.params.as_ref()) {
            Ok(page) => {
                let mut result = page.to_value();
                if let Value::Object(members) = &mut result
                    && request.is_stateless()
                {
                    self.complete(members);
                }
                rpc::answer(request.id, Ok(&result.to_string()))
            }
            Err(error) => rpc::answer(request.id, Err((error.code(), &error.to_string()))),
        }
    }

    /// Adds the members that every result of the stateless era has.
    fn complete(&self, members: &mut Map<String, Value>) {
        members.insert("resultType".to_owned(), "complete".into());
        // The file may change at any time.
        members.insert("ttlMs".to_owned(), 0.into());
        members.insert("cacheScope".to_owned(), "private".into());
        let info = self.server_info.read();
        if let Some(info) = &*info.unwrap_or_else(PoisonError::into_inner) {
            let meta = Map::from_iter([(client_message::SERVER_INFO.to_owned(), info.clone())]);
            members.insert("_meta".to_owned(), meta.into());
        }
    }

    /// Adds the capability to a handshake response.
    fn declare(&self, message: &[u8]) -> HandshakeSplice {
        let Ok(answer) = json::from_slice::<Value>(message) else {
            return HandshakeSplice::default();
        };
        // An error response declares nothing.
        let Some(result) = answer.get("result") else {
            return HandshakeSplice::default();
        };
        if let Some(info) = result
            .get("_meta")
            .and_then(|m| m.get(client_message::SERVER_INFO))
        {
            let held = self.server_info.write();
            *held.unwrap_or_else(PoisonError::into_inner) = Some(info.clone());
        }
        let own = result["capabilities"].as_object().map(super::places);
        if own.is_some_and(|places| !places.is_empty()) {
            (self.tell)(&ServeNotice::OwnEvals);
        }
        match splice::insertions(message, &Capability::with_list_changed()) {
            Ok(insertions) => HandshakeSplice {
                // The server's own declaration wins, even if it declares `listChanged: false`.
                tells: result["capabilities"][CAPABILITY]
                    .get("listChanged")
                    .is_none_or(|tells| *tells == Value::Bool(true)),
                insertions,
            },
            Err(error) => {
                (self.tell)(&ServeNotice::Undeclared(error));
                HandshakeSplice::default()
            }
        }
    }
}

/// Returns the notification that the evals have changed.
fn list_changed() -> Vec<u8> {
    rpc::notification(LIST_CHANGED, None)
}
