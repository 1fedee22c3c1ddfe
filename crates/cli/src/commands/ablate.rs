// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual ablate`: the benefit and the cost of options.

use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use punctual_judge::Rule;
use punctual_kernels::build::Setting;
use punctual_model::Run;
use punctual_model::plan::IDLE;
use punctual_model::suite::Suite;
use punctual_report::ablate::{
    Ablation, Advice, Side, Trial, Untried, ablation_json, ablation_page, ablation_text,
    figure_count, trial, unmeasured,
};
use punctual_report::gate::rule_of_each;
use punctual_runner::documents;
use punctual_runner::options::{self, Expects, OptionSpec, Options};

use super::arrivals::WatchArgs;
use super::build_args::made_variant;
use super::measure::what::{ProbeArgs, WhatArgs};
use super::measure::{MeasureArgs, Plans, is_of_kernel};
use super::output_args::OutputArgs;
use super::replay_args::ReplayArgs;
use crate::output::say;
use crate::{ExitStatus, interrupt, output};

const EXAMPLES: &str = "\
Examples:
  punctual ablate --kernel debian-6.12 --options advice
  punctual ablate --kernel debian-6.12-rt --options wire
  punctual ablate --kernel mine --options ./mine.toml --report options.html
  punctual ablate --kernel mine --options ./mine.toml --suite demo --pairs
  punctual ablate --kernel mine --options advice --program './loop --rate 1000'

A file of options has as many of these as it takes:
  boot = \"quiet nohz=off\"     # what all have, the base included
  [[option]]
  name = \"threaded\"
  boot = \"threadirqs\"         # besides those of the base
  [[option]]
  name = \"with the tick\"
  without = \"nohz=off\"        # the base's, taken away
  [[option]]
  name = \"RT\"
  kernel = \"debian-6.12-rt\"   # instead of the base's
  [[option]]
  name = \"timers stay\"
  setup = \"sysctl -w kernel.timer_migration=0\"  # sh runs it in the guest first

Each is measured with the same seeds as the base, and compared as `punctual
compare` does. What changes most comes first, with the path that it takes away
or adds. What the store holds is not measured again: the same command goes on
after Ctrl-C.

Exit status: 0 all was measured; 3 not all; 1 an error; 2 a wrong request.";

/// Tell which of many options does anything: one at a time, against a base
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Ablate {
    /// The options: a name (advice, wire), or a TOML file
    #[arg(long, value_name = "NAME|FILE", required = true)]
    options: String,
    /// What is measured: a suite that `punctual list suites` shows, or a TOML file
    /// [default: what the options' file says, else advice]
    #[arg(long, value_name = "SUITE")]
    suite: Option<String>,
    #[command(flatten)]
    probes: ProbeArgs,
    /// Also try each two that change something by themselves, together
    #[arg(long)]
    pairs: bool,
    /// How many of those that change something are explained, the largest change first
    #[arg(long, value_name = "N", default_value_t = 3)]
    explain: usize,
    /// Do not repeat runs to tell what changed: like --explain 0
    #[arg(long, conflicts_with = "explain")]
    no_explain: bool,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    measure: MeasureArgs,
}

/// An experiment: the measurement, the base, and the options to try.
struct Experiment {
    what: WhatArgs,
    suite: Suite,
    options: Options,
    base: Side,
    rule: Rule,
}

/// The outcome for one side: its runs, or the reason why there are none.
enum Measured {
    Runs(Vec<Run>),
    Gap(anyhow::Error),
    Interrupted,
}

impl Ablate {
    /// Runs the command.
    pub fn run(mut self) -> Result<ExitStatus> {
        self.output.check()?;
        let options = options::find(&self.options)?;
        let usual = options.suite.as_deref().unwrap_or("advice");
        let what = self.probes.with_or(self.suite.as_deref(), usual);
        self.measure.check()?;
        let (kernel, boot) = self.measure.take_base()?;
        let boot = format!("{} {boot}", options.boot).trim().to_owned();
        let mut suite = self.measure.suite(&what)?;
        suite.programs.extend(options.programs.iter().cloned());
        let tried = options.options.iter().filter(|one| one.is_tried()).count();
        let experiment = Experiment {
            what,
            suite,
            rule: rule_of_each(tried),
            options,
            base: Side {
                kernel,
                boot,
                setup: Vec::new(),
            },
        };
        let Some(sides) = self.sides(&experiment)? else {
            return Ok(ExitStatus::Incomplete);
        };
        let (ablation, runs) = self.ablate(&experiment, sides)?;
        let is_interrupted = interrupt::flag()?.load(Ordering::SeqCst);
        self.show(&ablation, &runs)?;
        let mut trials = ablation.trials.iter();
        let is_whole = ablation.unmeasured.is_empty() && trials.all(|trial| trial.gap.is_none());
        Ok(if is_whole && !ablation.is_interrupted && !is_interrupted {
            ExitStatus::Done
        } else {
            ExitStatus::Incomplete
        })
    }

