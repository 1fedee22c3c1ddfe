// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a search: text, page, JSON, and loads and C programs that repeat them.

use punctual_model::Nanos;
use punctual_search::minimise::{Confirmed, Find, Gone, Growth, Order};
use punctual_search::{Asked, Grammar, Merged, Program, Search, Seen, Stretch, c};
use serde::Serialize;

use crate::block::{self, Block};
use crate::repeat::quoted;
use crate::text::{self, counted, thousands};
use crate::{figure, shell};

/// The form's name and version; `docs/schema/search-1.json` describes it.
const SCHEMA: &str = "punctual.search/1";
/// The schema of `--program` and `--stressors`; `docs/schema/candidates-1.json` describes it.
const CANDIDATES_SCHEMA: &str = "punctual.candidates/1";
/// The file beside the finds that has the user's own kinds of calls.
pub const GRAMMAR: &str = "grammar.toml";

/// A search, and the results of its finds.
pub struct Told<'a> {
    /// The search.
    pub search: &'a Search,
    /// The preemption model of its kernel.
    pub preemption: &'a str,
    /// The finds, each as short as it can be.
    pub finds: &'a [Find],
    /// Stretches that were in the corpus, but that no guest of its own has shown again.
    pub gone: &'a [Gone],
    /// Stretches that need no call: the start and the end of each program show them.
    pub without_calls: &'a [Stretch],
    /// The directory of the search.
    pub place: &'a str,
    /// True if the finds are there as loads and in C.
    pub are_written: bool,
    /// The kinds of calls that its programs are made of.
    pub grammar: &'a Grammar,
}

/// What a search has found, as JSON. Times are nanoseconds of virtual time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outcome<'a> {
    #[cfg_attr(test, schemars(extend("const" = SCHEMA)))]
    schema: &'static str,
    /// The kernel.
    kernel: &'a str,
    /// Its boot arguments.
    boot: &'a str,
    /// Its preemption model.
    preemption: &'a str,
    /// The seed.
    seed: u64,
    /// Whether the programs ran as root.
    root: bool,
    /// Whether nothing evolved.
    random: bool,
    /// How many candidates ran.
    candidates: u64,
    /// The searches whose finds were taken over.
    merged: &'a [Merged],
    /// The finds.
    finds: Vec<Again<'a>>,
    /// Stretches that no guest of its own has shown again, and why.
    not_repeated: &'a [Gone],
    /// Stretches that the start and the end of each program show.
    without_calls: &'a [Stretch],
    /// Programs that a guest was lost to, and why.
    guests_lost: &'a [(String, String)],
}

/// A find, and how to see it again.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Again<'a> {
    #[serde(flatten)]
    find: &'a Find,
    /// The command that repeats it.
    again: String,
}

/// What candidates of the user's own came to, as JSON. Times are nanoseconds of virtual time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Candidates<'a> {
    #[cfg_attr(test, schemars(extend("const" = CANDIDATES_SCHEMA)))]
    schema: &'static str,
    /// What was tried, and on which kernel.
    title: &'a str,
    /// The candidates, in their order.
    tried: Vec<Candidate<'a>>,
}

/// A candidate.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Candidate<'a> {
    /// It ran.
    Ran {
        /// Its name.
        name: &'a str,
        /// Its stretches, the longest first.
        stretches: &'a [Stretch],
        /// The work that it did.
        work: String,
        /// What a run beside it came to; null where nobody asked for one.
        confirmed: Option<&'a Confirmed>,
    },
    /// Its guest was lost.
    Lost {
        /// Its name.
        name: &'a str,
        /// Why.
        guest_lost: &'a str,
    },
}

/// Candidates of the user's own, or stressors, and the observations of each.
pub struct Tried<'a> {
    /// The title above them.
    pub title: String,
    /// The names.
    pub names: &'a [String],
    /// The observations.
    pub seen: &'a [Seen],
    /// The number of stretches shown of each.
    pub top: usize,
    /// The result of a run beside each, as far as one was asked for.
    pub confirmed: &'a [Option<Confirmed>],
}

