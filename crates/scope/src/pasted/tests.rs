// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people have pasted, each with the right answer. Each file is an excerpt of a public
//! text, cut; those without an address are made up.

use super::*;

/// An input, its public source, and the answer: whose, how long in µs, the kind, and the
/// function, interrupt or thread that stood in the way.
type Known = (
    &'static str,
    &'static str,
    &'static str,
    f64,
    Kind,
    &'static str,
);

macro_rules! file {
    ($name:literal) => {
        include_str!(concat!("tests/", $name, ".txt"))
    };
}

const KNOWN: &[Known] = &[
    (
        file!("wakeup-riscv-rt"),
        "linux-kernel: folio_batch_move_lru() causes significant latency, RISC-V, 6.5-rt",
        "cyclictest-217",
        1_689.0,
        Kind::PreemptionOff,
        "free_unref_page_list",
    ),
    (
        file!("wakeup-interrupt"),
        "linux-kernel, 6.4-rt: an interrupt of rtl8169",
        "cyclictest-29050",
        160.0,
        Kind::Interrupt,
        "rtl8169_interrupt",
    ),
    (
        file!("wakeup-flowed"),
        "linux-m68k, 6.13-rc1: ColdFire, format=flowed and quoted",
        "irq/100-enet-fe-118",
        405.0,
        Kind::Interrupt,
        "wake_up_process",
    ),
    (
        file!("preemptirqsoff-cpu128"),
        "linux-mm, 6.10-rc3: soft lockups and MGLRU, quoted twice",
        "fio-2701523",
        10_382_682.0,
        Kind::PreemptionOff,
        "deactivate_file_folio",
    ),
    (
        file!("preemptoff-docs"),
        "Documentation/trace/ftrace.rst of Linux",
        "sshd-1991",
        46.0,
        Kind::Interrupt,
        "do_IRQ",
    ),
    (
        file!("cyclictest-mark"),
        "linux-arm-kernel: arm64: mm: Support ASID isolation feature",
        "cyclictest-2866344",
        72.0,
        Kind::Scheduler,
        "",
    ),
    (
        file!("timerlat-seven-flags"),
        "linux-rt-users: timerlat on a kernel with seven flags",
        "timerlat/6-79756",
        30.328,
        Kind::Interrupt,
        "the timer's",
    ),
    (
        file!("osnoise-kworker"),
        "linux-arm-msm, dcvsh interrupts of isolated CPUs",
        "osnoise/7-2967",
        34.531,
        Kind::Thread,
        "kworker/7:0:85",
    ),
    (
        file!("hwlat"),
        "Documentation/trace/hwlat_detector.rst of Linux, its form",
        "the detector",
        16.0,
        Kind::Hardware,
        "",
    ),
    (
        file!("rtla-2022"),
        "rtla 6.1, exit from idle",
        "rtla's measuring thread",
        52.93,
        Kind::Idle,
        "",
    ),
    (
        file!("rtla-new"),
        "Documentation/tools/rtla/rtla-timerlat-top.rst of Linux",
        "rtla's measuring thread",
        41.96,
        Kind::InterruptsOff,
        "cgroup_rstat_flush_locked",
    ),
    (
        file!("trace-cmd-higher"),
        "made up, the form of trace-cmd 3.1",
        "my thread [x]-812",
        450.0,
        Kind::HigherThread,
        "my rt [1]-900",
    ),
    (
        file!("wakeup-omitted"),
        "shuhaowu.com, Real-time programming with Linux, part 2: multipathd at priority 99",
        "cyclictest-12905",
        400.0,
        Kind::HigherThread,
        "multipat-1456",
    ),
    (
        file!("wakeup-2.6.27"),
        "sucs.org/~sits/test/eeepc-debug, 2.6.27-rc6, the form of 2008, shortened",
        "speaker-test-5719",
        91.0,
        Kind::Interrupt,
        "psmouse_interrupt",
    ),
    (
        file!("irqsoff-cut"),
        "netdev: __inet_hash_connect() and get_random_bytes(), 6.0-rc5, cut by its author",
        "CORSurv-352",
        126_337.0,
        Kind::InterruptsOff,
        "tcp_v4_connect",
    ),
    (
        file!("irqsoff-docs-cut"),
        "Documentation/trace/ftrace.rst of Linux: [...] stands in the longest gap",
        "bash-2042",
        71.0,
        Kind::InterruptsOff,
        "ata_scsi_queuecmd",
    ),
    (
        file!("irqsoff-excerpt"),
        "cgroups: cgroup/rstat: avoid disabling irqs for O(num_cpu), without the head",
        "stat_rea-96532",
        45_342.0,
        Kind::InterruptsOff,
        "cgroup_rstat_flush",
    ),
    (
        file!("hwlat-flowed"),
        "linux-rt-users: hwlat in a mail with broken lines",
        "the detector",
        41.0,
        Kind::Hardware,
        "",
    ),
    (
        file!("equal-priority"),
        "Documentation/trace/ftrace.rst of Linux, instances/foo/trace_pipe",
        "kworker/0:1-59",
        259.0,
        Kind::HigherThread,
        "bash-1998",
    ),
    (
        file!("two-causes"),
        "made up",
        "rtapp-50",
        303.0,
        Kind::SoftInterrupt,
        "NET_RX",
    ),
];

