// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst cases of all tests for two kernels, and the average improvement.

use maud::{Markup, html};
use punctual_published::{Check, Document};

use crate::matrix::Matrix;
use crate::published::improvement::{Improvement, average, improvements};
use crate::published::judged::{percents, spread};

/// Every claim of an improvement, test by test.
pub fn summary(matrix: &Matrix<'_>, document: &Document) -> Markup {
    let improved = document
        .directions
        .iter()
        .filter_map(|direction| match &direction.check {
            Check::Improved(improved) => Some(improvements(matrix, improved)),
            _ => None,
        });
    let improved: Vec<Improvement> = improved.flatten().collect();
    html! {
        @if !improved.is_empty() {
            h3 { "Worst cases of all tests, and the average improvement" }
            p {
                "For each test stands the worst case of two kernels. The improvement is the part "
                "of the first kernel's worst case by which the second one's is shorter; below zero "
                "it is longer. The average is the mean of these percentages, each test counting "
                "alike, as the paper computes it. No test can improve by more than 100 %, but one "
                "may get worse by any amount: a single bad test pulls the average far down. Several "
                "seeds are compared seed by seed, and in real time runs one by one: the middle of "
                "them, the smallest and the largest."
            }
        }
        @for one in &improved { (improvement(one)) }
    }
}

fn improvement(one: &Improvement) -> Markup {
    let values = |all: &[(u64, f64)]| -> Vec<f64> { all.iter().map(|(_, value)| *value).collect() };
    let cell = |worst: &Result<Vec<(u64, f64)>, String>| match worst {
        Ok(worst) => html! { td { (spread(&values(worst), false)) } },
        Err(why) => html! { td.gap { (why) } },
    };
    let percents = |all: &[f64]| match all {
        [] => html! { td.gap { "not known" } },
        all => html! { td { (percents(all, one.unit)) } },
    };
    let (averages, count) = average(&one.tests);
    let missing = one.tests.len() - count;
    html! {
        div.wide { table.kept {
            thead { tr {
                th { "test" } th scope="col" { (one.older) } th scope="col" { (one.newer) }
                th scope="col" { "improvement" }
            } }
            tbody {
                @for test in &one.tests { tr {
                    th scope="row" { (test.name) } (cell(&test.older)) (cell(&test.newer))
                    (percents(&values(&test.percents())))
                } }
                tr.strong {
                    th scope="row" { "average over " (count) " tests" } td {} td {}
                    (percents(&averages))
                }
            }
        } }
        @if missing > 0 { p.soft { "Left out of the average, because one of the two lacks it: " (missing) "." } }
    }
}
