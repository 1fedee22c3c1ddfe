// SPDX-License-Identifier: MIT OR Apache-2.0
//! POSIX mutexes with the protocols against priority inversion.

use std::cell::UnsafeCell;
use std::io;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};

/// The measure of a mutex against priority inversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// No measure.
    None,
    /// Its owner inherits the priority of the highest thread that wants it.
    Inherit,
    /// Its owner has this priority, the ceiling, as long as it owns it.
    Protect(u8),
}

impl Protocol {
    fn number(self) -> libc::c_int {
        match self {
            Self::None => libc::PTHREAD_PRIO_NONE,
            Self::Inherit => libc::PTHREAD_PRIO_INHERIT,
            Self::Protect(_) => libc::PTHREAD_PRIO_PROTECT,
        }
    }

    /// Returns its name in the manual.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "PTHREAD_PRIO_NONE",
            Self::Inherit => "PTHREAD_PRIO_INHERIT",
            Self::Protect(_) => "PTHREAD_PRIO_PROTECT",
        }
    }
}

// The `libc` crate has no binding for these two of glibc's functions.
unsafe extern "C" {
    fn pthread_mutexattr_setprioceiling(
        attributes: *mut libc::pthread_mutexattr_t,
        ceiling: libc::c_int,
    ) -> libc::c_int;
    fn pthread_mutex_getprioceiling(
        mutex: *const libc::pthread_mutex_t,
        ceiling: *mut libc::c_int,
    ) -> libc::c_int;
}

/// A mutex of the C library, for the threads of this process.
pub struct Mutex {
    // Boxed, because its address is its identity.
    raw: ManuallyDrop<Box<UnsafeCell<libc::pthread_mutex_t>>>,
}

// SAFETY: a mutex is made for use by several threads at once.
unsafe impl Send for Mutex {}
// SAFETY: as above; all access goes through the C library's functions.
unsafe impl Sync for Mutex {}

impl Mutex {
    /// Creates a free mutex with this protocol, which is read back; returns an error if the kernel
    /// or the C library does not know it.
    pub fn new(protocol: Protocol) -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: initialises the attributes.
        outcome(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialised by the call above.
        let mut attributes = unsafe { attributes.assume_init() };
        let mutex = set_protocol(&mut attributes, protocol).and_then(|()| Self::init(&attributes));
        // SAFETY: initialised, and not used any more.
        unsafe { libc::pthread_mutexattr_destroy(&raw mut attributes) };
        let mutex = mutex?;
        mutex.check_ceiling(protocol)?;
        Ok(mutex)
    }

    fn init(attributes: &libc::pthread_mutexattr_t) -> io::Result<Self> {
        let raw = Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));
        // SAFETY: the memory is live, and stays where it is until it is destroyed.
        outcome(unsafe { libc::pthread_mutex_init(raw.get(), attributes) })?;
        let raw = ManuallyDrop::new(raw);
        Ok(Self { raw })
    }

    /// Reads the ceiling back from the mutex itself; it has one with `PROTECT` only.
    fn check_ceiling(&self, protocol: Protocol) -> io::Result<()> {
        let Protocol::Protect(wanted) = protocol else {
            return Ok(());
        };
        let mut ceiling = 0;
        // SAFETY: the mutex is initialised, and `ceiling` is live.
        outcome(unsafe { pthread_mutex_getprioceiling(self.raw.get(), &raw mut ceiling) })?;
        same("the ceiling", wanted.into(), ceiling)
    }

    /// Waits until the mutex is free, and owns it.
    ///
    /// # Panics
    /// Panics if the C library refuses, which it does if the calling thread's priority is above
    /// the mutex's ceiling.
    #[inline]
    pub fn lock(&self) -> Owned<'_> {
        // SAFETY: the mutex is initialised and live.
        let result = unsafe { libc::pthread_mutex_lock(self.raw.get()) };
        assert!(result == 0, "pthread_mutex_lock: error {result}");
        Owned {
            mutex: self,
            thread_bound: PhantomData,
        }
    }
}

impl Drop for Mutex {
    fn drop(&mut self) {
        // It may be locked for ever, by an `Owned` that was forgotten; to destroy it then is
        // undefined (POSIX), and its memory must stay as it is.
        // SAFETY: the mutex is initialised and live; a normal one may be tried by any thread.
        if unsafe { libc::pthread_mutex_trylock(self.raw.get()) } == 0 {
            // SAFETY: the calling thread owns it, as of the line above.
            unsafe { libc::pthread_mutex_unlock(self.raw.get()) };
            // SAFETY: nobody owns it, nobody can any more, and it is not used again.
            unsafe {
                libc::pthread_mutex_destroy(self.raw.get());
                ManuallyDrop::drop(&mut self.raw);
            }
        }
    }
}

/// A mutex that the calling thread owns; when dropped, it is free again.
pub struct Owned<'a> {
    mutex: &'a Mutex,
    // Only the thread that owns a mutex may unlock it.
    thread_bound: PhantomData<*const ()>,
}

impl Owned<'_> {
    /// Gives the mutex back.
    #[inline]
    pub fn unlock(self) {}
}

impl Drop for Owned<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the mutex is live, and the calling thread owns it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.raw.get()) };
    }
}

fn set_protocol(attributes: &mut libc::pthread_mutexattr_t, protocol: Protocol) -> io::Result<()> {
    let mut found = -1;
    // SAFETY: the attributes are initialised, and `found` is live.
    unsafe {
        // Whoever locks a normal mutex twice waits for ever; with the default it is undefined.
        let normal = libc::PTHREAD_MUTEX_NORMAL;
        outcome(libc::pthread_mutexattr_settype(attributes, normal))?;
        outcome(libc::pthread_mutexattr_setprotocol(
            attributes,
            protocol.number(),
        ))?;
        if let Protocol::Protect(ceiling) = protocol {
            outcome(pthread_mutexattr_setprioceiling(attributes, ceiling.into()))?;
        }
        outcome(libc::pthread_mutexattr_getprotocol(
            attributes,
            &raw mut found,
        ))?;
    }
    same("the protocol", protocol.number(), found)
}

fn same(what: &str, wanted: libc::c_int, found: libc::c_int) -> io::Result<()> {
    if wanted == found {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{what} was set to {wanted}, but reads back as {found}"
    )))
}

/// Turns the result of a `pthread` function, which is an error number, into that error.
fn outcome(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_reads_back_and_an_impossible_ceiling_is_refused() {
        for protocol in [Protocol::None, Protocol::Inherit, Protocol::Protect(9)] {
            assert!(Mutex::new(protocol).is_ok(), "{}", protocol.name());
        }
        assert!(Mutex::new(Protocol::Protect(100)).is_err());
    }

    #[test]
    fn a_mutex_that_was_forgotten_while_locked_is_left_as_it_is() {
        let mutex = Mutex::new(Protocol::Inherit).unwrap();
        let raw: *const libc::pthread_mutex_t = mutex.raw.get();
        std::mem::forget(mutex.lock());
        drop(mutex);
        // SAFETY: a locked mutex is never freed.
        let result = unsafe { libc::pthread_mutex_trylock(raw.cast_mut()) };
        assert_eq!(result, libc::EBUSY);
    }

    #[test]
    fn a_mutex_that_its_owner_has_unlocked_is_free() {
        for protocol in [Protocol::None, Protocol::Inherit] {
            let mutex = Mutex::new(protocol).unwrap();
            mutex.lock().unlock();
            std::thread::scope(|scope| scope.spawn(|| mutex.lock().unlock()).join()).unwrap();
        }
    }
}
