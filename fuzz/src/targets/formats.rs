// SPDX-License-Identifier: MIT OR Apache-2.0
//! What other programs print.

use punctual_formats::{
    cyclictest_command, cyclictest_histogram, cyclictest_json, cyclictest_lines,
};
use punctual_formats::{foreign, ftrace, hackbench, hwlat, realfeel, sendme};

use super::{text, texts};
use crate::Target;

/// What the kernel's tracer prints.
pub const FTRACE: Target = Target {
    name: "ftrace",
    seeds: || {
        texts(&[
            "# tracer: nop\n# entries-in-buffer/entries-written: 9/9   #P:2\n\
             CPU:0 [LOST 296 EVENTS]\n\
             \x20qemu-x86-14846  [000] d.h..   840.061207: local_timer_entry: vector=236\n\
             \x20qemu-x86-14846  [000] d.h..   840.061208: hrtimer_expire_entry: hrtimer=08 \
             function=hrtimer_wakeup now=840061207104\n\
             \x20qemu-x86-14846  [000] d.h2.   840.061208: sched_waking: comm=a pid=7 prio=19 \
             target_cpu=000\n\
             \x20qemu-x86-14846  [000] d.h2.   840.061215: <stack trace>\n => try_to_wake_up\n\
             \x20qemu-x86-14846  [000] dNh..   840.061226: local_timer_exit: vector=236\n\
             \x20qemu-x86-14846  [000] d..2.   840.061230: sched_switch: prev_comm=a prev_pid=3 \
             prev_prio=130 prev_state=R ==> next_comm=b next_pid=7 next_prio=19\n",
            " a-7  [000] d.h1.    50.000010: irq_noise: local_timer:236 start 40.000001000 \
             duration 9000 ns\n a-7  [000] d..2.    50.002020: thread_noise:  a:7 start \
             40.001500000 duration 500000 ns\n a-7 [000] ..s1. 84.064300: f <-g\n",
            include_str!("../../../crates/scope/src/pasted/tests/wakeup-riscv-rt.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/timerlat-seven-flags.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/trace-cmd-higher.txt"),
            include_str!("../../../crates/scope/src/pasted/tests/counter.txt"),
            "# latency: 16 us, #4/4, CPU#0 | (M:preempt VP:0)\n#    | task: swapper/0-0 (uid:0)\n\
             #  => started at: run_timer_softirq\n#  => ended at:   run_timer_softirq\n",
        ])
    },
    run: |bytes| {
        let trace = ftrace::read(&text(bytes));
        !trace.events.is_empty() || trace.longest.is_some()
    },
};

/// Cyclictest's three forms, rtla's, jitterdebugger's, latmus' and Xenomai's histograms,
/// hackbench, realfeel, sendme, hwlat: each reader reads each input.
pub const FORMATS: Target = Target {
    name: "formats",
    seeds: || {
        let columns = [column(3), column(40)];
        let all = cyclictest_histogram::Bins::All;
        let recorded = cyclictest_histogram::Bins::Recorded;
        texts(&[
            &cyclictest_histogram::write(&columns, all, true),
            &cyclictest_histogram::write(&columns[..1], recorded, false),
            &cyclictest_json::write(&results()),
            "T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      41\n",
            "       0:       1:       7\n",
            "# RTLA timerlat histogram\n# Time unit is microseconds (us)\n\
             # Duration:   0 00:00:10\nIndex   IRQ-000   Thr-000\n0  3  0\n2  0  3\n\
             over:  0  0\ncount:  3  3\nmin:  0  2\navg:  0  2\nmax:  0  2\n",
            "{\"version\": 3, \"sysinfo\": {\"nodename\": \"a\", \"release\": \"6\", \
             \"version\": \"#1\", \"resolution_in_ns\": 1000}, \"cpu\": {\"0\": {\"histogram\": \
             {\"8\": 7}, \"count\": 7, \"max\": 8}}}",
            "# test started on: Fri Jan 24 15:36:34 2020\n# Linux version 5.5.0 (a) #45 SMP\n\
             # sampling period: 1000 microseconds\n# context: user\n# thread affinity: CPU1\n\
             # duration (hhmmss): 00:01:12\n# max latency: 4.510\n0 95\n1 900\n4+ 9\n",
            "RTT|  00:00:01  (periodic user-mode task, 100 us period, priority 99)\n\
             RTD|  0.269|  0.865|  0.891|  0|  0|  0.269|  0.891\n\
             HSD|    avg|   0 -  1 |     9000\nHSS|    avg|      9000|  0.000|  1.054\n\
             RTS|  -0.343|  0.865|  0.899|  3|  0|    00:00:02/00:00:02\n",
            "\u{feff}> # Histogram\r\n> 000005 000009\r\n> 000009 000001\r\n> # Min Latencies: 00005\r\n\
             > # Avg Latencies: 00005\r\n> # Max Latencies: 00012\r\n> # Histogram Overflows: 00002\r\n",
            "cyclictest -qmSi200 -p 80 --int=200 -t 4 -a 0-3 -h 100 --json=c.json",
            &hackbench::write_time(1_234_567_890),
            &realfeel::write(&[0, 4, 7, 0, 1]),
            &(realfeel::write_head(Some(1_400_038), 64, true)
                + &realfeel::write_jitter(-4_000, true)),
            &sendme::write(&sendme::Travel::default()),
            "# tracer: hwlat\n  <...>-1729  [001] d....   714.756290: #3     inner/outer(us):   \
             16/12    ts:1581527692.338063299 count:1\n",
        ])
    },
    run: |bytes| {
        let text = &text(bytes);
        let recorded = cyclictest_histogram::Bins::Recorded;
        let lines = text.lines().map(|line| {
            let thread = cyclictest_lines::ThreadLine::read(1, line);
            let thread = thread.map(|line| drop(line.write(false)));
            let value = cyclictest_lines::ValueLine::read(1, line);
            thread.is_ok() || value.is_ok()
        });
        let accepted = [
            cyclictest_histogram::read(text)
                .map(|columns| drop(cyclictest_histogram::write(&columns, recorded, true)))
                .is_ok(),
            cyclictest_json::read(text)
                .map(|results| drop(cyclictest_json::write(&results)))
                .is_ok(),
            lines.fold(false, |any, line| any | line),
            foreign::decode(bytes)
                .and_then(|text| foreign::read(&text))
                .is_ok(),
            cyclictest_command::read(text).is_ok_and(|command| command.is_some()),
            hackbench::read_time(text).is_ok(),
            hwlat::read(text)
                .map(|gaps| gaps.iter().for_each(|gap| drop(hwlat::write(gap))))
                .is_ok(),
            realfeel::read(text).is_ok(),
            realfeel::read_jitters(text).is_ok(),
            sendme::read(text)
                .map(|travel| drop(sendme::write(&travel)))
                .is_ok(),
        ];
        accepted.contains(&true)
    },
};

fn column(max: u64) -> cyclictest_histogram::Column {
    cyclictest_histogram::Column {
        bins: (0..=max).map(|bin| bin % 3).collect(),
        min: 1,
        avg: max / 2,
        max,
        overflows: 1,
        overflow_cycles: vec![17],
    }
}

fn results() -> cyclictest_json::Results {
    let thread = cyclictest_json::Thread {
        histogram: (1..9).map(|value| (value, value * value)).collect(),
        ..cyclictest_json::Thread::default()
    };
    cyclictest_json::Results {
        threads: vec![thread.clone(), thread],
        ..cyclictest_json::Results::default()
    }
}