fn one(text: &str) -> Told {
    let mut all = explain(text);
    assert_eq!(all.len(), 1, "{all:#?}");
    all.remove(0)
}

fn blamed(told: &Told) -> (Kind, String) {
    let piece = &told.pieces[told
        .culprit
        .unwrap_or_else(|| panic!("undecided: {told:#?}"))];
    let is_thread = matches!(piece.kind, Kind::HigherThread | Kind::Thread);
    let name = if is_thread {
        &piece.thread
    } else {
        &piece.what
    };
    (piece.kind, name.clone().unwrap_or_default())
}

#[test]
fn whoever_stood_in_the_way_is_named() {
    for (text, source, whose, micros, kind, name) in KNOWN {
        let told = one(text);
        assert_eq!(told.whose.as_deref(), Some(*whose), "{source}");
        let whole = Nanos((micros * 1_000.0).round() as i64);
        assert_eq!(told.whole, Some(whole), "{source}");
        let (found, by) = blamed(&told);
        assert_eq!(found, *kind, "{source}: {told:#?}");
        assert!(by == *name || name.is_empty(), "{source}: {told:#?}");
        let sum = told
            .pieces
            .iter()
            .fold(Nanos::ZERO, |sum, piece| sum + piece.length);
        assert!((sum.0 - whole.0).abs() <= 1_500, "{source}: {told:#?}");
    }
}

/// A text, words of it with their replacements, and the culprit then.
type Varied = (
    &'static str,
    &'static [(&'static str, &'static str)],
    Kind,
    &'static str,
);

