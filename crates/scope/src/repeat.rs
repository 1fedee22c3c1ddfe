// SPDX-License-Identifier: MIT OR Apache-2.0
//! Repeats a run while it is watched.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual_bench::RunError;
use punctual_bench::WorkDir;
use punctual_bench::system::Event;
use punctual_bench::virtual_bench::{self, Machine, Plugin, Start, TURN, VirtualBench, cmdline};
use punctual_kernels::Kernel;
use punctual_kernels::paths;
use punctual_model::aim::Aim;
use punctual_model::digest::digest;
use punctual_model::{MachineRecord, Nanos, Record, Recording, Run};
use punctual_trace::{Block, Item, Orders, ReadError, Reader, Window, Word};

use crate::arch::Code;
use crate::error::{ScopeError, at};
use crate::pipe::Pipe;
use crate::symbols::{self, Symbols};

/// The number of words of a window that are kept: as many as blocks run in some 20 ms of a busy
/// guest.
const RING: usize = 4_000_000;

/// Repeats runs on the bench.
pub struct Repeater {
    /// The bench, without the plugin.
    pub bench: VirtualBench,
    /// Punctual's cache directory.
    pub cache: PathBuf,
    /// The scope's plugin.
    pub plugin: PathBuf,
    /// The way it gets to a booted guest.
    pub start: Start,
}

/// A wait of a program that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The step, from 0.
    pub step: u32,
    /// The number of the step's system call that waits, from 1.
    pub call: u64,
    /// Original end of the wait, by the clock that the call names.
    pub from: Nanos,
    /// New end of the wait.
    pub to: Nanos,
}

impl Moved {
    /// Returns the orders for the plugin.
    fn orders(self, machine: &Machine, symbols: &Symbols) -> Result<String, ScopeError> {
        let entry = Code::of(machine.kernel.architecture).moves_at;
        let Some((entry, _)) = entry.and_then(|entry| symbols.range(entry)) else {
            let why = format!(
                "{} has no entry of system calls at which a program's wait could be moved",
                machine.kernel.release
            );
            return Err(ScopeError::NoSymbols(why));
        };
        let Self {
            step,
            call,
            from,
            to,
        } = self;
        Ok(format!(
            "calls {entry:x}\nmove {step} {call} {} {}\n",
            from.0.max(0),
            to.0.max(0)
        ))
    }
}

/// Callback for events while a run is repeated.
pub type OnEvent<'a> = &'a mut (dyn FnMut(&Event) + Send);

impl Repeater {
    /// Returns the machine of a run, which must be the same as then.
    pub fn machine(&self, run: &Run, kernel: Kernel) -> Result<Machine, ScopeError> {
        let then = run.machine.as_virtual();
        let then = then.ok_or_else(|| ScopeError::Host(run.id.clone()))?;
        let initramfs = self.bench.initramfs(&then.initramfs_sha256);
        let machine = Machine {
            cmdline: cmdline(&kernel, &run.subject.boot, then.cpus),
            cpus: then.cpus,
            turn: then
                .turn_us
                .map_or(TURN, |turn| Nanos::from_micros(turn.into())),
            kernel,
            network: then.network,
            memory_mib: then.memory_mib,
            ns_per_insn: then.ns_per_insn,
            initramfs: initramfs.map_err(RunError::from)?,
            initramfs_sha256: then.initramfs_sha256.clone(),
        };
        let code = Code::of(machine.kernel.architecture);
        if let Some(why) = (code.refusal)(&machine.kernel.release) {
            return Err(ScopeError::NotUnderstood(run.id.clone(), why));
        }
        let now = MachineRecord::Virtual(self.bench.record(&machine)).facts();
        for ((what, then), (_, now)) in run.machine.facts().into_iter().zip(now) {
            if then != now {
                return Err(ScopeError::Changed {
                    run: run.id.clone(),
                    what: what.to_owned(),
                    then,
                    now,
                });
            }
        }
        if !machine.initramfs.is_file() {
            let (run, sha256) = (run.id.clone(), machine.initramfs_sha256);
            return Err(ScopeError::Gone { run, sha256 });
        }
        Ok(machine)
    }

