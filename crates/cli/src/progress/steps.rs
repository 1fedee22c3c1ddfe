// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of a plan's steps while they run.

use punctual_model::Plan;
use punctual_model::plan::Step;

/// The probe and load of each step of a plan. If several steps have the same, the name also has
/// what tells them apart: `hackbench / idle (ipc=pipe)`.
pub fn names(plan: &Plan) -> Vec<String> {
    let name = |step: &Step| {
        let differing = differing(step, &plan.steps);
        let told = if differing.is_empty() {
            String::new()
        } else {
            format!(" ({})", differing.join(" "))
        };
        format!("{} / {}{told}", step.probe, step.load)
    };
    plan.steps.iter().map(name).collect()
}

/// The parameters in which a step differs from other steps of the same probe and load. Its number
/// of samples is shown anyway.
fn differing(step: &Step, all: &[Step]) -> Vec<String> {
    let alike = |other: &&Step| (&other.probe, &other.load) == (&step.probe, &step.load);
    let differs = |key: &str, value: &toml::Value| {
        let mut others = all.iter().filter(alike);
        key != "samples" && others.any(|other| other.params.get(key) != Some(value))
    };
    let params = step.params.iter();
    params
        .filter(|(key, value)| differs(key, value))
        .map(|(key, value)| {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            format!("{key}={value}")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_one_probe_are_told_apart_by_what_differs() {
        let step = |params: &str| format!("[[step]]\nprobe = \"hackbench\"\n{params}\n");
        let plan = [
            "seed = 1\n[[step]]\nprobe = \"timer\"\nsamples = 9\n".to_owned(),
            step("ipc = \"pipe\"\ngroups = 1\nsamples = 4"),
            step("ipc = \"socket\"\ngroups = 1\nsamples = 2"),
        ];
        let plan = toml::from_str(&plan.concat()).unwrap();
        let expected = [
            "timer / idle",
            "hackbench / idle (ipc=pipe)",
            "hackbench / idle (ipc=socket)",
        ];
        assert_eq!(names(&plan), expected);
    }
}
