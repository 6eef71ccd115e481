//! The messages between a relay and the run: a kind, a length, and a body of that length.
//!
//! The first message comes from the relay and carries its streams.

/// The length of a message's head.
pub(crate) const HEAD: usize = 5;

/// The maximum length of a body.
pub(crate) const MAX_BODY: usize = 64 << 10;

/// The kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RelayMessageKind {
    /// From the relay: hands over its input and output.
    HandOver,
    /// From the relay: it was asked to end.
    Leave,
    /// To the relay: bytes for its stderr.
    Errors,
    /// To the relay: the exit code of the server.
    Exited,
    /// To the relay: the signal that ended the server.
    Signalled,
    /// To the relay: there is no server, for this reason.
    Refused,
}

const KINDS: [(u8, RelayMessageKind); 6] = [
    (b'H', RelayMessageKind::HandOver),
    (b'L', RelayMessageKind::Leave),
    (b'e', RelayMessageKind::Errors),
    (b'x', RelayMessageKind::Exited),
    (b's', RelayMessageKind::Signalled),
    (b'r', RelayMessageKind::Refused),
];

/// Encodes a message, and truncates a body that is too long.
pub(crate) fn render(kind: RelayMessageKind, body: &[u8]) -> Vec<u8> {
    let body = &body[..body.len().min(MAX_BODY)];
    let byte = KINDS.iter().find(|(_, known)| *known == kind);
    let byte = byte.map_or(b'?', |(byte, _)| *byte);
    let length = u32::try_from(body.len()).unwrap_or_default();
    let mut message = Vec::with_capacity(HEAD + body.len());
    message.push(byte);
    message.extend_from_slice(&length.to_le_bytes());
    message.extend_from_slice(body);
    message
}

/// Decodes the kind and the length of the body; `None` if the head is invalid.
pub(crate) fn read_head(head: [u8; HEAD]) -> Option<(RelayMessageKind, usize)> {
    let [byte, length @ ..] = head;
    let (_, kind) = KINDS.iter().find(|(known, _)| *known == byte)?;
    let length = usize::try_from(u32::from_le_bytes(length)).ok()?;
    (length <= MAX_BODY).then_some((*kind, length))
}

/// Decodes a number from a body.
pub(crate) fn number(body: &[u8]) -> Option<i32> {
    Some(i32::from_le_bytes(body.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_messages_are_read_back() {
        for (_, kind) in KINDS {
            let message = render(kind, b"body");
            let (head, body) = message.split_first_chunk().unwrap();
            assert_eq!(read_head(*head), Some((kind, 4)));
            assert_eq!(body, b"body");
        }
        let long = render(RelayMessageKind::Errors, &vec![0; MAX_BODY + 1]);
        assert_eq!(long.len(), HEAD + MAX_BODY);
    }

    #[test]
    fn invalid_messages_are_not_read() {
        assert_eq!(read_head(*b"GET /"), None);
        assert_eq!(read_head([0; HEAD]), None);
        assert_eq!(read_head([b'e', 1, 0, 1, 0]), None);
        assert_eq!(
            read_head([b'e', 0, 0, 1, 0]),
            Some((RelayMessageKind::Errors, MAX_BODY))
        );
        assert_eq!(read_head([b'e', 255, 255, 255, 255]), None);
        assert_eq!(number(b"123"), None);
        assert_eq!(number(&(-2_i32).to_le_bytes()), Some(-2));
    }
}
