//! The parts, without gaps.

use std::collections::HashMap;

use punctual_model::Nanos;

use super::teller::{Teller, end_of};
use super::{Hold, MOST, Part, Stage};
use crate::names::Kind;
use crate::walk::{Number, Task};

/// A part on its way.
pub(super) struct Piece {
    pub(super) stage: Stage,
    pub(super) hold: Hold,
    pub(super) site: Option<Number>,
    pub(super) task: Task,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    /// Its spans.
    pub(super) spans: std::ops::Range<usize>,
}

impl Teller<'_> {
    pub(super) fn parts(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let watched = self.walk.spans.first().map_or(self.end, |span| span.from);
        if self.slept || watched > self.begin {
            let first = self.at(self.begin.max(watched));
            pieces.push(Piece {
                stage: Stage::Interrupt,
                hold: if self.slept { Hold::Idle } else { Hold::Unseen },
                site: None,
                task: 0,
                from: Nanos::ZERO,
                to: first,
                spans: self.spans.start..self.spans.start,
            });
        }
        for number in self.spans.clone() {
            let span = &self.walk.spans[number];
            let from = span.from.max(self.begin);
            let (stage, (hold, site)) = (self.stage(from), self.hold(span, self.stage(from)));
            let to = self.at(end_of(span).min(self.end));
            match pieces.last_mut() {
                Some(last)
                    if (last.stage, last.hold, last.site) == (stage, hold, site)
                        && (last.task == span.task || hold != Hold::OtherThread)
                        && !last.spans.is_empty() =>
                {
                    last.to = to;
                    last.spans.end = number + 1;
                }
                _ => {
                    let from = pieces.last().map_or(Nanos::ZERO, |last| last.to);
                    pieces.push(Piece {
                        stage,
                        hold,
                        site,
                        task: span.task,
                        from,
                        to,
                        spans: number..number + 1,
                    });
                }
            }
        }
        pieces.retain(|piece| piece.to > piece.from);
        pieces
    }

    /// Where the kernel is not preempted at all, but was not preemptible for a reason of its
    /// own most of the time, that is the reason.
    pub(super) fn mend(&self, pieces: &mut [Piece]) {
        for piece in pieces.iter_mut() {
            if piece.hold != Hold::NotPreemptible {
                continue;
            }
            let mut sites: HashMap<Number, u64> = HashMap::new();
            for span in &self.walk.spans[piece.spans.clone()] {
                if let Some(site) = span.preempt_off {
                    *sites.entry(site).or_default() += u64::from(span.length);
                }
            }
            let longest = sites
                .into_iter()
                .max_by_key(|(site, length)| (*length, *site));
            if let Some((site, length)) = longest {
                let whole = (piece.to - piece.from).0 as f64;
                if self.about.scale.time(length).0 as f64 >= MOST * whole {
                    (piece.hold, piece.site) = (self.preempt_hold(site), Some(site));
                }
            }
        }
    }

    pub(super) fn part(&self, piece: &Piece) -> Part {
        let (main, within) = self.main(piece);
        Part {
            stage: piece.stage,
            hold: piece.hold,
            from: piece.from,
            length: piece.to - piece.from,
            by: piece.site.map(|site| self.site(site)),
            thread: self.thread(piece.task).to_owned(),
            main,
            within,
        }
    }

    /// The function that did it itself, or had it done by a lock or the like.
    fn site(&self, site: Number) -> String {
        let helper = |number: &Number| !matches!(self.kind(*number), Kind::Lock | Kind::Switch);
        let own = self.walk.chain(site).find(helper).unwrap_or(site);
        if own == site {
            return self.text(site).to_owned();
        }
        format!("{} in {}", self.text(site), self.text(own))
    }
}
