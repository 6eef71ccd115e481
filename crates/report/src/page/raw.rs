//! The messages of a call, byte by byte, for a server that can send them.
//!
//! The main type is [`RawMessage`].

use data_encoding::BASE64;
use proctor_record::event::{Direction, EventKind, Frame};
use proctor_record::json;
use proctor_record::record::{RecordError, RunReader};
use serde::Serialize;
use serde_json::Value;

/// How many bytes of a message are sent.
const RAW_BYTES: usize = 256 * 1024;

/// A message as it was on the wire, or its beginning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RawMessage {
    /// The number of its event.
    pub seq: u64,
    pub direction: Direction,
    /// The length of the whole message; `None` if the record does not hold it.
    pub bytes: Option<u64>,
    pub base64: String,
}

/// The request in the event `seq` of a trial, and its response if there is one.
pub fn raw_messages(run: &RunReader, file: &str, seq: u64) -> Result<Vec<RawMessage>, RecordError> {
    let mut messages = Vec::new();
    let Some(trial) = run.trial_file(file) else {
        return Ok(messages);
    };
    let mut request: Option<(Frame, Value)> = None;
    for event in run.trial(&trial)? {
        let event = event?;
        let EventKind::Frame(frame) = event.event else {
            continue;
        };
        let is_response = match &request {
            None if event.seq != seq => continue,
            None => false,
            Some((asked, id)) => {
                let is_back =
                    frame.conn == asked.conn && frame.direction != asked.direction && !id.is_null();
                if !is_back || id_of(run, &frame)? != *id {
                    continue;
                }
                true
            }
        };
        messages.push(raw(run, event.seq, &frame)?);
        if is_response {
            break;
        }
        let id = id_of(run, &frame)?;
        request = Some((frame, id));
    }
    Ok(messages)
}

fn raw(run: &RunReader, seq: u64, frame: &Frame) -> Result<RawMessage, RecordError> {
    let bytes = run.body_bytes(&frame.body)?;
    let shown = bytes.as_deref().unwrap_or_default();
    Ok(RawMessage {
        seq,
        direction: frame.direction,
        bytes: bytes.as_ref().map(|bytes| bytes.len() as u64),
        base64: BASE64.encode(&shown[..shown.len().min(RAW_BYTES)]),
    })
}

/// The id of a message; null if it has none.
fn id_of(run: &RunReader, frame: &Frame) -> Result<Value, RecordError> {
    let bytes = run.body_bytes(&frame.body)?;
    let message: Option<Value> = bytes.and_then(|bytes| json::from_slice(&bytes).ok());
    Ok(message.map_or(Value::Null, |mut message| message["id"].take()))
}
