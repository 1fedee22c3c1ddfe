// SPDX-License-Identifier: MIT OR Apache-2.0
//! The findings of `osnoise` and `hwlat`: time that was taken from a thread that never sleeps.

use punctual_formats::ftrace;
use punctual_model::Nanos;
use punctual_model::capture::{Happened, NoiseKind, TraceEvent};

use super::{Kind, Page, Piece, Told, way};

impl Page<'_> {
    /// Explains `hwlat`: `#3 inner/outer(us): 16/12 ts:… nmi-total:4 nmi-count:1`.
    pub(super) fn of_hardware(&self) -> Option<Told> {
        let events = self.trace.events.iter().zip(&self.trace.cpus);
        let gaps = events.filter_map(|(event, cpu)| Some((*cpu, gap(event)?)));
        let (cpu, (length, nmis)) = gaps.max_by_key(|(_, (length, _))| *length)?;
        let piece = Piece::new(Kind::Hardware, Nanos::ZERO, length);
        let of_nmis = (nmis > Nanos::ZERO).then(|| {
            format!(
                "beside all of its gaps of that second NMIs took {nmis}: they may be a part of it"
            )
        });
        Some(Told {
            source: "hwlat".into(),
            whose: Some("the detector".into()),
            cpu: Some(cpu),
            whole: Some(length),
            pieces: vec![piece],
            notes: of_nmis
                .into_iter()
                .chain([
                    "the detector has interrupts off: the kernel itself cannot have taken \
                     this time; what did (SMI, hypervisor, bus) is not in it"
                        .into(),
                ])
                .collect(),
            ..self.base()
        })
    }

    /// Explains `osnoise`: the noise at which it was stopped, or the longest.
    pub(super) fn of_osnoise(&self) -> Option<Told> {
        let events = || self.trace.events.iter().zip(&self.trace.cpus);
        let gaps = events().filter_map(|(event, cpu)| Some((event, *cpu, threshold(event)?)));
        if let Some((event, cpu, gap)) = gaps.max_by_key(|(_, _, gap)| gap.length) {
            return Some(self.of_gap(event, cpu, gap));
        }
        let is_noise = |event: &TraceEvent| match &event.what {
            Happened::Noise { ran, .. } => Some(*ran),
            _ => None,
        };
        let noises = events().filter_map(|(event, cpu)| Some((event, *cpu, is_noise(event)?)));
        let longest = noises.max_by_key(|(_, _, ran)| *ran);
        if let Some((event, cpu, ran)) = longest {
            return Some(Told {
                whose: Some("what was interrupted".into()),
                cpu: Some(cpu),
                whole: Some(ran),
                pieces: piece(event, event.at - ran).into_iter().collect(),
                notes: vec!["told is the longest noise in it; no sample is marked".into()],
                ..self.base()
            });
        }
        self.of_summary()
    }

    /// Explains one noise of the measuring thread, by the events within it.
    fn of_gap(&self, event: &TraceEvent, cpu: u32, gap: Gap) -> Told {
        let (from, slack) = match (gap.start, self.ahead_of_noises()) {
            (Some(start), Some(ahead)) => (start + ahead, Nanos::ZERO),
            // It is noted a little after its end.
            _ => (event.at - gap.length, Nanos::from_micros(2)),
        };
        let mut pieces: Vec<Piece> = Vec::new();
        let own = format!(":{}", event.task.pid);
        for other in self.of_cpu(cpu) {
            let Happened::Noise {
                kind, start, name, ..
            } = &other.what
            else {
                continue;
            };
            let is_within = *start + slack >= from && other.at <= event.at;
            let is_own = *kind == NoiseKind::Thread && name.ends_with(&own);
            if is_within && !is_own {
                pieces.extend(piece(other, from));
            }
        }
        pieces.sort_by_key(|piece| piece.from);
        let known = pieces
            .iter()
            .fold(Nanos::ZERO, |sum, piece| sum + piece.length);
        let rest = gap.length - known;
        if rest > Nanos::ZERO {
            let kind = match gap.interferences {
                // The tracer would have noted whatever the kernel did.
                0 => Kind::Hardware,
                // The text lacks some of it.
                count if (pieces.len() as u64) < count => Kind::Unknown,
                _ => way(rest),
            };
            pieces.push(Piece::new(kind, known, rest));
        }
        Told {
            whose: Some(format!("{}-{}", event.task.comm, event.task.pid)),
            cpu: Some(cpu),
            whole: Some(gap.length),
            end: Some(event.at),
            pieces,
            ..self.base()
        }
    }

    /// Returns by how much the trace's clock is ahead of the one by which `osnoise` says when
    /// something began, as it was added to the starts of its noises; `None` if no interrupt tells.
    fn ahead_of_noises(&self) -> Option<Nanos> {
        let of_line = |line: &str| {
            let event = ftrace::read(line).events.into_iter().next()?;
            match event.what {
                // By itself an interrupt begins so that it ends when it is noted.
                Happened::Noise {
                    kind: NoiseKind::Irq,
                    start,
                    ..
                } => Some(start - start_in(line)?),
                _ => None,
            }
        };
        let lines = self.text.lines().filter(|line| line.contains("irq_noise"));
        lines.filter_map(of_line).min()
    }

    /// Explains the table of `osnoise`: runtime, noise, share, longest, then the count of each
    /// kind.
    fn of_summary(&self) -> Option<Told> {
        let events = self.trace.events.iter().zip(&self.trace.cpus);
        let rows = events.filter_map(|(event, cpu)| Some((*cpu, row(event)?)));
        let (cpu, row) = rows.max_by_key(|(_, row)| row.longest)?;
        let kinds = [
            (Kind::Hardware, row.counts[0]),
            (Kind::Hardware, row.counts[1]),
            (Kind::Interrupt, row.counts[2]),
            (Kind::SoftInterrupt, row.counts[3]),
            (Kind::Thread, row.counts[4]),
        ];
        let there: Vec<Kind> = kinds
            .iter()
            .filter(|one| one.1 > 0)
            .map(|one| one.0)
            .collect();
        let pieces = match there[..] {
            [kind] => vec![Piece::new(kind, Nanos::ZERO, row.longest)],
            _ => Vec::new(),
        };
        let counted = [
            "hardware",
            "NMIs",
            "interrupts",
            "soft interrupts",
            "threads",
        ];
        let counted = counted.iter().zip(row.counts);
        let counted: Vec<String> = counted
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        Some(Told {
            whose: Some("the measuring thread".into()),
            cpu: Some(cpu),
            whole: Some(row.longest),
            undecided: pieces.is_empty().then(|| {
                "the table counts what came, and does not say which of it was the longest".into()
            }),
            pieces,
            notes: vec![format!(
                "in the period of its longest noise: {}",
                counted.join(", ")
            )],
            ..self.base()
        })
    }
}

