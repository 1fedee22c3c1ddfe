// SPDX-License-Identifier: MIT OR Apache-2.0
//! hackbench: groups of senders and receivers that pass messages as fast as they can.
//!
//! The same work as the program of that name in rt-tests, which goes back to Rusty
//! Russell's scheduler test of 2001: in each group `fds` senders write `loops` messages of
//! `size` bytes to each of `fds` receivers. The time runs from the signal to start until
//! the last worker has ended.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use punctual_model::Nanos;
use serde::Deserialize;

use crate::sys::{pipe, process, sched, signal, time};
use crate::threads;

/// The stack of a worker that is a thread: small, since there may be thousands.
const STACK: usize = 64 * 1024;

/// The way in which messages are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ipc {
    /// A pair of Unix stream sockets.
    #[default]
    Socket,
    /// A pipe.
    Pipe,
    /// A TCP connection over the loopback.
    Inet,
}

/// The kind of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A process.
    #[default]
    Process,
    /// A thread.
    Thread,
}

/// One execution's parameters; the defaults are those of the known program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The way in which messages are sent.
    pub ipc: Ipc,
    /// The kind of a worker.
    pub mode: Mode,
    /// The number of groups.
    pub groups: u32,
    /// The number of senders, and also of receivers, in a group.
    pub fds: u32,
    /// The number of messages that each sender writes to each receiver.
    pub loops: u32,
    /// A message's size in bytes.
    pub size: usize,
    /// True if the thread that starts and collects the workers is `SCHED_FIFO` 1.
    pub fifo: bool,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            ipc: Ipc::Socket,
            mode: Mode::Process,
            groups: 10,
            fds: 20,
            loops: 100,
            size: 100,
            fifo: false,
        }
    }
}

impl Job {
    /// The number of workers.
    pub fn workers(&self) -> u32 {
        self.groups * self.fds * 2
    }
}

/// Does the work once, and counts each message that is written. Returns the time from the
/// signal to start until the last worker had ended; `None` if a worker was ended before its
/// work was done.
pub fn run(job: &Job, messages: &AtomicU64) -> io::Result<Option<Nanos>> {
    let gate = Gate::new()?;
    match job.mode {
        Mode::Process => run_processes(job, &gate, messages),
        Mode::Thread => run_threads(job, &gate, messages),
    }
}

/// The gate where all workers wait until the last of them is ready.
struct Gate {
    ready: (OwnedFd, File),
    wake: (OwnedFd, File),
}

impl Gate {
    fn new() -> io::Result<Self> {
        let (ready, tell) = pipe::pipe()?;
        let (wake, open) = pipe::pipe()?;
        Ok(Self {
            ready: (ready, tell.into()),
            wake: (wake, open.into()),
        })
    }

    /// Reports that a worker is ready, and waits.
    fn wait(&self) -> io::Result<()> {
        (&self.ready.1).write_all(b"r")?;
        pipe::wait_readable(self.wake.0.as_fd(), None)?;
        Ok(())
    }

    /// Waits until that many workers are ready.
    fn wait_for(&self, workers: u32) -> io::Result<()> {
        let mut ready = vec![0; workers as usize];
        File::from(self.ready.0.try_clone()?).read_exact(&mut ready)
    }

    /// Lets all workers go, and returns the time.
    fn open(&self) -> io::Result<Nanos> {
        let start = time::now();
        (&self.wake.1).write_all(b"w")?;
        Ok(start)
    }
}

fn channel(ipc: Ipc) -> io::Result<(File, File)> {
    match ipc {
        Ipc::Pipe => pipe::pipe().map(|(read, write)| (read.into(), write.into())),
        Ipc::Socket => {
            let (one, other) = UnixStream::pair()?;
            Ok((OwnedFd::from(one).into(), OwnedFd::from(other).into()))
        }
        Ipc::Inet => {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let one = TcpStream::connect(listener.local_addr()?)?;
            let (other, _) = listener.accept()?;
            Ok((OwnedFd::from(one).into(), OwnedFd::from(other).into()))
        }
    }
}

fn send(job: &Job, gate: &Gate, outputs: &[File], counter: &AtomicU64) -> io::Result<()> {
    let message = vec![b'-'; job.size];
    gate.wait()?;
    for _ in 0..job.loops {
        for mut output in outputs {
            output.write_all(&message)?;
        }
        counter.fetch_add(outputs.len() as u64, Ordering::Relaxed);
    }
    Ok(())
}

