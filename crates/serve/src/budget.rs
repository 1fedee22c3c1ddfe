// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost that requests may have: time, connections, and memory. The memory for an answer is
//! reserved before its runs are read, and given back when its last byte is sent. So memory is
//! bounded whatever the size of the runs, however many clients ask, and however slowly they read.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Limits on the number, the size and the duration of requests.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most connections at a time. One that has not sent its request yet gives way to the next.
    pub connections: usize,
    /// The time in which a request's head must arrive.
    pub head: Duration,
    /// The time for a request, from its first byte to the last one of its answer.
    pub whole: Duration,
    /// The time for which a client may read nothing while there is something to read.
    pub stall: Duration,
    /// The time for which a request waits for the memory for its answer.
    pub patience: Duration,
    /// The most memory that one answer may take, in bytes.
    pub request: u64,
    /// An answer that takes no more than this, in bytes, never waits for larger ones.
    pub ordinary: u64,
    /// The memory of all answers that take no more than that, in bytes.
    pub ordinary_memory: u64,
    /// The memory of all answers that take more, in bytes; at least that of one.
    pub large_memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            head: Duration::from_secs(10),
            whole: Duration::from_secs(300),
            stall: Duration::from_secs(20),
            patience: Duration::from_secs(60),
            request: 512 << 20,
            ordinary: 16 << 20,
            ordinary_memory: 256 << 20,
            large_memory: 768 << 20,
        }
    }
}

/// The least memory for the head and the lists of an answer, in bytes.
pub const BASE: u64 = 256 << 10;

/// The unit in which memory is reserved, in bytes.
const UNIT: u64 = 1 << 10;

/// Requests that are processed at once, and the memory that they share.
struct Lane {
    turns: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl Lane {
    fn new(turns: usize, memory: u64) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(turns)),
            memory: Arc::new(Semaphore::new(units(memory) as usize)),
        }
    }
}

/// Decides which requests may go on.
pub struct Lanes {
    limits: Limits,
    ordinary: Lane,
    large: Lane,
}

/// The reason why a request may not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// No request may have that much at once.
    TooLarge,
    /// Other requests have all that there is.
    Busy,
}

/// Memory that is reserved for as long as this lives.
#[derive(Debug)]
pub struct Hold(OwnedSemaphorePermit);

/// The turn of some work.
#[derive(Debug)]
pub struct Turn(
    #[expect(dead_code, reason = "it is given back when it is dropped")] OwnedSemaphorePermit,
);

impl Hold {
    /// Shrinks the reservation to `bytes`, if that is less.
    pub fn shrink_to(&mut self, bytes: u64) {
        let more = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(more));
    }
}

impl Lanes {
    /// The lanes of a site, with `at_once` ordinary requests processed at once, and two large ones.
    pub fn new(at_once: usize, limits: Limits) -> Self {
        Self {
            ordinary: Lane::new(at_once, limits.ordinary_memory),
            large: Lane::new(2, limits.large_memory.max(limits.request)),
            limits,
        }
    }

    fn of(&self, bytes: u64) -> &Lane {
        if bytes > self.limits.ordinary {
            &self.large
        } else {
            &self.ordinary
        }
    }

    /// Waits until there is room for an answer of this many bytes.
    pub async fn reserve(&self, bytes: u64) -> Result<Hold, Refused> {
        if bytes > self.limits.request {
            return Err(Refused::TooLarge);
        }
        let memory = Arc::clone(&self.of(bytes).memory);
        let units = u32::try_from(units(bytes)).map_err(|_| Refused::TooLarge)?;
        match timeout(self.limits.patience, memory.acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Hold(permit)),
            _ => Err(Refused::Busy),
        }
    }

    /// Waits for the turn of work on this many bytes, which lasts for as long as the result lives.
    pub async fn turn(&self, bytes: u64) -> Option<Turn> {
        let turns = Arc::clone(&self.of(bytes).turns);
        turns.acquire_owned().await.ok().map(Turn)
    }
}

fn units(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn limits() -> Limits {
        Limits {
            patience: Duration::ZERO,
            request: 100 << 10,
            ordinary: 10 << 10,
            ordinary_memory: 20 << 10,
            large_memory: 150 << 10,
            ..Limits::default()
        }
    }

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(future)
    }

    #[test]
    fn what_all_answers_take_is_bounded_and_large_ones_keep_no_ordinary_one_waiting() {
        let lanes = Lanes::new(1, limits());
        block_on(async {
            let reserve = |kib: u64| lanes.reserve(kib << 10);
            assert_eq!(reserve(101).await.unwrap_err(), Refused::TooLarge);
            let mut large = reserve(100).await.unwrap();
            assert_eq!(reserve(60).await.unwrap_err(), Refused::Busy);
            let ordinary = [reserve(10).await.unwrap(), reserve(10).await.unwrap()];
            assert_eq!(reserve(1).await.unwrap_err(), Refused::Busy);
            drop(ordinary);
            reserve(1).await.unwrap();
            // What its runs took is free once the answer is made.
            large.shrink_to(90 << 10);
            let other = reserve(60).await.unwrap();
            large.shrink_to(200 << 10);
            assert_eq!(reserve(11).await.unwrap_err(), Refused::Busy);
            drop((large, other));
            reserve(100).await.unwrap();
        });
    }

    #[test]
    fn work_that_nobody_waits_for_any_more_keeps_its_turn() {
        let lanes = Lanes::new(1, limits());
        block_on(async {
            let first = lanes.turn(1).await.unwrap();
            let mut second = pin!(lanes.turn(1));
            assert!(timeout(Duration::ZERO, second.as_mut()).await.is_err());
            drop(first);
            second.await.unwrap();
        });
    }
}