fn time(ns: i64) -> String {
    text::time(Nanos(ns), false)
}

/// Names a stretch as a sentence has it: `preemption off by posix_lock_inode`.
fn cause(stretch: &Stretch) -> String {
    format!("{} by {}", stretch.what, stretch.function)
}

fn grows(growth: &[Growth]) -> bool {
    growth.iter().any(|one| one.order.grows())
}

/// Describes the result of a run beside a find, and what the find grows with.
fn about(find: &Find) -> Vec<Block> {
    let mut blocks: Vec<Block> = (find.confirmed.iter())
        .map(|one| Block::Para(confirmed(one)))
        .collect();
    for growth in &find.growth {
        let lengths = growth.lengths.iter();
        let lengths: Vec<String> = lengths
            .map(|(number, ns)| {
                let length = ns.map_or_else(|| "guest lost".to_owned(), time);
                format!("{}: {length}", thousands(*number))
            })
            .collect();
        let (with, order) = (&growth.with, growth.order.name());
        blocks.push(Block::Para(format!(
            "{with} {order}: {}",
            lengths.join(", ")
        )));
    }
    blocks
}

fn growth(growth: &[Growth]) -> String {
    let grows = growth.iter().filter(|one| one.order.grows());
    let grows: Vec<String> = grows
        .map(|one| format!("{} with {}", one.order.name(), one.with))
        .collect();
    if !grows.is_empty() {
        return grows.join("; ");
    }
    let of = |order: Order| {
        let own = growth.iter().filter(|one| one.order == order);
        let own: Vec<&str> = own.map(|one| one.with.as_str()).collect();
        (!own.is_empty()).then(|| format!("{}: {}", order.name(), own.join(", ")))
    };
    let others = [Order::Threshold, Order::Unknown].into_iter();
    let others: Vec<String> = others.filter_map(of).collect();
    if others.is_empty() {
        return "does not grow with any number of it".to_owned();
    }
    others.join("; ")
}

fn programs(candidates: u64) -> String {
    counted(candidates as usize, "program")
}

