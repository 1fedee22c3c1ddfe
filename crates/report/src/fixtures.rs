// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs made by code, with plausible values that never change.

use punctual_model::capture::{Context, Happened, Longest, NoiseKind, Task, TraceEvent};
use punctual_model::machine::VirtualMachine;
use punctual_model::record::{Provenance, StepRecord, Unsupported};
use punctual_model::recording::{DISTRIBUTION, MEAN_WITHIN, Work};
use punctual_model::run::State;
use punctual_model::{
    Capture, CpuId, Fact, Finding, MachineRecord, Nanos, Preemption, Recorder, Recording,
    RecordingKey, Run, Sample, Subject, Tracer,
};

/// The number of samples of each timer recording.
pub const SAMPLES: u64 = 2_000;
/// The reason why `irq` is unsupported.
pub const NO_MODULE: &str = "the kernel module `pulse` is not loaded";
/// The reason why a run failed.
pub const NO_BOOT: &str = "the guest's kernel panicked: <VFS> unable to mount root";

/// The plan of these runs' steps.
pub const PLAN: &str = "seed = 1\n[[step]]\nprobe = \"timer\"\nsamples = 2000\n\
                    [[step]]\nprobe = \"timer\"\nload = \"stress\"\nsamples = 2000\n\
                    [[step]]\nprobe = \"hackbench\"\n";

/// Fails unless a text has all of these parts.
#[track_caller]
pub fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "there is no \"{part}\" in {text}");
    }
}

/// A recording with each of its times changed.
pub fn changed(recording: &Recording, change: &dyn Fn(i64) -> i64) -> Recording {
    let mut recorder = Recorder::new(recording.samples.len());
    for sample in recording.samples.iter() {
        recorder.record(sample.at, Nanos(change(sample.value.0)));
    }
    let mut new = recorder.finish(recording.key.clone());
    new.interval = recording.interval;
    new
}

/// For seed 1, in nanoseconds: the worst case idle, that under stress, what hackbench takes.
fn times_of(name: &str) -> [i64; 3] {
    match name {
        "none" => [12_300, 381_400, 101_000_000],
        "voluntary" => [12_050, 384_120, 104_000_000],
        "full" => [9_400, 508_050, 118_000_000],
        _ => [4_120, 8_070, 301_000_000],
    }
}

/// Four subjects, one seed, everything measured.
pub fn whole() -> Vec<Run> {
    seeds(1)
}

/// Four subjects with the seeds 1 to `count`.
pub fn seeds(count: u64) -> Vec<Run> {
    ["none", "voluntary", "full", "rt"]
        .into_iter()
        .flat_map(|name| (1..=count).map(move |seed| run(name, seed)))
        .collect()
}

/// `full` failed to boot, and no subject could run `irq`.
pub fn with_gaps() -> Vec<Run> {
    let mut runs = whole();
    for run in &mut runs {
        run.unsupported.push(Unsupported {
            step: 3,
            probe: "irq".into(),
            load: "idle".into(),
            reason: NO_MODULE.into(),
        });
    }
    let failed = &mut runs[2];
    failed.state = State::Failed;
    failed.error = Some(NO_BOOT.into());
    failed.recordings.clear();
    failed.unsupported.clear();
    failed.provenance = None;
    runs
}

/// `none` and `rt` with the findings of every other probe, in the form in which it tells them.
pub fn all_probes() -> Vec<Run> {
    let mut runs = vec![run("none", 1), run("rt", 1)];
    let answer = |yes, why: &str| Finding::Answer {
        yes,
        why: why.into(),
    };
    let unforced = [
        answer(false, "0 of 8 lines have a thread"),
        answer(true, "0 of 8 lines have a thread"),
    ];
    let forced = [
        answer(true, "8 of 8 lines have a thread"),
        answer(false, "8 of 8 lines have a thread"),
    ];
    runs[0].recordings = numbered(told_by_all_probes(unforced, 40));
    runs[1].recordings = numbered(told_by_all_probes(forced, 59));
    for run in &mut runs {
        run.steps.clear();
    }
    runs
}

