//! One reply out of a stream, whatever its pieces are.
//!
//! Its main type is [`Gathered`].

use serde_json::{Value, json};

use super::{Format, chat, gemini, messages, responses};
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::transport::sse::Events;
use proctor_wire::worker;

/// A reply that comes in pieces.
pub struct Gathered {
    events: Events,
    gather: Gather,
}

enum Gather {
    Chat(chat::Gather),
    Responses(responses::Gather),
    Messages(messages::Gather),
    Gemini(gemini::Gather),
}

impl Gathered {
    /// A reply of which nothing has come yet.
    pub fn new(format: Format) -> Self {
        Self {
            events: Events::new(MAX_MESSAGE),
            gather: match format {
                Format::Chat => Gather::Chat(chat::Gather::default()),
                Format::Responses => Gather::Responses(responses::Gather::default()),
                Format::Messages => Gather::Messages(messages::Gather::default()),
                Format::Gemini => Gather::Gemini(gemini::Gather::default()),
            },
        }
    }

    /// Takes in what comes next, wherever it was cut. What is no JSON is passed over.
    pub fn take(&mut self, chunk: &[u8]) {
        for event in self.events.take(chunk) {
            let Ok(data) = event.data else {
                let error = json!({"error": {"message": "a part of the stream is too large"}});
                self.event(&error);
                continue;
            };
            if let Ok(value) = worker::parse(&data) {
                self.event(&value);
            }
        }
    }

    fn event(&mut self, event: &Value) {
        match &mut self.gather {
            Gather::Chat(gather) => gather.take(event),
            Gather::Responses(gather) => gather.take(event),
            Gather::Messages(gather) => gather.take(event),
            Gather::Gemini(gather) => gather.take(event),
        }
    }

    /// The body as it would have come whole, for [`reply`](super::reply).
    pub fn end(mut self) -> Value {
        // A last event may lack the empty line that ends it.
        self.take(b"\n\n");
        match self.gather {
            Gather::Chat(gather) => gather.end(),
            Gather::Responses(gather) => gather.end(),
            Gather::Messages(gather) => gather.end(),
            Gather::Gemini(gather) => gather.end(),
        }
    }
}
