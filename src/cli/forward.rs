//! Signals for a child process: what is sent to this process is meant for the program that it runs.
//!
//! Knows: which signals are passed on, and to whom. Must not know: what the program is. What a terminal sends goes to the
//! whole foreground group already, the program included, and is not sent twice.
#![expect(unsafe_code, reason = "signal handlers that tell who has sent")]
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use libc::{c_int, c_void, siginfo_t};

/// The signals that are passed on.
const SIGNALS: [c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The child; 0 before there is one and once it has ended.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the child did; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// Only calls what may be called in a handler, and keeps `errno`.
extern "C" fn pass_on(signal: c_int, info: *mut siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel gives a valid struct to handlers with `SA_SIGINFO`.
    let code = unsafe { (*info).si_code };
    if code == libc::SI_KERNEL {
        return;
    }
    match CHILD.load(Ordering::SeqCst) {
        0 => EARLY.store(signal, Ordering::SeqCst),
        // SAFETY: `kill` takes numbers, and may be called in handlers; the child has not been waited for while its id is
        // there. `errno` belongs to the thread that was interrupted, and is put back.
        child => unsafe {
            let errno = libc::__errno_location();
            let before = *errno;
            libc::kill(child, signal);
            *errno = before;
        },
    }
}

/// From now on signals are for the child to come. A program is started with the dispositions that this process had.
pub(super) fn begin() {
    for signal in SIGNALS {
        // SAFETY: the struct is made of plain numbers, which may all be 0; the handler lives as long as the process, and a
        // signal that was ignored stays so, for the child too.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let read = libc::sigaction(signal, std::ptr::null(), &raw mut action);
            if read != 0 || action.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            action.sa_sigaction = pass_on as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

/// Passes signals on until the child has ended.
///
/// # Errors
/// When it cannot be waited for.
pub(super) fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let id = child.id() as c_int;
    CHILD.store(id, Ordering::SeqCst);
    let early = EARLY.swap(0, Ordering::SeqCst);
    if early != 0 {
        // SAFETY: as in `pass_on`.
        unsafe { libc::kill(id, early) };
    }
    // Its id stays its own until it is waited for below: no signal can reach somebody else.
    loop {
        // SAFETY: the struct is written by the call; any bytes are one.
        let ended = unsafe {
            let mut info: siginfo_t = std::mem::zeroed();
            libc::waitid(
                libc::P_PID,
                id as libc::id_t,
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        if ended == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            break;
        }
    }
    CHILD.store(0, Ordering::SeqCst);
    child.wait()
}
