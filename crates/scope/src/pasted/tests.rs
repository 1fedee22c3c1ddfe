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
