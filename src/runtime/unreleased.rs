//! What a driver would not take back: errors of memory, queues and events that are released by being dropped, where nobody
//! can be told. They are kept here until somebody asks.
//!
//! Knows: errors. Must not know: what is done about them.
use std::sync::{Mutex, PoisonError};

use super::driver::DriverError;

/// Errors that are kept; what comes later is of the same kind.
const MOST: usize = 32;

static ERRORS: Mutex<Vec<DriverError>> = Mutex::new(Vec::new());

/// Keeps the error of a release, if it is one.
pub(super) fn note(released: Result<(), DriverError>) {
    if let Err(error) = released {
        let mut errors = ERRORS.lock().unwrap_or_else(PoisonError::into_inner);
        if errors.len() < MOST {
            errors.push(error);
        }
    }
}

/// Errors of releases since the last call, of all devices of this process. What is told here was tried again when its
/// device was closed; the kernel's driver releases the rest when the process ends.
#[must_use]
pub fn take_release_errors() -> Vec<DriverError> {
    std::mem::take(&mut *ERRORS.lock().unwrap_or_else(PoisonError::into_inner))
}
