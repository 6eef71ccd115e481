//! The choice of a selection trial, as checks read it.

use serde_json::Value;

use super::work::TrialWork;
use crate::event::{Body, SelectedCall, ToolsSelected};
use crate::json;
use crate::record::{Blobs, RecordError};
use crate::transcript::{ChosenTool, Payload, ToolSelection};

/// The choice as recorded, with the arguments in the event itself.
pub(super) fn read(selected: &ToolsSelected, blobs: &Blobs) -> Result<ToolsSelected, RecordError> {
    let call = |call: &SelectedCall| {
        let arguments = match &call.arguments {
            body @ Body::Blob { .. } => match blobs.body_bytes(body)? {
                Some(bytes) => Body::Text(String::from_utf8_lossy(&bytes).into_owned()),
                None => body.clone(),
            },
            body @ (Body::Text(_) | Body::Base64(_) | Body::Cut { .. }) => body.clone(),
        };
        Ok(SelectedCall {
            arguments,
            ..call.clone()
        })
    };
    Ok(ToolsSelected {
        calls: selected
            .calls
            .iter()
            .map(call)
            .collect::<Result<_, RecordError>>()?,
        ..selected.clone()
    })
}

/// The choice as checks read it.
pub(super) fn chosen(work: &TrialWork) -> Option<ToolSelection> {
    let selected = work.selection.as_ref()?;
    let calls = selected.calls.iter().map(|call| ChosenTool {
        server: call.server.clone(),
        tool: call.tool.clone(),
        arguments: arguments(&call.arguments),
    });
    Some(ToolSelection {
        calls: calls.collect(),
        withheld: work.withheld.clone(),
    })
}

fn arguments(body: &Body) -> Payload {
    let unreadable = |reason: String| Payload::Unreadable { reason };
    match body {
        Body::Text(text) => match json::decode(text) {
            Ok(value @ Value::Object(_)) => Payload::Value(value),
            Ok(_) => unreadable("not a JSON object".to_owned()),
            Err(error) => unreadable(error.to_string()),
        },
        Body::Base64(_) => unreadable("not UTF-8".to_owned()),
        Body::Blob { bytes, .. } | Body::Cut { bytes, .. } => Payload::Cut { bytes: *bytes },
    }
}