impl Told<'_> {
    fn head(&self) -> String {
        let search = self.search;
        let how = if search.asked.random {
            "made afresh each"
        } else {
            "evolved"
        };
        let who = if search.asked.root {
            "root"
        } else {
            "an ordinary user"
        };
        let others = self.others_searches();
        format!(
            "{} ({}), seed {}: {} of system calls, {how}, as {who}{others}; {} at which \
             something was off",
            search.asked.kernel,
            self.preemption,
            search.asked.seed,
            programs(search.candidates),
            counted(search.corpus.entries().len(), "place"),
        )
    }

    /// `; and what 2 other searches have found (seeds 3, 4), of 960 programs`.
    /// Empty if there are none.
    fn others_searches(&self) -> String {
        let merged = &self.search.merged;
        if merged.is_empty() {
            return String::new();
        }
        let own = |one: &Merged| {
            let how = if one.random { " at random" } else { "" };
            format!("{}{how}", one.seed)
        };
        let seeds: Vec<String> = merged.iter().map(own).collect();
        let candidates = merged.iter().map(|one| one.candidates).sum();
        let (word, seed) = if merged.len() == 1 {
            ("search has", "seed")
        } else {
            ("searches have", "seeds")
        };
        format!(
            "; and what {} other {word} found ({seed} {}), of {}",
            merged.len(),
            seeds.join(", "),
            programs(candidates)
        )
    }

    /// The finds as a table, in an order.
    fn table<'a>(finds: impl Iterator<Item = &'a Find>) -> Option<Block> {
        let cells = |find: &Find| {
            vec![
                time(find.stretch.ns),
                cause(&find.stretch),
                find.stretch.most.clone(),
                growth(&find.growth),
            ]
        };
        let rows: Vec<_> = finds.map(cells).collect();
        let head = ["longest", "what", "most of it in", "growth"];
        (!rows.is_empty()).then(|| Block::Table {
            head: head.map(str::to_owned).to_vec(),
            rows,
            numbers: 1,
        })
    }

    fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![Block::Para(self.head())];
        blocks.extend(Self::table(self.finds.iter()));
        for (number, find) in (1..).zip(self.finds) {
            let program = &find.program;
            blocks.push(Block::Para(format!(
                "{number}. {}: {program}",
                cause(&find.stretch)
            )));
            blocks.extend(about(find));
        }
        if let Some(first) = self.finds.first() {
            let again = self.again(&first.program);
            blocks.push(Block::Para(format!("The first one again: {again}")));
        }
        if self.are_written && !self.finds.is_empty() {
            let first = format!("{}/worst-01.toml", self.place);
            blocks.push(Block::Para(format!(
                "The finds as loads: {first} and so on (`punctual run demo --load {}`); in C: \
                 {}/worst-01.c and so on",
                quoted(&first),
                self.place
            )));
        }
        blocks.extend(self.others());
        blocks
    }

    /// Lists the stretches that are no find, or says that there is no find.
    fn others(&self) -> Vec<Block> {
        let are_tried = !self.gone.is_empty() || !self.without_calls.is_empty();
        let none = if are_tried {
            "There is no find: no program has shown its stretch again in a guest of its own."
        } else {
            "No program was tried in a guest of its own, so there is no find yet."
        };
        let none = Block::Para(none.to_owned());
        let mut blocks: Vec<Block> = self.finds.is_empty().then_some(none).into_iter().collect();
        for own in self.without_calls {
            blocks.push(Block::Para(format!(
                "Without any call: {} of {} is shown by the start and the end of each program.",
                time(own.ns),
                cause(own)
            )));
        }
        for Gone { stretch, why } in self.gone {
            blocks.push(Block::Para(format!(
                "Not repeated: {} of {} was seen after other programs; {why}.",
                time(stretch.ns),
                cause(stretch)
            )));
        }
        for (program, why) in &self.search.killers {
            blocks.push(Block::Para(format!(
                "Its guest was lost: {program} ({why})"
            )));
        }
        blocks
    }

    /// The command that repeats a program.
    fn again(&self, program: &str) -> String {
        let asked = &self.search.asked;
        let boot = if asked.boot.is_empty() {
            String::new()
        } else {
            format!(" --boot {}", quoted(&asked.boot))
        };
        let root = if asked.root { " --root" } else { "" };
        let grammar = if asked.grammar.is_empty() {
            String::new()
        } else {
            let path = format!("{}/{GRAMMAR}", self.place);
            format!(" --grammar {}", quoted(&path))
        };
        let each = asked
            .each
            .map(|each| format!(" --each {}ms", each.0 / 1_000_000));
        format!(
            "punctual search --kernel {}{boot}{root}{grammar}{} --program {}",
            quoted(&asked.kernel),
            each.unwrap_or_default(),
            quoted(program)
        )
    }

    /// As text, no line of a paragraph longer than `width`.
    pub fn text(&self, width: usize) -> String {
        block::text(&self.blocks(), width)
    }

    /// As a page. Finds that grow stand first, as nothing bounds them but the number.
    pub fn page(&self) -> String {
        let (growing, others): (Vec<&Find>, Vec<&Find>) =
            (self.finds.iter()).partition(|find| grows(&find.growth));
        let mut blocks = vec![Block::Para(self.head())];
        if growing.is_empty() {
            let text = "No find is known to grow with a number of its program.";
            blocks.extend((!self.finds.is_empty()).then(|| Block::Para(text.to_owned())));
        }
        let finds: Vec<&Find> = growing.into_iter().chain(others).collect();
        blocks.extend(Self::table(finds.iter().copied()));
        for find in &finds {
            let length = time(find.stretch.ns);
            blocks.push(Block::Head(format!("{length} of {}", cause(&find.stretch))));
            blocks.push(Block::Code(find.program.clone()));
            blocks.extend(about(find));
            let figures = find.growth.iter().filter(|one| one.order.grows());
            let figures = figures.filter_map(|one| figure::growth(&one.with, &one.known()));
            blocks.extend(figures.map(|svg| Block::Figure(svg.into_string())));
            blocks.push(Block::Para("Again:".to_owned()));
            blocks.push(Block::Code(self.again(&find.program)));
            let load = vec![Block::Code(self.load(find))];
            blocks.push(Block::Fold("As a load".to_owned(), load));
            let program = self.c(find).map(Block::Code);
            blocks.extend(program.map(|code| Block::Fold("In C".to_owned(), vec![code])));
        }
        let others = self.others();
        let head = "What is no find".to_owned();
        blocks.extend((!others.is_empty()).then_some(Block::Head(head)));
        blocks.extend(others);
        let (lead, chapters) = block::page(&blocks);
        let title = format!("Who makes {} late", self.search.asked.kernel);
        shell::page(&title, &lead, chapters)
    }

    /// Describes a find, line by line.
    fn found(&self, find: &Find) -> [String; 2] {
        let asked = &self.search.asked;
        [
            format!(
                "Found by `punctual search` on {} ({}), seed {}{}:",
                asked.kernel,
                self.preemption,
                asked.seed,
                self.others_searches()
            ),
            format!(
                "{}, {}; {}.",
                time(find.stretch.ns),
                cause(&find.stretch),
                growth(&find.growth)
            ),
        ]
    }

    /// Returns a find in C; `None` if its calls are of another grammar.
    pub fn c(&self, find: &Find) -> Option<String> {
        let program = self.grammar.program(&find.program).ok()?;
        in_c(
            &program,
            self.grammar,
            &self.found(find),
            &self.search.asked,
        )
    }

    /// As JSON.
    pub fn json(&self) -> Outcome<'_> {
        let find = |find| Again {
            find,
            again: self.again(&find.program),
        };
        let Asked { kernel, boot, .. } = &self.search.asked;
        Outcome {
            schema: SCHEMA,
            kernel,
            boot,
            preemption: self.preemption,
            seed: self.search.asked.seed,
            root: self.search.asked.root,
            random: self.search.asked.random,
            candidates: self.search.candidates,
            merged: &self.search.merged,
            finds: self.finds.iter().map(find).collect(),
            not_repeated: self.gone,
            without_calls: self.without_calls,
            guests_lost: &self.search.killers,
        }
    }

    /// A find as a load.
    pub fn load(&self, find: &Find) -> String {
        let asked = &self.search.asked;
        let comment: String = self.found(find).map(|line| format!("# {line}\n")).concat();
        let summary = format!(
            "programs of system calls with long stretches of {}",
            cause(&find.stretch)
        );
        load(asked, &find.program, &comment, &summary)
    }
}