/// Returns one event of `osnoise` as a part.
fn piece(event: &TraceEvent, begin: Nanos) -> Option<Piece> {
    let Happened::Noise {
        kind,
        name,
        start,
        ran,
    } = &event.what
    else {
        return None;
    };
    let from = (*start - begin).max(Nanos::ZERO);
    let (kind, is_thread) = match kind {
        NoiseKind::Nmi => (Kind::Hardware, false),
        NoiseKind::Irq => (Kind::Interrupt, false),
        NoiseKind::Softirq => (Kind::SoftInterrupt, false),
        // The measuring thread of osnoise is an ordinary one unless it was asked otherwise.
        NoiseKind::Thread => (Kind::Thread, true),
    };
    let mut piece = Piece::new(kind, from, *ran);
    let nmi = (kind == Kind::Hardware).then(|| "NMI".to_owned());
    if is_thread {
        piece.thread = Some(name.clone());
    } else {
        piece.what = nmi.or_else(|| Some(name.clone()));
    }
    Some(piece)
}

#[derive(Clone, Copy)]
struct Gap {
    /// Its start, by the clock of the noises' own text.
    start: Option<Nanos>,
    length: Nanos,
    interferences: u64,
}

/// Reads `sample_threshold: start 5789.858404555 duration 8812 ns interferences 2`. The first
/// kernels wrote microseconds.
fn threshold(event: &TraceEvent) -> Option<Gap> {
    let Happened::Other { name, detail } = &event.what else {
        return None;
    };
    if name != "sample_threshold" {
        return None;
    }
    let mut words = detail
        .split_whitespace()
        .skip_while(|word| *word != "duration");
    let duration: i64 = words.nth(1)?.parse().ok()?;
    let unit = if words.next()? == "us" { 1_000 } else { 1 };
    Some(Gap {
        start: start_in(detail),
        length: Nanos(duration.checked_mul(unit)?),
        interferences: words.nth(1)?.parse().ok()?,
    })
}

/// Reads the moment behind `start` in an event of `osnoise`, in seconds with nine decimals.
fn start_in(text: &str) -> Option<Nanos> {
    let (_, rest) = text.rsplit_once("start ")?;
    let (seconds, decimals) = rest.split(' ').next()?.split_once('.')?;
    let (seconds, part): (i64, i64) = (seconds.parse().ok()?, decimals.parse().ok()?);
    let nanos = seconds.checked_mul(1_000_000_000)?.checked_add(part)?;
    (decimals.len() == 9).then_some(Nanos(nanos))
}

/// Reads a gap of `hwlat`, and the time that NMIs took in it.
fn gap(event: &TraceEvent) -> Option<(Nanos, Nanos)> {
    let Happened::Other { name, detail } = &event.what else {
        return None;
    };
    let text = format!("{name}: {detail}");
    let (_, rest) = text.split_once("inner/outer(us):")?;
    let mut words = rest.split_whitespace();
    let (inner, outer) = words.next()?.split_once('/')?;
    let micros: i64 = inner.parse::<i64>().ok()?.max(outer.parse().ok()?);
    let nmis = words.find_map(|word| word.strip_prefix("nmi-total:")?.parse().ok());
    Some((
        Nanos(micros.checked_mul(1_000)?),
        Nanos(nmis.unwrap_or(0_i64).checked_mul(1_000)?),
    ))
}

struct Row {
    longest: Nanos,
    counts: [u64; 5],
}

/// Reads `1000000  190  99.98100  9  18  0  1007  18  1`.
fn row(event: &TraceEvent) -> Option<Row> {
    let Happened::Other { name, .. } = &event.what else {
        return None;
    };
    let words: Vec<&str> = name.split_whitespace().collect();
    let [_, _, share, longest, counts @ ..] = &words[..] else {
        return None;
    };
    share.split_once('.')?.0.parse::<u64>().ok()?;
    let counts: Option<Vec<u64>> = counts.iter().map(|word| word.parse().ok()).collect();
    Some(Row {
        longest: Nanos(longest.parse::<i64>().ok()?.checked_mul(1_000)?),
        counts: counts?.try_into().ok()?,
    })
}
