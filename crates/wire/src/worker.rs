//! Work that must not hold up an async worker: parsing, redacting and hashing a message of many megabytes
//! takes longer than anybody else's timer may wait, and a disk takes as long as it likes.

use proctor_core::message::{self, Message, MessageParseError};
use serde::Deserialize;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Bodies from this size on can take longer than 10 ms, whatever is done with them.
const LARGE: usize = 128 * 1024;

/// Does work on a body of so many bytes, away from the async worker if that is large.
pub fn on_body<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes >= LARGE {
        blocking(work)
    } else {
        work()
    }
}

/// Does work that may block. The other tasks of this worker go on elsewhere meanwhile; where there is
/// only one thread, only its own session waits.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    if runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Does work that may take long whatever its size, as [`on_body`] does for large bodies.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    on_body(LARGE, work)
}

/// Parses a value, however large its text is.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    on_body(bytes.len(), || serde_json::from_slice(bytes))
}

/// Parses the messages of a body, as [`message::each`] does, however large it is.
pub fn each_message(
    bytes: &[u8],
    each: &mut dyn FnMut(&Message<'_>),
) -> Result<(), MessageParseError> {
    on_body(bytes.len(), || message::each(bytes, each))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// On a single worker, the work waits for another task: without help neither would ever end.
    #[test]
    fn large_bodies_keep_no_other_task_waiting() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let (tell, told) = mpsc::channel();
        let working = runtime.spawn(async move {
            tokio::spawn(async move { tell.send(()) });
            on_body(LARGE, || told.recv_timeout(Duration::from_mins(1)))
        });
        assert!(runtime.block_on(working).expect("it ends").is_ok());
    }

    #[test]
    fn it_works_wherever_it_is_called() {
        assert_eq!(on_body(LARGE, || 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        assert_eq!(runtime.block_on(async { on_body(LARGE, || 2) }), 2);
        assert_eq!(runtime.block_on(async { on_body(1, || 3) }), 3);
    }
}
