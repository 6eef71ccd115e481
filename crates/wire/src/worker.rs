//! Runs work that would block an async worker: parsing, redacting and hashing a message of many
//! megabytes takes longer than other tasks can wait, and so does the disk.

use std::ops::Deref;
use std::pin::Pin;

use proctor_record::json;
use proctor_record::message::{self, Message, MessageParseError};
use serde::Deserialize;
use tokio::runtime::{Handle, RuntimeFlavor};

/// Bodies from this size on can take longer than 10 ms to process.
const LARGE: usize = 128 * 1024;

/// A future that may run on any thread. It is compiled in the crate that boxes it, while an async function is compiled in
/// the crate that polls it.
pub type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Processes a body of this size, outside of the async worker if it is large.
pub fn on_body<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes >= LARGE {
        blocking(work)
    } else {
        work()
    }
}

/// Runs work that may block. Other tasks of this worker continue on other threads; on a
/// single-threaded runtime they wait.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    if runtime.is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

/// Runs work that may take long whatever its size, like [`on_body`] for large bodies.
pub fn apart<T>(work: impl FnOnce() -> T) -> T {
    on_body(LARGE, work)
}

/// A value made from a body of this size. Dropping a large one takes long too.
#[derive(Debug)]
pub struct Large<T> {
    value: Option<T>,
    bytes: usize,
}

impl<T> Large<T> {
    pub fn new(value: T, bytes: usize) -> Self {
        let value = Some(value);
        Self { value, bytes }
    }
}

impl<T> Deref for Large<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // Only `drop` takes it.
        self.value.as_ref().unwrap_or_else(|| unreachable!())
    }
}

impl<T> Drop for Large<T> {
    fn drop(&mut self) {
        on_body(self.bytes, || drop(self.value.take()));
    }
}

/// Parses a value of any size.
pub fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> serde_json::Result<T> {
    on_body(bytes.len(), || json::from_slice(bytes))
}

/// Parses the messages of a body of any size, like [`message::each`].
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

    /// With a single worker, the work waits for another task, so without help both would hang.
    #[test]
    fn large_bodies_do_not_block_other_tasks() {
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

    /// Its value waits for another task while it is dropped.
    struct WaitingDrop(mpsc::Receiver<()>);

    impl Drop for WaitingDrop {
        fn drop(&mut self) {
            self.0.recv_timeout(Duration::from_mins(1)).unwrap();
        }
    }

    #[test]
    fn dropping_a_large_value_does_not_block_other_tasks() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .build()
            .expect("a runtime");
        let (tell, told) = mpsc::channel();
        let large = Large::new(WaitingDrop(told), LARGE);
        let working = runtime.spawn(async move {
            tokio::spawn(async move { tell.send(()) });
            drop(large);
        });
        runtime.block_on(working).expect("it ends");
    }

    #[test]
    fn work_runs_on_every_kind_of_runtime() {
        assert_eq!(on_body(LARGE, || 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        assert_eq!(runtime.block_on(async { on_body(LARGE, || 2) }), 2);
        assert_eq!(runtime.block_on(async { on_body(1, || 3) }), 3);
    }
}