fn told_by_all_probes([each, none]: [Finding; 2], threads: u64) -> Vec<Recording> {
    let threads_found = [
        ("interrupts_threaded", each),
        ("interrupts_unthreaded", none),
        ("threads", Finding::Count(threads)),
        ("real_time_threads", Finding::Count(12)),
    ];
    let mut kthreads = told("kthreads", "", &[], threads_found);
    let more = "rcu\n".repeat(threads as usize - 39);
    kthreads.output = Some(format!("kthreadd\n{more}"));
    let sizes = [
        ("kernel_text_bytes", Finding::Bytes(16 << 20)),
        ("kernel_bss_bytes", Finding::Absent("hidden".into())),
    ];
    let prevented = |expected| {
        let count = if expected { 0 } else { 10 };
        [
            ("result", verdict(expected, expected)),
            ("inverted", Finding::Share { count, of: 10 }),
        ]
    };
    let no = Finding::Answer {
        yes: false,
        why: "-0.01 to 0.05 ns per waiter, against a bound of ±0.30".into(),
    };
    let slope = [
        (
            "slope_ns_per_waiter",
            Finding::estimate(0.02, (-0.01, 0.05)),
        ),
        ("waiters_matter", no),
    ];
    let mut release = told("semaphore", "release", &[3_000, 3_100, 3_050], slope);
    release.settings.insert("waiters".into(), 3.into());
    vec![
        told("footprint", "", &[], sizes),
        kthreads,
        told("inversion", "inherit", &[6_000, 6_100], prevented(true)),
        told("inversion", "none", &[506_000, 507_000], prevented(false)),
        told("inversion", "protect", &[5_000, 5_100], prevented(true)),
        told("switch", "N=2", &[1_300, 1_500, 21_800], []),
        told("switch", "N=10", &[1_300, 1_600, 9_800], []),
        told("semaphore", "acquire", &[3_000, 3_100, 3_050, 3_010], []),
        release,
        told("realfeel", "rtc 2048 Hz", &[-4_000, 12_000, -12_100], []),
        told("image", "user", &[900_000_000, 910_000_000], []),
        told("image", "system", &[20_000_000, 24_000_000], []),
    ]
}

/// A verdict on a subject's behaviour.
pub fn verdict(passed: bool, expected: bool) -> Finding {
    Finding::Verdict { passed, expected }
}

/// The preemption model of that name.
pub fn preemption(name: &str) -> Preemption {
    Preemption::of_name(name).unwrap_or_default()
}

/// The virtual machine that a run was made on.
pub fn virtual_machine(run: &mut Run) -> &mut VirtualMachine {
    match &mut run.machine {
        MachineRecord::Virtual(machine) => machine,
        MachineRecord::Host(_) => panic!("{} was made on a host", run.id),
    }
}

/// A probe's recording under a load, of a variant: these values, one in each period.
pub fn recording([probe, load, variant]: [&str; 3], values: &[i64]) -> Recording {
    let mut recorder = Recorder::new(values.len());
    for (number, value) in (0..).zip(values) {
        recorder.record(Nanos(number * 997_000), Nanos(*value));
    }
    recorder.finish(RecordingKey::new(probe, load, variant))
}

/// The same recording, as if from a program that counted its samples in one bin, from 1 µs to the
/// largest.
pub fn in_a_wide_bin(recording: &Recording) -> Recording {
    let mut wide = Recorder::new(0).finish(recording.key.clone());
    let (_, high) = recording.extremes.expect("it has samples");
    let low = Nanos(1_000);
    (wide.count, wide.extremes) = (recording.count, Some((low, high)));
    wide.sum = low * recording.count as i64;
    wide.histogram.record_between(low, high, recording.count);
    let within = (high - low).0.into();
    wide.settings.insert(MEAN_WITHIN.into(), within);
    let unknown = "its bins are wide".into();
    let unknown = Fact::Unknown { unknown };
    wide.settings.insert(DISTRIBUTION.into(), unknown);
    wide
}

/// A run beside which the kernel's tracer caught a sample.
pub fn caught() -> Run {
    let mut run = run("full", 1);
    run.recordings[1].captures = vec![capture(run.recordings[1].worst[0])];
    run
}

