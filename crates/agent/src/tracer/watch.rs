// SPDX-License-Identifier: MIT OR Apache-2.0
//! A sink that watches samples: each new worst one above the limit is captured.

use std::io::Write as _;

use punctual_formats::ftrace::Trace;
use punctual_model::capture::{CAPTURES_MOST, EVENTS_MOST, Happened, TraceEvent};
use punctual_model::{Capture, CpuId, Nanos, Sample};

use super::Watcher;
use crate::rt::Faults;
use crate::sink::Sink;
use crate::sys::process;
use crate::sys::time::now;

/// The time before the sample was due from which events are kept.
const BEFORE: Nanos = Nanos::from_millis(1);
/// The time after it was taken until which they are kept: the tracer is stopped a little later.
const AFTER: Nanos = Nanos::from_micros(50);

/// Hands samples on, and has the tracer read when one is above the limit.
#[derive(Debug)]
pub struct Watch<'a, S> {
    watcher: &'a Watcher,
    sink: S,
    cpu: CpuId,
    pid: u32,
    /// The moment from which the samples' times count.
    first: Nanos,
    count: u64,
    /// The limit above which a sample is captured.
    limit: Nanos,
    captures: Vec<Capture>,
    held_until: Option<Nanos>,
    /// The page faults of reading.
    faults: Faults,
}

impl<'a, S> Watch<'a, S> {
    pub(super) fn new(watcher: &'a Watcher, sink: S, cpu: CpuId, first: Nanos) -> Self {
        Self {
            watcher,
            sink,
            cpu,
            pid: process::thread_id().unsigned_abs(),
            first,
            count: 0,
            limit: watcher.request.above.unwrap_or(Nanos(i64::MAX)),
            captures: Vec::with_capacity(CAPTURES_MOST),
            held_until: None,
            faults: Faults::default(),
        }
    }

    /// Returns the sink that got its samples, the captures, and the page faults of reading, which
    /// delayed no sample.
    pub fn finish(self) -> (S, Vec<Capture>, Faults) {
        (self.sink, self.captures, self.faults)
    }

    #[cold]
    fn catch(&mut self, at: Nanos, value: Nanos) {
        let seq = self.count;
        let sample = Sample { seq, at, value };
        if self.watcher.request.stop {
            self.watcher.stop();
        }
        let Ok(instance) = &self.watcher.instance else {
            return;
        };
        // Another thread that reads has stopped the tracer: this sample was not noted whole.
        let Ok(instance) = instance.try_lock() else {
            return;
        };
        let mut word = [0; 64];
        instance.stop(told(sample, &mut word));
        let begin = now();
        let faults = Faults::of_thread();
        let trace = instance.read(self.cpu).unwrap_or_default();
        let capture = self.capture(sample, trace);
        instance.go_on();
        self.captures.push(Capture {
            pause: now() - begin,
            ..capture
        });
        self.faults = self.faults.clone().and(faults.until_now());
        self.limit = if self.captures.len() < CAPTURES_MOST {
            value
        } else {
            Nanos(i64::MAX)
        };
        self.held_until = Some(now());
    }

    fn capture(&self, sample: Sample, trace: Trace) -> Capture {
        let due = self.first + sample.at;
        let mut events = trace.events;
        for event in &mut events {
            event.at = event.at - due;
            if let Happened::Noise { start, .. } = &mut event.what {
                *start = *start - due;
            }
        }
        events.retain(|event| (Nanos::ZERO - BEFORE..=sample.value + AFTER).contains(&event.at));
        let noted = events.len();
        keep_last(&mut events);
        let lost = trace.lost + trace.unread + (noted - events.len()) as u64;
        Capture {
            sample,
            cpu: self.cpu,
            pid: self.pid,
            tracer: self.watcher.request.tracer,
            pause: Nanos::ZERO,
            lost,
            events,
            longest: trace.longest,
        }
    }
}

/// Keeps as many events as a capture may have, the last ones; function entries are dropped first.
fn keep_last(events: &mut Vec<TraceEvent>) {
    let is_function = |event: &TraceEvent| matches!(event.what, Happened::Function { .. });
    let mut surplus = events.len().saturating_sub(EVENTS_MOST);
    events.retain(|event| {
        let goes = surplus > 0 && is_function(event);
        surplus -= usize::from(goes);
        !goes
    });
    events.drain(..surplus);
}