/// Returns a program in C, with a description above it; `None` if the grammar lacks its calls.
pub fn in_c(
    program: &Program,
    grammar: &Grammar,
    found: &[String],
    asked: &Asked,
) -> Option<String> {
    let mut comment = found.to_vec();
    comment.push(program.to_string());
    comment.push(String::new());
    comment.push("cc -O2 -pthread worst.c -o worst && ./worst".to_owned());
    comment.push(
        "It goes on until it is stopped, or for as many rounds as its argument says.".to_owned(),
    );
    c::program(program, grammar, &comment, asked).ok()
}

/// A program as a load, with a comment of whole lines above it, or none.
pub fn load(asked: &Asked, program: &str, comment: &str, summary: &str) -> String {
    let mut run = vec!["punctual-calls".to_owned()];
    run.extend(asked.root.then(|| "--root".to_owned()));
    if !asked.grammar.is_empty() {
        run.extend(["--grammar".to_owned(), asked.grammar.clone()]);
    }
    if let Some(each) = asked.each {
        run.extend(["--limit-ms".to_owned(), (each.0 / 1_000_000).to_string()]);
    }
    run.push(program.to_owned());
    let run: Vec<String> = run
        .into_iter()
        .map(|word| toml::Value::from(word).to_string())
        .collect();
    format!(
        "{comment}summary = {}\nprograms = [\"punctual-calls\"]\n\n[[worker]]\nrun = [{}]\nunit = \"calls\"\ncount = {{ before = \" calls\" }}\n",
        toml::Value::from(summary),
        run.join(", "),
    )
}

