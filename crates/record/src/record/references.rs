//! What a file of a record says at its end, and the blobs that it refers to.

use std::collections::BTreeSet;
use std::path::Path;

use crate::event::{Body, Event};
use crate::json;

use super::{EventReader, RecordError};

/// The names of the blobs that the events of a file refer to.
pub fn blobs_of(file: &Path) -> Result<BTreeSet<String>, RecordError> {
    let mut names = BTreeSet::new();
    for event in EventReader::open(file)? {
        let mut event = event?.event;
        names.extend(event.bodies().into_iter().filter_map(|body| match body {
            Body::Blob { sha256, .. } => Some(std::mem::take(sha256)),
            Body::Text(_) | Body::Base64(_) | Body::Cut { .. } => None,
        }));
    }
    Ok(names)
}

/// The last event of the content of a file; `None` if its last line is torn.
pub fn last_event(content: &[u8]) -> Option<Event> {
    let lines = content.strip_suffix(b"\n")?;
    let last = lines.rsplit(|byte| *byte == b'\n').next()?;
    json::from_slice(last).ok()
}
