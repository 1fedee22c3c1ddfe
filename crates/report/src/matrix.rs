// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs side by side: subjects as columns, measurements as rows.

use punctual_judge::fate;
use punctual_model::limit::{Bound, Demand, Figure};
use punctual_model::plan::IDLE;
use punctual_model::probe::{Shape, View};
use punctual_model::run::State;
use punctual_model::{
    Limit, MachineRecord, Nanos, Reason, Recording, RecordingKey, Run, Subject, VirtualClock,
};

use crate::views;

/// Runs in the order in which a reader compares them.
#[derive(Debug)]
pub struct Matrix<'a> {
    /// The subjects, in order of first appearance. Those that are called the same, but ran on
    /// another build of the kernel or on another machine, stand beside each other.
    pub columns: Vec<Column<'a>>,
    /// The measurements made, or due, in order of first appearance.
    pub rows: Vec<Measurement>,
    /// The limits that its runs are judged by; figures draw them.
    pub limits: Vec<Limit>,
}

/// One subject with its runs; several runs if it ran with several seeds.
#[derive(Debug)]
pub struct Column<'a> {
    /// Its name here: the subject's name, with more where names are the same.
    pub name: String,
    /// The subject that was judged.
    pub subject: &'a Subject,
    /// The clock that its time counts by; `None` in real time.
    pub clock: Option<VirtualClock>,
    /// Its runs, in the order given.
    pub runs: Vec<&'a Run>,
}

/// One kind of measurement: a row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Measurement {
    /// The probe's name.
    pub probe: String,
    /// The load's name.
    pub load: String,
    /// The variant that tells it from others of the same probe; empty where nothing was recorded.
    pub variant: String,
    /// Its number among the recordings with these names in its run, from 1.
    pub repetition: u32,
}

/// The results of one subject for one measurement.
#[derive(Debug)]
pub enum Availability<'a> {
    /// At least one run recorded something.
    Measured {
        /// The recordings, one per run that has one.
        found: Vec<Measured<'a>>,
        /// The runs that have none.
        absent: Vec<Absent<'a>>,
    },
    /// No run recorded anything, and the probe said why.
    Unsupported(&'a Reason),
    /// No run recorded anything.
    Missing(Vec<Absent<'a>>),
}

/// A recording, and the run that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its recording.
    pub recording: &'a Recording,
}

/// A run that lacks a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Absent<'a> {
    /// The run.
    pub run: &'a Run,
    /// The reason that the probe gave, if any.
    pub unsupported: Option<&'a Reason>,
}

impl Measurement {
    fn of(recording: &Recording) -> Self {
        let key = recording.key.clone();
        Self {
            probe: key.probe,
            load: key.load,
            variant: key.variant,
            repetition: key.repetition,
        }
    }

    /// The name by which a reader knows it: `timer, stress, cpu0`.
    pub fn title(&self) -> String {
        let mut parts = vec![self.probe.clone(), self.load.clone(), self.label()];
        parts.retain(|part| !part.is_empty());
        parts.join(", ")
    }

    /// The variant as a reader is shown it, with its repetition from the second on.
    pub fn label(&self) -> String {
        self.key().label()
    }

    /// The key of its recordings.
    pub fn key(&self) -> RecordingKey {
        RecordingKey {
            repetition: self.repetition,
            ..RecordingKey::new(&self.probe, &self.load, &self.variant)
        }
    }

    /// Returns the view that shows it.
    pub fn view(&self) -> &'static View {
        views::of(&self.probe)
    }

    /// Returns true if a sample is the time that some work took, not a lateness.
    /// Then the middle of the samples counts, not the worst of them.
    pub fn is_throughput(&self) -> bool {
        self.view().shape == Shape::Work
    }

    /// Returns true if it and `other` differ by a number only, and so belong together.
    fn is_step_beside(&self, other: &Self) -> bool {
        self.view().shape == Shape::Steps
            && (&self.probe, &self.load) == (&other.probe, &other.load)
    }

    /// Returns true if nothing else ran beside it.
    pub fn is_idle(&self) -> bool {
        self.load == IDLE
    }

    fn matches(&self, recording: &Recording) -> bool {
        self.key().is_same_measurement(&recording.key)
    }
}

