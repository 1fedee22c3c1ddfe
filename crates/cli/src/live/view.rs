// SPDX-License-Identifier: MIT OR Apache-2.0
//! Draws the state: fully from 80 columns and 24 lines on, and as well as possible on less.

use indicatif::HumanCount;
use punctual_model::{Nanos, WorkerProgress};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Gauge, Paragraph, Row, Sparkline, Table};

use super::state::{RunState, Seen, State, Worker};

const SOFT: Style = Style::new().fg(Color::DarkGray);
const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);

/// Draws everything.
pub fn draw(state: &State, frame: &mut Frame) {
    let area = frame.area();
    let Some(run) = state.shown() else {
        frame.render_widget(idle(state, area.height), area);
        return;
    };
    // Half of the height, at most, is the table's: its frame, its head, and a line for all.
    let rows = (run.threads.len() as u16 + 3).min(area.height.saturating_sub(4) / 2);
    let work = load(run, area.height);
    let parts = Layout::vertical([
        Constraint::Length(3),
        Constraint::Length(rows),
        Constraint::Length(work.len() as u16),
        Constraint::Fill(3),
        Constraint::Fill(2),
        Constraint::Length(1),
    ]);
    let [head, table, loads, histogram, series, keys] = parts.areas(area);
    let seen = run.seen(state.thread);
    frame.render_widget(gauge(state, run), head);
    frame.render_widget(threads(state, run, usize::from(rows)), table);
    frame.render_widget(Paragraph::new(work), loads);
    draw_histogram(&seen, frame, histogram);
    draw_series(&seen, frame, series);
    frame.render_widget(keys_line(state), keys);
}

/// What is shown while no run is under way: the newest messages.
fn idle(state: &State, height: u16) -> Paragraph<'_> {
    let room = usize::from(height.saturating_sub(2));
    let from = state.messages.len().saturating_sub(room);
    let mut lines = vec![Line::from("punctual: no run is under way").style(STRONG)];
    let messages = state.messages[from..].iter();
    lines.extend(messages.map(|said| Line::from(said.as_str())));
    lines.push(keys_line(state));
    Paragraph::new(lines)
}

/// The current activity of the run, and the progress of its step.
fn gauge<'a>(state: &State, run: &'a RunState) -> Gauge<'a> {
    let which = match state.runs.len() {
        1 => String::new(),
        all => format!(" ({} of {all} runs)", state.run + 1),
    };
    let title = Line::from(vec![
        Span::styled(format!(" {} {}", run.id, run.name), STRONG),
        Span::raw(format!("{which}  {} ", run.doing)),
    ]);
    let progress = &run.progress;
    let of = progress.of.filter(|of| *of > 0);
    let share = of.map_or(0.0, |of| progress.count as f64 / of as f64);
    let of = of.map_or(String::new(), |of| format!(" of {}", HumanCount(of)));
    let at = run.begun.elapsed().as_secs();
    let label = format!("{}{of} samples, {at} s", HumanCount(progress.count));
    Gauge::default()
        .block(Block::new().borders(Borders::ALL).title(title))
        .gauge_style(Style::new().fg(Color::Blue))
        .ratio(share.clamp(0.0, 1.0))
        .label(label)
}

/// A line for each worker of the load, as many as fit, and one for the rest.
fn load(run: &RunState, height: u16) -> Vec<Line<'static>> {
    let room = usize::from(height / 8).max(1);
    let mut workers: Vec<_> = run.workers().collect();
    let rest = workers.split_off(workers.len().min(room));
    let line = |(worker, done): (&Worker, &WorkerProgress)| {
        let rounds = HumanCount(done.rounds);
        let (amount, unit) = (HumanCount(done.amount), &worker.unit);
        Line::from(vec![
            Span::raw(format!("  load: {rounds} rounds, {amount} {unit}: ")),
            Span::styled(worker.command.clone(), SOFT),
        ])
    };
    let mut lines: Vec<_> = workers.into_iter().map(line).collect();
    if !rest.is_empty() {
        let rounds: u64 = rest.iter().map(|(_, done)| done.rounds).sum();
        let (more, rounds) = (HumanCount(rest.len() as u64), HumanCount(rounds));
        lines.push(Line::from(format!("  load: {more} more: {rounds} rounds")));
    }
    lines
}

