// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every arrival for people, as text and as a page.

use punctual_model::Nanos;
use punctual_scope::arrivals::aim::NEAR;

use super::{Later, Quantile, Shown, Step, Told, Waits};
use crate::block::Block;
use crate::shell;
use crate::text::{exact, thousands};

/// The most functions named that were not as foretold.
const NAMED: usize = 4;
/// The most places shown as text if more are known.
const SHOWN: usize = 10;

impl Told {
    /// Returns the contents, block by block, with so many places at most.
    pub fn blocks(&self, most: usize) -> Vec<Block> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.blocks(most)).collect()
    }

    /// The page about it.
    pub fn page(&self) -> String {
        let (lead, chapters) = crate::block::page(&self.blocks(usize::MAX));
        let title = format!("{}, {}: every arrival", self.run, self.subject);
        shell::page(&title, &lead, chapters)
    }

    /// The text about it, no line of a paragraph longer than `width`.
    pub fn text(&self, width: usize) -> String {
        crate::block::text(&self.blocks(SHOWN), width)
    }
}

impl Step {
    fn blocks(&self, most: usize) -> Vec<Block> {
        let head = |names: [&str; 3]| names.map(Into::into).to_vec();
        // Those that were aimed at are shown wherever they stand.
        let numbered = self.places.iter().enumerate();
        let places = numbered.filter(|(number, one)| *number < most || one.reached_ns.is_some());
        let places: Vec<&Shown> = places.map(|(_, place)| place).collect();
        let mut blocks = vec![
            Block::Head(self.recording.clone()),
            Block::Para(self.answer()),
        ];
        if self.time_ns <= Nanos::ZERO {
            blocks.extend(self.notes().into_iter().map(Block::Para));
            return blocks;
        }
        // Later than that is all of the time.
        let later = self.later_than.iter().filter(|one| one.share < 1.0);
        let later: Vec<Vec<String>> = later.map(Later::row).collect();
        blocks.push(Block::Table {
            head: vec![
                "late at most, ns".into(),
                "in this share of the time".into(),
            ],
            rows: self.quantiles.iter().map(quantile).collect(),
            numbers: 2,
        });
        blocks.extend((!later.is_empty()).then(|| Block::Table {
            head: vec!["later than, ns".into(), "so much of each second, ns".into()],
            rows: later,
            numbers: 2,
        }));
        blocks.push(Block::Table {
            head: head(["foretold, ns", "reached, ns", "place"]),
            rows: places.iter().map(|place| place.row()).collect(),
            numbers: 2,
        });
        blocks.extend(places.iter().filter_map(|place| place.story(&self.load)));
        blocks.extend(self.notes().into_iter().map(Block::Para));
        blocks
    }

    fn answer(&self) -> String {
        let (load, worst) = (&self.load, exact(self.worst_ns));
        let sampled = self.sampled_ns.map_or_else(String::new, |sampled| {
            let sampled = exact(sampled);
            format!(" The worst of the run's own samples is {sampled} ns late.")
        });
        let reached = self.reached_ns.map_or_else(String::new, |reached| {
            let reached = exact(reached);
            format!(" The latest aimed sample is {reached} ns late: that is proved.")
        });
        if self.time_ns <= Nanos::ZERO {
            return format!(
                "Load {load}: there was no moment to look at, so it is not known how late an \
                 arrival would be.{sampled}"
            );
        }
        format!("Load {load}: the latest of all arrivals is {worst} ns late.{sampled}{reached}")
    }