/// Tests each rule by itself.
#[test]
fn each_rule_has_a_text_that_only_it_answers() {
    const STACK: &str = "                -> _raw_spin_unlock_irqrestore
                -> cgroup_rstat_flush_locked
                -> cgroup_rstat_flush_irqsafe
                -> balance_dirty_pages
";
    let cases: [Varied; 9] = [
        // What ran is known by the events alone: no flags say it.
        (
            file!("two-causes"),
            &[(" d.h.. ", " ..... "), (" ..s.. ", " ..... ")],
            Kind::SoftInterrupt,
            "NET_RX",
        ),
        (
            file!("two-causes"),
            &[
                (" d.h.. ", " ..... "),
                (" ..s.. ", " ..... "),
                ("10.000101", "10.000299"),
                ("10.000102", "10.000300"),
            ],
            Kind::Interrupt,
            "eth0",
        ),
        // The other thread's priority is as high, and lower.
        (
            file!("trace-cmd-higher"),
            &[("[9]", "[19]")],
            Kind::HigherThread,
            "my rt [1]-900",
        ),
        (
            file!("trace-cmd-higher"),
            &[("[9]", "[25]")],
            Kind::PreemptionOff,
            "",
        ),
        // An interrupt before the timer's, user space, and the idle CPU.
        (
            file!("rtla-new"),
            &[(
                "  Timerlat IRQ duration:",
                "  Previous IRQ interference: up to  25.10 us\n  Timerlat IRQ duration:",
            )],
            Kind::Interrupt,
            "",
        ),
        (file!("rtla-new"), &[(STACK, "")], Kind::Hardware, ""),
        (
            file!("rtla-new"),
            &[(
                "IRQ handler delay:                ",
                "IRQ handler delay: (exit from idle)",
            )],
            Kind::Idle,
            "",
        ),
        // A thread that goes on in the kernel, and in user space.
        (
            file!("rtla-new"),
            &[
                (" 27.49 us", " 2.49 us"),
                (" 3.79 us (", " 28.79 us ("),
                (" 3.79 us", " 28.79 us"),
            ],
            Kind::PreemptionOff,
            "cgroup_rstat_flush_locked",
        ),
        (
            file!("rtla-new"),
            &[
                (STACK, ""),
                (" 27.49 us", " 2.49 us"),
                (" 3.79 us (", " 28.79 us ("),
                (" 3.79 us", " 28.79 us"),
            ],
            Kind::HigherThread,
            "objtool:49256",
        ),
    ];
    for (text, words, kind, name) in cases {
        let mut other = text.to_owned();
        for (from, to) in words {
            assert!(other.contains(from), "{from}");
            other = other.replace(from, to);
        }
        let told = one(&other);
        let (found, by) = blamed(&told);
        assert_eq!(found, kind, "{words:?}: {told:#?}");
        assert!(by == name || name.is_empty(), "{words:?}: {told:#?}");
    }
}

/// The same with the line ends of another system, and quoted in a mail.
#[test]
fn mails_and_other_ends_of_lines_change_nothing() {
    for (text, source, ..) in KNOWN {
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(one(&crlf), one(text), "{source}");
        let quoted: String = ["> ", &text.trim_end().replace('\n', "\n> ")].concat();
        assert_eq!(one(&quoted), one(text), "{source}");
    }
}

#[test]
fn of_two_traces_in_an_encoded_mail_each_is_told() {
    let all = explain(file!("wakeup-mail-encoded"));
    let told: Vec<_> = all
        .iter()
        .map(|one| (one.whole.unwrap(), blamed(one).1))
        .collect();
    let name = "isolate_lru_folios".to_owned();
    let micros = Nanos::from_micros;
    assert_eq!(
        told,
        [(micros(55_060), name.clone()), (micros(49_040), name)]
    );
    assert!(all.iter().all(|one| blamed(one).0 == Kind::InterruptsOff));
    let cut = |told: &Told| told.notes.iter().any(|note| note.contains("it was cut"));
    assert!(cut(&all[0]) && !cut(&all[1]), "{all:#?}");
}

#[test]
fn a_second_cause_is_told_beside_the_first() {
    let told = one(file!("two-causes"));
    let also = &told.pieces[told.also.unwrap()];
    assert_eq!(
        (also.kind, also.what.as_deref()),
        (Kind::Interrupt, Some("eth0"))
    );
    let told = one(file!("timerlat-seven-flags"));
    let also = &told.pieces[told.also.unwrap()];
    assert_eq!(also.kind, Kind::InterruptsOff, "{told:#?}");
    assert_eq!(also.what.as_deref(), Some("try_to_wake_up"));
    assert_eq!((told.events, told.lost, told.unread), (7, 0, 0));
}

/// The same kernel's flags in a short excerpt: a late thread with its stack, and what followed.
#[test]
fn two_events_with_seven_flags_and_a_long_stack_are_read() {
    let whole: &str = file!("timerlat-seven-flags");
    let from = whole.find("     timerlat/6-79756").unwrap();
    let to = whole.rfind("     timerlat/6-79756").unwrap();
    let trace = punctual_formats::ftrace::read(&whole[from..to]);
    assert_eq!((trace.events.len(), trace.lost, trace.unread), (2, 0, 0));
    let stack = trace.events.iter().map(|event| event.stack.len());
    assert_eq!(stack.max(), Some(32));
    let told = one(&whole[from..to]);
    assert_eq!((told.events, told.lost, told.unread), (2, 0, 0));
}