fn receive(job: &Job, gate: &Gate, mut input: &File) -> io::Result<()> {
    let mut message = vec![0; job.size];
    gate.wait()?;
    for _ in 0..job.fds * job.loops {
        input.read_exact(&mut message)?;
    }
    Ok(())
}

fn run_processes(job: &Job, gate: &Gate, counter: &AtomicU64) -> io::Result<Option<Nanos>> {
    let mut workers = Vec::new();
    for _ in 0..job.groups {
        if let Err(error) = fork_group(job, gate, counter, &mut workers) {
            // Those that there are would wait at the gate for ever.
            for worker in workers {
                process::kill(worker);
            }
            let workers = job.workers();
            return Err(io::Error::other(format!(
                "cannot start {workers} workers: {error}"
            )));
        }
    }
    gate.wait_for(job.workers())?;
    take_priority(job)?;
    let start = gate.open()?;
    let mut all_done = true;
    for worker in workers {
        all_done &= process::wait(worker)?.status.success();
    }
    Ok(all_done.then_some(time::now() - start))
}

/// Takes the priority. Workers do not inherit it, since they already exist.
fn take_priority(job: &Job) -> io::Result<()> {
    if job.fifo {
        sched::set_fifo(1)?;
    }
    Ok(())
}

fn fork_group(
    job: &Job,
    gate: &Gate,
    counter: &AtomicU64,
    workers: &mut Vec<process::Pid>,
) -> io::Result<()> {
    let parent = std::process::id();
    let mut outputs = Vec::new();
    for _ in 0..job.fds {
        let (input, output) = channel(job.ipc)?;
        workers.push(process::fork(|| {
            end_with(parent)?;
            receive(job, gate, &input)
        })?);
        outputs.push(output);
    }
    for _ in 0..job.fds {
        workers.push(process::fork(|| {
            end_with(parent)?;
            send(job, gate, &outputs, counter)
        })?);
    }
    Ok(())
}

/// Makes the calling worker end with its parent; returns an error if that has already ended.
fn end_with(parent: u32) -> io::Result<()> {
    signal::die_with_parent()?;
    if std::os::unix::process::parent_id() == parent {
        Ok(())
    } else {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

/// A thread of a group.
enum Worker<'a> {
    Receiver(&'a File),
    Sender(&'a [File]),
}

fn run_threads(job: &Job, gate: &Gate, counter: &AtomicU64) -> io::Result<Option<Nanos>> {
    let mut groups = Vec::new();
    for _ in 0..job.groups {
        let pairs = (0..job.fds)
            .map(|_| channel(job.ipc))
            .collect::<io::Result<Vec<_>>>()?;
        groups.push(pairs.into_iter().unzip::<_, _, Vec<_>, Vec<_>>());
    }
    let work = |worker: Worker<'_>| match worker {
        Worker::Receiver(input) => receive(job, gate, input),
        Worker::Sender(outputs) => send(job, gate, outputs, counter),
    };
    let work = &work;
    thread::scope(|scope| {
        let workers = groups.iter().flat_map(|(inputs, outputs)| {
            let senders = (0..job.fds).map(move |_| Worker::Sender(outputs));
            inputs.iter().map(Worker::Receiver).chain(senders)
        });
        // Without one of its workers the job could not end.
        let workers = threads::start_all(scope, Some(STACK), workers, work);
        let workers = workers.map_err(|why| io::Error::other(why.to_string()))?;
        gate.wait_for(job.workers())?;
        take_priority(job)?;
        let start = gate.open()?;
        for worker in workers {
            let done = worker.join();
            done.map_err(|why| io::Error::other(why.to_string()))??;
        }
        Ok(Some(time::now() - start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_passed() {
        for ipc in [Ipc::Socket, Ipc::Pipe, Ipc::Inet] {
            let job = Job {
                ipc,
                mode: Mode::Thread,
                groups: 2,
                fds: 3,
                loops: 5,
                size: 10,
                fifo: false,
            };
            let messages = AtomicU64::new(0);
            assert!(run(&job, &messages).unwrap() > Some(Nanos::ZERO));
            assert_eq!(messages.into_inner(), 2 * 3 * 3 * 5);
        }
    }
}