    /// Returns the names of a machine's kernel, from the very guest that is resumed. They are kept.
    pub fn symbols(&self, machine: &Machine, cancel: &AtomicBool) -> Result<Symbols, ScopeError> {
        let path = self.cache.join("symbols").join(self.bench.key(machine));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let text = self.ask_for_symbols(machine, cancel)?;
                paths::write_atomically(&path, text.as_bytes()).map_err(at(&path))?;
                text
            }
            Err(error) => return Err(at(&path)(error)),
        };
        let mut symbols =
            Symbols::parse(machine.kernel.architecture, &text).map_err(ScopeError::NoSymbols)?;
        let image = &machine.kernel.image;
        symbols.learn(&fs::read(image).map_err(at(image))?);
        // Else nothing that switches preemption off would be seen, and nothing would show that.
        let needed = symbols.code().variables;
        if !needed.is_empty() && needed.iter().all(|name| symbols.variable(name).is_none()) {
            return Err(ScopeError::NoSymbols(format!(
                "/proc/kallsyms has none of {}: build the kernel with CONFIG_KALLSYMS_ALL=y",
                needed.join(", ")
            )));
        }
        // Each of its saved masks would be taken for a mere look, and nothing would show that.
        if (symbols.code().must_save)(&machine.kernel.release) && !symbols.saves_any() {
            let image = image.display();
            let why = format!("{image} has no place where it saves what masks interrupts");
            return Err(ScopeError::NoSymbols(why));
        }
        Ok(symbols)
    }

    fn ask_for_symbols(
        &self,
        machine: &Machine,
        cancel: &AtomicBool,
    ) -> Result<String, ScopeError> {
        let mut found = Err(ScopeError::NoSymbols("the guest said nothing".to_owned()));
        let on = &mut |event: Event| {
            if let Event::Record(record) = event {
                match *record {
                    Record::Recording(recording) => {
                        found = Ok(recording.output.unwrap_or_default());
                    }
                    Record::Unsupported(unsupported) => {
                        found = Err(ScopeError::NoSymbols(unsupported.reason.to_string()));
                    }
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        };
        let plan = plan_of_names(Code::of(machine.kernel.architecture));
        self.bench
            .run(machine, &plan, self.start, on, cancel)
            .result?;
        symbols::unpacked(&found?).map_err(ScopeError::NoSymbols)
    }

    /// Repeats a run up to the last of these windows, and hands over what was seen in each, in
    /// their order. The output is compared with that of the original run.
    pub fn watch(
        &self,
        run: &Run,
        machine: &Machine,
        windows: &[Window],
        symbols: &Symbols,
        cancel: &AtomicBool,
        on: OnEvent,
    ) -> Result<Trace, ScopeError> {
        let last = windows.iter().map(|window| window.step).max();
        let follow = &mut |bench: &VirtualBench| {
            repeat(bench, run, machine, (self.start, last), cancel, on).map(drop)
        };
        self.watch_windows(machine, windows, symbols, follow)
    }

    /// Repeats a run up to the aimed sample, and hands over what was seen of it, with its step's
    /// recording. All samples before it are those of the run; an error if they differ.
    pub fn watch_aimed(
        &self,
        run: &Run,
        machine: &Machine,
        aim: Aim,
        symbols: &Symbols,
        cancel: &AtomicBool,
        on: OnEvent,
    ) -> Result<(Trace, Recording), ScopeError> {
        let (step, index) = (u32::try_from(aim.step).unwrap_or(u32::MAX), aim.sample);
        let cpu = None;
        let mut found = None;
        let follow = &mut |bench: &VirtualBench| {
            let mut bench = bench.clone();
            bench.aim = aim;
            found = Some(self.aimed(&bench, run, machine, (step, cancel), on)?);
            Ok(())
        };
        let windows = [Window { step, index, cpu }];
        let trace = self.watch_windows(machine, &windows, symbols, follow)?;
        let unmarked = ScopeError::Unmarked(1);
        Ok((trace, found.ok_or(unmarked)?))
    }

    /// Repeats a run with one moved wait of a program, up to the end of its step. Returns the
    /// recordings of that step. `take`, if given, receives all that happens.
    #[expect(
        clippy::too_many_arguments,
        reason = "the run, its machine, and how far and by whom it is watched"
    )]
    pub fn move_wait(
        &self,
        run: &Run,
        machine: &Machine,
        moved: Moved,
        symbols: &Symbols,
        take: Option<&mut (dyn FnMut(&Item) + Send)>,
        cancel: &AtomicBool,
        on: OnEvent,
    ) -> Result<Vec<Recording>, ScopeError> {
        let own = ram(machine) + &moved.orders(machine, symbols)?;
        let mut found = None;
        let follow = &mut |bench: &VirtualBench| {
            found = Some(self.moved(bench, run, machine, (moved.step, cancel), on)?);
            Ok(())
        };
        if let Some(take) = take {
            let memory = memory(machine, symbols);
            match self.follow_with(machine, memory, &own, take, follow) {
                // Behind the step the guest is ended.
                Err(ScopeError::NoEnd(_)) => {}
                followed => followed?,
            }
        } else {
            let directory = self.directory()?;
            let trace = directory.path().join("trace");
            File::create(&trace).map_err(at(&trace))?;
            let orders = Orders {
                trace,
                arch: Code::of(machine.kernel.architecture).arch,
                ..Orders::default()
            };
            follow(&self.watched(&directory, &orders, &own)?)?;
        }
        found.ok_or(ScopeError::Unmarked(1))
    }

    /// Returns the recordings of the step in which a wait is moved, if all steps before were as in
    /// the run.
    fn moved(
        &self,
        bench: &VirtualBench,
        run: &Run,
        machine: &Machine,
        (step, cancel): (u32, &AtomicBool),
        on: OnEvent,
    ) -> Result<Vec<Recording>, ScopeError> {
        let (mut number, mut differs, mut found) = (0, None, Vec::new());
        let mut is_over = false;
        let take = &mut |event: Event| {
            on(&event);
            let Event::Record(record) = event else {
                return ControlFlow::Continue(());
            };
            match *record {
                Record::Started(started) => is_over = started.step > step,
                Record::Recording(recording) => {
                    let then = run.recordings.get(number);
                    number += 1;
                    if recording.key.step == step {
                        found.push(*recording);
                    } else if !is_over && !is_same(then, &recording) {
                        differs = Some(recording.title());
                    }
                }
                _ => {}
            }
            if is_over || differs.is_some() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let outcome = bench.run(machine, &run.plan, self.start, take, cancel);
        is_as_then(run, differs, cancel)?;
        match outcome.result {
            Err(error) if !is_over => Err(error.into()),
            _ => Ok(found),
        }
    }

    /// Returns the recording of the step that is aimed at, if all before was as in the run.
    fn aimed(
        &self,
        bench: &VirtualBench,
        run: &Run,
        machine: &Machine,
        (step, cancel): (u32, &AtomicBool),
        on: OnEvent,
    ) -> Result<Recording, ScopeError> {
        let mut seen = Aimed::at(step, &run.recordings);
        let take = &mut |event: Event| {
            // What follows the aimed sample is another run, of which some may have come already.
            if !seen.is_over() {
                on(&event);
                if let Event::Record(record) = event {
                    seen.take(*record);
                }
            }
            if seen.is_over() {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        let outcome = bench.run(machine, &run.plan, self.start, take, cancel);
        is_as_then(run, seen.differs, cancel)?;
        match (seen.found, outcome.result) {
            (Some(found), _) => Ok(found),
            (None, Err(error)) if !seen.is_refused => Err(error.into()),
            (None, _) => Err(ScopeError::Unmarked(1)),
        }
    }

    /// Returns what the plugin writes of these windows, while `follow` has the bench.
    fn watch_windows(
        &self,
        machine: &Machine,
        windows: &[Window],
        symbols: &Symbols,
        follow: &mut dyn FnMut(&VirtualBench) -> Result<(), ScopeError>,
    ) -> Result<Trace, ScopeError> {
        let directory = self.directory()?;
        let trace = directory.path().join("trace");
        File::create(&trace).map_err(at(&trace))?;
        let code = Code::of(machine.kernel.architecture);
        let orders = Orders {
            trace: trace.clone(),
            ring: RING,
            windows: windows.to_vec(),
            everything: false,
            memory: memory(machine, symbols),
            cpus: (machine.cpus > 1).then_some(machine.cpus),
            arch: code.arch,
        };
        follow(&self.watched(&directory, &orders, "")?)?;
        let file = File::open(&trace).map_err(at(&trace))?;
        Ok(Trace {
            reader: Reader::new(BufReader::new(file))?,
            _directory: directory,
        })
    }

    /// Repeats a whole run. `take` receives all that happens, while it happens. `values` is the
    /// code whose accesses to memory are reported with the values there. Returns the digest of the
    /// output, which is that of the run.
    pub fn watch_everything(
        &self,
        run: &Run,
        machine: &Machine,
        values: &[(u64, u64)],
        take: &mut (dyn FnMut(&Item) + Send),
        cancel: &AtomicBool,
        on: OnEvent,
    ) -> Result<String, ScopeError> {
        let follow =
            &mut |bench: &VirtualBench| repeat(bench, run, machine, (self.start, None), cancel, on);
        let told = values.iter();
        let told = told.map(|(from, to)| format!("values {from:x} {to:x}\n"));
        let told: String = told.collect();
        let own = if told.is_empty() {
            told
        } else {
            ram(machine) + &told
        };
        let digest = self.follow_with(machine, values.to_vec(), &own, take, follow)?;
        if run.digest().is_some_and(|then| then != digest) {
            let (run, what) = (run.id.clone(), "the digest".to_owned());
            return Err(ScopeError::Differs { run, what });
        }
        Ok(digest)
    }

    /// Repeats a run up to the end of a step. `take` receives all that happened up to there, with
    /// the memory that tells which threads are meant. The output is that of the run.
    #[expect(
        clippy::too_many_arguments,
        reason = "the run, its machine, and how far and by whom it is watched"
    )]
    pub fn watch_up_to(
        &self,
        run: &Run,
        machine: &Machine,
        last: Option<u32>,
        symbols: &Symbols,
        take: &mut (dyn FnMut(&Item) + Send),
        cancel: &AtomicBool,
        on: OnEvent,
    ) -> Result<(), ScopeError> {
        let memory = memory(machine, symbols);
        let follow = &mut |bench: &VirtualBench| {
            repeat(bench, run, machine, (self.start, last), cancel, on).map(drop)
        };
        match self.follow_with(machine, memory, "", take, follow) {
            // Behind the step the guest is ended.
            Err(ScopeError::NoEnd(_)) => Ok(()),
            followed => followed,
        }
    }

    /// Runs `follow` on a bench that is watched, and returns its result. `take` receives all that
    /// happens there, while it happens.
    pub(crate) fn follow_everything<T>(
        &self,
        machine: &Machine,
        take: &mut (dyn FnMut(&Item) + Send),
        follow: &mut dyn FnMut(&VirtualBench) -> Result<T, ScopeError>,
    ) -> Result<T, ScopeError> {
        self.follow_with(machine, Vec::new(), "", take, follow)
    }

    /// The same, with the accesses to memory of this code, and with the plugin's own orders.
    fn follow_with<T>(
        &self,
        machine: &Machine,
        memory: Vec<(u64, u64)>,
        own: &str,
        take: &mut (dyn FnMut(&Item) + Send),
        follow: &mut dyn FnMut(&VirtualBench) -> Result<T, ScopeError>,
    ) -> Result<T, ScopeError> {
        let directory = self.directory()?;
        let trace = directory.path().join("trace");
        let over = Arc::new(AtomicBool::new(false));
        let pipe = Pipe::new(&trace, Arc::clone(&over)).map_err(at(&trace))?;
        let orders = Orders {
            trace,
            everything: true,
            memory,
            arch: Code::of(machine.kernel.architecture).arch,
            cpus: (machine.cpus > 1).then_some(machine.cpus),
            ..Orders::default()
        };
        let bench = self.watched(&directory, &orders, own)?;
        let (outcome, read) = thread::scope(|scope| {
            let reader = scope.spawn(|| read_all(pipe, take));
            let outcome = follow(&bench);
            over.store(true, Ordering::SeqCst);
            (outcome, reader.join())
        });
        let outcome = outcome?;
        let gone = ReadError::Damaged("its reader has ended");
        read.unwrap_or(Err(gone)).map_err(ScopeError::NoEnd)?;
        Ok(outcome)
    }

    fn directory(&self) -> Result<WorkDir, ScopeError> {
        if !self.plugin.is_file() {
            return Err(ScopeError::NoPlugin(self.plugin.clone()));
        }
        WorkDir::new(&self.cache).map_err(at(&self.cache))
    }

    /// Returns the bench with the plugin, and its orders. Orders that concern the guest's memory
    /// are the plugin's own.
    fn watched(
        &self,
        directory: &WorkDir,
        orders: &Orders,
        of_memory: &str,
    ) -> Result<VirtualBench, ScopeError> {
        let path = directory.path().join("orders");
        fs::write(&path, orders.to_text() + of_memory).map_err(at(&path))?;
        let library = fs::canonicalize(&self.plugin).map_err(at(&self.plugin))?;
        let mut bench = self.bench.clone();
        let orders = path;
        bench.plugin = Some(Plugin { library, orders });
        Ok(bench)
    }
}

