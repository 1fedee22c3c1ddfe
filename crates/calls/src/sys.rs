// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls by their names, with unchecked arguments: for programs that a search has found.
//!
//! All unsafe code of this program. Such a program may do anything to its own process, which is
//! made for it and killed afterwards.
#![allow(unsafe_code)]

pub mod ring;

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::time::Duration;

use punctual_model::Nanos;

use punctual_agent::sys::process::Pid;
use punctual_agent::sys::{pipe, process, time};

/// True if programs of system calls run here: their arguments are those of 64-bit machines.
pub const IS_SUPPORTED: bool = cfg!(target_pointer_width = "64");

/// Turns the `-1` of a system call into the error that it stands for.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// The action of a program's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The system call of this number.
    System(i64),
    /// A child, by fork.
    Fork,
    /// A thread.
    Thread,
    /// Writes to each page.
    Touch,
    /// Ends the process.
    Exit,
    /// Kills all children, and waits for them.
    Reap,
    /// Submits entries to an `io_uring`.
    Submit,
    /// Takes the completions of an `io_uring`.
    Complete,
}

impl What {
    /// Returns the action with this name in the grammar.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "fork" => Self::Fork,
            "thread" => Self::Thread,
            "touch" => Self::Touch,
            "exit" => Self::Exit,
            "reap" => Self::Reap,
            "submit" => Self::Submit,
            "complete" => Self::Complete,
            name => Self::System(number(name)?),
        })
    }
}

macro_rules! numbers {
    ($($name:literal $number:ident)*) => {
        /// The number of a system call; `None` where there is none of that name that programs
        /// may use.
        #[cfg(target_pointer_width = "64")]
        fn number(name: &str) -> Option<i64> {
            Some(match name {
                $($name => libc::$number,)*
                _ => return None,
            })
        }
        #[cfg(not(target_pointer_width = "64"))]
        fn number(name: &str) -> Option<i64> {
            [$($name),*].contains(&name).then_some(-1)
        }
    };
}

numbers! {
    "add_key" SYS_add_key
    "bind" SYS_bind
    "bpf" SYS_bpf
    "capset" SYS_capset
    "clock_nanosleep" SYS_clock_nanosleep
    "close" SYS_close
    "close_range" SYS_close_range
    "connect" SYS_connect
    "copy_file_range" SYS_copy_file_range
    "dup" SYS_dup
    "epoll_create1" SYS_epoll_create1
    "epoll_ctl" SYS_epoll_ctl
    "epoll_pwait" SYS_epoll_pwait
    "eventfd2" SYS_eventfd2
    "execve" SYS_execve
    "fadvise64" SYS_fadvise64
    "fallocate" SYS_fallocate
    "fanotify_init" SYS_fanotify_init
    "fanotify_mark" SYS_fanotify_mark
    "fchdir" SYS_fchdir
    "fcntl" SYS_fcntl
    "fdatasync" SYS_fdatasync
    "flock" SYS_flock
    "fsconfig" SYS_fsconfig
    "fsetxattr" SYS_fsetxattr
    "fsmount" SYS_fsmount
    "fsopen" SYS_fsopen
    "fsync" SYS_fsync
    "ftruncate" SYS_ftruncate
    "futex" SYS_futex
    "getdents64" SYS_getdents64
    "getrandom" SYS_getrandom
    "inotify_add_watch" SYS_inotify_add_watch
    "inotify_init1" SYS_inotify_init1
    "io_uring_enter" SYS_io_uring_enter
    "io_uring_register" SYS_io_uring_register
    "io_uring_setup" SYS_io_uring_setup
    "ioctl" SYS_ioctl
    "ioprio_get" SYS_ioprio_get
    "ioprio_set" SYS_ioprio_set
    "kcmp" SYS_kcmp
    "keyctl" SYS_keyctl
    "kill" SYS_kill
    "linkat" SYS_linkat
    "listen" SYS_listen
    "lseek" SYS_lseek
    "madvise" SYS_madvise
    "mbind" SYS_mbind
    "membarrier" SYS_membarrier
    "memfd_create" SYS_memfd_create
    "mincore" SYS_mincore
    "mkdirat" SYS_mkdirat
    "mlock" SYS_mlock
    "mlock2" SYS_mlock2
    "mlockall" SYS_mlockall
    "mmap" SYS_mmap
    "mount" SYS_mount
    "mprotect" SYS_mprotect
    "mq_open" SYS_mq_open
    "mq_timedreceive" SYS_mq_timedreceive
    "mq_timedsend" SYS_mq_timedsend
    "mremap" SYS_mremap
    "msgctl" SYS_msgctl
    "msgget" SYS_msgget
    "msgrcv" SYS_msgrcv
    "msgsnd" SYS_msgsnd
    "msync" SYS_msync
    "munlock" SYS_munlock
    "munlockall" SYS_munlockall
    "munmap" SYS_munmap
    "nanosleep" SYS_nanosleep
    "openat" SYS_openat
    "perf_event_open" SYS_perf_event_open
    "pidfd_open" SYS_pidfd_open
    "pidfd_send_signal" SYS_pidfd_send_signal
    "pipe2" SYS_pipe2
    "ppoll" SYS_ppoll
    "prctl" SYS_prctl
    "pread64" SYS_pread64
    "pselect6" SYS_pselect6
    "pwrite64" SYS_pwrite64
    "read" SYS_read
    "recvfrom" SYS_recvfrom
    "recvmsg" SYS_recvmsg
    "renameat2" SYS_renameat2
    "rt_sigprocmask" SYS_rt_sigprocmask
    "rt_sigqueueinfo" SYS_rt_sigqueueinfo
    "rt_sigtimedwait" SYS_rt_sigtimedwait
    "sched_setaffinity" SYS_sched_setaffinity
    "sched_setattr" SYS_sched_setattr
    "sched_setscheduler" SYS_sched_setscheduler
    "sched_yield" SYS_sched_yield
    "seccomp" SYS_seccomp
    "semctl" SYS_semctl
    "semget" SYS_semget
    "semop" SYS_semop
    "sendfile" SYS_sendfile
    "sendmsg" SYS_sendmsg
    "sendto" SYS_sendto
    "setpriority" SYS_setpriority
    "setsockopt" SYS_setsockopt
    "shmat" SYS_shmat
    "shmctl" SYS_shmctl
    "shmdt" SYS_shmdt
    "shmget" SYS_shmget
    "shutdown" SYS_shutdown
    "signalfd4" SYS_signalfd4
    "socket" SYS_socket
    "socketpair" SYS_socketpair
    "splice" SYS_splice
    "statfs" SYS_statfs
    "symlinkat" SYS_symlinkat
    "sync" SYS_sync
    "tee" SYS_tee
    "timer_create" SYS_timer_create
    "timer_delete" SYS_timer_delete
    "timer_settime" SYS_timer_settime
    "timerfd_create" SYS_timerfd_create
    "timerfd_settime" SYS_timerfd_settime
    "umount2" SYS_umount2
    "unlinkat" SYS_unlinkat
    "unshare" SYS_unshare
    "userfaultfd" SYS_userfaultfd
    "vmsplice" SYS_vmsplice
    "wait4" SYS_wait4
    "write" SYS_write
}

