// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches a plan from its first run on: finds what is off in each of its steps, and in what its
//! programs mark as steps.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_bench::RunError;
use punctual_bench::system::Event;
use punctual_bench::virtual_bench::{Machine, VirtualBench};
use punctual_model::{Preemption, Record};
use punctual_trace::Item;

use crate::error::ScopeError;
use crate::explain::programs;
use crate::guest_clock::GuestClock;
use crate::names::Names;
use crate::preemptibility::Preemptibility;
use crate::repeat::Repeater;
use crate::survey::{Hotspot, RunTracer};
use crate::symbols::Symbols;
use crate::user_symbols::UserSymbols;

/// The rate of a guest's time stamp counter, in kHz, at which an instruction of 1 ns takes 1 ns.
const KHZ: u64 = 1_000_000;

/// The observations of a plan.
#[derive(Debug)]
pub struct Observed {
    /// The sections that were off, step by step, as far as steps were over.
    pub steps: Vec<Vec<Hotspot>>,
    /// The output of the programs.
    pub printed: String,
    /// The preemption model in force, if the guest got as far as reporting it.
    pub preemption: Option<Preemption>,
    /// The reason why the plan was not carried out: the guest is gone, or a probe could not
    /// measure.
    pub failed: Option<String>,
}

/// Watches plans on one machine.
pub struct Observer<'a> {
    repeater: &'a Repeater,
    machine: &'a Machine,
    symbols: Symbols,
    programs: UserSymbols,
    clock: GuestClock,
}

impl<'a> Observer<'a> {
    /// Creates an observer for this machine, whose kernel is asked for its names.
    pub fn new(
        repeater: &'a Repeater,
        machine: &'a Machine,
        cancel: &AtomicBool,
    ) -> Result<Self, ScopeError> {
        let unreadable = |why| ScopeError::Unreadable("the machine".to_owned(), why);
        Ok(Self {
            repeater,
            machine,
            symbols: repeater.symbols(machine, cancel)?,
            programs: programs(machine)?,
            clock: GuestClock::new(machine.ns_per_insn, KHZ).map_err(unreadable)?,
        })
    }

    /// Carries a plan out on a kernel of this preemption model. A guest that does not get to the
    /// end of it is no error: what was seen before is returned.
    pub fn observe(
        &self,
        plan: &str,
        preemption: &Preemption,
        cancel: &AtomicBool,
    ) -> Result<Observed, ScopeError> {
        let names = || Names::new(&self.symbols, &self.programs);
        let preemption = Preemptibility::of_model(preemption);
        let mut tracer = RunTracer::by_step(names, preemption, self.machine.cpus, self.clock);
        let mut told = Told::default();
        let take = &mut |item: &Item| tracer.take(item);
        let follow = &mut |bench: &VirtualBench| {
            let on = &mut |event: Event| {
                if let Event::Record(record) = event {
                    told.take(*record);
                }
                ControlFlow::Continue(())
            };
            let ending = bench.run(self.machine, plan, self.repeater.start, on, cancel);
            if cancel.load(Ordering::SeqCst) {
                return Err(RunError::Interrupted.into());
            }
            if let Err(error) = ending.result {
                if error.is_of_guest() {
                    told.failed.get_or_insert(error.to_string());
                } else {
                    return Err(error.into());
                }
            }
            Ok(())
        };
        match self.repeater.follow_everything(self.machine, take, follow) {
            Ok(()) => {}
            // Where the guest is gone its trace has no end.
            Err(ScopeError::NoEnd(_)) if told.failed.is_some() => {}
            Err(error) => return Err(error),
        }
        Ok(Observed {
            steps: tracer.steps(),
            printed: told.printed,
            preemption: told.preemption,
            failed: told.failed,
        })
    }
}

#[derive(Default)]
struct Told {
    printed: String,
    preemption: Option<Preemption>,
    failed: Option<String>,
}

impl Told {
    fn take(&mut self, record: Record) {
        match record {
            Record::Provenance(found) => self.preemption = Some(found.preemption),
            Record::Recording(recording) => {
                self.printed += recording.output.as_deref().unwrap_or_default();
            }
            Record::Unsupported(unsupported) => {
                self.failed.get_or_insert(unsupported.reason.to_string());
            }
            _ => {}
        }
    }
}
