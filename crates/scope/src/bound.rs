// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bounds the scheduling latency of the thread of the highest priority, by the theorem of Bristot,
//! Casini, Abeni and Brandenburg, *Demystifying the Real-Time Linux Scheduling Latency* (ECRTS
//! 2020, <https://doi.org/10.4230/LIPIcs.ECRTS.2020.9>).
//!
//! L is the least positive value with `L = max(D_ST, D_POID) + D_PAIE + D_PSD + I(L)`, where I(t)
//! is how long interrupts keep the CPU in any window of length t. All inputs were observed, in
//! whole runs. So L is a bound for each alignment of what was observed, and not for a path that
//! never ran.

mod interference;

use punctual_model::{Nanos, Run};

pub use interference::{Interference, Interrupts, Vector};

use crate::preemptibility::Preemptibility;
use crate::survey::{Delay, DelayKind, Survey};

/// The limit above which no bound is sought, as in the authors' own tool.
pub const CAP: Nanos = Nanos::from_millis(100);

/// The longest delay of a timer for which an idle CPU waits: the bench's clocks are that coarse.
pub const TIMER_GRAIN: Nanos = Nanos(100);

/// The probe whose samples are compared with the bound: it measures from when a timer is due to the
/// first reading of the clock in a thread of high priority.
const PROBE: &str = "timer";

/// The longest delay of a kind, with its run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worst {
    /// The run's id.
    pub run: String,
    /// The delay.
    pub delay: Delay,
}

/// The worst sample, with which the bound is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// The run's id.
    pub run: String,
    /// Its recording's title.
    pub recording: String,
    /// Its lateness.
    pub late: Nanos,
    /// The time for which something was off after the moment when it was due, and the time for
    /// which interrupts were handled; `None` if that is not known.
    pub parts: Option<(Nanos, Nanos)>,
    /// Time from it to a second aimed timer; `None` if there was none.
    pub second: Option<Nanos>,
}

/// A part of the bound, and of the latest aimed sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The part.
    pub part: Share,
    /// Its length in the bound.
    pub bound: Nanos,
    /// Its length in the sample.
    pub reached: Nanos,
}

/// A part of a bound, as far as a sample can be compared with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Something is off: max(`D_ST`, `D_POID`).
    Off,
    /// Interrupts.
    Interrupts,
    /// The path: `D_PAIE`, `D_PSD` and the way back to the sample.
    Path,
}

impl Share {
    /// Returns the part in words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "what is off",
            Self::Interrupts => "interrupts",
            Self::Path => "the path",
        }
    }
}

/// A bound with one model of interference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The model of interference.
    pub interference: Interference,
    /// L: the thread is scheduled within this time; `None` if none was found below [`CAP`].
    pub scheduled: Option<Nanos>,
    /// The same, up to the reading of the clock in user space. It is also `None` if no way back was
    /// seen.
    pub sampled: Option<Nanos>,
}

/// The observations from several runs of one subject, and the bounds that follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The longest delay of each kind.
    pub delays: Vec<Worst>,
    /// The interrupts.
    pub interrupts: Interrupts,
    /// The longest way from the switch to a sample of the probe `timer`.
    pub way_back: Option<Nanos>,
    /// The bounds; empty if the model does not fit.
    pub latencies: Vec<Latency>,
    /// The reason why it does not fit.
    pub misfit: Option<String>,
    /// The worst sample of `timer`, if there is one.
    pub observed: Option<Observed>,
    /// The latest aimed sample of the runs, if one is known.
    pub reached: Option<Observed>,
    /// The number of times that a delay of the kind `D_PAIE` was not alone, although the model
    /// assumes that it is.
    pub detours: u64,
    /// The number of times that the followed state had to be corrected.
    pub mended: u64,
    /// The number of all instructions.
    pub instructions: u64,
}

/// Pools the surveys of runs of one subject.
pub fn bound(surveyed: &[(&Run, Survey)]) -> Bound {
    let worst = |kind: DelayKind| {
        let delays = surveyed.iter().flat_map(|(run, survey)| {
            let delays = survey.delays.longest.iter();
            delays.map(|delay| (run.id.clone(), delay.clone()))
        });
        let of_kind = delays.filter(|(_, delay)| delay.kind == kind);
        let (run, mut delay) = of_kind.clone().max_by_key(|(_, delay)| delay.longest)?;
        delay.count = of_kind.map(|(_, delay)| delay.count).sum();
        Some(Worst { run, delay })
    };
    let sum = |of: fn(&Survey) -> u64| surveyed.iter().map(|(_, survey)| of(survey)).sum();
    let mut bound = Bound {
        delays: DelayKind::ALL.into_iter().filter_map(worst).collect(),
        interrupts: Interrupts::of(surveyed.iter().map(|(_, survey)| &survey.delays)),
        way_back: surveyed.iter().filter_map(way_back).max(),
        latencies: Vec::new(),
        misfit: surveyed.iter().find_map(misfit),
        observed: observed(surveyed),
        reached: None,
        detours: sum(|survey| survey.delays.detours),
        mended: sum(|survey| survey.mended),
        instructions: sum(|survey| survey.instructions),
    };
    if bound.misfit.is_none() {
        bound.latencies = Interference::ALL.map(|told| bound.latency(told)).to_vec();
        bound.misfit = bound.contradiction();
        if bound.misfit.is_some() {
            bound.latencies.clear();
        }
    }
    bound
}

impl Bound {
    /// Returns the longest delay of a kind; 0 if there was none.
    pub fn delay(&self, kind: DelayKind) -> Nanos {
        let mut delays = self.delays.iter();
        let found = delays.find(|worst| worst.delay.kind == kind);
        found.map_or(Nanos::ZERO, |worst| worst.delay.longest)
    }

