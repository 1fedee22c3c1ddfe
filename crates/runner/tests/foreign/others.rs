// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files without latencies, and those of programs that measure something else.

use crate::{changed, has, read, refused};

#[test]
fn what_is_known_and_holds_no_latencies_is_named() {
    for (name, words) in [
        ("13-verbose.txt", &["cyclictest -v", "-h 1000"][..]),
        (
            "18-json-without-h.json",
            &["without -h", "measure with -h 1000"],
        ),
        ("18b-rtla-no-header.txt", &["--no-header"]),
        ("19-osnoise.txt", &["rtla osnoise", "rtla timerlat hist"]),
        ("23-rtai-ns.txt", &["RTAI", "nanoseconds"]),
    ] {
        has(&refused(name), words);
    }
    for (text, words) in [
        ("oslat V 2.60\nTotal runtime: \t\t60 seconds\n", "oslat"),
        (
            "hwlatdetect:  test duration 120 seconds\n   detector: tracer\n",
            "hwlatdetect",
        ),
        (
            "rtla timerlat hit stop tracing\n  IRQ latency: 49.11 us\n",
            "analysis of rtla",
        ),
        (
            "                                     Timer Latency                     \n",
            "timerlat hist",
        ),
        (
            "       0:       0:       6\n       1:       0:       7\n",
            "cyclictest -v",
        ),
        (
            "T: 0 ( 1234) P:80 C:   1000 Min:  1 Act:  2 Avg:  2 Max:  9\n",
            "signaltest",
        ),
        (
            "#1: ID10, P80, CPU0, I1000; #2: ID11, P80, CPU0, TO 0, Cycles 1000\n",
            "pmqtest",
        ),
        ("# tracer: timerlat\n", "punctual explain"),
        (
            "0   100   200\n5   1   2\nover:  0  0\ncount: 1 1\n",
            "--no-header",
        ),
    ] {
        has(&read("x", text.as_bytes()).unwrap_err(), &[words]);
    }
    has(&read("x", b"\x1f\x8b\x08\0\0").unwrap_err(), &["gunzip"]);
    for program in ["oslat", "signaltest", "pmqtest", "cyclicdeadline"] {
        let name = "18-json-without-h.json";
        let error = changed(name, "cyclictest -S", &format!("/usr/bin/{program} -S")).unwrap_err();
        has(
            &error,
            &[&format!("the results of {program}"), "cyclictest -h 1000"],
        );
    }
}

/// First lines of what programs print that measure something else, as they print it.
const ELSE: [(&str, &str); 18] = [
    (
        "     usecs               : count     distribution\n         0 -> 1          : 233      |****   |\n",
        "bcc",
    ),
    (
        "@usecs:\n[2, 4)               244 |@@@@@@@@@@@@@@@@           |\n",
        "bpftrace",
    ),
    (
        " Task                  |   Runtime ms  | Switches | Avg delay ms    | Max delay ms    |\n",
        "perf sched latency",
    ),
    (
        "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver processes per group\n",
        "perf bench",
    ),
    (
        "<?xml version=\"1.0\"?>\n<rteval version=\"3.5\">\n",
        "rteval",
    ),
    ("  ====\n   rteval (v3.5) report\n", "rteval"),
    (
        "Min loop processing time: [500 - 599] = 13792\n",
        "queuelat",
    ),
    (
        "Parent pid: 24105\n Task 0 (prio 50) (pid 24106):\n   Max: 20067 us\n",
        "rt-migrate-test",
    ),
    (
        "forktest#0/24057/24059: STARTING\nAll tests PASSED.\n",
        "ssdd",
    ),
    (
        "Total inversion performed: 75967\nTest Duration: 0 days\n",
        "pi_stress",
    ),
    (
        "stress-ng: metrc: [24280] stressor       bogo ops real time  usr time\n",
        "stress-ng's metrics",
    ),
    (
        "t0-min-latency pass 5 us\nt0-max-latency pass 77 us\n",
        "LAVA",
    ),
    (
        "realtime test: latency (kernel)\nRTH|     lat min|     ovl min|     lat avg|\nRTD|       -2415|       -2415|\n",
        "LinuxCNC",
    ),
    (
        "ts: 1646837351.550312752, inner:46, outer:45\n",
        "hwlatdetect",
    ),
    (
        "T: 0 (  592) A: 0 C:      1987 Min:        15 Avg:   33.81 Max:      1331 \n",
        "jitterdebugger",
    ),
    (
        "# Min Latencies: 00005\n# Max Latencies: 00007\n",
        "without its rows",
    ),
    (
        "T: 0 ( 1233) P:99 I:1000 C: 10000 Min: 3 Act: 8 Avg: 7 Max:\n",
        "with whole numbers",
    ),
    (
        "# tracer: function_graph\n 0)   1.382 us    |  __might_sleep();\n",
        "function_graph",
    ),
];

#[test]
fn what_measures_something_else_is_named() {
    for (text, words) in ELSE {
        has(&read("x", text.as_bytes()).unwrap_err(), &[words]);
    }
    let latmus = "RTT|  00:00:01  (user, 1000 us period, priority 98, CPU1)\n\
        RTD|      1.234|      2.456|      8.901|       0|     0|      1.234|      8.901\n\
        RTS|      1.100|      2.300|     12.500|       0|     0|    00:00:01/00:00:01\n";
    has(&read("x", latmus.as_bytes()).unwrap_err(), &["latmus -g"]);
}
