// SPDX-License-Identifier: MIT OR Apache-2.0
//! A story for viewers of Chrome's trace format: <https://ui.perfetto.dev>, `chrome://tracing`.

use std::cmp::Reverse;

use punctual_model::Nanos;
use serde_json::{Value, json};

use punctual_scope::breakdown::{Breakdown, FunctionSpan};

/// The trace has the parts as one track, and each thread's functions as another.
/// Its microseconds are virtual ones, counted from the moment when the sample was due.
pub fn trace(title: &str, story: &Breakdown) -> Value {
    let mut events = vec![
        named("process_name", 0, title),
        named("thread_name", 0, "the sample"),
    ];
    for part in &story.parts {
        let what = format!("{}: {}", part.stage.name(), part.cause.name());
        events.push(event(&what, 0, part.from, part.length));
    }
    let mut threads: Vec<&str> = story.functions.iter().map(|f| f.thread.as_str()).collect();
    threads.sort_unstable();
    threads.dedup();
    for (number, thread) in (1..).zip(&threads) {
        events.push(named("thread_name", number, thread));
        for entered in nested(story, thread) {
            events.push(event(
                &entered.function,
                number,
                entered.from,
                entered.length,
            ));
        }
    }
    json!({"traceEvents": events, "displayTimeUnit": "ns"})
}

/// Sorts a thread's functions as viewers expect them.
/// Functions that begin at the same moment go from the outermost to the innermost.
fn nested<'a>(story: &'a Breakdown, thread: &str) -> Vec<&'a FunctionSpan> {
    let of_thread = story.functions.iter().filter(|f| f.thread == thread);
    let mut functions: Vec<_> = of_thread.collect();
    functions.sort_by_key(|function| (function.from, Reverse(function.length)));
    functions
}

fn event(name: &str, thread: u32, from: Nanos, length: Nanos) -> Value {
    let (ts, dur) = (from.as_micros_f64(), length.as_micros_f64());
    json!({"name": name, "ph": "X", "pid": 1, "tid": thread, "ts": ts, "dur": dur})
}

fn named(what: &str, thread: u32, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_model::probe::SampleSpan;

    #[test]
    fn what_was_called_comes_behind_its_caller() {
        let entered = |function: &str, from, length| FunctionSpan {
            function: function.to_owned(),
            thread: "t".to_owned(),
            from: Nanos(from),
            length: Nanos(length),
        };
        let functions = [
            entered("inner", 0, 1_500),
            entered("outer", 0, 2_500),
            entered("later", 1_500, 1_000),
        ];
        let story = Breakdown {
            functions: functions.into(),
            ..Breakdown::empty(SampleSpan::Lateness, Nanos(2_500))
        };
        let trace = trace("r1", &story);
        let events = trace["traceEvents"].as_array().unwrap();
        let calls = events.iter().filter(|event| event["ph"] == "X");
        let calls: Vec<_> = calls
            .map(|e| (e["name"].as_str().unwrap(), e["ts"].as_f64().unwrap()))
            .collect();
        assert_eq!(calls, [("outer", 0.0), ("inner", 0.0), ("later", 1.5)]);
    }
}