/// The memory to which programs point, and the counts that remain when they are killed.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// A page that forked processes share: two futexes, and the counts.
    shared: usize,
    /// A buffer as large as the largest size that is read or written.
    buffer: usize,
    /// The moment that all share.
    soon: Nanos,
}

/// The size of the buffer: at least a byte for each page of the largest mapping.
const BUFFER: usize = 16 << 20;
/// The part of it that holds zeros.
const ZEROS: usize = 4096;
const PAGE: usize = 4096;

impl Memory {
    /// Allocates memory for processes that are forked from now on.
    pub fn new() -> io::Result<Self> {
        let map = |length: usize, flags| {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let flags = flags | libc::MAP_ANONYMOUS;
            // SAFETY: maps memory where there is none.
            let place = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, -1, 0) };
            if place == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            Ok(place as usize)
        };
        Ok(Self {
            shared: map(PAGE, libc::MAP_SHARED)?,
            buffer: map(ZEROS + BUFFER, libc::MAP_PRIVATE)?,
            soon: Nanos::ZERO,
        })
    }

    /// Resets it for a program that begins now.
    pub fn begin(&mut self, soon: Nanos) {
        self.soon = time::now() + soon;
        for word in 0..8 {
            self.store(word, 0);
        }
    }

    /// Returns the value that a word of the grammar stands for.
    pub fn place(&self, word: &str) -> Option<i64> {
        const SECOND: i64 = 1_000_000_000;
        Some(match word {
            "shared" => self.shared as i64,
            "shared2" => (self.shared + 64) as i64,
            "zeros" => self.buffer as i64,
            "buffer" => (self.buffer + ZEROS) as i64,
            "soon.s" => self.soon.0 / SECOND,
            "soon.ns" => self.soon.0 % SECOND,
            "self" => i64::from(std::process::id()),
            "ring" => ring::told(),
            _ => return None,
        })
    }

    /// Counts a call of the program's own process.
    pub fn count(&self, is_failed: bool) {
        self.store(4, self.load(4) + 1);
        self.store(5, self.load(5) + u64::from(is_failed));
    }

    /// Notes that the program could not be started.
    pub fn not_begun(&self) {
        self.store(6, 1);
    }

    /// Returns true unless it is known that the program could not be started.
    pub fn is_begun(&self) -> bool {
        self.load(6) == 0
    }

    /// Returns the number of calls made, and how many of them the kernel refused.
    pub fn counted(&self) -> (u64, u64) {
        (self.load(4), self.load(5))
    }

    /// Returns a word after both futexes, each of which has a cache line of its own.
    fn word(&self, number: usize) -> *mut u64 {
        (self.shared + 32 * number) as *mut u64
    }

    fn load(&self, number: usize) -> u64 {
        // SAFETY: it is in the page, which stays.
        unsafe { self.word(number).read_volatile() }
    }

    fn store(&self, number: usize, value: u64) {
        // SAFETY: likewise; no reference to it is ever made.
        unsafe { self.word(number).write_volatile(value) }
    }
}