/// The result of a run with one aimed sample, up to that sample.
struct Aimed<'a> {
    /// The step of that sample.
    step: u32,
    /// The recordings of the original run that have not come yet.
    then: slice::Iter<'a, Recording>,
    /// That step's recording, which ends with the sample.
    found: Option<Recording>,
    /// The difference from the original run, if there is one.
    differs: Option<String>,
    /// True if that step has no recording: up to an early sample, a load may not have done what
    /// counts as work.
    is_refused: bool,
}

impl<'a> Aimed<'a> {
    fn at(step: u32, then: &'a [Recording]) -> Self {
        Self {
            step,
            then: then.iter(),
            found: None,
            differs: None,
            is_refused: false,
        }
    }

    fn is_over(&self) -> bool {
        self.found.is_some() || self.differs.is_some() || self.is_refused
    }

    fn take(&mut self, record: Record) {
        match record {
            Record::Recording(now) => {
                let then = self.then.next();
                let is_aimed = now.key.step == self.step;
                let is_as_it_was = match then {
                    Some(then) if is_aimed => is_same_up_to_the_last(then, &now),
                    then => is_same(then, &now),
                };
                self.differs = (!is_as_it_was).then(|| now.title());
                self.found = is_aimed.then_some(*now);
            }
            Record::Unsupported(refused) => self.is_refused = refused.step == self.step,
            _ => {}
        }
    }
}

