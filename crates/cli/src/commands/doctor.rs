// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual doctor`: finds what stands in the way of real-time work on this machine.

mod trials;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use punctual_doctor::{ALL, Diagnosis, Health, Machine, Purpose, Verdict, examine};
use punctual_report::doctor::{Look, Tried, doctor_json, doctor_page, doctor_text, trials_text};

use crate::{ExitStatus, UsageError, output};
use trials::TrialArgs;

const EXAMPLES: &str = "\
Examples:
  punctual doctor                 # what to do first on this machine
  punctual doctor --for audio     # the same for sound; also: control, isolated
  sudo punctual doctor --all      # each finding, also what only root sees
  punctual doctor --skip smi      # hwlatdetect has already measured it
  punctual doctor --only preempt-rt --only governor --json
  punctual doctor --report doctor.html
  punctual doctor --root ./board  # a copy of another machine's files
  punctual doctor --measure       # what boot options would buy

docs/DOCTOR.md has all checks, with their sources. Nothing is changed.

Exit status:
  0    nothing fatal or high is wrong or unknown
  4    something fatal or high is wrong
  5    nothing fatal or high is wrong, and something fatal or high is unknown
  1    an error
  2    a wrong request
  3    Ctrl-C ended --measure";

/// The number of first remedies that are shown.
const STEPS: usize = 3;

/// Find what stands in the way of real-time work on a machine, and what to do about it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Doctor {
    /// Run only this check (may be repeated)
    #[arg(long, value_name = "CHECK")]
    only: Vec<String>,
    /// Skip this check (may be repeated)
    #[arg(long, value_name = "CHECK")]
    skip: Vec<String>,
    /// What the machine is for: audio (sound; many do without PREEMPT_RT), control (threads with
    /// periods), isolated (CPUs that are left alone) [default: all checks run]
    #[arg(long = "for", value_name = "PURPOSE", conflicts_with = "only")]
    purpose: Option<Purpose>,
    /// Show each fault and each unknown with its reasons, and what is fine
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a page with all of it (HTML, one file) to FILE
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where the machine's /proc, /sys, /boot and /dev are: a copy of another's
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/",
        hide_default_value = true
    )]
    root: PathBuf,
    #[command(flatten)]
    trials: TrialArgs,
}

impl Doctor {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        self.check()?;
        output::check_file(self.report.as_deref())?;
        let named = |names: &[String], id: &str| names.iter().any(|name| name == id);
        let machine = Machine::new(&self.root);
        let found = examine(&machine, &|check| {
            (self.only.is_empty() || named(&self.only, check.id)) && !named(&self.skip, check.id)
        });
        if found.0.is_empty() {
            let none = "expected a check, found none: --skip takes away all that --only names";
            return Err(UsageError(none.into()).into());
        }
        let diagnosis = match self.purpose {
            Some(purpose) => found.weighed(purpose),
            None => found,
        };
        let steps = diagnosis.first_steps(&machine, STEPS);
        let look = Look {
            width: output::text_width(),
            colour: output::has_colour(),
            all: self.all || !self.only.is_empty(),
            steps: &steps,
            purpose: self.purpose,
        };
        if !self.json {
            output::print(&doctor_text(&diagnosis, look))?;
        }
        let trials = if self.trials.measure {
            self.trials(&diagnosis)?
        } else {
            None
        };
        let is_interrupted = self.trials.measure && trials.is_none();
        if self.json {
            let (skipped, trials) = (&self.skip, trials.as_deref());
            let json = doctor_json(&diagnosis, self.purpose, &steps, skipped, trials);
            output::print_json(&json)?;
        } else if let Some(trials) = &trials {
            output::print(&trials_text(trials, &diagnosis, look.width))?;
        }
        if let Some(path) = &self.report {
            let page = doctor_page(&diagnosis, look, trials.as_deref());
            output::write_page(&page, path)?;
        }
        if is_interrupted {
            return Ok(ExitStatus::Incomplete);
        }
        Ok(match diagnosis.health() {
            Health::Fit => ExitStatus::Done,
            Health::Unfit => ExitStatus::Unfit,
            Health::Undecided => ExitStatus::Undecided,
        })
    }

    /// The results of trials in virtual time; `None` if Ctrl-C has ended it.
    fn trials(&self, diagnosis: &Diagnosis) -> Result<Option<Vec<Tried>>> {
        // `--only` and `--skip` may have left this check out.
        let machine = Machine::new(&self.root);
        let asked = examine(&machine, &|check| check.id == "preempt-rt");
        let is_rt = asked
            .0
            .iter()
            .any(|one| matches!(one.verdict, Verdict::Fine(_)));
        self.trials.run(diagnosis, is_rt)
    }

    /// Refuses misspelt names of checks, which would otherwise seem to have been run.
    fn check(&self) -> Result<()> {
        let known: Vec<&str> = ALL.into_iter().flatten().map(|check| check.id).collect();
        for name in self.only.iter().chain(&self.skip) {
            if !known.contains(&name.as_str()) {
                return Err(punctual_runner::Error::unknown("check", name, &known).into());
            }
        }
        if !self.root.join("proc").is_dir() {
            let root = self.root.display();
            let expected = format!("--root {root}: expected a directory with proc, found none");
            return Err(UsageError(expected).into());
        }
        Ok(())
    }
}