    fn notes(&self) -> Vec<String> {
        let comes = match self.waits {
            Waits::Thread => "A timer could have been due",
            Waits::Program => "The timer of the program's thread could have been due",
            Waits::Handler => "The device's interrupt could have come",
        };
        let mut notes = vec![format!(
            "{comes} at each of {} ns in {} periods. The path after what was off is that of {} \
             samples of this run.",
            exact(self.time_ns),
            thousands(self.periods),
            thousands(self.samples_learnt as u64)
        )];
        let foretold = self.places.iter().map(|place| place.foretold_ns).max();
        if foretold.is_some_and(|foretold| foretold + NEAR < self.worst_ns) {
            notes.push(
                "The latest of all arrivals takes the longest path that a sample showed; the \
                 forecast of a place takes the typical one."
                    .to_owned(),
            );
        }
        if self.periods_left_out > 0 {
            notes.push(format!(
                "{} periods are left out: their instructions and their time do not agree, or \
                 something that was off in them was missed.",
                thousands(self.periods_left_out)
            ));
        }
        if self.unlearnt_ns > Nanos::ZERO {
            notes.push(format!(
                "No sample shows the path after {} ns of that time: arrivals there are later than \
                 these figures, which are lower bounds. More samples may show it.",
                exact(self.unlearnt_ns)
            ));
        }
        if self.is_forecast {
            notes.push(
                "These are forecasts: on this kernel an arrival can change what follows, because \
                 interrupts end with soft interrupts and code looks for waiting threads. Aimed \
                 samples are proof."
                    .to_owned(),
            );
        }
        if let Some(second) = &self.with_second {
            let (late, behind) = (exact(second.reached_ns), exact(second.behind_ns));
            let cause = second.cause.as_deref().unwrap_or_default();
            notes.push(format!(
                "With a second timer due {behind} ns later, a sample aimed at the latest place \
                 is {late} ns late. {cause}"
            ));
        }
        if self.waits == Waits::Program {
            notes.push(
                "Where a thread of its priority or a higher one has the CPU, it waits for that \
                 one, too."
                    .to_owned(),
            );
        }
        if self.waits == Waits::Handler {
            notes.push(
                "Nothing but interrupts off keeps the hard handler waiting, and an interrupt \
                 changes nothing before it comes. No sample is aimed: the device's interrupts come \
                 by its own clock, at one interval."
                    .to_owned(),
            );
        } else if let Some(why) = &self.not_aimed {
            notes.push(format!("No sample is aimed: {why}."));
        } else if self.waits == Waits::Thread && self.has_missed() {
            notes.push(
                "Some places have no aimed sample: up to the place the step's load had not done \
                 what counts as work, or the thread was not asleep yet when the moved timer was \
                 due."
                    .to_owned(),
            );
        } else if self.reached_ns.is_none() && self.aims > 0 {
            notes.push(
                "No aimed sample was seen: the moment of none of these waits stood in the \
                 program's memory, or the wait did not last until it."
                    .to_owned(),
            );
        } else if self.reached_ns.is_none() {
            notes.push("Option --aim N proves the N worst places, each by a sample.".to_owned());
        }
        notes
    }
}

fn quantile(one: &Quantile) -> Vec<String> {
    // Without the digits that binary fractions add.
    let percent = (one.share * 1e9).round() / 1e7;
    vec![exact(one.late_ns), format!("{percent} %")]
}

impl Later {
    fn row(&self) -> Vec<String> {
        // Whole nanoseconds, and of less than ten the tenth.
        let time = match self.ns_per_second {
            time if time < 0.1 => "< 0.1".to_owned(),
            time if time < 10.0 => format!("{time:.1}"),
            time => exact(Nanos(time.round() as i64)),
        };
        vec![exact(self.late_ns), time]
    }
}

impl Shown {
    fn row(&self) -> Vec<String> {
        let reached = self.reached_ns.map_or_else(|| "–".to_owned(), exact);
        let (what, function, most) = (&self.what, &self.function, &self.most_in);
        let place = format!("{what} by {function}, most in {most}");
        vec![exact(self.foretold_ns), reached, place]
    }

    /// Describes the place's moment in the step, and the number of places like it.
    fn moment(&self) -> Option<String> {
        let (after, samples) = (exact(self.after_ns?), thousands(self.samples_before));
        let begins = format!(
            "It begins after {samples} samples, {after} ns after the last of them read the clock"
        );
        Some(match self.count {
            1 => format!("{begins}. It came once."),
            count => format!("{begins}. It is the longest of {}.", thousands(count)),
        })
    }

    /// Describes the function that the place grows with, and the load that brings it.
    fn growth(&self, load: &str) -> Option<String> {
        let thread = self.thread.as_ref();
        let thread =
            thread.map(|thread| format!("the CPU worked for {thread}, beside load {load}"));
        let grows = self.grows_with.as_ref().map(|grows| {
            let (times, each, function) = (
                thousands(grows.times.into()),
                exact(grows.each_ns),
                &grows.function,
            );
            format!("it grows with `{function}`, which ran {times} times, {each} ns each")
        });
        let told: Vec<String> = grows.into_iter().chain(thread).collect();
        let told = told.join("; ");
        let mut letters = told.chars();
        let first = letters.next()?.to_uppercase();
        Some(format!("{first}{}.", letters.as_str()))
    }

    /// Describes the reasons, by name, why it is not as foretold.
    fn missed(&self) -> Option<String> {
        let than = |by: Nanos| {
            if by < Nanos::ZERO {
                "shorter"
            } else {
                "longer"
            }
        };
        let difference = self.difference_ns.filter(|_| !self.differs.is_empty())?;
        let each = self.differs.iter().take(NAMED).map(|one| {
            let (by, than) = (exact(Nanos(one.by_ns.0.abs())), than(one.by_ns));
            format!("`{}` {by} ns {than}", one.function)
        });
        let each: Vec<String> = each.collect();
        Some(format!(
            "{} ns {} than foretold: {}.",
            exact(Nanos(difference.0.abs())),
            than(difference),
            each.join(", ")
        ))
    }