/// Each kind of event; the interrupt was masked by `free_one_page`.
fn capture(sample: Sample) -> Capture {
    let task = |comm: &str, pid| Task {
        comm: comm.into(),
        pid,
    };
    let (own, other) = (|| task("punctual", 7), || task("<script>", 3));
    let late = sample.value.0;
    let name = || "local_timer".to_owned();
    let happened = [
        (-9, Happened::SoftirqEntry { name: "RCU".into() }),
        (-8, Happened::SoftirqExit { name: "RCU".into() }),
        (-7, Happened::Mark("<script>".into())),
        (late - 20, Happened::IrqEntry { name: name() }),
        (
            late - 19,
            Happened::TimerExpires {
                function: "hrtimer_wakeup".into(),
            },
        ),
        (late - 18, Happened::Waking { task: own() }),
        (late - 15, Happened::IrqExit { name: name() }),
        (
            late - 10,
            Happened::Function {
                name: "a".into(),
                caller: "b".into(),
            },
        ),
        (
            late - 9,
            Happened::Other {
                name: "cpu_idle".into(),
                detail: "state=1".into(),
            },
        ),
        (
            late - 8,
            Happened::Switch {
                prev: other(),
                state: "R".into(),
                next: own(),
            },
        ),
        (
            late - 7,
            Happened::Noise {
                kind: NoiseKind::Irq,
                name: name(),
                start: Nanos(late - 20),
                ran: Nanos(5),
            },
        ),
    ];
    let stack = [
        "try_to_wake_up",
        "asm_sysvec_apic_timer_interrupt",
        "free_one_page",
    ];
    let event = |(at, what): (i64, Happened)| TraceEvent {
        at: Nanos(at),
        task: other(),
        context: Context::default(),
        stack: if matches!(what, Happened::Waking { .. }) {
            stack.map(str::to_owned).to_vec()
        } else {
            Vec::new()
        },
        what,
    };
    Capture {
        sample,
        cpu: CpuId(0),
        pid: 7,
        tracer: Tracer::Events,
        pause: Nanos(9_000_000),
        lost: 2,
        events: happened.map(event).to_vec(),
        longest: Some(Longest {
            latency: Nanos(16_000),
            task: other(),
            started: "a".into(),
            ended: "b".into(),
        }),
    }
}

/// A run of `rt` with these recordings alone.
pub fn run_with(recordings: Vec<Recording>) -> Run {
    let run = run("rt", 1);
    Run { recordings, ..run }
}

fn told<const N: usize>(
    probe: &str,
    variant: &str,
    values: &[i64],
    findings: [(&str, Finding); N],
) -> Recording {
    let mut recording = recording([probe, "idle", variant], values);
    recording.findings = findings.map(|(key, value)| (key.into(), value)).into();
    recording
}

/// One subject's run.
pub fn run(name: &str, seed: u64) -> Run {
    run_keeping(name, seed, usize::MAX)
}

/// The same, with the samples counted but not kept.
pub fn run_without_samples(name: &str, seed: u64) -> Run {
    run_keeping(name, seed, 10)
}

fn run_keeping(name: &str, seed: u64, keep: usize) -> Run {
    let (release, boot) = match name {
        "rt" => ("6.12.90-rt-amd64", String::new()),
        _ => ("6.12.90-amd64", format!("preempt={name}")),
    };
    Run {
        id: format!("{name}-{seed}"),
        suite: "demo".into(),
        plan: format!(
            "seed = {seed}\n\n[[step]]\nprobe = \"timer\"\nload = \"idle\"\nsamples = 1\n"
        ),
        seed,
        subject: Subject {
            name: name.into(),
            kernel: format!("debian-{release}"),
            boot: boot.clone(),
            bench: "virtual".into(),
        },
        state: State::Finished,
        error: None,
        started: "2026-03-01T10:00:00Z".into(),
        finished: Some("2026-03-01T10:00:52Z".into()),
        punctual: "0.1.0".into(),
        machine: machine(release, &boot),
        shards: 1,
        request: punctual_model::run::Request::default(),
        provenance: Some(provenance(name, release, &boot)),
        steps: steps(),
        recordings: recordings(name, seed, keep),
        unsupported: Vec::new(),
        console: "[    0.000000] Linux version 6.12.90 <debian-kernel@lists.debian.org>\n".into(),
        arrivals: Vec::new(),
    }
}

fn provenance(name: &str, release: &str, boot: &str) -> Provenance {
    let cmdline = format!("console=ttyS0 nokaslr norandmaps {boot}");
    let facts = [
        ("clocksource", "tsc"),
        ("timer resolution", "1 ns"),
        ("cpu", "QEMU Virtual CPU"),
    ];
    Provenance {
        release: release.into(),
        version: format!("Linux version {release} #1 SMP Debian 6.12.90-1"),
        cmdline: cmdline.trim().into(),
        preemption: preemption(name),
        tsc_khz: Some(999_993),
        facts: facts.map(|(key, value)| (key.into(), value.into())).into(),
    }
}

