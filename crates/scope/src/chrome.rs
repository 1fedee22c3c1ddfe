//! A story for viewers of Chrome's trace format: <https://ui.perfetto.dev>, `chrome://tracing`.

use serde_json::{Value, json};

use crate::story::Story;

/// The trace: the parts as one track, each thread's functions as another. Its microseconds are
/// virtual ones, counted from the moment when the sample was due.
pub fn trace(title: &str, story: &Story) -> Value {
    let mut events = vec![
        named("process_name", 0, title),
        named("thread_name", 0, "the sample"),
    ];
    for part in &story.parts {
        let what = format!("{}: {}", part.stage.name(), part.hold.name());
        events.push(event(
            &what,
            0,
            part.from.as_micros_f64(),
            part.length.as_micros_f64(),
        ));
    }
    let mut threads: Vec<&str> = story.functions.iter().map(|f| f.thread.as_str()).collect();
    threads.sort_unstable();
    threads.dedup();
    for (number, thread) in (1..).zip(&threads) {
        events.push(named("thread_name", number, thread));
        for entered in story
            .functions
            .iter()
            .filter(|entered| entered.thread == *thread)
        {
            let (from, length) = (entered.from.as_micros_f64(), entered.length.as_micros_f64());
            events.push(event(&entered.function, number, from, length));
        }
    }
    json!({"traceEvents": events, "displayTimeUnit": "ns"})
}

fn event(name: &str, thread: u32, from_us: f64, length_us: f64) -> Value {
    json!({"name": name, "ph": "X", "pid": 1, "tid": thread, "ts": from_us, "dur": length_us})
}

fn named(what: &str, thread: u32, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": 1, "tid": thread, "args": {"name": name}})
}
