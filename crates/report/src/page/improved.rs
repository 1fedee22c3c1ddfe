// SPDX-License-Identifier: MIT OR Apache-2.0
//! The worst cases of all tests for two kernels, and the average improvement.

use maud::{Markup, html};
use punctual_published::{Check, Document};

use crate::matrix::Matrix;
use crate::published::directions::{Improvement, improvements};
use crate::published::improvement::{Test, average};

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
                "may get worse by any amount: a single bad test pulls the average far down."
            }
        }
        @for one in &improved { (improvement(one)) }
    }
}

fn improvement(one: &Improvement) -> Markup {
    let percent = |test: &Test| test.percent().map(|percent| format!("{percent:+.1} %"));
    let missing = one
        .tests
        .iter()
        .filter(|test| test.percent().is_none())
        .count();
    let cell = |value: &Result<punctual_model::Nanos, String>| match value {
        Ok(value) => html! { td { (value) } },
        Err(why) => html! { td.gap { (why) } },
    };
    html! {
        div.wide { table.kept {
            thead { tr {
                th { "test" } th scope="col" { (one.older) } th scope="col" { (one.newer) }
                th scope="col" { "improvement" }
            } }
            tbody {
                @for test in &one.tests { tr {
                    th scope="row" { (test.name) } (cell(&test.older)) (cell(&test.newer))
                    @match percent(test) {
                        Some(percent) => { td { (percent) } }
                        None => { td.gap { "not known" } }
                    }
                } }
                tr.strong {
                    th scope="row" { "average" } td {} td {}
                    @match average(&one.tests) {
                        Some((average, count)) => {
                            td { (format!("{average:+.1} %")) " over " (count) " tests" }
                        }
                        None => { td.gap { "not known" } }
                    }
                }
            }
        } }
        @if missing > 0 { p.soft { "Left out of the average, because one of the two lacks it: " (missing) "." } }
    }
}