/// A line for all threads, and one for each.
fn threads<'a>(state: &State, run: &'a RunState, height: usize) -> Table<'a> {
    let head = ["", "SAMPLES", "MIN", "MEAN", "WORST", "LAST", "MISSED"];
    let own = &run.progress.threads;
    let all = run.seen(None);
    let samples: u64 = own.iter().map(|thread| thread.count).sum();
    let sum: i128 = own
        .iter()
        .filter_map(|one| Some(i128::from(one.mean?.0) * i128::from(one.count)))
        .sum();
    let mean = (samples > 0).then(|| Nanos((sum / i128::from(samples.max(1))) as i64));
    let least = own.iter().filter_map(|one| one.least).min();
    let mean = mean.filter(|_| least.is_some());
    let (worst, missed) = (run.progress.worst, run.progress.missed);
    let mut rows = vec![row(
        "all".into(),
        samples,
        [least, mean, worst, all.last],
        missed,
    )];
    for ((one, seen), number) in own.iter().zip(&run.threads).zip(1..) {
        let name = match one.cpu {
            Some(cpu) => format!("cpu{cpu}"),
            None => format!("thread {number}"),
        };
        let figures = [one.least, one.mean, one.worst, seen.last];
        rows.push(row(name, one.count, figures, one.missed));
    }
    let chosen = state.thread.map_or(0, |thread| thread + 1);
    // The chosen one is seen, however many there are.
    let room = height.saturating_sub(3).max(1);
    let first = (chosen + 1).saturating_sub(room);
    let styled = rows.into_iter().enumerate().map(|(number, row)| {
        if number == chosen {
            row.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            row
        }
    });
    let mut widths = vec![Constraint::Fill(1), Constraint::Length(14)];
    widths.extend([Constraint::Length(9); 4]);
    // Up to 999,999,999 missed periods.
    widths.push(Constraint::Length(11));
    Table::new(styled.skip(first), widths)
        .header(Row::new(head.map(right)).style(SOFT))
        .block(Block::new().borders(Borders::LEFT | Borders::RIGHT | Borders::BOTTOM))
}

fn right<'a>(text: impl Into<String>) -> Cell<'a> {
    Cell::new(Line::from(text.into()).right_aligned())
}

fn row<'a>(name: String, samples: u64, figures: [Option<Nanos>; 4], missed: u64) -> Row<'a> {
    let figures = figures.map(|figure| right(figure.map_or("–".into(), |it| it.to_string())));
    let mut cells = vec![Cell::new(name), right(HumanCount(samples).to_string())];
    cells.extend(figures);
    let missed = right(HumanCount(missed).to_string()).style(if missed > 0 {
        Style::new().fg(Color::Red)
    } else {
        Style::new()
    });
    cells.push(missed);
    Row::new(cells)
}

/// Draws the distribution of the samples: heights are logarithmic, so that a single one is visible.
fn draw_histogram(seen: &Seen, frame: &mut Frame, area: Rect) {
    let bins = seen.histogram();
    let (first, last) = (bins.first(), bins.last());
    let title = match first.zip(last) {
        Some((first, last)) => format!(
            " {} to {}: {} samples seen, heights are logarithms ",
            first.0,
            last.0,
            HumanCount(seen.samples)
        ),
        None => " no sample yet ".into(),
    };
    let block = Block::new().borders(Borders::BOTTOM | Borders::LEFT | Borders::RIGHT);
    let block = block.title_bottom(title);
    let width = usize::from(block.inner(area).width);
    let height = |count: u64| ((count as f64).ln_1p() * 1_000.0) as u64;
    let data = stretched(
        &bins.iter().map(|bin| height(bin.1)).collect::<Vec<_>>(),
        width,
    );
    let bars = Sparkline::default().block(block).data(data);
    frame.render_widget(bars.style(Style::new().fg(Color::Cyan)), area);
}