impl<'a> Column<'a> {
    /// Runs of one subject, under a name; `None` of no run.
    pub fn of(name: &str, runs: &[&'a Run]) -> Option<Self> {
        let first = *runs.first()?;
        Some(Self {
            name: name.to_owned(),
            subject: &first.subject,
            clock: first.clock(),
            runs: runs.to_vec(),
        })
    }

    /// Returns true if its times are virtual.
    pub fn is_virtual(&self) -> bool {
        self.clock.is_some()
    }

    /// The name of what tells its runs from each other: a seed; in real time, where seeds may be
    /// equal, they are just runs.
    pub fn unit(&self) -> &'static str {
        if self.is_virtual() { "seed" } else { "run" }
    }

    /// Describes its time so that other columns' time can be told from it: `virtual ×2, 4 CPUs`.
    pub fn time(&self) -> String {
        let Some(clock) = self.clock else {
            return "real".to_owned();
        };
        let rate = match clock.ns_per_insn {
            1 => String::new(),
            ns => format!(" ×{ns}"),
        };
        let cpus = match clock.cpus {
            2.. => format!(", {} CPUs", clock.cpus),
            _ => String::new(),
        };
        format!("virtual{rate}{cpus}")
    }

    /// Returns its results for a measurement.
    pub fn cell(&self, row: &Measurement) -> Availability<'a> {
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        for run in self.runs.iter().copied() {
            let mut recordings = run.recordings.iter();
            let unsupported = unsupported(run, row);
            match recordings.find(|recording| row.matches(recording)) {
                Some(recording) => found.push(Measured { run, recording }),
                None => absent.push(Absent { run, unsupported }),
            }
        }
        if !found.is_empty() {
            return Availability::Measured { found, absent };
        }
        match absent.iter().find_map(|run| run.unsupported) {
            Some(reason) => Availability::Unsupported(reason),
            None => Availability::Missing(absent),
        }
    }

    /// Returns its runs' recordings of a measurement.
    pub fn found(&self, row: &Measurement) -> Vec<Measured<'a>> {
        match self.cell(row) {
            Availability::Measured { found, .. } => found,
            _ => Vec::new(),
        }
    }

    /// Those of them that have samples.
    pub fn sampled(&self, row: &Measurement) -> Vec<Measured<'a>> {
        let mut found = self.found(row);
        found.retain(|one| one.recording.count > 0);
        found
    }
}

impl Absent<'_> {
    /// One word for it.
    pub fn word(&self) -> &'static str {
        match (self.unsupported, self.run.state) {
            (Some(_), _) => "unsupported",
            (None, State::Finished) => "not measured",
            (None, state) => state.name(),
        }
    }

    /// The reason in plain words.
    pub fn reason(&self) -> String {
        match (self.unsupported, self.run.state) {
            (Some(reason), _) => reason.to_string(),
            (None, State::Finished) => "the run finished without it".to_owned(),
            (None, _) => fate(self.run),
        }
    }
}

fn unsupported<'a>(run: &'a Run, row: &Measurement) -> Option<&'a Reason> {
    let mut unsupported = run.unsupported.iter();
    let found = unsupported.find(|absent| (&absent.probe, &absent.load) == (&row.probe, &row.load));
    found.map(|absent| &absent.reason)
}

impl<'a> Matrix<'a> {
    /// Groups runs by subject and recordings by measurement.
    pub fn new(runs: &'a [Run]) -> Self {
        Self {
            columns: columns(runs),
            rows: rows_of(&runs.iter().collect::<Vec<_>>()),
            limits: Vec::new(),
        }
    }

