//! Answers the tool calls of a selection trial in place of the servers.
//!
//! Its main type is [`WithheldCalls`]. No message that may be a tool call reaches a server: a call is
//! answered, and a message that only looks like one is dropped.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_record::event::{Body, EventKind, SelectedCall, ToolName};
use proctor_record::json;
use proctor_record::message::{Message, MessageKind};
use proctor_wire::edit::{ClientMessageAction, Edit, Editor, Passage};
use proctor_wire::recorder::Recorder;
use proctor_wire::rpc;
use serde_json::{Value, json};
use tokio::sync::watch;

/// The method of a tool call.
const CALL: &str = "tools/call";

/// The text that an agent gets in place of a result.
const TEXT: &str = "recorded, not executed";

/// Larger than any message that a proxy forwards.
const LIMIT: usize = 64 << 20;

/// The calls of a trial that Proctor answered.
pub(super) struct WithheldCalls {
    recorder: Recorder,
    calls: Mutex<Vec<SelectedCall>>,
    count: watch::Sender<usize>,
}

impl WithheldCalls {
    pub(super) fn new(recorder: Recorder) -> Arc<Self> {
        Arc::new(Self {
            recorder,
            calls: Mutex::new(Vec::new()),
            count: watch::Sender::new(0),
        })
    }

    /// The editor of one server.
    pub(super) fn editor(self: &Arc<Self>, server: &str) -> Arc<dyn Editor> {
        Arc::new(Withholding {
            calls: self.clone(),
            server: server.to_owned(),
        })
    }

    /// Waits for the first call.
    pub(super) async fn first(&self) {
        let mut count = self.count.subscribe();
        // Fails only if the sender is gone, and this is it.
        let _ = count.wait_for(|count| *count > 0).await;
    }

    /// The calls so far, in order.
    pub(super) fn calls(&self) -> Vec<SelectedCall> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }

    fn add(&self, call: SelectedCall) {
        self.recorder.record(EventKind::CallWithheld(ToolName {
            server: call.server.clone().unwrap_or_default(),
            tool: call.tool.clone(),
        }));
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call);
        drop(calls);
        self.count.send_modify(|count| *count += 1);
    }
}

/// Withholds the calls to one server.
struct Withholding {
    calls: Arc<WithheldCalls>,
    server: String,
}

impl Editor for Withholding {
    fn begin(self: Arc<Self>) -> Box<dyn Edit> {
        Box::new(WithholdingEdit(self))
    }

    fn limit(&self) -> usize {
        LIMIT
    }
}

struct WithholdingEdit(Arc<Withholding>);

impl Edit for WithholdingEdit {
    fn on_client_message(&mut self, message: &[u8]) -> ClientMessageAction {
        match classify(message) {
            ClientText::Call {
                id,
                tool,
                arguments,
                is_stateless,
            } => {
                self.0.calls.add(SelectedCall {
                    server: Some(self.0.server.clone()),
                    tool,
                    arguments: Body::Text(arguments),
                });
                let answer = answer(is_stateless).to_string();
                ClientMessageAction::Answer(rpc::answer(id, Ok(&answer)))
            }
            ClientText::MayBeCall => ClientMessageAction::Forward(Passage::Drop),
            ClientText::Other => ClientMessageAction::Forward(Passage::Pass),
        }
    }

    fn reads_server(&self) -> bool {
        false
    }
}

/// What a message of the agent is.
enum ClientText<'a> {
    Call {
        id: &'a serde_json::value::RawValue,
        tool: String,
        arguments: String,
        is_stateless: bool,
    },
    /// A batch, a notification or malformed JSON that a server may read as a call.
    MayBeCall,
    Other,
}

fn classify(bytes: &[u8]) -> ClientText<'_> {
    let Ok(message) = json::from_slice::<Message<'_>>(bytes) else {
        return doubtful(bytes);
    };
    match (message.kind(), message.id) {
        (MessageKind::Request { method: CALL, .. }, Some(id)) => {
            let params = message
                .params
                .map_or("{}", serde_json::value::RawValue::get);
            let params: Value = json::from_str(params).unwrap_or_default();
            let name = params.get("name").and_then(Value::as_str);
            ClientText::Call {
                id,
                tool: name.unwrap_or_default().to_owned(),
                arguments: params.get("arguments").unwrap_or(&json!({})).to_string(),
                is_stateless: is_stateless(&params),
            }
        }
        // Another method whose content mentions the call is no call.
        (MessageKind::Request { method, .. } | MessageKind::Notification { method }, _)
            if method != CALL =>
        {
            ClientText::Other
        }
        (MessageKind::Answer { .. }, _) => ClientText::Other,
        _ => doubtful(bytes),
    }
}

/// A text that can't be read may be a call if it could spell the method: also with escapes.
fn doubtful(bytes: &[u8]) -> ClientText<'_> {
    let mentions = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    if mentions(b"method") || mentions(b"\\u") || mentions(b"call") {
        ClientText::MayBeCall
    } else {
        ClientText::Other
    }
}

/// Whether a request is of the stateless era, which names its protocol in each request.
fn is_stateless(params: &Value) -> bool {
    let key = "io.modelcontextprotocol/protocolVersion";
    params
        .get("_meta")
        .is_some_and(|meta| meta.get(key).is_some())
}

fn answer(is_stateless: bool) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": TEXT}], "isError": false});
    if is_stateless {
        result["resultType"] = "complete".into();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(text: &str) -> String {
        match classify(text.as_bytes()) {
            ClientText::Call {
                id,
                tool,
                arguments,
                ..
            } => {
                format!("call {} {tool} {arguments}", id.get())
            }
            ClientText::MayBeCall => "may be call".to_owned(),
            ClientText::Other => "other".to_owned(),
        }
    }

    #[test]
    fn whatever_may_be_a_call_never_passes() {
        let check = |text: &str, expected: &str| assert_eq!(kind(text), expected, "{text}");
        check(
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{"b":1}}}"#,
            r#"call 7 a {"b":1}"#,
        );
        check(
            r#"{"id":"x","method":"tools\u002fcall"}"#,
            r#"call "x"  {}"#,
        );
        check(
            r#"{"method":"tools/call","params":{"name":"a"}}"#,
            "may be call",
        );
        check(r#"[{"id":1,"method":"tools/call"}]"#, "may be call");
        check(
            r#"{"id":1,"method":"tools/call","method":"ping"}"#,
            "may be call",
        );
        check(r#"{"id":1,"method":"tools/call""#, "may be call");
        check(r#"{"id":1,"method":"tools/list"}"#, "other");
        check(r#"{"id":1,"result":{"text":"tools/call"}}"#, "other");
        check(r#"{"method":"notifications/initialized"}"#, "other");
        check("", "other");
    }
}