/// Describes the result of a run beside a program, in a sentence.
fn confirmed(one: &Confirmed) -> String {
    let known = [
        ("the latest sample", one.sampled_ns),
        ("the latest arrival foretold", one.foretold_ns),
        ("the latest aimed sample", one.reached_ns),
    ];
    let known = known.into_iter();
    let known = known.filter_map(|(what, ns)| Some(format!("{what} {} late", time(ns?))));
    let mut told: Vec<String> = known.collect();
    if let (Some(function), Some(last)) = (&one.function, told.last_mut()) {
        last.extend([", most of it in ", function]);
    }
    told.extend(one.why_not.iter().cloned());
    let cause = one.cause.as_ref().map(|cause| format!(". {cause}"));
    let cause = cause.unwrap_or_default();
    format!("beside it ({}): {}{cause}", one.run, told.join("; "))
}

impl Tried<'_> {
    /// As text.
    pub fn text(&self, width: usize) -> String {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_by_key(|number| std::cmp::Reverse(longest(&self.seen[*number])));
        let mut rows = Vec::new();
        for number in order {
            let name = &self.names[number];
            match &self.seen[number] {
                Seen::Ran { stretches, told } => {
                    let work = work(told);
                    for (row, stretch) in stretches.iter().take(self.top).enumerate() {
                        let first = |text: &str| {
                            if row == 0 {
                                text.to_owned()
                            } else {
                                String::new()
                            }
                        };
                        rows.push(vec![
                            time(stretch.ns),
                            cause(stretch),
                            stretch.most.clone(),
                            first(name),
                            first(&work),
                        ]);
                    }
                }
                Seen::Killed(why) => {
                    let cells = ["", "", "", name, why.lines().next().unwrap_or_default()];
                    rows.push(cells.map(str::to_owned).to_vec());
                }
            }
        }
        let head = ["longest", "what", "most of it in", "by", "work"];
        let table = Block::Table {
            head: head.map(str::to_owned).to_vec(),
            rows,
            numbers: 1,
        };
        let mut blocks = vec![Block::Para(self.title.clone()), table];
        let beside = self.names.iter().zip(self.confirmed);
        let beside = beside.filter_map(|(name, one)| Some((name, one.as_ref()?)));
        let beside = beside.map(|(name, one)| format!("{name}: {}", confirmed(one)));
        blocks.extend(beside.map(Block::Para));
        block::text(&blocks, width)
    }

    /// As JSON.
    pub fn json(&self) -> Candidates<'_> {
        let all = self.names.iter().zip(self.seen).enumerate();
        let all = all.map(|(number, (name, seen))| match seen {
            Seen::Ran { stretches, told } => Candidate::Ran {
                name,
                stretches,
                work: work(told),
                confirmed: self.confirmed.get(number).and_then(Option::as_ref),
            },
            Seen::Killed(why) => Candidate::Lost {
                name,
                guest_lost: why,
            },
        });
        Candidates {
            schema: CANDIDATES_SCHEMA,
            title: &self.title,
            tried: all.collect(),
        }
    }
}

fn longest(seen: &Seen) -> i64 {
    match seen {
        Seen::Ran { stretches, .. } => stretches.first().map_or(0, |stretch| stretch.ns),
        Seen::Killed(_) => i64::MAX,
    }
}

