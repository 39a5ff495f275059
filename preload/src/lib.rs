//! Puts the virtual KFD under an unmodified process: the dynamic linker finds these functions before the C library's.
//!
//! Knows: which calls may concern the device, and how to make the real ones. Must not know: what the device does: calls
//! that concern it go to `rocr::runtime::emulated::kernel`, the same device as the embedded GPU.
//!
//! Paths below `/sys`, `/dev` and `/proc` that show a GPU lead to files that are written once; everything else goes on
//! untouched. A process that never opens the device gets no thread, no file and no memory of ours.
//!
//! Environment, set by `rocr run`:
//! - `ROCR_VIRTUAL_GPUS`: models, separated by commas, each `MODEL` or `MODEL*N`; default `mi210`.
//! - `ROCR_VIRTUAL_THREADS`: worker threads of the GPUs; default one a core.
//! - `ROCR_VIRTUAL_TREE`: the folder of the written files; without it each process writes its own when it looks.
//! - `ROCR_VIRTUAL_TRACE`: the folder where each process leaves what its devices did, a line of JSON for each event.
//! - `ROCR_VIRTUAL_CHECK`: `memory` to have faults explained, and allocations end with their last page.
//! - `ROCR_PRELOAD_LOG`: a file that gets a line for each ioctl and mmap of the device; for tests.
//! - `ROCR_PRELOAD_FAIL`: `IOCTL:ERRNO[:N[+]]`, the N-th such ioctl fails, with `+` all from it on (every one without N);
//!   for tests.
#![expect(
    unsafe_code,
    reason = "symbols of the C library, called with pointers of the process"
)]
mod check;
mod device;
mod files;
mod hsa;
mod memory;
mod next;
mod objects;
mod paths;
mod testing;
mod trace;

use std::cell::Cell;

thread_local! {
    /// The thread is inside this library: what it calls there is meant for the C library.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, calls of this thread go straight on.
struct Inside(());

impl Inside {
    /// `None` when the thread is inside already.
    fn enter() -> Option<Self> {
        INSIDE
            .try_with(|inside| !inside.replace(true))
            .unwrap_or(false)
            // Made only then: dropping one ends the stay.
            .then(|| Self(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Without its local storage the thread is ending, and is inside for good.
        let _left = INSIDE.try_with(|inside| inside.set(false));
    }
}

/// Sets `errno` and gives the C library's sign of failure.
fn fail(errno: rustix::io::Errno) -> libc::c_int {
    // SAFETY: the C library gives the address of this thread's errno.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
    -1
}
