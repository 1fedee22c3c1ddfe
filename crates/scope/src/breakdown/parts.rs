// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts, without gaps.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::attribution::{Attribution, end_of};
use super::attribution::{GRAIN, MOST};
use super::part::{Cause, Part, PathStage};
use crate::names::CodeKind;
use crate::walk::{Number, Task};

/// A part while it is being made.
pub(super) struct Piece {
    pub(super) stage: PathStage,
    pub(super) cause: Cause,
    pub(super) site: Option<Number>,
    /// The CPU.
    pub(super) cpu: u32,
    pub(super) task: Task,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// The range of its spans.
    pub(super) spans: std::ops::Range<usize>,
}

/// Merges pieces. Where preemption was possible again and again, and the thread went on, preemption
/// was not the obstacle: another thread had the CPU, and that is one piece.
fn together(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut together = Vec::new();
    let mut stretch: Vec<Piece> = Vec::new();
    for piece in pieces {
        if stretch.last().is_some_and(|last| !goes_on(last, &piece)) {
            together.append(&mut as_one(std::mem::take(&mut stretch)));
        }
        stretch.push(piece);
    }
    together.append(&mut as_one(stretch));
    together
}

/// Returns true if a thread has the CPU in both pieces while another one is to be switched to.
fn goes_on(before: &Piece, piece: &Piece) -> bool {
    let waits = |piece: &Piece| {
        let held = [Cause::IrqsOff, Cause::PreemptOff, Cause::Lock];
        let other = piece.cause == Cause::OtherThread;
        piece.stage == PathStage::Switch && (other || held.contains(&piece.cause))
    };
    waits(before) && waits(piece) && before.task == piece.task
}

/// Returns the pieces of a stretch: one, if preemption was possible for a tenth of it or more.
fn as_one(stretch: Vec<Piece>) -> Vec<Piece> {
    let [first, .., last] = &stretch[..] else {
        return stretch;
    };
    let possible = stretch
        .iter()
        .filter(|piece| piece.cause == Cause::OtherThread);
    let possible = possible.fold(Nanos::ZERO, |sum, piece| sum + (piece.to - piece.from));
    if possible * 10 < last.to - first.from {
        return stretch;
    }
    vec![Piece {
        cause: Cause::OtherThread,
        site: None,
        to: last.to,
        spans: first.spans.start..last.spans.end,
        ..*first
    }]
}

