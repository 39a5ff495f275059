//! Ctrl-C: a flag that long work looks at; the second one ends the process at once.
//!
//! Knows: the signal. Must not know: what is being interrupted.
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static INSTALLED: OnceLock<()> = OnceLock::new();

/// Starts to watch for Ctrl-C. Without it, Ctrl-C ends the process as usual.
pub(super) fn watch() {
    INSTALLED.get_or_init(|| {
        let handler = || {
            if INTERRUPTED.swap(true, Ordering::SeqCst) {
                // Somebody who presses twice does not want to wait for partial results.
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )
                .ok();
            }
        };
        // A handler that cannot be installed leaves the default one, which ends the process too.
        ctrlc::set_handler(handler).ok();
    });
}

/// Whether Ctrl-C was pressed.
pub(super) fn requested() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}
