//! The ends of several processes, also of those that were dropped meanwhile.
//!
//! The main type is [`ProcessEnds`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::ProcessEnd;

/// The processes that something started, until they are waited for.
#[derive(Debug, Clone, Default)]
pub struct ProcessEnds(Arc<Mutex<Vec<ProcessEnd>>>);

impl ProcessEnds {
    pub fn add(&self, end: ProcessEnd) {
        self.lock().push(end);
    }

    /// Waits until all processes so far, and everything that they started, have ended.
    pub async fn wait(&self) {
        let ends = std::mem::take(&mut *self.lock());
        for end in ends {
            end.wait().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ProcessEnd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