#[test]
fn what_a_trace_does_not_tell_is_undecided_with_the_command_that_does() {
    for (text, why) in [
        // linux-m68k: tracing on ColdFire, where a millisecond is the least.
        (file!("timerlat-milliseconds"), "whole milliseconds"),
        (file!("nothing-late"), "which thread was late"),
        (file!("counter"), "tells no time"),
        (file!("osnoise-table"), "which of it was the longest"),
    ] {
        let told = one(text);
        assert_eq!(told.culprit, None, "{told:#?}");
        assert!(told.undecided.as_ref().unwrap().contains(why), "{told:#?}");
        assert!(
            told.decide
                .iter()
                .any(|command| command.starts_with("rtla timerlat top -a "))
        );
    }
    let told = one(file!("nothing-late"));
    let has = |text: &str| told.notes.iter().any(|note| note.contains(text));
    assert!(
        has("296 events were lost") && has("no sched_switch"),
        "{told:#?}"
    );
    assert!(has("the interrupt virtio0, 50.0 µs on CPU 0"), "{told:#?}");
    assert!(has("8996 older events"), "{told:#?}");
    // Without its stack nobody knows where the interrupt came to.
    let rtla: String = file!("rtla-new")
        .lines()
        .filter(|line| !line.contains("-> "))
        .fold(String::new(), |text, line| text + line + "\n");
    assert!(one(&rtla).undecided.unwrap().contains("no stack"));
}

#[test]
fn a_text_without_a_trace_is_none() {
    for text in [
        "",
        "T: 0 ( 1234) P:80 I:1000 C: 10000 Min: 2 Act: 3 Avg: 3 Max: 41\n",
        "#\n",
    ] {
        assert_eq!(explain(text), [], "{text}");
    }
}

/// A text that is no trace is named, with the command that takes it.
#[test]
fn what_is_no_trace_is_named() {
    for (text, words) in [
        (
            "T: 0 ( 1234) P:80 I:1000 C: 10000 Min: 2 Act: 3 Avg: 3 Max: 41\n",
            "punctual import f",
        ),
        (
            "# tracer: function_graph\n 0)   1.382 us    |  __might_sleep();\n",
            "function_graph",
        ),
        (
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: 0/0   #P:4\n",
            "without an event",
        ),
        (
            " swapper 0 [001] 192.4481: sched:sched_waking: comm=a pid=1\n",
            "perf script",
        ),
        ("oslat V 2.60\n", "oslat"),
        ("", "no event"),
    ] {
        let told = no_trace("f", text.as_bytes());
        assert!(told.contains(words), "{told}");
    }
    assert!(no_trace("f", b"\x1f\x8b\x08\0").contains("gunzip"));
}

/// Wherever a text is cut, nobody is blamed for more than the whole.
#[test]
fn a_text_that_was_cut_blames_nobody_for_more_than_it_holds() {
    for (text, source, ..) in KNOWN {
        for (end, _) in text.match_indices('\n') {
            for told in explain(&text[..end]) {
                let whole = told.whole.unwrap_or_default();
                let held = told.culprit.map_or(Nanos::ZERO, |place| told.held(place));
                assert!(held <= whole + Nanos(1_500), "{source}: {told:#?}");
                assert_eq!(told.culprit.is_none(), told.undecided.is_some());
            }
        }
    }
}

/// Returns a text with other words.
fn changed(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    })
}

/// Returns the lengths of the parts, in µs.
fn lengths(told: &Told) -> Vec<i64> {
    told.pieces
        .iter()
        .map(|piece| piece.length.0 / 1_000)
        .collect()
}

/// A thread whose number is that of the interrupt.
const OSNOISE: &str = "\
# tracer: osnoise
 osnoise/3-236 [003] d.h.. 10.000105: irq_noise: timer:236 start 10.000100000 duration 5000 ns
 osnoise/3-236 [003] ..... 10.000106: sample_threshold: start 10.0001 duration 6000 ns interferences 1
";

#[test]
fn an_interrupt_with_the_number_of_the_thread_is_not_the_thread() {
    let told = one(OSNOISE);
    assert_eq!(blamed(&told), (Kind::Interrupt, "timer:236".into()));
}