/// Checks that nobody has interrupted a repeated run and that nothing of it differs.
fn is_as_then(run: &Run, differs: Option<String>, cancel: &AtomicBool) -> Result<(), ScopeError> {
    if cancel.load(Ordering::SeqCst) {
        return Err(RunError::Interrupted.into());
    }
    differs.map_or(Ok(()), |what| {
        let run = run.id.clone();
        Err(ScopeError::Differs { run, what })
    })
}

/// Returns the guest's memory size as an order for the plugin.
fn ram(machine: &Machine) -> String {
    format!("ram {}\n", u64::from(machine.memory_mib) << 20)
}

fn read_all(pipe: Pipe, take: &mut (dyn FnMut(&Item) + Send)) -> Result<(), ReadError> {
    let mut reader = Reader::new(BufReader::with_capacity(1 << 20, pipe))?;
    while let Some(item) = reader.next_item()? {
        take(&item);
        if item == Item::End {
            return Ok(());
        }
    }
    Err(ReadError::Damaged("the plan's end is not in it"))
}

/// Returns the plan that asks a guest for its kernel's names. They leave it byte by byte: packed,
/// that takes half the time.
fn plan_of_names(code: &Code) -> String {
    let variables = code.variables.iter();
    let variables: Vec<String> = variables.map(|name| format!(" -e ' {name}'")).collect();
    let variables = variables.concat();
    format!(
        r#"[[step]]
probe = "program"
run = ["sh", "-c", "grep -iF -e ' t ' -e ' w '{variables} /proc/kallsyms | gzip -1 | base64 -w0"]
"#
    )
}

