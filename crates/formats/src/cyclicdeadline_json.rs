// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of cyclicdeadline's `--json`: like that of cyclictest, with less about each thread.

use crate::cyclictest_json::{Results, Thread, write_with};

/// Returns the file's text; the mean is 0.00 if there is no value.
pub fn write(results: &Results) -> String {
    let threads = results.threads.iter().enumerate();
    let threads: Vec<String> = threads.map(|(index, one)| thread(index, one)).collect();
    write_with(results, &threads)
}

fn thread(index: usize, thread: &Thread) -> String {
    format!(
        "    \"{index}\": {{\n      \"cycles\": {},\n      \"min\": {},\n      \"max\": {},\n      \
         \"avg\": {:.2}\n    }}",
        thread.cycles, thread.min, thread.max, thread.avg
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_is_told_and_it_is_json() {
        let thread = |max| Thread {
            cycles: 2,
            min: 3,
            max,
            avg: 4.5,
            ..Thread::default()
        };
        let results = Results {
            command: "cyclicdeadline --json=\"x\"".into(),
            threads: vec![thread(6), thread(7)],
            ..Results::default()
        };
        let json: serde_json::Value = serde_json::from_str(&write(&results)).unwrap();
        assert_eq!(json["num_threads"], 2);
        assert_eq!(json["cmdline:"], "cyclicdeadline --json=\"x\"");
        assert_eq!(
            json["thread"]["1"],
            serde_json::json!({ "cycles": 2, "min": 3, "max": 7, "avg": 4.5 })
        );
    }
}
