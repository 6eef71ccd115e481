//! Classifies incoming messages and passes them to a handler, for every JSON-RPC protocol.

use proctor_record::event::FindingKind;
use proctor_record::message::{Id, Message, MessageKind};
use serde_json::value::RawValue;

use crate::worker;

/// Receives the messages of the other side in their order.
pub trait MessageHandler {
    /// Handles a request. The protocol decides whether and how to answer.
    fn request(&mut self, _id: &RawValue, _method: &str, _params: Option<&RawValue>) {}

    /// Handles a notification, which gets no response.
    fn notification(&mut self, method: &str, params: Option<&RawValue>);

    /// Handles a response. `id` may match no request.
    fn answer(&mut self, id: &Id, message: &Message<'_>);

    /// Handles a violation of JSON-RPC.
    fn finding(&mut self, _about: FindingSubject<'_>, _kind: FindingKind, _detail: String) {}
}

/// What a finding refers to.
#[derive(Clone, Copy)]
pub enum FindingSubject<'a> {
    /// A message, which is passed to the handler too if it is valid.
    Message(&'a Message<'a>),
    /// Bytes that are not, or only partly, messages.
    Bytes(&'a [u8]),
}

/// Passes the message, or each message of a batch, to the handler. Never panics, and sends no
/// response itself.
pub fn receive(bytes: &[u8], handler: &mut dyn MessageHandler) {
    let parsed = worker::each_message(bytes, &mut |message| one(message, handler));
    if let Err(unparsable) = parsed {
        let detail = format!("not a JSON-RPC message: {}", unparsable.reason);
        handler.finding(FindingSubject::Bytes(bytes), FindingKind::Malformed, detail);
    }
}

fn one(message: &Message<'_>, handler: &mut dyn MessageHandler) {
    let mut finding =
        |kind, detail: String| handler.finding(FindingSubject::Message(message), kind, detail);
    if message.jsonrpc.as_deref() != Some("2.0") {
        let detail = "message without `\"jsonrpc\": \"2.0\"`";
        finding(FindingKind::Protocol, detail.to_owned());
    }
    match (message.kind(), message.id) {
        (MessageKind::Request { method, .. }, Some(id)) => {
            handler.request(id, method, message.params);
        }
        (MessageKind::Notification { method }, _) => handler.notification(method, message.params),
        (MessageKind::Answer { id }, _) => {
            if message.result.is_some() && message.error.is_some() {
                let detail = format!("the response with {id} has both a result and an error");
                finding(FindingKind::ResultAndError, detail);
            }
            handler.answer(&id, message);
        }
        (MessageKind::Request { .. } | MessageKind::Neither, _) => {
            let detail = "message is neither a request, a notification nor a response";
            finding(FindingKind::Malformed, detail.to_owned());
        }
    }
}