    /// Returns the reason why it cannot be a bound: what it was made of contradicts it.
    fn contradiction(&self) -> Option<String> {
        if self.delay(DelayKind::St) == Nanos::ZERO {
            return Some(
                "no switch between threads was followed, so what is off is unknown".into(),
            );
        }
        let sure = [
            Interference::SlidingWindow,
            Interference::SlidingWindowWorst,
        ];
        let of_sure = |one: &&Latency| sure.contains(&one.interference);
        let latencies = self.latencies.iter().filter(of_sure);
        let least = latencies.filter_map(|one| one.sampled).min()?;
        let seen = self.observed.as_ref()?;
        (seen.late > least).then(|| {
            let (late, run) = (seen.late, &seen.run);
            format!("a sample of {run} was {late} late, and the bound would be {least}")
        })
    }

    /// Returns the parts of the longest bound with their lengths in the latest aimed sample, those
    /// that lack most first; empty if one of the two is not known.
    pub fn apart(&self) -> Vec<Apart> {
        let most = self.latencies.iter().filter_map(|one| one.sampled).max();
        let reached = self.reached.as_ref();
        let parts = reached.and_then(|reached| Some((reached.late, reached.parts?)));
        let (Some(most), Some(way), Some((late, (off, interrupts)))) = (most, self.way_back, parts)
        else {
            return Vec::new();
        };
        let waits = self.delay(DelayKind::St).max(self.delay(DelayKind::Poid));
        let path = self.free() - waits + way + TIMER_GRAIN;
        let bounds = [waits, most - waits - path, path];
        let found = [off, interrupts, late - off - interrupts];
        let shares = [Share::Off, Share::Interrupts, Share::Path];
        let each = shares.into_iter().zip(bounds.into_iter().zip(found));
        let mut all: Vec<Apart> = each
            .map(|(part, (bound, reached))| Apart {
                part,
                bound,
                reached,
            })
            .collect();
        all.sort_by_key(|one| one.reached - one.bound);
        all
    }

    /// Returns the latency without interrupts.
    pub fn free(&self) -> Nanos {
        let waits = self.delay(DelayKind::St).max(self.delay(DelayKind::Poid));
        waits + self.delay(DelayKind::Paie) + self.delay(DelayKind::Psd)
    }

    fn latency(&self, interference: Interference) -> Latency {
        let least = |free| fixed_point(free, |window| self.interrupts.keep(interference, window));
        Latency {
            interference,
            scheduled: least(self.free()),
            sampled: self
                .way_back
                .and_then(|way| least(self.free() + way + TIMER_GRAIN)),
        }
    }
}

/// Returns the least positive L with L = `free` + `interference`(L), where the latter never falls;
/// `None` if that is above [`CAP`].
pub fn fixed_point(free: Nanos, interference: impl Fn(Nanos) -> Option<Nanos>) -> Option<Nanos> {
    let mut latency = free.max(Nanos(1));
    while latency <= CAP {
        let next = (free + interference(latency)?).max(Nanos(1));
        if next <= latency {
            return Some(latency);
        }
        latency = next;
    }
    None
}

fn misfit((run, survey): &(&Run, Survey)) -> Option<String> {
    let of = &run.id;
    if Preemptibility::of(run) != Preemptibility::Rt {
        return Some(format!(
            "the kernel of {of} is not PREEMPT_RT, which the theorem is about: soft interrupts run \
             within interrupts there, spinning locks switch preemption off, and a thread waits \
             for more than these delays"
        ));
    }
    (survey.mended > 0).then(|| {
        format!(
            "what is off was not followed through all of {of}: {} times it was not what the code \
             proved, and delays from before are missing",
            survey.mended
        )
    })
}

fn way_back((run, survey): &(&Run, Survey)) -> Option<Nanos> {
    let of_probe = |step: &u32| {
        let mut recordings = run.recordings.iter();
        recordings.any(|one| one.key.probe == PROBE && one.key.step == *step)
    };
    let ways = survey.delays.way_back.iter();
    ways.filter(|(step, _)| of_probe(step))
        .map(|(_, way)| *way)
        .max()
}

fn observed(surveyed: &[(&Run, Survey)]) -> Option<Observed> {
    let all = surveyed.iter().flat_map(|(run, _)| {
        let of_probe = run.recordings.iter().filter(|one| one.key.probe == PROBE);
        of_probe.filter_map(|recording| {
            Some(Observed {
                run: run.id.clone(),
                recording: recording.title(),
                late: recording.max()?,
                parts: None,
                second: None,
            })
        })
    });
    all.max_by_key(|observed| observed.late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_fixed_point_is_found_and_none_above_the_cap() {
        let none = |_| Some(Nanos::ZERO);
        assert_eq!(fixed_point(Nanos(700), none), Some(Nanos(700)));
        assert_eq!(fixed_point(Nanos(0), none), Some(Nanos(1)));
        // Of one interrupt every 100 two fit into the latency, or three.
        let every = |length: i64, distance: i64| {
            move |window: Nanos| {
                Some(
                    Nanos(window.0.unsigned_abs().div_ceil(distance.unsigned_abs()) as i64)
                        * length,
                )
            }
        };
        assert_eq!(fixed_point(Nanos(120), every(30, 100)), Some(Nanos(180)));
        assert_eq!(fixed_point(Nanos(120), every(60, 100)), Some(Nanos(300)));
        // Interrupts that leave no time.
        assert_eq!(fixed_point(Nanos(120), every(100, 100)), None);
        assert_eq!(fixed_point(Nanos(120), |_| None), None);
    }
}
