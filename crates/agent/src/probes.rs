// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes: one file each, one line each in `probes!`.

use std::sync::Arc;

use punctual_model::aim::Aim;
use punctual_model::probe::ProbeInfo;
use punctual_model::{CpuId, Nanos, Reason, Recording};
use serde::de::DeserializeOwned;
use toml::Table;

use crate::phases::Phases;
use crate::status_page;
use crate::tracer::Watcher;

/// A kind of measurement.
pub struct Probe {
    /// The name by which suites call it.
    pub name: &'static str,
    /// One line that says what it measures.
    pub summary: &'static str,
    /// Reads its parameters; an error names the faulty one.
    parse: fn(&Table) -> Result<Box<dyn Measurement>, String>,
}

/// Generates from a line for each probe: its module, its place in [`ALL`], and in [`INFOS`]. A
/// probe that lacks a `PROBE` or an `INFO` does not compile.
macro_rules! probes {
    ($($name:ident,)+) => {
        $(pub(crate) mod $name;)+

        /// All probes, in the order in which they are listed, and in which the summary prefers
        /// to speak of them.
        pub const ALL: &[Probe] = &[$($name::PROBE),+];

        /// What the workstation must know of each, in the same order. Nothing on the target
        /// side refers to it, so that its words are not in the program that measures.
        pub const INFOS: &[ProbeInfo] = &[$($name::INFO),+];
    };
}

probes! {
    timer,
    realfeel,
    tick,
    noise,
    irq,
    irqrate,
    signal,
    switch,
    semaphore,
    mutex,
    clock,
    inversion,
    eventfd,
    wake,
    packet,
    migrate,
    hackbench,
    image,
    app,
    program,
    kthreads,
    footprint,
}

/// Returns the workstation's facts about the probe of this name, if there is such a probe.
pub fn info(probe: &str) -> Option<&'static ProbeInfo> {
    INFOS.iter().find(|info| info.name == probe)
}

/// A probe with its parameters.
pub trait Measurement: std::fmt::Debug {
    /// The minimum time that it keeps the subject busy, as far as the parameters tell.
    fn nominal(&self) -> Nanos;

    /// The nominal time between two samples, for a probe that takes them one by one for as
    /// long as requested: then `samples` may be as many as a user has time for.
    fn period(&self) -> Option<Nanos> {
        None
    }

    /// The extent of the measurement, for a probe that goes on for as long as requested.
    fn extent(&self) -> Option<Extent> {
        self.period().map(|each| Extent {
            parameter: "samples",
            each,
            most: u64::MAX,
            own: None,
        })
    }

    /// Returns true if it has one recording for each CPU, named after it, of samples that a thread
    /// bound there takes one by one: then the results so far can be reported.
    fn is_by_cpu(&self) -> bool {
        false
    }

    /// The CPUs on which its parameters tell it to measure: housekeeping is elsewhere.
    fn cpus(&self) -> &[CpuId] {
        &[]
    }

    /// The `SCHED_FIFO` priority of its threads (0: none), for a probe whose samples can be
    /// watched: then the kernel's tracer can be read when one is above a limit.
    fn watched_priority(&self) -> Option<u8> {
        None
    }

    /// Takes the measurement. An error is the reason why it cannot: it becomes `unsupported`.
    fn run(&self, context: &mut Context) -> Result<Vec<Recording>, Reason>;
}

/// The parameter that determines how much a probe measures, with its limits.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// The parameter.
    pub parameter: &'static str,
    /// The nominal time that each unit of it takes.
    pub each: Nanos,
    /// The most units in one run, however short they are.
    pub most: u64,
    /// The current number, if that is the whole of which a share is taken unless a suite says
    /// otherwise: no document states a number for them.
    pub own: Option<u64>,
}

/// The context of a probe's measurement, besides its parameters.
pub struct Context {
    /// Spans that depend on the seed.
    pub phases: Phases,
    /// The watcher of samples above a limit, for a probe that has a
    /// [priority](Measurement::watched_priority) for it.
    pub watcher: Option<Arc<Watcher>>,
    /// The sample that is due at a moment of its own.
    pub aim: Aim,
}

impl Context {
    /// Creates a context without a watcher.
    pub fn new(phases: Phases) -> Self {
        Self {
            phases,
            watcher: None,
            aim: Aim::NONE,
        }
    }
}

/// Measures variants one after the other. If the target is asked to end, the variants measured
/// by then are kept.
fn each<V>(
    variants: impl IntoIterator<Item = V>,
    mut measure: impl FnMut(V) -> Result<Recording, Reason>,
) -> Result<Vec<Recording>, Reason> {
    let mut recordings = Vec::new();
    for variant in variants {
        let measured = measure(variant);
        if measured.is_err() && status_page::is_stop_requested() {
            break;
        }
        recordings.push(measured?);
    }
    Ok(recordings)
}

/// Parses the measurement that a step asks for.
pub fn parse(probe: &str, parameters: &Table) -> Result<Box<dyn Measurement>, String> {
    let Some(found) = ALL.iter().find(|known| known.name == probe) else {
        let names: Vec<&str> = ALL.iter().map(|known| known.name).collect();
        return Err(format!(
            "there is no probe \"{probe}\"; there are: {}",
            names.join(", ")
        ));
    };
    (found.parse)(parameters).map_err(|why| format!("probe \"{probe}\": {}", why.trim_end()))
}

/// Reads the parameters of a probe of type `M`, and checks them.
fn parameters<M>(
    table: &Table,
    check: fn(&M) -> Result<(), String>,
) -> Result<Box<dyn Measurement>, String>
where
    M: Measurement + DeserializeOwned + 'static,
{
    let measurement: M = table
        .clone()
        .try_into()
        .map_err(|error: toml::de::Error| error.message().to_owned())?;
    check(&measurement)?;
    Ok(Box::new(measurement))
}

/// Checks that a parameter lies within its range; the error names all three.
pub(crate) fn within<T: PartialOrd + Copy + std::fmt::Display>(
    name: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), String> {
    if (&low..=&high).contains(&&value) {
        return Ok(());
    }
    Err(format!(
        "{name} = {value}, but it must be from {low} to {high}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(probe: &str, parameters_: &str) -> String {
        match parse(probe, &parameters_.parse().unwrap()) {
            Ok(_) => panic!("{probe} takes {parameters_}"),
            Err(error) => error,
        }
    }

    #[test]
    fn every_probe_measures_without_being_told_how() {
        for probe in ALL
            .iter()
            .filter(|probe| !["app", "program"].contains(&probe.name))
        {
            assert!(parse(probe.name, &Table::new()).is_ok(), "{}", probe.name);
        }
    }

    #[test]
    fn what_is_known_of_a_probe_goes_by_its_name() {
        for (probe, known) in ALL.iter().zip(INFOS) {
            assert_eq!(probe.name, known.name);
            assert_eq!(info(probe.name).unwrap().name, probe.name);
        }
        assert!(info("tmier").is_none());
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_right() {
        assert!(error("tmier", "").contains("timer"));
        assert!(error("timer", "sample = 3").contains("samples"));
        assert!(error("timer", "samples = 0").contains("from 1"));
        assert!(error("timer", "priority = 100").contains("from 1 to 99"));
        assert!(error("hackbench", "ipc = \"fifo\"").contains("socket"));
        assert!(error("program", "run = []").contains("empty"));
    }
}