/// The line of a gap is noted some time after its end.
#[test]
fn a_gap_of_osnoise_begins_where_it_says() {
    let told = one("\
# tracer: osnoise
 osnoise/3-236 [003] d.h.. 10.000021: irq_noise: timer:236 start 10.000000400 duration 20000 ns
 osnoise/3-236 [003] ..s.. 10.000051: softirq_noise: RX:3 start 10.000021000 duration 29000 ns
 osnoise/3-236 [003] ..... 10.000064: sample_threshold: start 10.000000100 duration 60000 ns \
interferences 2
");
    assert_eq!(lengths(&told), [20, 29, 11], "{told:#?}");
    assert_eq!(blamed(&told), (Kind::SoftInterrupt, "RX:3".into()));
    assert_eq!(told.pieces[2].kind, Kind::Path);
}

/// Whatever a text does not show is unknown: it is not the way itself.
#[test]
fn long_times_of_which_a_text_shows_nothing_are_undecided() {
    let osnoise = |end: &str, length: &str, count: &str| {
        let words = [
            ("10.000106", end),
            ("duration 6000", length),
            ("ces 1", count),
        ];
        one(&changed(OSNOISE, &words))
    };
    // Two of three are missing; all are there, and too little of the time.
    for told in [
        osnoise("10.000160", "duration 60000", "ces 3"),
        osnoise("10.000900", "duration 800000", "ces 1"),
    ] {
        assert_eq!(told.pieces.last().unwrap().kind, Kind::Unknown);
        assert_eq!((told.culprit, told.undecided.is_some()), (None, true));
        assert_eq!(told.decide.len(), 3);
    }
    let told = osnoise("10.000160", "duration 60000", "ces 1");
    assert_eq!(blamed(&told).0, Kind::Path);
    // A program of which something is seen every 40 µs is on its way; for 120 µs, nothing is seen.
    let mine = |at: u32| format!("   rt-70  [000] ..... 10.000{at:03}: mine: x\n");
    let late =
        "   rt-70  [000] ..... 10.000200: tracing_mark_write: hit latency threshold (200 > 9)";
    let told = |moments: &[u32]| {
        let lines: String = moments.iter().map(|at| mine(*at)).collect();
        one(&["# tracer: nop\n", &lines, late].concat())
    };
    let way = told(&[0, 40, 80, 120, 160]);
    assert_eq!(blamed(&way).0, Kind::Path, "{way:#?}");
    let hidden = told(&[0, 40, 160]);
    assert_eq!(lengths(&hidden), [40, 120, 40], "{hidden:#?}");
    assert_eq!((hidden.culprit, hidden.undecided.is_some()), (None, true));
    // rtla's analysis without the block of its thread.
    let block = "                         objtool:49256                       3.79 us\n";
    let words = [(" 41.96 us (100%)", "341.96 us (100%)"), (block, "")];
    let told = one(&changed(file!("rtla-new"), &words));
    assert_eq!(told.whole, Some(Nanos(341_960)), "{told:#?}");
    assert_eq!((told.culprit, told.undecided.is_some()), (None, true));
}

/// A thread had run for long, and was interrupted by the timer and then by a soft interrupt.
const TIMERLAT: &str = "\
# tracer: timerlat
        load-50   [001] d.h1. 10.000001: #10 context    irq timer_latency 1000 ns
        load-50   [001] d.h1. 10.000006: irq_noise: timer:236 start 10.000001000 duration 5000 ns
        load-50   [001] ..s1. 10.000066: softirq_noise: RX:3 start 10.000006000 duration 60000 ns
        load-50   [001] d..2. 10.000099: thread_noise: load:50 start 9.995000000 duration 4900000 ns
  timerlat/1-900  [001] ..... 10.000100: #10 context thread timer_latency 100000 ns
";

#[test]
fn the_parts_of_a_sample_of_timerlat_are_as_long_as_the_sample() {
    let net = ("9.995000000 duration 4900000", "9.999990000 duration 44000");
    let short = [("10.000066", "10.000046"), ("60000", "40000")];
    let soft = (Kind::SoftInterrupt, "RX:3");
    let thread = (Kind::Thread, "load:50");
    for (words, parts, (kind, name)) in [
        (vec![], [1, 5, 60, 33, 1], soft),
        (vec![net], [1, 5, 60, 33, 1], soft),
        (short.to_vec(), [1, 5, 40, 53, 1], thread),
        // Another interrupt.
        (
            vec![("softirq_noise", "irq_noise")],
            [1, 5, 60, 33, 1],
            (Kind::Interrupt, "RX:3"),
        ),
    ] {
        let told = one(&changed(TIMERLAT, &words));
        assert_eq!(told.whole, Some(Nanos::from_micros(100)));
        assert_eq!(lengths(&told), parts, "{words:?}: {told:#?}");
        assert_eq!(blamed(&told), (kind, name.to_owned()), "{words:?}");
    }
}

#[test]
fn what_ended_before_the_interrupt_of_timerlat_is_a_part_of_its_delay() {
    let words = [
        ("10.000001: #10", "10.000070: #10"),
        ("timer_latency 1000 ns", "timer_latency 70000 ns"),
        ("10.000006: irq", "10.000075: irq"),
        ("start 10.000001", "start 10.000070"),
    ];
    let late = changed(TIMERLAT, &words);
    assert_eq!(lengths(&one(&late)), [70, 5, 24, 1]);
    let told = one(&changed(&late, &[("softirq_noise: RX:3", "nmi_noise:")]));
    assert_eq!(lengths(&told), [10, 5, 60, 24, 1]);
    assert_eq!(blamed(&told), (Kind::Hardware, "NMI".into()));
}

#[test]
fn a_sample_of_timerlat_without_its_interrupt_is_undecided() {
    let from = TIMERLAT.find('\n').unwrap() + 1;
    let to = TIMERLAT.find("1000 ns\n").unwrap() + 8;
    let told = one(&TIMERLAT.replace(&TIMERLAT[from..to], ""));
    let why = told.undecided.clone().unwrap();
    assert_eq!(why, "the sample of its interrupt is not in it");
    assert!(told.pieces.iter().all(|piece| piece.kind != Kind::Path));
    // What ran is told all the same.
    assert_eq!(lengths(&told), [5, 60, 34, 1], "{told:#?}");
    assert_eq!(told.pieces[1].what.as_deref(), Some("RX:3"));
}

/// What began before the timer's interrupt goes on behind it, and is interrupted there.
#[test]
fn what_interrupts_a_part_of_timerlat_is_no_time_of_that_part() {
    let words = [
        ("10.000006: irq_noise", "10.000041: irq_noise"),
        ("duration 5000 ns", "duration 40000 ns"),
        ("10.000066: softirq", "10.000061: softirq"),
        ("10.000006000 duration 60000", "9.999700000 duration 320000"),
    ];
    let told = one(&changed(TIMERLAT, &words));
    assert_eq!(lengths(&told), [1, 40, 20, 38, 1], "{told:#?}");
    assert_eq!(blamed(&told), (Kind::Interrupt, "the timer's".into()));
}

#[test]
fn the_thread_that_a_late_interrupt_of_timerlat_came_to_is_named() {
    let told = one("\
# tracer: timerlat
   load-50   [001] d.h1. 10.001300: #11 context    irq timer_latency 300000 ns
   load-50   [001] d.h1. 10.001301: <stack trace>
 => timerlat_irq
 => asm_sysvec_apic_timer_interrupt
 => stress_function
 => its_caller
   load-50   [001] d.h1. 10.001302: timerlat_irq: stop tracing hit on cpu 1
");
    let expected = (Kind::InterruptsOff, "stress_function".to_owned());
    assert_eq!(blamed(&told), expected, "{told:#?}");
    let thread = told.pieces[0].thread.as_deref();
    assert_eq!(thread, Some("load-50"));
    // Behind the interrupt nothing is told.
    assert!(!told.notes.contains(&notes::NO_NOISE.to_owned()));
}

/// Where the interrupt itself was too late, its thread has no sample of that period.
#[test]
fn a_trace_that_an_interrupt_of_timerlat_stopped_tells_that_interrupt() {
    let irq =
        "        load-50   [001] d.h1. 10.001300: #11 context    irq timer_latency 300000 ns\n";
    let stop = "        load-50   [001] d.h1. 10.001301: timerlat_irq: stop tracing hit on cpu 1\n";
    for text in [
        [TIMERLAT, irq, stop].concat(),
        // Without that line it is the latest.
        [TIMERLAT, irq].concat(),
    ] {
        let told = one(&text);
        assert_eq!(told.whole, Some(Nanos::from_micros(300)), "{told:#?}");
        assert_eq!(told.whose.as_deref(), Some("timerlat/1-900"));
        assert!(told.undecided.unwrap().contains("no stack"));
    }
    // The thread stopped it, and its sample was cut away.
    let stop = stop.replace("timerlat_irq", "timerlat_main");
    let why = one(&[TIMERLAT, irq, &stop].concat()).undecided.unwrap();
    assert_eq!(why, "the sample of its thread is not in it");
    // Of a later one than the line nothing is told.
    let stop = stop.replace("10.001301", "10.000101");
    let told = one(&[TIMERLAT, &stop, irq].concat());
    assert_eq!(told.whole, Some(Nanos::from_micros(100)));
}

#[test]
fn a_thread_that_runs_when_it_is_woken_does_not_wait() {
    const WOKEN: &str = "\
# tracer: nop
   load-50  [000] d..2. 10.000000: sched_waking: comm=rt pid=70 prio=19 target_cpu=001
     rt-70  [001] d..2. 10.000010: sched_switch: prev_comm=rt prev_pid=70 prev_prio=19 \
prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
 <idle>-0   [001] d.h1. 10.900000: sched_waking: comm=rt pid=70 prio=19 target_cpu=001
 <idle>-0   [001] d..2. 10.900005: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 \
prev_state=R ==> next_comm=rt next_pid=70 next_prio=19
";
    for state in ["S", "D", "R", "R+"] {
        let state = format!("prev_pid=70 prev_prio=19 prev_state={state} ");
        let from = "prev_pid=70 prev_prio=19 prev_state=S ";
        let told = one(&changed(WOKEN, &[(from, state.as_str())]));
        assert_eq!(told.whole, Some(Nanos::from_micros(5)), "{state}");
    }
}

/// The wake-up and the switch are noted on two CPUs: the thread has not quite gone to sleep.
#[test]
fn a_thread_that_is_woken_while_it_falls_asleep_waits() {
    const WOKEN: &str = "\
# tracer: nop
   irq-5   [000] d..2. 10.000000: sched_waking: comm=rt pid=70 prio=19 target_cpu=001
    rt-70  [001] d..2. 10.000001: sched_switch: prev_comm=rt prev_pid=70 prev_prio=19 \
prev_state=S ==> next_comm=load next_pid=50 next_prio=9
  load-50  [001] d..2. 10.000500: sched_switch: prev_comm=load prev_pid=50 prev_prio=9 \
prev_state=S ==> next_comm=rt next_pid=70 next_prio=19
";
    for state in ["S", "D"] {
        let to = format!("prev_pid=70 prev_prio=19 prev_state={state}");
        let told = one(&changed(
            WOKEN,
            &[("prev_pid=70 prev_prio=19 prev_state=S", to.as_str())],
        ));
        assert_eq!(told.whole, Some(Nanos::from_micros(500)), "{told:#?}");
        let expected = (Kind::HigherThread, "load-50".to_owned());
        assert_eq!(blamed(&told), expected);
    }
}

const SWITCH: &str = "sched_switch: prev_comm=load prev_pid=50 prev_prio=120 prev_state=R ==> \
                      next_comm=rt next_pid=70 next_prio=19";

/// The stack of a switch after an interrupt, as x86-64 and arm64 have it.
#[test]
fn the_code_that_was_interrupted_is_named_on_each_architecture() {
    for entry in [
        " => irqentry_exit\n => asm_sysvec_apic_timer_interrupt\n",
        " => el1_interrupt\n => el1h_64_irq_handler\n => el1h_64_irq\n",
    ] {
        let told = one(&format!(
            "# tracer: nop
   load-50  [000] d.h2. 10.000000: sched_waking: comm=rt pid=70 prio=19 target_cpu=000
   load-50  [000] dN.2. 10.000001: irq_handler_exit: irq=11 ret=handled
   load-50  [000] .N.2. 10.000003: mine: x
   load-50  [000] .N.1. 10.000304: mine: y
   load-50  [000] d..2. 10.000305: {SWITCH}
   load-50  [000] d..2. 10.000306: <stack trace>
 => __schedule\n => preempt_schedule_irq\n{entry} => stress_function\n => its_caller\n"
        ));
        let expected = (Kind::PreemptionOff, "stress_function".to_owned());
        assert_eq!(blamed(&told), expected, "{told:#?}");
    }
}

/// Who calls the function that preempts after an interrupt depends on the architecture.
#[test]
fn an_interrupt_lasts_until_the_switch_at_its_end() {
    for caller in ["irqentry_exit", "el1_interrupt"] {
        let told = one(&format!(
            "# tracer: nop
   load-50  [000] d.h1. 10.000000: sched_waking: comm=rt pid=70 prio=19 target_cpu=000
   load-50  [000] d.h1. 10.000001: handler <-its_caller
   load-50  [000] d..1. 10.000301: preempt_schedule_irq <-{caller}
   load-50  [000] d..2. 10.000305: {SWITCH}\n"
        ));
        let expected = (Kind::Interrupt, "handler".to_owned());
        assert_eq!(blamed(&told), expected, "{told:#?}");
    }
}

/// The stack of rtla's analysis, as arm64 has it.
#[test]
fn an_interrupt_that_came_late_on_arm64_names_what_it_came_to() {
    let x86 = "                -> asm_sysvec_apic_timer_interrupt\n";
    let below = "                -> _raw_spin_unlock_irqrestore
                -> cgroup_rstat_flush_locked
                -> cgroup_rstat_flush_irqsafe
                -> balance_dirty_pages
";
    let kernel = "                -> el1h_64_irq_handler\n                -> el1h_64_irq\n";
    let user = "                -> el0t_64_irq_handler\n                -> el0t_64_irq\n";
    let told = one(&changed(file!("rtla-new"), &[(x86, kernel)]));
    let expected = (Kind::InterruptsOff, "cgroup_rstat_flush_locked".to_owned());
    assert_eq!(blamed(&told), expected);
    let told = one(&changed(file!("rtla-new"), &[(x86, user), (below, "")]));
    assert_eq!(blamed(&told).0, Kind::Hardware);
}

#[test]
fn what_was_lost_within_a_sample_is_no_way_and_blames_nobody() {
    let sample = |loss: &str| {
        format!(
            "# tracer: timerlat
          <idle>-0       [001] d.h2.   500.000010: #5 context    irq timer_latency      3000 ns
          <idle>-0       [001] d.h2.   500.000012: irq_noise: local_timer:236 start 500.000008000 \
             duration 5000 ns
{loss}           <...>-867    [001] .....   500.000100: #5 context thread timer_latency    93000 ns
"
        )
    };
    let wait = |loss: &str| {
        format!(
            "     cat-7     [001] dN.2.   100.000100: sched_wakeup: comm=rt pid=8 prio=9 target_cpu=001
{loss}     cat-7     [001] d..2.   100.050195: sched_switch: prev_comm=cat prev_pid=7 prev_prio=120 \
             prev_state=R ==> next_comm=rt next_pid=8 next_prio=9
"
        )
    };
    for text in [&sample as &dyn Fn(&str) -> String, &wait] {
        for loss in ["[LOST 4000 EVENTS]", "[LOST EVENTS]", "[EVENTS DROPPED]"] {
            let told = one(&text(&format!("CPU:1 {loss}\n")));
            assert_eq!(told.culprit, None, "{loss}: {told:#?}");
            let why = told.undecided.unwrap();
            assert_eq!(why, "events of its CPU were lost for most of it", "{loss}");
        }
        // Another CPU's are none of its own.
        let other = one(&text("CPU:2 [LOST 4000 EVENTS]\n"));
        assert!(other.culprit.is_some(), "{other:#?}");
    }
}
