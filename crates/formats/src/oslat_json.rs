// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of oslat's `--json`: like cyclictest's about itself and the machine, and the gaps of
//! each thread.

use std::collections::BTreeMap;

use crate::cyclictest_json::{Results, head};

/// One execution's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Oslat {
    /// Facts about itself and the machine, without threads.
    pub results: Results,
    /// The threads, in their order.
    pub threads: Vec<Thread>,
}

/// One thread's results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// The CPU to which it is bound.
    pub cpu: u32,
    /// The rate of its clock, in MHz.
    pub mhz: u32,
    /// The shortest gap, in microseconds.
    pub min_us: u64,
    /// The mean, in microseconds.
    pub avg_us: f64,
    /// The longest gap, in microseconds.
    pub max_us: u64,
    /// The time for which it watched, in seconds.
    pub duration_s: f64,
    /// The number of gaps of at most so many microseconds, but more than the previous limit.
    pub histogram: BTreeMap<u64, u64>,
}

/// Returns the file's text.
pub fn write(oslat: &Oslat) -> String {
    let threads = oslat.threads.iter().enumerate();
    let threads: Vec<String> = threads.map(|(index, one)| thread(index, one)).collect();
    format!(
        "{}  \"num_threads\": {},\n  \"thread\": {{\n{}\n  }}\n}}\n",
        head(&oslat.results),
        threads.len(),
        threads.join(",\n")
    )
}

fn thread(index: usize, thread: &Thread) -> String {
    let bin = |(us, count): (&u64, &u64)| format!("\n        \"{us}\": {count}");
    let bins: Vec<String> = thread.histogram.iter().map(bin).collect();
    let end = if bins.is_empty() { "" } else { "\n" };
    format!(
        "    \"{index}\": {{\n      \"cpu\": {},\n      \"freq\": {},\n      \"min\": {},\n      \
         \"avg\": {:.6},\n      \"max\": {},\n      \"duration\": {:.3},\n      \
         \"histogram\": {{{}{end}      }}\n    }}",
        thread.cpu,
        thread.mhz,
        thread.min_us,
        thread.avg_us,
        thread.max_us,
        thread.duration_s,
        bins.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_is_told_and_it_is_json() {
        let thread = Thread {
            cpu: 3,
            mhz: 1_000,
            min_us: 1,
            avg_us: 1.25,
            max_us: 9,
            duration_s: 2.0,
            histogram: BTreeMap::from([(1, 40), (9, 2)]),
        };
        let oslat = Oslat {
            results: Results::default(),
            threads: vec![thread, Thread::default()],
        };
        let json: serde_json::Value = serde_json::from_str(&write(&oslat)).unwrap();
        assert_eq!(json["num_threads"], 2);
        assert_eq!(json["thread"]["0"]["histogram"]["9"], 2);
        assert_eq!(json["thread"]["1"]["histogram"], serde_json::json!({}));
        assert_eq!(json["sysinfo"]["realtime"], 0);
    }
}
