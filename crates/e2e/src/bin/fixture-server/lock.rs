//! Locks that don't care whether a thread died holding them: a fixture that went down for that would
//! be taken for a fault that was asked for.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