/// The kernel's function whose operands tell which thread is woken.
const WAKES: &str = "try_to_wake_up";

/// Returns the code whose accesses to memory are reported.
fn memory(machine: &Machine, symbols: &Symbols) -> Vec<(u64, u64)> {
    let code = Code::of(machine.kernel.architecture);
    let several = if machine.cpus > 1 { code.locks } else { &[] };
    let names = [code.switch, WAKES].into_iter();
    let names = names.chain(several.iter().copied());
    names.filter_map(|name| symbols.range(name)).collect()
}

/// Repeats a run up to the end of a step (`None`: to its end), and compares. Returns the digest of
/// the output.
fn repeat(
    bench: &VirtualBench,
    run: &Run,
    machine: &Machine,
    (start, last): (Start, Option<u32>),
    cancel: &AtomicBool,
    on: OnEvent,
) -> Result<String, ScopeError> {
    let (mut seen, mut differs, mut enough) = (Vec::new(), None, false);
    let (mut steps, mut unsupported) = (Vec::new(), Vec::new());
    let take = &mut |event: Event| {
        on(&event);
        let Event::Record(record) = event else {
            return ControlFlow::Continue(());
        };
        match *record {
            Record::Started(started) => enough = last.is_some_and(|last| started.step > last),
            Record::Step(found) => steps.push(found),
            Record::Recording(recording) => {
                let is_same = is_same(run.recordings.get(seen.len()), &recording);
                differs = (!is_same).then(|| recording.title());
                seen.push(*recording);
            }
            Record::Unsupported(found) => unsupported.push(found),
            _ => {}
        }
        if enough || differs.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let outcome = bench.run(machine, &run.plan, start, take, cancel);
    if cancel.load(Ordering::SeqCst) {
        return Err(RunError::Interrupted.into());
    }
    if let Some(what) = differs {
        let run = run.id.clone();
        return Err(ScopeError::Differs { run, what });
    }
    match outcome.result {
        Err(error) if !(enough && matches!(error, RunError::Interrupted)) => {
            Err(match error.of_bench() {
                Some(virtual_bench::Error::Plugin(said)) => ScopeError::Refused(said.clone()),
                _ => error.into(),
            })
        }
        _ => Ok(digest(&seen, &steps, &unsupported)),
    }
}

fn is_same(then: Option<&Recording>, now: &Recording) -> bool {
    let identity = |recording: &Recording| digest(std::slice::from_ref(recording), &[], &[]);
    then.is_some_and(|then| identity(then) == identity(now))
}

/// Returns true if all samples but the last are those of the run.
fn is_same_up_to_the_last(then: &Recording, now: &Recording) -> bool {
    let before = now.samples.len().saturating_sub(1);
    let is_longer = then.samples.len() > before && then.key == now.key;
    let mut pairs = then.samples.iter().zip(now.samples.iter()).take(before);
    is_longer && now.is_complete() && pairs.all(|(then, now)| then == now)
}

/// The output of the plugin.
pub struct Trace {
    reader: Reader<BufReader<File>>,
    _directory: WorkDir,
}

impl Trace {
    /// Returns what happened in the next window. Before that, `learn` receives each new block.
    pub fn next_window(
        &mut self,
        mut learn: impl FnMut(&Block),
    ) -> Result<Option<(Window, Vec<Word>)>, ReadError> {
        let mut current = None;
        while let Some(item) = self.reader.next_item()? {
            match item {
                Item::Block(block) => learn(&block),
                Item::Window { window, .. } => current = Some(window),
                Item::Words(words) => {
                    if let Some(window) = current {
                        return Ok(Some((window, words)));
                    }
                }
                Item::Whole(_) => {}
                Item::End => break,
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use punctual_model::record::Unsupported;
    use punctual_model::recording::Recorder;
    use punctual_model::{Reason, RecordingKey};

    use super::*;

    fn recording(step: u32, values: &[i64]) -> Record {
        let mut recorder = Recorder::new(10);
        for (value, number) in values.iter().zip(0..) {
            recorder.record(Nanos(number * 1_000_000), Nanos(*value));
        }
        let mut key = RecordingKey::new("timer", "stress", "cpu0");
        key.step = step;
        Record::Recording(Box::new(recorder.finish(key)))
    }

    fn refused(step: u32) -> Record {
        Record::Unsupported(Unsupported {
            step,
            probe: "timer".to_owned(),
            load: "stress".to_owned(),
            reason: Reason::Other("did nothing".to_owned()),
        })
    }

    /// Returns the findings of an aim at the second of two steps: the last sample, or what differs.
    fn aimed(records: [Record; 2]) -> (Option<i64>, Option<String>, bool) {
        let run = [recording(0, &[5, 6]), recording(1, &[7, 8, 9])];
        let then = run.into_iter().filter_map(|one| match one {
            Record::Recording(one) => Some(*one),
            _ => None,
        });
        let then: Vec<Recording> = then.collect();
        let mut seen = Aimed::at(1, &then);
        for record in records {
            assert!(!seen.is_over());
            seen.take(record);
        }
        let last = seen.found.map(|found| found.samples.iter().last());
        let last = last.flatten().map(|sample| sample.value.0);
        (last, seen.differs, seen.is_refused)
    }

    #[test]
    fn an_aimed_step_ends_with_its_sample_and_all_before_is_as_it_was() {
        let title = || Some("timer / stress / cpu0".to_owned());
        let before = || recording(0, &[5, 6]);
        assert_eq!(
            aimed([before(), recording(1, &[7, 30])]),
            (Some(30), None, false)
        );
        assert_eq!(aimed([before(), recording(1, &[6, 30])]).1, title());
        // Of a step that comes before none is missing.
        let (_, differs, _) = aimed([refused(0), recording(1, &[7, 30])]);
        assert_eq!(differs, title());
        // A step whose load had not worked yet is no other run, and nothing is reached.
        assert_eq!(aimed([before(), refused(1)]), (None, None, true));
    }
}
