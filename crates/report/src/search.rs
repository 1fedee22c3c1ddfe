// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a search: text, page, JSON, and loads and C programs that repeat them.

use punctual_model::Nanos;
use punctual_search::minimise::{Confirmed, Find, Growth, Order};
use punctual_search::{Asked, Grammar, Merged, Program, Search, Seen, Stretch, c};
use serde::Serialize;

use crate::block::{self, Block};
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
    pub gone: &'a [Stretch],
    /// Stretches that need no call: the start and the end of each program show them.
    pub without_calls: &'a [Stretch],
    /// The place of their loads; empty if none was written.
    pub place: &'a str,
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
    /// Stretches that no guest of its own has shown again.
    not_repeated: &'a [Stretch],
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
            .map(|(number, ns)| format!("{}: {}", thousands(*number), time(*ns)))
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
    let needed = growth.iter().filter(|one| one.order == Order::Threshold);
    let needed: Vec<&str> = needed.map(|one| one.with.as_str()).collect();
    if needed.is_empty() {
        return "does not grow with any number of it".to_owned();
    }
    format!("has a threshold: {}", needed.join(", "))
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
            "{} ({}), seed {}: {} programs of system calls, {how}, as {who}{others}; {} at which \
             something was off",
            search.asked.kernel,
            self.preemption,
            search.asked.seed,
            thousands(search.candidates),
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
            "; and what {} other {word} found ({seed} {}), of {} programs",
            merged.len(),
            seeds.join(", "),
            thousands(candidates)
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
        if !self.place.is_empty() && !self.finds.is_empty() {
            blocks.push(Block::Para(format!(
                "The finds as loads: {0}/worst-01.toml and so on (`punctual run demo --load \
                 {0}/worst-01.toml`); in C: {0}/worst-01.c and so on",
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
        for gone in self.gone {
            blocks.push(Block::Para(format!(
                "Not repeated: {} of {} was seen after other programs; a guest of its own did not \
                 show it.",
                time(gone.ns),
                cause(gone)
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
            format!(" --boot '{}'", asked.boot)
        };
        let root = if asked.root { " --root" } else { "" };
        let grammar = if asked.grammar.is_empty() {
            String::new()
        } else {
            format!(" --grammar {}/{GRAMMAR}", self.place)
        };
        let each = asked
            .each
            .map(|each| format!(" --each {}ms", each.0 / 1_000_000));
        format!(
            "punctual search --kernel {}{boot}{root}{grammar}{} --program '{program}'",
            asked.kernel,
            each.unwrap_or_default()
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
            let text = "No find grows with a number of its program.";
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
            let figures = figures.filter_map(|one| figure::growth(&one.with, &one.lengths));
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