/// As many values as there are columns: each several times, or the largest of several.
fn stretched(values: &[u64], columns: usize) -> Vec<u64> {
    if values.is_empty() {
        return Vec::new();
    }
    let times = (columns / values.len()).max(1);
    let apiece = values.len().div_ceil(columns.max(1));
    values
        .chunks(apiece)
        .flat_map(|some| std::iter::repeat_n(some.iter().copied().max().unwrap_or(0), times))
        .collect()
}

/// Draws the largest sample of each look.
fn draw_series(seen: &Seen, frame: &mut Frame, area: Rect) {
    let block = Block::new().borders(Borders::ALL);
    let width = usize::from(block.inner(area).width);
    let from = seen.series.len().saturating_sub(width);
    let shown = seen.series.range(from..);
    let data: Vec<u64> = shown
        .map(|sample| sample.map_or(0, |sample| sample.0.max(0) as u64))
        .collect();
    let largest = data.iter().copied().max().unwrap_or(0);
    let worst = seen.worst_at.map_or(String::new(), |at| {
        format!("; the worst came at {:.1} s", at.as_secs_f64())
    });
    let title = format!(
        " largest sample of each look, up to {}{worst} ",
        Nanos(largest as i64)
    );
    let bars = Sparkline::default().block(block.title(title)).data(data);
    frame.render_widget(bars.style(Style::new().fg(Color::Yellow)), area);
}

fn keys_line(state: &State) -> Line<'static> {
    if state.is_stopping {
        let text = "The run ends after this sample, and its samples are kept. q again: at once.";
        return Line::from(text).style(STRONG);
    }
    let marks = match state.shown().map_or(0, |run| run.marks.len()) {
        0 => String::new(),
        marks => format!(" ({marks})"),
    };
    Line::from(format!(
        " q stop   m mark{marks}   up, down: CPU   left, right: run"
    ))
    .style(SOFT)
}

#[cfg(test)]
mod tests {
    use punctual_bench::system::Event;
    use punctual_model::{Progress, ThreadProgress};
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::super::state::tests::{begun, started};
    use super::*;

    /// The picture on a terminal of 80 columns and 24 lines.
    fn picture(state: &State) -> String {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(state, frame)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_large_number_of_missed_periods_is_shown_to_its_first_digit() {
        let mut state = begun(&["r1"]);
        state.take("r1", &started());
        let thread = ThreadProgress {
            missed: 123_456_789,
            ..ThreadProgress::default()
        };
        let progress = Progress {
            missed: 123_456_789,
            threads: vec![thread],
            ..Progress::default()
        };
        state.take("r1", &Event::Progress(progress));
        let picture = picture(&state);
        assert_eq!(picture.matches(" 123,456,789│").count(), 2, "{picture}");
    }

    #[test]
    fn between_two_runs_the_newest_message_and_the_keys_are_shown() {
        let mut state = State::default();
        let said = (0..40).map(|number| format!("message {number}"));
        state.messages.extend(said);
        let picture = picture(&state);
        for shown in ["no run is under way", "message 39", "q stop"] {
            assert!(picture.contains(shown), "{picture}");
        }
    }

    #[test]
    fn a_histogram_fills_its_columns_and_keeps_its_largest() {
        assert_eq!(stretched(&[1, 2], 5), [1, 1, 2, 2]);
        assert_eq!(stretched(&[1, 9, 3, 4], 2), [9, 4]);
        assert_eq!(stretched(&[7], 0), [7]);
        assert!(stretched(&[], 4).is_empty());
    }
}