    /// The times that limits set to samples of a measurement, each once, rising.
    pub fn bounds(&self, row: &Measurement) -> Vec<Nanos> {
        let is_of = |limit: &&Limit| {
            let variant = limit.variant.as_ref();
            limit.means_step(&row.probe, &row.load)
                && variant.is_none_or(|own| *own == row.variant || *own == row.label())
        };
        let bound = |limit: &Limit| match &limit.demand {
            Demand::Never(bound)
            | Demand::Arrival { most: bound, .. }
            | Demand::Rare { above: bound, .. } => Some(*bound),
            Demand::Typical(Figure::Worst | Figure::Mean | Figure::Quantile(_), bound)
                if !row.is_throughput() =>
            {
                let (Bound::AtMost(nanos) | Bound::AtLeast(nanos)) = bound;
                Some(Nanos(*nanos as i64))
            }
            _ => None,
        };
        let mut bounds: Vec<Nanos> = self.limits.iter().filter(is_of).filter_map(bound).collect();
        bounds.sort_unstable();
        bounds.dedup();
        bounds
    }

    /// Does the same, but puts measurements under load before idle ones.
    pub fn loaded_first(runs: &'a [Run]) -> Self {
        let mut matrix = Self::new(runs);
        matrix.rows.sort_by_key(Measurement::is_idle);
        matrix
    }

    /// Returns true if it holds virtual and real times side by side.
    pub fn is_mixed(&self) -> bool {
        let mut columns = self.columns.iter();
        columns.any(|column| column.clock != self.columns[0].clock)
    }

    /// The rows; those of one probe in steps together.
    pub fn groups(&self) -> Vec<&[Measurement]> {
        self.rows.chunk_by(Measurement::is_step_beside).collect()
    }

    /// All seeds, in order of first appearance.
    pub fn seeds(&self) -> Vec<u64> {
        distinct(self.runs().map(|run| run.seed))
    }

    /// The suites' names, in order of first appearance.
    pub fn suites(&self) -> Vec<&'a str> {
        distinct(self.runs().map(|run| run.suite.as_str()))
    }

    /// Returns the name of a run's subject here.
    pub fn name_of<'b>(&'b self, run: &'b Run) -> &'b str {
        let column = self.column_of(run);
        column.map_or(run.subject.name.as_str(), |column| &column.name)
    }

    /// Returns the column that holds a run.
    pub fn column_of(&self, run: &Run) -> Option<&Column<'a>> {
        let holds = |column: &&Column<'_>| column.runs.iter().any(|held| std::ptr::eq(*held, run));
        self.columns.iter().find(holds)
    }

    /// All runs, column by column.
    pub fn runs(&self) -> impl Iterator<Item = &'a Run> + '_ {
        self.columns
            .iter()
            .flat_map(|column| column.runs.iter().copied())
    }
}

/// The same values without repetitions, in order of first appearance.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The name that tells a run from others of its subject: `seed 3`; in real time, where seeds may be
/// equal, its id.
pub fn called(run: &Run) -> String {
    if run.is_virtual() {
        format!("seed {}", run.seed)
    } else {
        run.id.clone()
    }
}

/// Returns true if two runs are of one subject: of one kernel, on one machine, by one clock.
/// One id may name two builds of a kernel, and one subject two machines in real time.
pub(crate) fn is_one_subject(one: &Run, other: &Run) -> bool {
    is_called_alike(one, other) && machine(one) == machine(other)
}

/// Returns true if two runs have the same subject and the same clock.
fn is_called_alike(one: &Run, other: &Run) -> bool {
    // Times of different clocks are never gathered in one column.
    one.subject == other.subject && one.clock() == other.clock()
}

/// The kernel's image, or the machine's name and the address by which it was reached.
fn machine(run: &Run) -> (&str, Option<&str>) {
    match &run.machine {
        MachineRecord::Virtual(machine) => (machine.image_sha256.as_str(), None),
        MachineRecord::Host(machine) => (machine.host.as_str(), machine.ssh.as_deref()),
    }
}

fn columns(runs: &[Run]) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for run in runs {
        let is_own = |column: &&mut Column<'_>| is_one_subject(column.runs[0], run);
        if let Some(column) = columns.iter_mut().find(is_own) {
            column.runs.push(run);
            continue;
        }
        let mut known = columns.iter();
        let last = known.rposition(|column| is_called_alike(column.runs[0], run));
        let new = Column {
            name: String::new(),
            subject: &run.subject,
            clock: run.clock(),
            runs: vec![run],
        };
        columns.insert(last.map_or(columns.len(), |last| last + 1), new);
    }
    let names: Vec<String> = (0..columns.len()).map(|at| name(&columns, at)).collect();
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = name;
    }
    columns
}