    /// The story of the aimed sample.
    fn story(&self, load: &str) -> Option<Block> {
        let cause = Block::Para(self.cause.clone()?);
        let grows = self.growth(load).map(Block::Para);
        let title = format!("{} by {}", self.what, self.function);
        let missed = self.missed().map(Block::Para);
        let moment = self.moment().map(Block::Para);
        let told = [Some(cause), missed, grows, moment];
        Some(Block::Fold(title, told.into_iter().flatten().collect()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{SCHEMA, VERSION};
    use super::*;

    /// Two places: one that an aimed sample missed by far, one that nothing was aimed at.
    fn known() -> Told {
        let mut second = json!({
            "what": "preemption off", "function": "exit_files", "most_in": "put_files_struct",
            "most_ns": 200, "count": 1, "length_ns": 900, "interrupts_ns": 0,
            "path_from": "kernel", "path_ns": 4_000, "foretold_ns": 4_900, "samples_before": 3,
            "after_ns": 77, "differs": []
        });
        let mut first = second.clone();
        let set = |place: &mut Value, key: &str, value: Value| place[key] = value;
        for (key, value) in [
            ("function", json!("free_pcppages_bulk")),
            ("most_in", json!("__list_del_entry")),
            ("count", json!(716)),
            ("samples_before", json!(1_609)),
            ("after_ns", json!(503_837)),
            ("foretold_ns", json!(332_410)),
            ("reached_ns", json!(332_110)),
            ("difference_ns", json!(-300)),
            (
                "differs",
                json!([{ "function": "mmdrop", "by_ns": -350 }, { "function": "down", "by_ns": 50 }]),
            ),
            ("cause", json!("332 µs: `free_pcppages_bulk` ran 325 µs.")),
            (
                "grows_with",
                json!({ "function": "__list_del_entry", "times": 1_972, "each_ns": 21 }),
            ),
            ("thread", json!("busybox")),
        ] {
            set(&mut first, key, value);
        }
        set(&mut second, "function", json!("exit_files"));
        let step = json!({
            "step": 1, "recording": "timer / stress / cpu0", "load": "stress", "waits": "thread",
            "time_ns": 988_278_554, "periods": 999, "periods_left_out": 0, "unlearnt_ns": 0,
            "samples_learnt": 996, "sampled_ns": 8_282, "worst_ns": 333_000, "reached_ns": 332_110,
            "aims": 1, "is_forecast": false,
            "quantiles": [{ "share": 0.5, "late_ns": 4_201 }],
            "later_than": [
                { "late_ns": 1_000, "share": 1.0, "ns_per_second": 1e9 },
                { "late_ns": 5_000, "share": 0.345_543, "ns_per_second": 345_543_632.4 },
                { "late_ns": 10_000, "share": 2.04e-9, "ns_per_second": 2.04 }
            ],
            "places": [first, second]
        });
        let told = json!({
            "schema": SCHEMA, "punctual": VERSION, "run": "r1", "subject": "rt", "kernel": "k",
            "digest": "d", "digest_watched": "d", "steps": [step]
        });
        serde_json::from_value(told).unwrap()
    }

    #[test]
    fn the_text_has_the_tail_the_places_and_what_each_comes_of() {
        let text = "\
timer / stress / cpu0

Load stress: the latest of all arrivals is 333,000 ns late. The worst of the
run's own samples is 8,282 ns late. The latest aimed sample is 332,110 ns late:
that is proved.

late at most, ns  in this share of the time
           4,201                       50 %

later than, ns  so much of each second, ns
         5,000                 345,543,632
        10,000                         2.0

foretold, ns  reached, ns  place
     332,410      332,110  preemption off by free_pcppages_bulk, most in
                           __list_del_entry
       4,900            –  preemption off by exit_files, most in
                           put_files_struct

preemption off by free_pcppages_bulk
  332 µs: `free_pcppages_bulk` ran 325 µs.
  300 ns shorter than foretold: `mmdrop` 350 ns shorter, `down` 50 ns longer.
  It grows with `__list_del_entry`, which ran 1,972 times, 21 ns each; the CPU
  worked for busybox, beside load stress.
  It begins after 1,609 samples, 503,837 ns after the last of them read the
  clock. It is the longest of 716.

A timer could have been due at each of 988,278,554 ns in 999 periods. The path
after what was off is that of 996 samples of this run.

The latest of all arrivals takes the longest path that a sample showed; the
forecast of a place takes the typical one.
";
        assert_eq!(known().text(80), text);
    }

    #[test]
    fn time_whose_path_no_sample_shows_makes_lower_bounds_of_the_figures() {
        let mut known = known();
        known.steps[0].unlearnt_ns = Nanos(12_345);
        let told = "No sample shows the path after 12,345 ns of that time: arrivals there are \
                    later than these figures, which are lower bounds.";
        let text = known.text(1_000);
        assert!(text.contains(told), "{text}");
        assert!(known.page().contains(told));
    }

    #[test]
    fn without_a_moment_to_look_at_no_arrival_is_on_time() {
        let mut known = known();
        let step = &mut known.steps[0];
        (step.time_ns, step.worst_ns) = (Nanos::ZERO, Nanos::ZERO);
        (step.periods, step.periods_left_out) = (0, 60);
        let text = known.text(1_000);
        for told in ["there was no moment to look at", "60 periods are left out"] {
            assert!(text.contains(told), "{text}");
        }
        assert!(!text.contains("is 0 ns late"), "{text}");
        assert!(!text.contains("late at most"), "{text}");
    }
}