    /// Applies each option to the base. Errors in an option are reported, and its kernel is built,
    /// before anything is measured. `None` if Ctrl-C has ended that.
    fn sides<'a>(
        &mut self,
        experiment: &'a Experiment,
    ) -> Result<Option<Vec<(&'a OptionSpec, Side)>>> {
        let all = &experiment.options.options;
        let mut sides = Vec::new();
        for option in all.iter().filter(|one| one.is_tried()) {
            let mut side = of_options(&experiment.base, &[option])?;
            self.take(&side);
            self.measure.check_subjects(&experiment.suite)?;
            let built = built(&mut side, &[option]);
            if !built.with_context(|| format!("option \"{}\"", option.name))? {
                return Ok(None);
            }
            sides.push((option, side));
        }
        Ok(Some(sides))
    }

    /// Measures the base with the fewest seeds that can show anything, and at least as many as the
    /// suite has. Returns the plans for all others, too.
    ///
    /// The runs tell how many figures there are: in the worst case each pays for all.
    fn base(&mut self, experiment: &Experiment) -> Result<(Plans, Measured)> {
        let suite = &experiment.suite;
        let first = experiment.rule.runs().max(suite.seeds.get() as usize);
        let plans = self.measure.plans(suite, Some(first))?;
        let measured = self.measured(experiment, &experiment.base, "the base", &plans)?;
        let Measured::Runs(runs) = &measured else {
            return Ok((plans, measured));
        };
        let figures = figure_count(runs);
        let needed = experiment.rule.share(figures).runs();
        if runs.len() >= needed || plans.are_shards() {
            return Ok((plans, measured));
        }
        let have = runs.len();
        if self.measure.has_seeds() {
            say!(
                "punctual: with {have} seeds a change may stay undecided: {needed} are needed for \
                 so many options and {figures} figures"
            );
            return Ok((plans, measured));
        }
        let further = self.measure.plans_after(suite, have, needed - have)?;
        let told = format!("the base, {needed} seeds for {figures} figures");
        let measured = match self.measured(experiment, &experiment.base, &told, &further)? {
            Measured::Runs(further) => Measured::Runs([runs.as_slice(), &further].concat()),
            none => none,
        };
        Ok((self.measure.plans(suite, Some(needed))?, measured))
    }

    fn take(&mut self, side: &Side) {
        self.measure.take(vec![side.kernel.clone()]);
        self.measure.take_boot(&side.boot);
    }

    /// Measures everything, as far as Ctrl-C allows.
    fn ablate(
        &mut self,
        experiment: &Experiment,
        sides: Vec<(&OptionSpec, Side)>,
    ) -> Result<(Ablation, Vec<Run>)> {
        let rule = experiment.rule;
        let mut ablation = Ablation {
            suite: experiment.suite.name.clone(),
            base: experiment.base.clone(),
            unmeasured: Vec::new(),
            trials: Vec::new(),
            untried: untried(&experiment.options),
            rule,
            is_interrupted: false,
        };
        let (plans, base) = self.base(experiment)?;
        let base = match base {
            Measured::Runs(runs) => runs,
            Measured::Gap(why) => return Err(why.context("the base cannot be measured")),
            Measured::Interrupted => {
                ablation.is_interrupted = true;
                return Ok((ablation, Vec::new()));
            }
        };
        ablation.unmeasured = unmeasured(&base);
        let mut runs = base.clone();
        let count = sides.len();
        for ((option, side), number) in sides.into_iter().zip(1..) {
            let told = format!("option {number} of {count}, {}", option.name);
            let names = vec![option.name.clone()];
            let Some(mut trial) =
                self.trial(experiment, (names, side), &told, &plans, (&base, &mut runs))?
            else {
                ablation.is_interrupted = true;
                break;
            };
            trial.advice = advice(option, &experiment.options);
            ablation.trials.push(trial);
        }
        if self.pairs && !ablation.is_interrupted {
            self.pairs(experiment, &plans, &mut ablation, (&base, &mut runs))?;
        }
        ablation.rank();
        if !ablation.is_interrupted {
            self.explain(&mut ablation, &runs, &base)?;
        }
        Ok((ablation, runs))
    }

    /// Measures each pair of options that change something by themselves.
    fn pairs(
        &mut self,
        experiment: &Experiment,
        plans: &Plans,
        ablation: &mut Ablation,
        (base, runs): (&[Run], &mut Vec<Run>),
    ) -> Result<()> {
        let all = ablation.that_change();
        let pairs: Vec<(usize, usize)> = all
            .iter()
            .flat_map(|one| {
                all.iter()
                    .filter(move |other| one < other)
                    .map(move |other| (*one, *other))
            })
            .collect();
        let find = |name: &String| {
            let mut options = experiment.options.options.iter();
            options.find(|option| option.name == *name)
        };
        for ((one, other), number) in pairs.iter().zip(1..) {
            let names = [*one, *other].map(|at| ablation.trials[at].names[0].clone());
            let [Some(first), Some(second)] = names.each_ref().map(find) else {
                continue;
            };
            let name = names.join(" + ");
            let side = match together(&experiment.base, [first, second]) {
                Ok(Some(side)) => side,
                Ok(None) => {
                    ablation.is_interrupted = true;
                    break;
                }
                Err(why) => {
                    let (why, advice) = (format!("{why:#}"), None);
                    say!("{name}: not tried together: {why}");
                    ablation.untried.push(Untried { name, why, advice });
                    continue;
                }
            };
            let told = format!("pair {number} of {}, {name}", pairs.len());
            let pair = (names.to_vec(), side);
            let tried = self.trial(experiment, pair, &told, plans, (base, &mut *runs))?;
            let Some(trial) = tried else {
                ablation.is_interrupted = true;
                break;
            };
            ablation.trials.push(trial);
        }
        Ok(())
    }

    /// Runs one trial; `None` if Ctrl-C has ended it.
    fn trial(
        &mut self,
        experiment: &Experiment,
        (names, side): (Vec<String>, Side),
        told: &str,
        plans: &Plans,
        (base, runs): (&[Run], &mut Vec<Run>),
    ) -> Result<Option<Trial>> {
        Ok(match self.measured(experiment, &side, told, plans)? {
            Measured::Interrupted => None,
            Measured::Gap(why) => {
                let mut trial = trial(names, side, &[], base, &experiment.rule);
                trial.gap = Some(format!("{why:#}"));
                Some(trial)
            }
            Measured::Runs(own) => {
                let trial = trial(names, side, &own, base, &experiment.rule);
                runs.extend(own);
                Some(trial)
            }
        })
    }

    /// Measures one side with all seeds.
    fn measured(
        &mut self,
        experiment: &Experiment,
        side: &Side,
        told: &str,
        plans: &Plans,
    ) -> Result<Measured> {
        if !self.measure.quiet {
            say!("{told}");
        }
        self.take(side);
        let set_up;
        let plans = if experiment.options.has_setup() {
            set_up = plans.set_up(&side.setup, &experiment.options.programs)?;
            &set_up
        } else {
            plans
        };
        let prepared = match self.measure.prepare(&experiment.what, &experiment.suite) {
            // Whatever Ctrl-C has ended says nothing of the kernel.
            Err(_) if interrupt::flag()?.load(Ordering::SeqCst) => {
                return Ok(Measured::Interrupted);
            }
            Err(why) if is_of_kernel(&why) => return Ok(Measured::Gap(why)),
            prepared => prepared?,
        };
        let mut results = prepared.measure(plans)?;
        let is_watched = prepared.watch(&self.watch, &mut results.runs)?;
        Ok(if results.is_interrupted() || !is_watched {
            Measured::Interrupted
        } else {
            Measured::Runs(results.runs)
        })
    }

    /// Explains the trials that change most, as far as Ctrl-C allows.
    fn explain(&self, ablation: &mut Ablation, runs: &[Run], base: &[Run]) -> Result<()> {
        let replay = ReplayArgs::quiet(self.measure.quiet);
        let cancel = interrupt::flag()?;
        let count = if self.no_explain { 0 } else { self.explain };
        for trial in ablation.trials.iter_mut().take(count) {
            let is_own = |run: &&Run| trial.runs.contains(&run.id);
            let own: Vec<Run> = runs.iter().filter(is_own).cloned().collect();
            let Some(asked) = trial.asked(&own, base) else {
                continue;
            };
            if let Some(why) = replay.why(0, &asked, runs, cancel) {
                trial.why = Some((asked, why));
            } else if cancel.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    fn show(&self, ablation: &Ablation, runs: &[Run]) -> Result<()> {
        self.output.show(
            "options.figures",
            || ablation_json(ablation),
            || ablation_text(ablation, output::width()),
            || Ok(ablation_page(ablation, runs, &documents::all()?)),
        )
    }
}

/// Applies options together to the base, as far as that takes no compiler.
fn of_options(base: &Side, options: &[&OptionSpec]) -> Result<Side> {
    let mut side = base.clone();
    for option in options {
        side.boot = option.boot_with(&side.boot)?;
        side.kernel = option.kernel.clone().unwrap_or(side.kernel);
        let setup = option.setup.trim();
        side.setup
            .extend((!setup.is_empty()).then(|| setup.to_owned()));
    }
    Ok(side)
}

/// Applies two options together to the base, and builds their kernel; the error is the reason why
/// that cannot be. `None` if Ctrl-C has ended it.
fn together(base: &Side, [first, second]: [&OptionSpec; 2]) -> Result<Option<Side>> {
    ensure!(
        first.kernel.is_none() || second.kernel.is_none(),
        "each of the two is a kernel"
    );
    ensure!(
        !contradict(&first.set, &second.set),
        "they set one option of the kernel's configuration to two values"
    );
    let pair = [first, second];
    // Two that take away the same argument cannot be together.
    let mut side = of_options(base, &pair)?;
    // Two options of a configuration may exclude each other.
    Ok(built(&mut side, &pair)?.then_some(side))
}

/// Returns true if these set an option of the configuration to two values.
fn contradict(first: &[Setting], second: &[Setting]) -> bool {
    let differs =
        |one: &Setting, other: &Setting| one.name == other.name && one.value != other.value;
    let mut first = first.iter();
    first.any(|one| second.iter().any(|other| differs(one, other)))
}

/// Builds the kernel of a side whose options set the configuration; `false` if Ctrl-C has ended
/// that.
fn built(side: &mut Side, options: &[&OptionSpec]) -> Result<bool> {
    let settings: Vec<Setting> = options.iter().flat_map(|one| one.set.clone()).collect();
    if settings.is_empty() {
        return Ok(true);
    }
    let Some(built) = made_variant(&side.kernel, &settings)? else {
        return Ok(false);
    };
    side.kernel = built.kernel.id;
    Ok(true)
}

fn untried(options: &Options) -> Vec<Untried> {
    let untried = |option: &OptionSpec| {
        Some(Untried {
            name: option.name.clone(),
            why: option.untold.clone()?,
            advice: advice(option, options),
        })
    };
    options.options.iter().filter_map(untried).collect()
}

fn advice(option: &OptionSpec, options: &Options) -> Option<Advice> {
    let advice = option.advice.clone()?;
    // What idle steps are called once anything is set up.
    let load = advice.load.map(|load| match load.as_str() {
        IDLE if options.has_setup() => options::SETUP.to_owned(),
        _ => load,
    });
    Some(Advice {
        source: advice.source,
        says: advice.says,
        is_higher: advice.expects == Expects::Higher,
        probe: advice.probe,
        load,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_options_that_cannot_be_together_say_why() {
        let option = |text: &str| -> OptionSpec { toml::from_str(text).unwrap() };
        let base = Side {
            kernel: "base".into(),
            boot: "quiet".into(),
            setup: Vec::new(),
        };
        let told = |one: &str, other: &str| {
            let options = [one, other].map(|text| option(&format!("name = \"a\"\n{text}")));
            together(&base, options.each_ref()).map_err(|why| format!("{why:#}"))
        };
        let both = told("boot = \"one\"", "without = \"quiet\"");
        assert_eq!(both.unwrap().unwrap().boot, "one");
        for (one, other, why) in [
            (
                "kernel = \"a\"",
                "kernel = \"b\"",
                "each of the two is a kernel",
            ),
            ("set = [\"HZ=100\"]", "set = [\"HZ=250\"]", "to two values"),
            (
                "without = \"quiet\"",
                "without = \"quiet\"",
                "expected the base to have the boot argument quiet",
            ),
        ] {
            let told = told(one, other).unwrap_err();
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn two_values_of_one_option_contradict_each_other() {
        let of = |words: &[&str]| -> Vec<Setting> {
            words.iter().map(|word| word.parse().unwrap()).collect()
        };
        let second = of(&["HZ=250", "PREEMPT=y"]);
        assert!(contradict(&of(&["A=y", "HZ=1000"]), &second));
        assert!(!contradict(&of(&["A=y", "HZ=250"]), &second));
        assert!(!contradict(&[], &second));
    }
}