/// Writes the word that is left in the trace, for people who read it there.
fn told(sample: Sample, buffer: &mut [u8; 64]) -> &[u8] {
    let mut rest = &mut buffer[..];
    let Sample { seq, value, .. } = sample;
    // It is cut where it does not fit.
    let _ = writeln!(rest, "punctual: sample {seq}: {} ns", value.0);
    let left = rest.len();
    &buffer[..64 - left]
}

impl<S: Sink> Sink for Watch<'_, S> {
    #[inline]
    fn record(&mut self, at: Nanos, value: Nanos) {
        self.sink.record(at, value);
        if value > self.limit {
            self.catch(at, value);
        }
        self.count += 1;
    }

    #[inline]
    fn miss(&mut self, periods: u64) {
        self.sink.miss(periods);
    }

    #[inline]
    fn is_over(&mut self) -> bool {
        self.watcher.is_stopped() || self.sink.is_over()
    }

    #[inline]
    fn held_until(&mut self) -> Option<Nanos> {
        self.held_until.take()
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::aim::Aim;
    use punctual_model::capture::{Context, Task, Tracer, Tracing};
    use punctual_model::{Recorder, RecordingKey};

    use super::*;
    use crate::probes::timer;

    fn watcher(stop: bool) -> Watcher {
        let request = Tracing {
            above: Some(Nanos(5_000)),
            stop,
            tracer: Tracer::Events,
        };
        Watcher::none(request, "no tracer in this test")
    }

    #[test]
    fn what_is_above_the_limit_ends_a_step_that_is_to_stop_there() {
        let values = [3_000, 5_000, 5_001, 9_000];
        for (stop, taken) in [(true, 3), (false, 4)] {
            let watcher = watcher(stop);
            let mut watch = watcher.watch(Recorder::new(9), CpuId(0), Nanos(0));
            for value in values {
                if !watch.is_over() {
                    watch.record(Nanos(0), Nanos(value));
                }
            }
            let (recorder, captures, _) = watch.finish();
            let mut recording = recorder.finish(RecordingKey::of_variant("cpu0"));
            watcher.tell(&mut recording);
            assert_eq!((recording.count, captures.len()), (taken, 0));
            let told = recording.settings.contains_key("stopped_at_sample");
            assert_eq!(told, stop);
            let tracer = &recording.settings["tracer"];
            assert!(matches!(tracer, punctual_model::Fact::Unknown { .. }));
        }
    }

    /// A sink that holds its thread for a while, as a reading of the trace does.
    struct Holding(Vec<Nanos>);

    impl Sink for Holding {
        fn record(&mut self, at: Nanos, _value: Nanos) {
            self.0.push(at);
        }
        fn miss(&mut self, _periods: u64) {}
        fn held_until(&mut self) -> Option<Nanos> {
            let is_second = self.0.len() == 2;
            is_second.then(|| now() + Nanos::from_millis(20))
        }
    }

    #[test]
    fn no_sample_is_due_while_a_trace_is_read() {
        let mut sink = Holding(Vec::new());
        let interval = Nanos::from_millis(1);
        timer::sample(&mut sink, now(), interval, 3, Aim::NONE);
        assert!(sink.0[2] - sink.0[1] > Nanos::from_millis(20));
        assert_eq!(sink.0[2].0 % interval.0, 0);
    }

    #[test]
    fn the_last_events_are_kept_and_functions_go_first() {
        let event = |number: usize| TraceEvent {
            at: Nanos(number as i64),
            task: Task::default(),
            context: Context::default(),
            what: if number % 2 == 0 {
                Happened::Mark(String::new())
            } else {
                let (name, caller) = (String::new(), String::new());
                Happened::Function { name, caller }
            },
            stack: Vec::new(),
        };
        let kept = |count: usize| {
            let mut events: Vec<_> = (0..count).map(event).collect();
            keep_last(&mut events);
            let marks = events.iter().filter(|event| event.at.0 % 2 == 0).count();
            (events.len(), marks, events.last().unwrap().at)
        };
        assert_eq!(kept(600), (600, 300, Nanos(599)));
        assert_eq!(kept(800), (600, 400, Nanos(799)));
        assert_eq!(kept(1_600), (600, 600, Nanos(1_598)));
    }

    #[test]
    fn the_word_in_the_trace_is_cut_where_it_does_not_fit() {
        let sample = |seq, value| Sample {
            seq,
            at: Nanos(0),
            value: Nanos(value),
        };
        let mut buffer = [0; 64];
        let word = told(sample(7, 250), &mut buffer);
        assert_eq!(word, b"punctual: sample 7: 250 ns\n");
        assert!(told(sample(u64::MAX, i64::MIN), &mut buffer).len() <= 64);
    }
}
