//! Which step of its plan a recording came from.

use std::collections::HashSet;

use punctual_model::{Plan, Run};

use crate::error::ScopeError;

/// The step of the plan that each recording of a run came from.
pub fn steps(run: &Run) -> Result<Vec<u32>, ScopeError> {
    let plan = plan(run)?;
    let mut steps = Vec::new();
    let mut step: Option<usize> = None;
    let mut variants: HashSet<&str> = HashSet::new();
    for recording in &run.recordings {
        let fits = |step: usize| {
            plan.steps
                .get(step)
                .is_some_and(|s| s.probe == recording.probe && s.load == recording.load)
        };
        let again = !variants.insert(recording.plain_variant());
        let stays = step.is_some_and(|step| fits(step) && !again);
        if !stays {
            variants.clear();
            variants.insert(recording.plain_variant());
            let from = step.map_or(0, |step| step + 1);
            step = (from..plan.steps.len()).find(|step| fits(*step));
        }
        let found = step.ok_or_else(|| {
            let what = format!("{} is not in its plan", recording.title());
            ScopeError::Unreadable(run.id.clone(), what)
        })?;
        steps.push(found as u32);
    }
    Ok(steps)
}

/// Whether that is certain: of several steps that are alike each has a recording, or none.
pub fn is_certain(run: &Run, recording: usize) -> Result<bool, ScopeError> {
    let recording = &run.recordings[recording];
    let is = |probe: &str, load: &str| probe == recording.probe && load == recording.load;
    let absent = run
        .unsupported
        .iter()
        .any(|absent| is(&absent.probe, &absent.load));
    let plan = plan(run)?;
    let alike = plan.steps.iter().filter(|step| is(&step.probe, &step.load));
    Ok(!absent || alike.count() == 1)
}

fn plan(run: &Run) -> Result<Plan, ScopeError> {
    Plan::parse(&run.plan).map_err(|error| ScopeError::Unreadable(run.id.clone(), error))
}