impl Attribution<'_> {
    pub(super) fn parts(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let watched = self.walk.spans.first().map_or(self.end, |span| span.from);
        // Of a long wait the trace keeps the end only: its first span begins with the trace.
        let unwatched = self.at(self.begin.max(watched)) > GRAIN;
        if self.slept || watched > self.begin || unwatched {
            pieces.push(Piece {
                stage: PathStage::Interrupt,
                cause: if self.slept {
                    Cause::Idle
                } else {
                    Cause::Unseen
                },
                site: None,
                cpu: self.walk.cpu,
                task: 0,
                from: Nanos::ZERO,
                to: self.at(self.begin.max(watched)),
                spans: self.spans.start..self.spans.start,
            });
        }
        for number in self.spans.clone() {
            let span = &self.walk.spans[number];
            let from = span.from.max(self.begin);
            let (stage, cpu) = self.stage(from);
            let (cause, site) = self.cause_on(span, stage, cpu);
            let to = self.at(end_of(span).min(self.end));
            let by_thread = matches!(cause, Cause::OtherThread | Cause::Asleep) || cause.is_turn();
            match pieces.last_mut() {
                Some(last)
                    if (last.stage, last.cause, last.site) == (stage, cause, site)
                        && last.cpu == span.cpu
                        && (last.task == span.task || !by_thread)
                        && !last.spans.is_empty() =>
                {
                    last.to = to;
                    last.spans.end = number + 1;
                }
                _ => {
                    let from = pieces.last().map_or(Nanos::ZERO, |last| last.to);
                    pieces.push(Piece {
                        stage,
                        cause,
                        site,
                        cpu: span.cpu,
                        task: span.task,
                        from,
                        to,
                        spans: number..number + 1,
                    });
                }
            }
        }
        pieces.retain(|piece| piece.to > piece.from);
        together(pieces)
    }

    /// Corrects the cause where the kernel is not preempted at all. If it was not preemptible for a
    /// reason of its own most of the time, that is the cause.
    pub(super) fn mend(&self, pieces: &mut [Piece]) {
        for piece in pieces.iter_mut() {
            if piece.cause != Cause::NotPreemptible {
                continue;
            }
            let mut sites: HashMap<Number, u64> = HashMap::new();
            for span in &self.walk.spans[piece.spans.clone()] {
                if let Some(site) = span.preempt_off {
                    *sites.entry(site).or_default() += u64::from(span.length);
                }
            }
            let sites = sites.into_iter();
            let longest = sites.max_by_key(|(site, length)| (*length, *site));
            if let Some((site, length)) = longest {
                let whole = (piece.to - piece.from).0 as f64;
                if self.about.clock.time(length).0 as f64 >= MOST * whole {
                    (piece.cause, piece.site) = (self.preempt_hold(site), Some(site));
                }
            }
        }
    }

    pub(super) fn part(&self, piece: &Piece) -> Part {
        let (main, within) = if self.is_of_program(piece) {
            self.lines(piece)
        } else {
            self.main(piece)
        };
        Part {
            stage: piece.stage,
            cause: piece.cause,
            from: piece.from,
            length: piece.to - piece.from,
            by: piece.site.map(|site| self.site(piece, site)),
            cpu: self.walk.in_turn.then_some(piece.cpu),
            thread: self.thread(piece.task).to_owned(),
            main,
            within,
        }
    }

    /// Returns the function that did it itself, or that had a lock or the like do it.
    fn site(&self, piece: &Piece, site: Number) -> String {
        let helper =
            |number: &Number| !matches!(self.kind(*number), CodeKind::Lock | CodeKind::Switch);
        let own = self.walk.chain(site).find(helper).unwrap_or(site);
        let line = self
            .line_of(site)
            .filter(|_| piece.stage == PathStage::Wait);
        if let Some(line) = line {
            return format!("{} in {line}", self.call(piece, site));
        }
        if own == site {
            return self.text(site).to_owned();
        }
        format!("{} in {}", self.text(site), self.text(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates consecutive pieces of these tasks, holds and lengths.
    fn pieces(of: &[(Task, Cause, i64)]) -> Vec<Piece> {
        let mut at = 0;
        let piece = |(number, (task, cause, length)): (usize, &(Task, Cause, i64))| {
            let from = at;
            at += length;
            Piece {
                stage: PathStage::Switch,
                cause: *cause,
                site: None,
                cpu: 0,
                task: *task,
                from: Nanos(from),
                to: Nanos(at),
                spans: number..number + 1,
            }
        };
        of.iter().enumerate().map(piece).collect()
    }

    fn shape(of: &[(Task, Cause, i64)]) -> Vec<(Task, Cause, i64)> {
        let shape = |piece: &Piece| (piece.task, piece.cause, (piece.to - piece.from).0);
        together(pieces(of)).iter().map(shape).collect()
    }

    #[test]
    fn a_thread_that_could_be_preempted_again_and_again_is_one_piece() {
        let stretch = [
            (1, Cause::OtherThread, 300),
            (1, Cause::PreemptOff, 11),
            (1, Cause::OtherThread, 200),
            (1, Cause::Lock, 72),
            (1, Cause::IrqsOff, 2),
            (1, Cause::OtherThread, 100),
            (1, Cause::Scheduler, 900),
            (2, Cause::OtherThread, 50),
            (3, Cause::OtherThread, 60),
        ];
        let expected = [
            (1, Cause::OtherThread, 685),
            (1, Cause::Scheduler, 900),
            (2, Cause::OtherThread, 50),
            (3, Cause::OtherThread, 60),
        ];
        assert_eq!(shape(&stretch), expected);
        let first = &together(pieces(&stretch))[0];
        assert_eq!(first.spans, 0..6);
    }

    #[test]
    fn a_lock_behind_which_the_scheduler_comes_at_once_is_the_lock() {
        let stretch = [
            (1, Cause::IrqsOff, 5),
            (1, Cause::Lock, 998_685),
            (1, Cause::OtherThread, 26),
            (1, Cause::Scheduler, 900),
        ];
        assert_eq!(shape(&stretch), stretch);
    }
}
