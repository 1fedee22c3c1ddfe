// SPDX-License-Identifier: MIT OR Apache-2.0
//! The options that run the kernel's own tracer beside the probes.

use std::collections::BTreeSet;

use clap::Args;
use punctual_model::capture::{TRACER, Tracer, Tracing};
use punctual_model::{Fact, Nanos, Run};

use crate::hints::store_option;
use crate::output::say;
use crate::scale_args::parse_lateness;

/// When the kernel's tracer is read, and which.
#[derive(Clone, Debug, Default, Args)]
pub struct TraceArgs {
    /// Have the kernel's tracer run, and read it at each new worst sample above this: 200us.
    /// The subject's name says so, because the tracer adds to each figure
    #[arg(long, value_name = "TIME", value_parser = parse_lateness)]
    trace_above: Option<Nanos>,
    /// The same, and the first such sample is the last of its step
    #[arg(long, value_name = "TIME", value_parser = parse_lateness)]
    #[arg(conflicts_with = "trace_above")]
    stop_above: Option<Nanos>,
    /// Which tracer runs, be it read or not: events, osnoise, timerlat, wakeup, irqsoff or
    /// function [default: events]
    #[arg(long, value_name = "TRACER")]
    tracer: Option<Tracer>,
}

impl TraceArgs {
    /// The tracing that is asked for, if any.
    pub fn tracing(&self) -> Option<Tracing> {
        let above = self.stop_above.or(self.trace_above);
        (above.is_some() || self.tracer.is_some()).then(|| Tracing {
            above,
            stop: self.stop_above.is_some(),
            tracer: self.tracer.unwrap_or_default(),
        })
    }

    /// The words of a command line that ask for the same.
    pub fn words(tracing: Tracing) -> Vec<String> {
        let option = if tracing.stop {
            "--stop-above"
        } else {
            "--trace-above"
        };
        let limit = tracing.above;
        let limit = limit.map(|limit| [option.to_owned(), format!("{}ns", limit.0)]);
        let tracer = ["--tracer".to_owned(), tracing.tracer.name().to_owned()];
        limit.into_iter().flatten().chain(tracer).collect()
    }
}

/// The name of a subject that was traced: its figures are not those of the subject alone.
pub fn traced_name(name: &str, tracing: Tracing) -> String {
    format!("{name}+{}", tracing.tracer)
}

/// Prints the captures of the tracer, or the reason why there were none.
pub fn tell(runs: &[Run]) {
    for run in runs {
        let (mut caught, mut reasons) = (0, BTreeSet::new());
        for recording in &run.recordings {
            caught += recording.captures.len();
            if let Some(Fact::Unknown { unknown }) = recording.settings.get(TRACER) {
                reasons.insert(format!("{}: {unknown}", recording.key.probe));
            }
        }
        let name = format!("{}, {}", run.id, run.subject.name);
        for reason in reasons {
            say!("{name}: no tracer beside {reason}");
        }
        if caught > 0 {
            let samples = punctual_report::text::counted(caught, "sample");
            let option = if run.is_virtual() { " --captured" } else { "" };
            let (id, of) = (&run.id, store_option());
            say!("{name}: {samples} caught: `punctual explain {id}{option}{of}` shows why");
        }
    }
}