/// Describes the work: stress-ng's own count, if there is one, or the calls.
fn work(told: &str) -> String {
    let mut operations = told
        .lines()
        .filter_map(|line| line.trim().strip_prefix("bogo-ops: "));
    match operations.next_back() {
        Some(operations) => format!("{operations} bogo operations"),
        None => told.lines().last().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::assert_is_of;

    fn search() -> Search {
        Search {
            candidates: 1,
            ..Search::new(Asked {
                kernel: "debian-6.12".into(),
                image_sha256: String::new(),
                boot: "preempt=full quiet".into(),
                seed: 1,
                root: false,
                random: false,
                grammar: "# None.".into(),
                each: None,
            })
        }
    }

    fn stretch() -> Stretch {
        Stretch {
            what: "preemption off".into(),
            function: "pipe_write".into(),
            most: "pipe_write".into(),
            ns: 1_000,
        }
    }

    fn find() -> Find {
        Find {
            stretch: stretch(),
            program: "pipe; write-pipe 1024".into(),
            found: ("pipe; write-pipe 1024".into(), 1_000),
            growth: vec![Growth {
                with: "size of write-pipe".into(),
                lengths: vec![(512, None), (1_024, Some(1_000)), (2_048, None)],
                order: Order::Unknown,
            }],
            confirmed: None,
        }
    }

    /// Gives what is told of one find to a function.
    fn told<T>(place: &str, are_written: bool, of: impl FnOnce(&Told<'_>) -> T) -> T {
        of(&Told {
            search: &search(),
            preemption: "full",
            finds: &[find()],
            gone: &[Gone {
                stretch: stretch(),
                why: "a guest of its own was lost (it panicked)".into(),
            }],
            without_calls: &[],
            place,
            are_written,
            grammar: &Grammar::default(),
        })
    }

    #[test]
    fn a_shell_takes_the_commands_whatever_the_directory_is_called() {
        let again = "punctual search --kernel debian-6.12 --boot 'preempt=full quiet' --grammar \
                     'my finds/grammar.toml' --program 'pipe; write-pipe 1024'";
        let load = "`punctual run demo --load 'my finds/worst-01.toml'`";
        let text = told("my finds", true, |told| told.text(1_000));
        assert!(text.contains(again) && text.contains(load), "{text}");
        let json = told("my finds", true, |told| serde_json::to_value(told.json()));
        assert_eq!(json.unwrap()["finds"][0]["again"], again);
    }

    #[test]
    fn loads_that_were_not_written_are_not_named() {
        for are_written in [true, false] {
            let text = told("cc", are_written, |told| told.text(1_000));
            assert_eq!(text.contains("cc/worst-01"), are_written, "{text}");
        }
    }

    #[test]
    fn a_lost_guest_is_told_as_such_and_nothing_is_known_of_it() {
        let text = told("cc", true, |told| told.text(1_000));
        for part in [
            "512: guest lost, 1,024: 1.00 µs, 2,048: guest lost",
            "growth unknown: size of write-pipe",
            "was seen after other programs; a guest of its own was lost (it panicked).",
            "seed 1: 1 program of system calls, ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json = told("cc", true, |told| serde_json::to_value(told.json())).unwrap();
        assert!(json["finds"][0]["growth"][0]["lengths"][0][1].is_null());
        assert_eq!(json["not_repeated"][0]["ns"], 1_000);
        let why = json["not_repeated"][0]["why"].as_str();
        assert!(why.is_some_and(|why| why.contains("panicked")), "{json:#}");
    }

    #[test]
    fn the_schemas_are_what_the_types_say() {
        assert_is_of::<Outcome<'_>>(
            "search-1.json",
            "What a search has found: what `punctual search --json` prints",
        );
        assert_is_of::<Candidates<'_>>(
            "candidates-1.json",
            "Programs and stressors that were tried: what `punctual search --program --json` prints",
        );
    }
}
