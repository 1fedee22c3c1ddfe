// SPDX-License-Identifier: MIT OR Apache-2.0
//! The subjects that a claim speaks of.

use punctual_model::Preemption;
use punctual_published::{Role, release_numbers};

use crate::matrix::{Column, Matrix};

/// The running kernel's account of itself.
struct Kernel<'a> {
    column: &'a Column<'a>,
    preemption: &'a Preemption,
    release: Vec<u64>,
}

/// The subjects of a role, in the order of the columns.
pub fn subjects<'a>(matrix: &'a Matrix<'a>, role: Role) -> Vec<&'a Column<'a>> {
    if role == Role::Every {
        return matrix.columns.iter().collect();
    }
    let known: Vec<Kernel<'_>> = matrix.columns.iter().filter_map(kernel).collect();
    let is_rt = |kernel: &&Kernel<'a>| *kernel.preemption == Preemption::Rt;
    let (rt, stock): (Vec<_>, Vec<_>) = known.iter().partition(is_rt);
    let chosen = match role {
        Role::Every | Role::Rt => rt,
        Role::Stock => stock,
        Role::None => with(&known, &Preemption::None),
        Role::Voluntary => with(&known, &Preemption::Voluntary),
        Role::Full => with(&known, &Preemption::Full),
        Role::NewerRt => end(&rt, true),
        Role::OlderRt => end(&rt, false),
        Role::NewerStock => end(&paired(&stock), true),
        Role::OlderStock => end(&paired(&stock), false),
    };
    chosen.into_iter().map(|kernel| kernel.column).collect()
}

fn kernel<'a>(column: &'a Column<'a>) -> Option<Kernel<'a>> {
    let provenance = column.runs.iter().find_map(|run| run.provenance.as_ref())?;
    Some(Kernel {
        column,
        preemption: &provenance.preemption,
        release: release_numbers(&provenance.release),
    })
}

/// Those with a preemption model.
fn with<'a, 'b>(kernels: &'a [Kernel<'b>], model: &Preemption) -> Vec<&'a Kernel<'b>> {
    let all = kernels.iter();
    all.filter(|kernel| kernel.preemption == model).collect()
}

/// Those with the highest or the lowest release; empty if all have the same.
fn end<'a, 'b>(kernels: &[&'a Kernel<'b>], newest: bool) -> Vec<&'a Kernel<'b>> {
    let releases = || kernels.iter().map(|kernel| &kernel.release);
    let (Some(low), Some(high)) = (releases().min(), releases().max()) else {
        return Vec::new();
    };
    if low == high {
        return Vec::new();
    }
    let wanted = if newest { high } else { low };
    let chosen = kernels.iter().filter(|kernel| kernel.release == *wanted);
    chosen.copied().collect()
}

/// Kernels of the first preemption model that there is in more than one release.
fn paired<'a, 'b>(kernels: &[&'a Kernel<'b>]) -> Vec<&'a Kernel<'b>> {
    let alike = |one: &Kernel<'_>| -> Vec<&'a Kernel<'b>> {
        let same = kernels
            .iter()
            .filter(|other| other.preemption == one.preemption);
        same.copied().collect()
    };
    let groups = kernels.iter().map(|one| alike(one));
    let mut groups = groups.filter(|group| !end(group, true).is_empty());
    groups.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use punctual_model::Run;

    use super::*;
    use crate::fixtures;

    fn run(name: &str, preemption: &str, release: &str) -> Run {
        let mut run = fixtures::run(name, 1);
        run.subject.kernel = release.into();
        let provenance = run.provenance.as_mut().unwrap();
        (provenance.preemption, provenance.release) =
            (fixtures::preemption(preemption), release.into());
        run
    }

    #[test]
    fn roles_follow_what_the_kernels_say_not_their_names() {
        let runs = [
            run("a", "rt", "6.12.117+deb12-rt-amd64"),
            run("rt", "none", "6.12.117+deb12-amd64"),
            run("c", "full", "6.12.117+deb12-amd64"),
            run("d", "rt", "6.1.0-56-rt-amd64"),
            run("e", "full", "6.9.1-amd64"),
        ];
        let matrix = Matrix::new(&runs);
        let names = |role| {
            let subjects = subjects(&matrix, role).into_iter();
            subjects
                .map(|column| column.name.clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(Role::Rt), ["a", "d"]);
        assert_eq!(names(Role::Stock), ["rt", "c", "e"]);
        assert_eq!(
            (names(Role::NewerRt), names(Role::OlderRt)),
            (vec!["a".into()], vec!["d".into()])
        );
        assert_eq!(names(Role::NewerStock), ["c"]);
        assert_eq!(names(Role::OlderStock), ["e"]);
        assert_eq!(names(Role::None), ["rt"]);
        assert_eq!(names(Role::Full), ["c", "e"]);
        assert!(names(Role::Voluntary).is_empty());
        assert_eq!(names(Role::Every).len(), 5);
    }

    #[test]
    fn one_release_is_neither_newer_nor_older_and_the_silent_have_no_role() {
        let mut runs = fixtures::whole();
        let matrix = Matrix::new(&runs);
        assert!(subjects(&matrix, Role::NewerRt).is_empty());
        assert!(subjects(&matrix, Role::OlderStock).is_empty());
        runs[3].provenance = None;
        assert!(subjects(&Matrix::new(&runs), Role::Rt).is_empty());
    }
}
