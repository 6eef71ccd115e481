//! Evals in front of a server that ships none: `evals/list` is answered here, the capability is put into
//! the answer to the handshake, and everything else passes as the bytes that it is.
//!
//! Its main type is [`EvalsResponder`], an [`Editor`](crate::edit::Editor). What is here edits, and records nothing.

mod asked;
mod http;
mod shipping;
mod stdio;
mod watch;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use mcp_evals::splice::{self, Insertion, SpliceError};
use mcp_evals::{CAPABILITY, Capability, EvalFile, LIST_CHANGED, Suite, validate};
use proctor_core::evals::file::EvalsFile;
use proctor_core::problem::Problems;
use serde_json::{Map, Value};

pub use self::http::http;
pub use self::stdio::{ServeError, stdio};
pub use self::watch::{Stamp, stamp, watch};

use self::asked::ListRequest;
use crate::rpc;
use tokio::sync::watch::Sender;

/// Something that whoever serves evals should know.
#[derive(Debug)]
pub enum ServeNotice {
    /// The server has evals of its own, which nobody sees.
    OwnEvals,
    /// The capability could not be put into an answer, which went on as it was.
    Undeclared(SpliceError),
    /// The server at the address could not be reached, or broke off.
    Unreachable(String),
    /// Other evals are served from now on.
    Replaced {
        /// How many they are.
        evals: usize,
        /// What should be looked at.
        problems: Problems,
    },
    /// The file is no good any more, and the evals stay as they are.
    Kept(Problems),
}

/// Who is told. It must not take long.
pub type NoticeHandler = Box<dyn Fn(&ServeNotice) + Send + Sync>;

/// Reads the evals of a file; without them, there is an error among the problems.
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

/// Answers in the server's place.
pub struct EvalsResponder {
    suite: RwLock<Arc<Suite>>,
    /// The server's name for itself, as results of the stateless era carry it.
    server_info: RwLock<Option<Value>>,
    /// Fires when other evals are served.
    changes: Sender<()>,
    tell: NoticeHandler,
}

/// What becomes of the answer to a handshake.
#[derive(Debug, Default, PartialEq, Eq)]
struct HandshakeSplice {
    insertions: Vec<Insertion>,
    /// Whether it now says that the client is told of changes.
    tells: bool,
}

impl EvalsResponder {
    /// Serves these evals.
    pub fn new(suite: Suite, tell: NoticeHandler) -> Self {
        Self {
            suite: RwLock::new(Arc::new(suite)),
            server_info: RwLock::new(None),
            changes: Sender::new(()),
            tell,
        }
    }

    /// Serves these evals from now on, and tells everybody if they are others.
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

    /// The answer to `evals/list`: one line without its end.
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

    /// Adds what every result of the stateless era has.
    fn complete(&self, members: &mut Map<String, Value>) {
        members.insert("resultType".to_owned(), "complete".into());
        // The file may change at any moment.
        members.insert("ttlMs".to_owned(), 0.into());
        members.insert("cacheScope".to_owned(), "private".into());
        let info = self.server_info.read();
        if let Some(info) = &*info.unwrap_or_else(PoisonError::into_inner) {
            let meta = Map::from_iter([(asked::SERVER_INFO.to_owned(), info.clone())]);
            members.insert("_meta".to_owned(), meta.into());
        }
    }

    /// What is put into the answer to a handshake.
    fn declare(&self, message: &[u8]) -> HandshakeSplice {
        let Ok(answer) = serde_json::from_slice::<Value>(message) else {
            return HandshakeSplice::default();
        };
        // An error declares nothing.
        let Some(result) = answer.get("result") else {
            return HandshakeSplice::default();
        };
        if let Some(info) = result.get("_meta").and_then(|m| m.get(asked::SERVER_INFO)) {
            let held = self.server_info.write();
            *held.unwrap_or_else(PoisonError::into_inner) = Some(info.clone());
        }
        let own = result["capabilities"].as_object().map(super::places);
        if own.is_some_and(|places| !places.is_empty()) {
            (self.tell)(&ServeNotice::OwnEvals);
        }
        match splice::insertions(message, &Capability::with_list_changed()) {
            Ok(insertions) => HandshakeSplice {
                // What the server declares wins, also if that is that it tells nobody.
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

/// Tells a client that the evals have changed.
fn list_changed() -> Vec<u8> {
    rpc::notification(LIST_CHANGED, None)
}