fn recordings(name: &str, seed: u64, keep: usize) -> Vec<Recording> {
    let ([idle, stress, work], number) = (times_of(name), seed as i64);
    let idle = idle + number * 31;
    let stress = stress - (number - 1) * stress / 57;
    let recordings = vec![
        timer(name, "idle", idle, seed, keep),
        timer(name, "stress", stress, seed, keep),
        hackbench(work + (number - 1) * 400_000),
    ];
    numbered(recordings)
}

/// Each in a step of its own.
fn numbered(mut recordings: Vec<Recording>) -> Vec<Recording> {
    for (recording, step) in recordings.iter_mut().zip(0..) {
        recording.key.step = step;
    }
    recordings
}

fn steps() -> Vec<StepRecord> {
    let work = |worker: &str, rounds, amount, unit: &str, millis| Work {
        worker: worker.into(),
        rounds,
        amount,
        unit: unit.into(),
        cpu: Nanos::from_millis(millis),
        ..Work::default()
    };
    let work = vec![
        work("hackbench -g 1 -l 100", 6, 240_000, "messages", 1_830),
        work("ls -lRa /", 41, 88_150, "lines", 640),
    ];
    let step = |step, probe: &str, load: &str, work| StepRecord {
        step,
        probe: probe.into(),
        load: load.into(),
        work,
        marks: Vec::new(),
    };
    vec![
        step(0, "timer", "idle", Vec::new()),
        step(1, "timer", "stress", work),
        step(2, "hackbench", "idle", Vec::new()),
    ]
}

fn machine(release: &str, boot: &str) -> MachineRecord {
    MachineRecord::Virtual(VirtualMachine {
        release: Some(release.into()),
        image_sha256: "5f8c1d7e90aa41b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f607182930".into(),
        origin: format!("linux-image-{release}_6.12.90-1_amd64.deb"),
        initramfs_sha256: "0".repeat(64),
        cmdline: format!("console=ttyS0 nokaslr norandmaps {boot}"),
        memory_mib: 256,
        cpus: 1,
        turn_us: None,
        network: None,
        ns_per_insn: 1,
        qemu: "QEMU emulator version 7.2.22".into(),
        qemu_command: "-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off,align=off".into(),
    })
}

/// Most samples near 4 µs, fewer and fewer towards `worst`, which occurs once.
fn timer(name: &str, load: &str, worst: i64, seed: u64, keep: usize) -> Recording {
    let mut recorder = Recorder::new(keep.min(SAMPLES as usize));
    let mut state = 0x9e37_79b9_7f4a_7c15 ^ (worst as u64) ^ (seed << 32);
    let base = if name == "rt" { 2_900.0 } else { 2_300.0 };
    let reach = (worst as f64 / base).ln();
    for seq in 0..SAMPLES {
        let share = random(&mut state);
        let tail = random(&mut state).powi(9) * share;
        let value = base * (share * 0.25 + reach * tail * 0.9).exp();
        let worst = if seq == 1_234 { worst } else { worst - 1 };
        let value = if seq == 1_234 {
            worst
        } else {
            worst.min(value as i64)
        };
        recorder.record(Nanos(seq as i64 * 997_000), Nanos(value));
    }
    let mut recording = recorder.finish(RecordingKey::new("timer", load, "cpu0"));
    recording.interval = Some(Nanos(997_000));
    recording.warmup = 50;
    recording.settings = [("policy", "SCHED_FIFO"), ("affinity", "cpu0")]
        .map(|(key, value)| (key.into(), value.into()))
        .into();
    recording.settings.insert("priority".into(), 98.into());
    recording
}

fn hackbench(middle: i64) -> Recording {
    let mut recorder = Recorder::new(8);
    for (round, offset) in (0..).zip([0, -600_000, 900_000]) {
        recorder.record(Nanos::from_millis(round * 400), Nanos(middle + offset));
    }
    recorder.finish(RecordingKey::new("hackbench", "idle", "pipe process 1"))
}

/// A number from 0 to 1 (xorshift64*).
fn random(state: &mut u64) -> f64 {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
}