/// The shortest name that no other column has too.
fn name(columns: &[Column<'_>], at: usize) -> String {
    type Form = fn(&Column<'_>) -> String;
    let forms: [Form; 9] = [
        |column| column.subject.name.clone(),
        |column| joined(&[&column.subject.name, &column.subject.bench]),
        |column| joined(&[&column.subject.name, &column.subject.kernel]),
        |column| joined(&[&column.subject.name, &column.subject.boot]),
        |column| joined(&[&column.subject.name, &column.time()]),
        |column| joined(&[&column.subject.name, &turns(column)]),
        whole,
        |column| joined(&[&column.subject.name, &release_or_host(column)]),
        |column| joined(&[&column.subject.name, &image_or_address(column)]),
    ];
    let is_own = |form: &&Form| {
        let own = form(&columns[at]);
        columns.iter().filter(|column| form(column) == own).count() == 1
    };
    match forms.iter().find(is_own) {
        Some(form) => form(&columns[at]),
        None => with_machine(&columns[at]),
    }
}

/// The parts of a name, with a space between those that are not empty.
fn joined(parts: &[&str]) -> String {
    let parts = parts.iter().copied().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ")
}

/// All that is asked for before a measurement.
fn whole(column: &Column<'_>) -> String {
    let Subject {
        name,
        kernel,
        boot,
        bench,
    } = column.subject;
    joined(&[name, kernel, boot, bench, &column.time(), &turns(column)])
}

/// The same, and the machine: different for any two columns.
fn with_machine(column: &Column<'_>) -> String {
    let (own, address) = machine(column.runs[0]);
    joined(&[&whole(column), own, address.unwrap_or_default()])
}

/// The release of a virtual machine's kernel, or a real machine's name.
fn release_or_host(column: &Column<'_>) -> String {
    match &column.runs[0].machine {
        MachineRecord::Virtual(machine) => {
            let release = machine.release.clone();
            release.unwrap_or_else(|| image_or_address(column))
        }
        MachineRecord::Host(machine) => machine.host.clone(),
    }
}

/// The first digits of the checksum of a kernel's image, or the address of a real machine: its name
/// if it was not reached by any.
fn image_or_address(column: &Column<'_>) -> String {
    let (own, address) = machine(column.runs[0]);
    if column.is_virtual() {
        let digits: String = own.chars().take(8).collect();
        return format!("image {digits}");
    }
    address.unwrap_or(own).to_owned()
}

/// Describes the length of the turns of several CPUs.
fn turns(column: &Column<'_>) -> String {
    let turn = column.clock.and_then(|clock| clock.turn_us);
    turn.map_or_else(String::new, |turn| format!("turns of {turn} µs"))
}

/// Returns the measurements that some runs made, or should have made, in order of first appearance.
pub fn rows_of(runs: &[&Run]) -> Vec<Measurement> {
    let recorded = runs.iter().flat_map(|run| &run.recordings);
    let mut rows = distinct(recorded.map(Measurement::of));
    gather_steps(&mut rows);
    // A step that could not run still has its row: one in which its run has nothing else.
    for run in runs {
        for absent in &run.unsupported {
            let is_shown = |row: &Measurement| {
                (&row.probe, &row.load) == (&absent.probe, &absent.load)
                    && !run.recordings.iter().any(|one| row.matches(one))
            };
            if !rows.iter().any(is_shown) {
                rows.push(Measurement {
                    probe: absent.probe.clone(),
                    load: absent.load.clone(),
                    variant: String::new(),
                    repetition: 1,
                });
            }
        }
    }
    rows
}

/// Brings steps of the same probe and load together.
/// One subject may have a step that the first lacks, which would otherwise come last.
fn gather_steps(rows: &mut Vec<Measurement>) {
    let mut gathered: Vec<Measurement> = Vec::with_capacity(rows.len());
    for row in rows.drain(..) {
        let last = gathered.iter().rposition(|other| row.is_step_beside(other));
        gathered.insert(last.map_or(gathered.len(), |last| last + 1), row);
    }
    *rows = gathered;
}

#[cfg(test)]
mod tests {
    use punctual_model::machine::HostMachine;
    use punctual_model::record::Unsupported;

    use super::*;
    use crate::fixtures::{self, assert_has};

    #[test]
    fn a_step_that_could_not_run_is_not_hidden_by_another_of_the_same_probe_and_load() {
        let mut run = fixtures::whole().remove(0);
        let of_timer =
            |one: &&Recording| (one.key.probe.as_str(), one.key.load.as_str()) == ("timer", "idle");
        assert_eq!(run.recordings.iter().filter(of_timer).count(), 1, "{run:?}");
        let before = Matrix::new(std::slice::from_ref(&run)).rows.len();
        run.unsupported.push(Unsupported {
            step: 9,
            probe: "timer".into(),
            load: "idle".into(),
            reason: "refused".into(),
        });
        let runs = [run];
        let matrix = Matrix::new(&runs);
        assert_eq!(matrix.rows.len(), before + 1);
        let reasons = matrix
            .rows
            .iter()
            .filter_map(|row| match matrix.columns[0].cell(row) {
                Availability::Unsupported(reason) => Some(reason.to_string()),
                _ => None,
            });
        assert!(reasons.into_iter().any(|reason| reason == "refused"));
    }

    #[test]
    fn seeds_of_one_subject_share_a_column() {
        let runs = fixtures::seeds(5);
        let matrix = Matrix::new(&runs);
        assert_eq!(matrix.columns.len(), 4);
        assert!(matrix.columns.iter().all(|column| column.runs.len() == 5));
        assert_eq!(matrix.seeds(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn another_clock_is_another_column() {
        let mut runs = vec![fixtures::run("none", 1), fixtures::run("none", 2)];
        runs[1].machine = MachineRecord::default();
        let matrix = Matrix::new(&runs);
        assert_eq!(matrix.columns.len(), 2);
        assert!(matrix.is_mixed());
    }

    #[test]
    fn as_many_cpus_and_as_long_turns_are_another_column() {
        let mut runs = [(1, None), (2, Some(10)), (2, Some(20))].map(|(cpus, turn_us)| {
            let mut run = fixtures::run("none", 1);
            let machine = fixtures::virtual_machine(&mut run);
            (machine.cpus, machine.turn_us) = (cpus, turn_us);
            run
        });
        assert_eq!(names(&runs[..2]), ["none virtual", "none virtual, 2 CPUs"]);
        assert_eq!(
            names(&runs[1..]),
            ["none turns of 10 µs", "none turns of 20 µs"]
        );
        assert!(Matrix::new(&runs[1..]).is_mixed());
        let note = crate::rows::clock_note(&Matrix::new(&runs[..2])).unwrap();
        assert_has(
            &note,
            &[
                "1 ns per instruction or 1 ns per instruction of any of 2 CPUs, in turns of 10 µs.",
                "each runs at half its speed",
                "must not be compared",
            ],
        );
        fixtures::virtual_machine(&mut runs[2]).turn_us = Some(10);
        assert_eq!(names(&runs[1..]), ["none"]);
    }

    #[test]
    fn subjects_of_the_same_name_are_told_apart() {
        let mut runs = ["none", "none", "rt"].map(|name| fixtures::run(name, 1));
        runs[1].subject.kernel = "newer".into();
        let matrix = Matrix::new(&runs);
        let names = matrix.columns.iter().map(|column| &column.name);
        let expected = ["none debian-6.12.90-amd64", "none newer", "rt"];
        assert!(names.eq(expected), "{matrix:?}");
        assert_eq!(matrix.name_of(&runs[1]), "none newer");
    }

    #[test]
    fn a_name_has_no_space_for_what_is_not_there() {
        let mut runs = ["rt", "rt", "rt"].map(|name| fixtures::run(name, 1));
        runs[1].subject.boot = "threadirqs".into();
        assert_eq!(names(&runs[..2]), ["rt", "rt threadirqs"]);
        runs[2].subject.boot = "threadirqs".into();
        runs[2].subject.kernel = "newer".into();
        let whole = "rt debian-6.12.90-rt-amd64 threadirqs virtual virtual";
        assert_eq!(names(&runs), ["rt", whole, "rt newer"]);
    }

    fn names(runs: &[Run]) -> Vec<String> {
        let columns = Matrix::new(runs).columns.into_iter();
        columns.map(|column| column.name).collect()
    }

    #[test]
    fn two_builds_of_a_kernel_under_one_id_are_two_columns() {
        let mut runs = [1, 2, 3, 4].map(|seed| fixtures::run("none", seed));
        assert_eq!(names(&runs), ["none"]);
        for run in &mut runs[1..3] {
            fixtures::virtual_machine(run).image_sha256 = "ab".repeat(32);
        }
        assert_eq!(names(&runs), ["none image 5f8c1d7e", "none image abababab"]);
        let matrix = Matrix::new(&runs);
        let seeds =
            |column: &Column<'_>| -> Vec<u64> { column.runs.iter().map(|run| run.seed).collect() };
        assert_eq!(
            matrix.columns.iter().map(seeds).collect::<Vec<_>>(),
            [[1, 4], [2, 3]]
        );
        assert_eq!(matrix.name_of(&runs[3]), "none image 5f8c1d7e");
        for run in &mut runs[1..3] {
            fixtures::virtual_machine(run).release = Some("6.12.91-amd64".into());
        }
        let expected = ["none 6.12.90-amd64", "none 6.12.91-amd64"];
        assert_eq!(names(&runs), expected);
    }

    #[test]
    fn two_real_machines_of_one_subject_are_two_columns_beside_each_other() {
        let on = |name: &str, host: &str, ssh: Option<&str>| {
            let mut run = fixtures::run(name, 1);
            run.machine = MachineRecord::Host(HostMachine {
                host: host.into(),
                ssh: ssh.map(str::to_owned),
                ..HostMachine::default()
            });
            run
        };
        let mut runs = vec![
            on("rt", "alpha", None),
            on("none", "alpha", None),
            on("rt", "beta", None),
            on("rt", "alpha", None),
        ];
        assert_eq!(names(&runs), ["rt alpha", "rt beta", "none"]);
        assert_eq!(Matrix::new(&runs).columns[0].runs.len(), 2);
        // Two boards may have one name.
        runs.push(on("rt", "alpha", Some("root@board")));
        let expected = ["rt alpha", "rt beta", "rt root@board", "none"];
        assert_eq!(names(&runs), expected);
        // What differs otherwise is told by that.
        runs.truncate(1);
        runs.push(on("rt", "beta", None));
        runs[1].subject.kernel = "newer".into();
        let expected = ["rt debian-6.12.90-rt-amd64", "rt newer"];
        assert_eq!(names(&runs), expected);
    }

    #[test]
    fn what_is_absent_says_why() {
        let runs = fixtures::with_gaps();
        let matrix = Matrix::new(&runs);
        let mut words = Vec::new();
        for column in &matrix.columns {
            words.extend(matrix.rows.iter().map(|row| match column.cell(row) {
                Availability::Measured { .. } => "measured".to_owned(),
                Availability::Unsupported(reason) => reason.to_string(),
                Availability::Missing(absent) => absent[0].reason(),
            }));
        }
        assert!(words.iter().all(|word| !word.is_empty()));
        assert!(words.contains(&fixtures::NO_MODULE.to_owned()));
        assert!(words.iter().any(|word| word.contains(fixtures::NO_BOOT)));
    }

    #[test]
    fn a_probe_that_ran_nowhere_keeps_its_row() {
        let runs = fixtures::with_gaps();
        let mut rows = Matrix::new(&runs).rows.into_iter();
        assert!(rows.any(|row| row.title() == "irq, idle"));
    }
}