/// Makes a system call. Returns its result, or a number below 0 if it is refused.
pub fn call(number: i64, arguments: &[i64]) -> i64 {
    let argument = |index: usize| arguments.get(index).copied().unwrap_or(0);
    // SAFETY: it is one that a program was asked to make, in a process of its own: addresses are
    // those of memory that the process has for that, or of mappings that the program has made.
    // Whatever becomes of the process, nobody else has its memory.
    let result = unsafe {
        libc::syscall(
            number as libc::c_long,
            argument(0),
            argument(1),
            argument(2),
            argument(3),
            argument(4),
            argument(5),
        )
    };
    result as i64
}

/// Reads a word that a system call may have written.
pub fn read(word: &u64) -> u64 {
    // SAFETY: a reference is valid to read from.
    unsafe { std::ptr::from_ref(word).read_volatile() }
}

/// Writes to each page of a mapping, given its address and its size, up to a size.
pub fn touch(arguments: &[i64]) -> i64 {
    let [address, size, most] = arguments else {
        return -1;
    };
    for offset in (0..*size.min(most)).step_by(PAGE) {
        // SAFETY: the program has mapped it. Where it may not write to it, its process ends.
        unsafe { ((address + offset) as usize as *mut u8).write_volatile(1) }
    }
    0
}

/// Ends the process.
pub fn exit() -> ! {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(0) }
}

/// Runs `body` in a child, which never returns from here. Returns its number, or one below 0.
pub fn fork(body: impl FnOnce()) -> i64 {
    // SAFETY: the C library's own fork leaves its allocator usable in the child, whatever other
    // threads do; nothing else of the library that takes a lock is used there.
    match unsafe { libc::fork() } {
        0 => {
            body();
            exit()
        }
        child => i64::from(child),
    }
}

/// Starts a thread; returns 0, or a number below 0.
pub fn thread(body: impl FnOnce() + Send + 'static) -> i64 {
    let started = std::thread::Builder::new().stack_size(64 << 10).spawn(body);
    started.map_or(-1, |_| 0)
}

/// Does nothing, until it is killed.
pub fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: waits for a signal.
        unsafe { libc::pause() };
    }
}

/// Kills all children of this process, and those that become its children as a result, and waits
/// until there are none.
pub fn reap() {
    loop {
        for child in children() {
            process::kill(child);
        }
        match process::wait(-1) {
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Returns the children of all threads of this process.
fn children() -> Vec<Pid> {
    let threads = std::fs::read_dir("/proc/self/task");
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.flat_map(|thread| std::fs::read_to_string(thread.path().join("children")));
    lists
        .flat_map(|list| {
            let children = list.split_whitespace().flat_map(str::parse);
            children.collect::<Vec<Pid>>()
        })
        .collect()
}

/// Waits until a child has ended, for at most `limit`; returns true if it has.
pub fn ends_within(child: Pid, limit: Nanos) -> io::Result<bool> {
    // SAFETY: the child is not waited for yet, so the number is its own.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, child, 0) };
    let descriptor = check(descriptor as libc::c_int)?;
    // SAFETY: the kernel has just given it to us.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    pipe::wait_readable(std::os::fd::AsFd::as_fd(&descriptor), Some(limit))
}

/// Gives the kernel time to end what processes have left behind.
pub fn settle(span: Nanos) {
    std::thread::sleep(Duration::from_nanos(span.0.unsigned_abs()));
}

/// The user without rights.
const NOBODY: libc::c_uint = 65_534;

/// Becomes an ordinary user for good, if this process is root.
pub fn become_ordinary() -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    // SAFETY: no pointers but a null pointer for no groups.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
        // Else its own files in /proc would be root's.
        check(libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0))?;
    }
    Ok(())
}

/// Enters a new namespace for objects of IPC, which end with it. An ordinary user cannot: then
/// the objects remain.
pub fn own_ipc() {
    // SAFETY: no pointers. A process that was just forked has one thread.
    let _ = unsafe { libc::unshare(libc::CLONE_NEWIPC) };
}

/// Gives a directory to that user, if this process is root.
pub fn give_away(path: &std::path::Path) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY))
}

/// Raises the limit of descriptors to `at_most`, or as far as this process may.
pub fn raise_descriptors(at_most: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = |most: Option<u64>| {
        setrlimit(
            Resource::Nofile,
            Rlimit {
                current: most,
                maximum: most,
            },
        )
    };
    // An ordinary user has what there is.
    if raised(Some(at_most)).is_err() {
        let _ = raised(limit.maximum);
    }
}
