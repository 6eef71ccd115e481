//! One conversation, for the hosts of all transports.
//!
//! Its main type is [`Conversation`], which both directions share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{BOM, ClientMessageAction, Edit, Editor, Passage};
use crate::worker;

/// A conversation between a client and a server, with its edit.
pub(crate) struct Conversation {
    edit: Mutex<Box<dyn Edit>>,
    limit: usize,
}

impl Conversation {
    pub(crate) fn begin(editor: &Arc<dyn Editor>) -> Arc<Self> {
        Arc::new(Self {
            limit: editor.limit(),
            edit: Mutex::new(editor.clone().begin()),
        })
    }

    /// The maximum size of an edited message.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Applies the edit to a message of the client. Must be called before the message is forwarded.
    pub(crate) fn on_client_message(&self, bytes: &[u8]) -> ClientMessageAction {
        let message = bytes.strip_prefix(BOM).unwrap_or(bytes);
        if message.trim_ascii().is_empty() {
            return ClientMessageAction::Forward(Passage::Pass);
        }
        let handling = worker::on_body(bytes.len(), || self.lock().on_client_message(message));
        match handling {
            ClientMessageAction::Forward(passage) => {
                ClientMessageAction::Forward(marked(bytes, passage))
            }
            answer @ ClientMessageAction::Answer(_) => answer,
        }
    }

    /// Applies the edit to a message of the server.
    pub(crate) fn on_server_message(&self, bytes: &[u8]) -> Passage {
        let message = bytes.strip_prefix(BOM).unwrap_or(bytes);
        if message.trim_ascii().is_empty() {
            return Passage::Pass;
        }
        let ask = || {
            let mut edit = self.lock();
            if edit.reads_server() {
                edit.on_server_message(message)
            } else {
                Passage::Pass
            }
        };
        marked(bytes, worker::on_body(bytes.len(), ask))
    }

    /// Whether server messages must be complete before they are forwarded.
    pub(crate) fn reads_server(&self) -> bool {
        self.lock().reads_server()
    }

    /// Returns a notification for the client.
    pub(crate) fn news(&self) -> Option<Vec<u8>> {
        self.lock().news()
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Edit>> {
        self.edit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds a byte order mark to a replacement if the message had one.
fn marked(bytes: &[u8], passage: Passage) -> Passage {
    match passage {
        Passage::Replace(message) if bytes.starts_with(BOM) => {
            Passage::Replace([BOM, &message].concat())
        }
        passage => passage,
    }
}
