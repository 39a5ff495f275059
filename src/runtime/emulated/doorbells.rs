//! Doorbells of an unmodified process: plain stores to a page that the process has mapped, which nobody tells of.
//!
//! Knows: the pages, how the host's kernel tells of a store. Must not know: queues, who looks for work.
//!
//! An idle device *arms* the pages: they are protected against writing by userfaultfd (which shared memory allows from Linux
//! 5.19 on, and to everybody for stores of user mode). The next store wakes the thread that armed them, and waits until that
//! takes the protection off again; those that follow cost nothing. Whoever wants to sleep arms first and then looks for work
//! once more: a store before that has left a new write index, one after it is noticed. Where the host's kernel does not offer
//! this, nothing is ever armed, and idle threads have to look from time to time.
#![expect(
    unsafe_code,
    reason = "userfaultfd's ioctls, on mappings of the process"
)]
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::mm::UserfaultfdFlags;

/// Descriptors of the device start here, out of the way of a process that counts on low ones.
const LEAST_DESCRIPTOR: i32 = 480;

/// Linux's userfaultfd interface (include/uapi/linux/userfaultfd.h).
mod uffd {
    /// The interface's version.
    pub(super) const VERSION: u64 = 0xaa;
    /// Faults by write protection are told, and of shared memory too.
    pub(super) const FEATURES: u64 = 1 | 1 << 12;
    /// `UFFDIO_API`, of [`Api`].
    pub(super) const API: libc::c_ulong = 0xc018_aa3f;
    /// `UFFDIO_REGISTER`, of [`Register`].
    pub(super) const REGISTER: libc::c_ulong = 0xc020_aa00;
    /// `UFFDIO_WRITEPROTECT`, of [`WriteProtect`].
    pub(super) const WRITE_PROTECT: libc::c_ulong = 0xc018_aa06;
    /// Mode of a registration: write protection.
    pub(super) const REGISTER_WRITE_PROTECT: u64 = 2;
    /// Mode of `WRITE_PROTECT`: on. Off, waiting threads go on.
    pub(super) const PROTECT: u64 = 1;
    /// `UFFD_USER_MODE_ONLY`: for stores of user mode alone, which needs no privilege.
    pub(super) const USER_MODE_ONLY: u32 = 1;

    #[repr(C)]
    pub(super) struct Api {
        pub(super) version: u64,
        pub(super) features: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct Register {
        pub(super) start: u64,
        pub(super) len: u64,
        pub(super) mode: u64,
        pub(super) ioctls: u64,
    }

    #[repr(C)]
    pub(super) struct WriteProtect {
        pub(super) start: u64,
        pub(super) len: u64,
        pub(super) mode: u64,
    }
}

/// The doorbell pages of a process, and whether stores to them are noticed.
#[derive(Debug, Default)]
pub(super) struct UntoldDoorbells {
    /// `None` where the host's kernel does not offer it.
    watch: OnceLock<Option<Watch>>,
}

#[derive(Debug)]
struct Watch {
    fd: OwnedFd,
    /// Wakes the thread that waits for stores, for another reason.
    waker: OwnedFd,
    /// Start and length of each page range.
    pages: Mutex<Vec<(u64, u64)>>,
    armed: AtomicBool,
}

impl UntoldDoorbells {
    fn watch(&self) -> Option<&Watch> {
        self.watch.get().and_then(Option::as_ref)
    }

    /// The process has mapped doorbells there.
    pub(super) fn mapped(&self, address: u64, size_bytes: u64) {
        if let Some(watch) = self.watch.get_or_init(|| Watch::open().ok()) {
            let mut pages = watch.pages();
            pages.retain(|&range| !overlap(range, (address, size_bytes)));
            if watch.register(address, size_bytes).is_ok() {
                pages.push((address, size_bytes));
            }
            // What was armed before does not cover the new page.
            watch.disarm(&pages);
            watch.wake();
        }
    }

    /// The process is about to unmap, remap or protect a range of its addresses.
    pub(super) fn unmapping(&self, address: u64, size_bytes: u64) {
        if let Some(watch) = self.watch() {
            let mut pages = watch.pages();
            let hit = |&range: &(u64, u64)| overlap(range, (address, size_bytes));
            if pages.iter().any(hit) {
                // A mapping that only changes its protection is still there.
                watch.disarm(&pages);
                watch.wake();
                pages.retain(|range| !hit(range));
            }
        }
    }

    /// Whether there is a kernel that can arm them.
    pub(super) fn can_be_armed(&self) -> bool {
        self.watch().is_some()
    }

    /// From now on stores are noticed; false where they cannot be. Whoever arms waits, and disarms: stores wait for that.
    pub(super) fn arm(&self) -> bool {
        let Some(watch) = self.watch() else {
            return false;
        };
        let pages = watch.pages();
        if pages.is_empty() {
            return false;
        }
        let protected = pages
            .iter()
            .try_for_each(|&range| watch.protect(range, uffd::PROTECT));
        if protected.is_err() {
            watch.disarm(&pages);
            return false;
        }
        watch.armed.store(true, Ordering::SeqCst);
        true
    }

