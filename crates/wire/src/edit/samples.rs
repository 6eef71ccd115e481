//! Editors for tests.

use std::sync::Arc;
use std::time::Duration;

use super::conversation::Conversation;
use super::{ClientMessageAction, Edit, Editor, Passage};

pub(crate) const DELAY: Duration = Duration::from_millis(20);

/// Reads every message up to a limit, and passes it.
pub(crate) struct Identity(pub(crate) usize);

impl Editor for Identity {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        struct NoEdit;
        impl Edit for NoEdit {}
        Box::new(NoEdit)
    }

    fn limit(&self) -> usize {
        self.0
    }
}

/// Does what the text of a message tells it.
pub(crate) struct CommandEditor;

impl Editor for CommandEditor {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        Box::new(Self)
    }
}

impl Edit for CommandEditor {
    fn on_client_message(&mut self, message: &[u8]) -> ClientMessageAction {
        match message {
            b"answer" => ClientMessageAction::Answer(b"{\r\n}".to_vec()),
            other => ClientMessageAction::Forward(self.on_server_message(other)),
        }
    }

    fn on_server_message(&mut self, message: &[u8]) -> Passage {
        match message {
            b"drop" => Passage::Drop,
            b"delay" => Passage::Delay(DELAY),
            b"replace" => Passage::Replace(b"new".to_vec()),
            b"lines" => Passage::Replace(b"{\n 1\r}".to_vec()),
            b"three\nlines\nof it" => Passage::Replace(b"1\n 2\n3".to_vec()),
            b"two\nlines" => Passage::Replace(b"one".to_vec()),
            _ => Passage::Pass,
        }
    }
}

pub(crate) fn conversation(editor: impl Editor + 'static) -> Arc<Conversation> {
    let editor: Arc<dyn Editor> = Arc::new(editor);
    Conversation::begin(&editor)
}
