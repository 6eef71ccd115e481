//! The number of calls of a session without a response.
//!
//! Its main type is [`PendingCalls`]. It only decides how long a server may take to exit after its client disconnected,
//! so it looks for words instead of parsing lines, and may be wrong if several requests are pending. Verdicts are based on
//! the record.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem::Finder;
use proctor_record::event::Direction;

// Built once: that takes longer than to search most lines.
static CALL: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"tools/call\""));
static ID: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"id\""));
static METHOD: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"method\""));

/// Counts calls without a response.
#[derive(Default)]
pub(super) struct PendingCalls(AtomicUsize);

impl PendingCalls {
    /// Updates the number from a forwarded line.
    pub(super) fn take(&self, direction: Direction, line: &[u8]) {
        match direction {
            Direction::ToServer => {
                if CALL.find(line).is_some() {
                    self.0.fetch_add(1, Ordering::Relaxed);
                }
            }
            Direction::ToClient => {
                if !self.is_empty() && METHOD.find(line).is_none() && ID.find(line).is_some() {
                    // Both directions of a session are forwarded by one task.
                    self.0.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_pending_until_its_response() {
        let calls = PendingCalls::default();
        let server = |line: &str| calls.take(Direction::ToClient, line.as_bytes());
        let client = |line: &str| calls.take(Direction::ToServer, line.as_bytes());
        client(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert!(calls.is_empty());
        server(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#);
        client(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}"#);
        client(r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}"#);
        assert!(!calls.is_empty());
        server(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":2}}"#);
        server("calling a");
        server(r#"{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"\"method\""}}"#);
        assert!(!calls.is_empty());
        server(r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        assert!(calls.is_empty());
    }
}