    /// Waits for a store, a [`wake`](Self::wake) or the end of `longest`.
    pub(super) fn wait(&self, longest: Duration) {
        if let Some(watch) = self.watch() {
            let longest = Timespec::try_from(longest).ok();
            let mut descriptors = [
                PollFd::from_borrowed_fd(watch.fd.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(watch.waker.as_fd(), PollFlags::IN),
            ];
            // Whatever it says, the next thing is to disarm and to look.
            let _woken = rustix::event::poll(&mut descriptors, longest.as_ref());
            let _drained = rustix::io::read(&watch.waker, &mut [0; 8]);
        }
    }

    /// Lets stores pass, also those that wait.
    pub(super) fn disarm(&self) {
        if let Some(watch) = self.watch() {
            watch.disarm(&watch.pages());
        }
    }

    /// Ends a wait.
    pub(super) fn wake(&self) {
        if let Some(watch) = self.watch() {
            watch.wake();
        }
    }

    /// Whether stores are noticed.
    pub(super) fn is_armed(&self) -> bool {
        let watch = self.watch();
        watch.is_some_and(|watch| watch.armed.load(Ordering::SeqCst))
    }
}

fn overlap((a, a_len): (u64, u64), (b, b_len): (u64, u64)) -> bool {
    a < b.saturating_add(b_len) && b < a.saturating_add(a_len)
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.disarm(&self.pages());
    }
}

impl Watch {
    fn open() -> Result<Self, Errno> {
        let own = |fd| rustix::io::fcntl_dupfd_cloexec(&fd, LEAST_DESCRIPTOR).unwrap_or(fd);
        // SAFETY: the call makes a descriptor and touches no memory.
        let fd = unsafe {
            rustix::mm::userfaultfd(
                UserfaultfdFlags::CLOEXEC
                    | UserfaultfdFlags::NONBLOCK
                    | UserfaultfdFlags::from_bits_retain(uffd::USER_MODE_ONLY),
            )
        }?;
        let waker = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let watch = Self {
            fd: own(fd),
            waker: own(waker),
            pages: Mutex::default(),
            armed: AtomicBool::new(false),
        };
        let mut api = uffd::Api {
            version: uffd::VERSION,
            features: uffd::FEATURES,
            ioctls: 0,
        };
        watch.call(uffd::API, &mut api)?;
        Ok(watch)
    }

    fn call<T>(&self, request: libc::c_ulong, argument: &mut T) -> Result<(), Errno> {
        let argument = std::ptr::from_mut(argument);
        // SAFETY: each request is made with the struct that it is of, which has no pointers.
        let result = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, argument) };
        if result == 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    fn register(&self, start: u64, len: u64) -> Result<(), Errno> {
        let mut register = uffd::Register {
            start,
            len,
            mode: uffd::REGISTER_WRITE_PROTECT,
            ioctls: 0,
        };
        self.call(uffd::REGISTER, &mut register)
    }

    fn protect(&self, (start, len): (u64, u64), mode: u64) -> Result<(), Errno> {
        let mut protect = uffd::WriteProtect { start, len, mode };
        loop {
            match self.call(uffd::WRITE_PROTECT, &mut protect) {
                // Mappings of the process are changing just now.
                Err(Errno::AGAIN) => std::thread::yield_now(),
                result => return result,
            }
        }
    }

    fn disarm(&self, pages: &[(u64, u64)]) {
        self.armed.store(false, Ordering::SeqCst);
        for &range in pages {
            // A page that is gone protects nothing.
            let _gone = self.protect(range, 0);
        }
    }

    fn wake(&self) {
        // One that is full wakes already.
        let _written = rustix::io::write(&self.waker, &1u64.to_ne_bytes());
    }

    fn pages(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::files::{View, sparse_file};
    use super::*;

    #[test]
    fn stores_to_armed_pages_wake_who_waits() {
        let file = sparse_file("test", 1 << 20).unwrap();
        let view = View::new(&file, 8192, 8192).unwrap();
        let doorbells = UntoldDoorbells::default();
        assert!(!doorbells.arm() && !doorbells.is_armed());
        doorbells.mapped(view.address(), 8192);
        if Watch::open().is_err() {
            // A host without userfaultfd: everything stays as it was.
            assert!(!doorbells.arm() && !doorbells.can_be_armed());
            return;
        }
        let address = view.address() as usize + 4096;
        let store = move |value: u64| {
            let word: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
            // SAFETY: the view is mapped until the test's end.
            unsafe {
                word.write_volatile(value);
                assert_eq!(word.read_volatile(), value);
            }
        };
        doorbells.wait(Duration::ZERO);
        for value in 0..20 {
            assert!(doorbells.arm() && doorbells.is_armed());
            std::thread::scope(|scope| {
                let stored = scope.spawn(move || store(value));
                doorbells.wait(Duration::from_secs(20));
                // It has not passed by itself.
                assert!(!stored.is_finished());
                doorbells.disarm();
                stored.join().unwrap();
            });
            assert!(!doorbells.is_armed());
            store(value + 1);
        }
        assert!(doorbells.arm());
        doorbells.wake();
        doorbells.wait(Duration::from_secs(20));
        doorbells.unmapping(view.address() + 4096, 1);
        assert!(!doorbells.is_armed() && !doorbells.arm());
        store(7);
    }
}
