//! Assembles one reply from a stream, in any format.
//!
//! The main type is [`StreamedReply`].

use serde_json::{Value, json};

use super::{WireFormat, chat, gemini, messages, responses};
use proctor_wire::transport::MAX_MESSAGE;
use proctor_wire::transport::sse::Events;
use proctor_wire::worker;

/// A streamed reply under construction.
pub struct StreamedReply {
    events: Events,
    gather: StreamAssembler,
}

enum StreamAssembler {
    Chat(chat::StreamAssembler),
    Responses(responses::StreamAssembler),
    Messages(messages::StreamAssembler),
    Gemini(gemini::StreamAssembler),
}

impl StreamedReply {
    /// A reply without any data so far.
    pub fn new(format: WireFormat) -> Self {
        Self {
            events: Events::new(MAX_MESSAGE),
            gather: match format {
                WireFormat::Chat => StreamAssembler::Chat(chat::StreamAssembler::default()),
                WireFormat::Responses => {
                    StreamAssembler::Responses(responses::StreamAssembler::default())
                }
                WireFormat::Messages => {
                    StreamAssembler::Messages(messages::StreamAssembler::default())
                }
                WireFormat::Gemini => StreamAssembler::Gemini(gemini::StreamAssembler::default()),
            },
        }
    }

    /// Adds the next bytes, which may end anywhere. Ignores events that are not JSON.
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
            StreamAssembler::Chat(gather) => gather.take(event),
            StreamAssembler::Responses(gather) => gather.take(event),
            StreamAssembler::Messages(gather) => gather.take(event),
            StreamAssembler::Gemini(gather) => gather.take(event),
        }
    }

    /// The body of an equal reply without streaming, for [`reply`](super::reply).
    pub fn end(mut self) -> Value {
        // The last event may lack the empty line at its end.
        self.take(b"\n\n");
        match self.gather {
            StreamAssembler::Chat(gather) => gather.end(),
            StreamAssembler::Responses(gather) => gather.end(),
            StreamAssembler::Messages(gather) => gather.end(),
            StreamAssembler::Gemini(gather) => gather.end(),
        }
    }
}
