// SPDX-License-Identifier: MIT OR Apache-2.0
//! Axes: the places of values, and the choice of named ones.

use punctual_model::units::Nanos;

use super::canvas::{Anchor, Canvas, Ink, TEXT, width};
use crate::text::thousands;

/// The most names of an axis, along which they have room.
const NAMES: usize = 8;

/// Values along one direction of a figure.
pub struct Axis {
    low: f64,
    high: f64,
    /// The places of the lowest and the highest value.
    ends: (i32, i32),
    logarithmic: bool,
}

impl Axis {
    /// Logarithmic, with a little room at both ends; values must be above zero.
    pub fn logarithmic(low: f64, high: f64, ends: (i32, i32)) -> Self {
        let (low, high) = (low.log10(), high.log10());
        let room = ((high - low) * 0.03).max(0.06);
        Self {
            logarithmic: true,
            ..Self::exactly(low - room, high + room, ends)
        }
    }

    /// Linear; values from 0 to `high`.
    pub fn from_zero(high: f64, ends: (i32, i32)) -> Self {
        let high = if high > 0.0 { high } else { 1.0 };
        Self::exactly(0.0, high, ends)
    }

    /// Linear, from `low` to `high`, with a little room at both ends.
    pub fn linear(low: f64, high: f64, ends: (i32, i32)) -> Self {
        let room = ((high - low) * 0.05).max(1.0);
        Self::exactly(low - room, high + room, ends)
    }

    fn exactly(low: f64, high: f64, ends: (i32, i32)) -> Self {
        Self {
            low,
            high,
            ends,
            logarithmic: false,
        }
    }

    /// Starts from zero; logarithmic if the values are far apart and all above zero.
    pub fn suiting(low: f64, high: f64, ends: (i32, i32)) -> Self {
        if low > 0.0 && high > low * 10.0 {
            Self::logarithmic(low, high, ends)
        } else {
            Self::from_zero(high * 1.05, ends)
        }
    }

    /// The place of a value.
    pub fn place(&self, value: f64) -> i32 {
        let value = if self.logarithmic {
            value.log10()
        } else {
            value
        };
        let share = (value - self.low) / (self.high - self.low);
        let (first, last) = (f64::from(self.ends.0), f64::from(self.ends.1));
        (first + share.clamp(0.0, 1.0) * (last - first)).round() as i32
    }

    /// Round values along the axis; so many on a logarithmic one, whose parts are not of one width.
    fn ticks_at_most(&self, most: usize) -> Vec<f64> {
        if self.logarithmic {
            self.logarithmic_ticks(most)
        } else {
            linear(self.low, self.high)
        }
    }

    /// Returns the finest of the usual subdivisions whose names have room.
    /// Linear ones serve if the axis is so short that it has none.
    fn logarithmic_ticks(&self, most: usize) -> Vec<f64> {
        let halves: Vec<f64> = (2..20).map(|half| f64::from(half) / 2.0).collect();
        let factors: [&[f64]; 5] = [
            &halves,
            &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0, 3.0],
            &[1.0],
        ];
        let ticks = factors.map(|factors| self.decades(factors));
        match ticks.iter().find(|ticks| ticks.len() <= most) {
            Some(ticks) if ticks.len() > 2 => ticks.clone(),
            None => ticks[4].iter().copied().step_by(2).collect(),
            Some(_) => linear(10_f64.powf(self.low), 10_f64.powf(self.high)),
        }
    }

    fn decades(&self, factors: &[f64]) -> Vec<f64> {
        let decades = (self.low.floor() as i32..=self.high.ceil() as i32).map(|n| 10_f64.powi(n));
        let all = decades.flat_map(|decade| factors.iter().map(move |factor| factor * decade));
        all.filter(|value| (self.low..=self.high).contains(&value.log10()))
            .collect()
    }
}

/// Round values from `low` to `high`.
fn linear(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let decade = 10_f64.powf(rough.log10().floor());
    let mut factors = [1.0, 2.0, 2.5, 5.0].into_iter();
    let factor = factors.find(|factor| factor * decade >= rough);
    let step = factor.unwrap_or(10.0) * decade;
    let first = (low / step).ceil();
    let ticks = (0..=10).map(|number| (first + f64::from(number)) * step);
    ticks
        .filter(|value| *value <= high + step * 0.0001)
        .collect()
}

/// The rectangle in which values are drawn.
pub struct Plot {
    /// From left to right.
    pub x: Axis,
    /// From bottom to top.
    pub y: Axis,
}

impl Plot {
    /// Returns the place of a pair of values.
    pub fn place(&self, x: f64, y: f64) -> (i32, i32) {
        (self.x.place(x), self.y.place(y))
    }

    /// Draws limits along x, from `top` down to the axis.
    /// Each has its value above it if that has room beside the one before.
    pub fn draw_limits(&self, canvas: &mut Canvas, bounds: &[Nanos], top: i32, with_values: bool) {
        let bottom = self.y.ends.0;
        let mut bounds = bounds.to_vec();
        bounds.sort();
        let mut free = i32::MIN;
        for bound in bounds {
            let Some(value) = drawable(bound) else {
                continue;
            };
            let x = self.x.place(value);
            canvas.line(&[(x, top), (x, bottom)], Ink::Limit, 2.0);
            if !with_values {
                continue;
            }
            let text = format!("limit {bound}");
            let (whole, half) = (width(&text), width(&text) / 2);
            let (least, most) = (self.x.ends.0.max(free), self.x.ends.1);
            let (anchor, right) = match x {
                x if x - half >= least && x + half <= most => (Anchor::Middle, x + half),
                x if x >= least && x + whole <= most => (Anchor::Start, x + whole),
                x if x - whole >= least => (Anchor::End, x),
                // The line under the figure names each.
                _ => continue,
            };
            canvas.write(&text, (x, top - 12), anchor);
            free = right + TEXT / 2;
        }
    }

    /// Draws faint lines at round values, and names to the left of those that have room.
    pub fn draw_y(&self, canvas: &mut Canvas, name: impl Fn(f64) -> String) {
        let (left, right) = self.x.ends;
        let (bottom, top) = self.y.ends;
        let room = (bottom - top) / (TEXT + 3);
        let mut free = i32::MAX;
        for value in self.y.ticks_at_most(NAMES.min(room as usize)) {
            let y = self.y.place(value);
            canvas.line(&[(left, y), (right, y)], Ink::Faint, 1.0);
            if y + TEXT / 2 <= free {
                canvas.write(&name(value), (left - 8, y), Anchor::End);
                free = y - TEXT / 2;
            }
        }
    }

    /// Draws the lower edge, faint lines at round values, and names below those that have room.
    pub fn draw_x(&self, canvas: &mut Canvas, name: impl Fn(f64) -> String) {
        let (left, right) = self.x.ends;
        let (bottom, top) = self.y.ends;
        let room = (right - left) / (width("500 µs") + TEXT / 2);
        let mut free = i32::MIN;
        for value in self.x.ticks_at_most(NAMES.min(room as usize)) {
            let x = self.x.place(value);
            canvas.line(&[(x, bottom), (x, top)], Ink::Faint, 1.0);
            canvas.line(&[(x, bottom), (x, bottom + 5)], Ink::Text, 1.0);
            let name = name(value);
            let half = width(&name) / 2;
            if x - half >= free {
                canvas.write(&name, (x, bottom + 6 + TEXT / 2), Anchor::Middle);
                free = x + half + TEXT / 2;
            }
        }
        canvas.line(&[(left, bottom), (right, bottom)], Ink::Text, 1.0);
    }

    /// Says below the x axis what it shows.
    pub fn title_x(&self, canvas: &mut Canvas, title: &str) {
        let (left, right) = self.x.ends;
        let at = ((left + right) / 2, self.y.ends.0 + 12 + 3 * TEXT / 2);
        canvas.write(title, at, Anchor::Middle);
    }
}

/// A round time, as axes name it: `30 µs`.
pub fn time_name(nanos: f64) -> String {
    let (value, unit) = match nanos.abs() {
        0.0 => return "0".to_owned(),
        n if n < 1e3 => (nanos, "ns"),
        n if n < 1e6 => (nanos / 1e3, "µs"),
        n if n < 1e9 => (nanos / 1e6, "ms"),
        _ => (nanos / 1e9, "s"),
    };
    format!("{} {unit}", number_name(value))
}

/// A round number, without the noise of binary fractions: `0.0005`; with a power of ten, `5e-7`,
/// where it would be long.
pub fn number_name(value: f64) -> String {
    let short = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    let plain = short(&format!("{value:.6}"));
    let is_short = value.abs() > 0.000_09 && plain.len() <= "0.0005".len();
    if value == 0.0 || value.abs() >= 0.001 || is_short {
        return plain;
    }
    let text = format!("{value:.2e}");
    let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e{power}", short(digits))
}

/// A share as axes name it: `0.1 %`.
pub fn share_name(share: f64) -> String {
    format!("{} %", number_name(share * 100.0))
}

/// A number of samples, as axes name it: `100,000`, `2.5 M`; below one there is none.
pub fn count_name(value: f64) -> String {
    match value {
        value if value < 1.0 => String::new(),
        value if value.round() >= 1e9 => format!("{} G", number_name(value / 1e9)),
        value if value.round() >= 1e6 => format!("{} M", number_name(value / 1e6)),
        value if value >= 1_000.0 => thousands(value.round() as u64),
        value => number_name(value),
    }
}

/// The least and the largest value; `None` where there is none.
pub fn extent(values: impl Iterator<Item = f64> + Clone) -> Option<(f64, f64)> {
    values.clone().reduce(f64::min).zip(values.reduce(f64::max))
}

/// A time that a logarithmic axis can show.
pub fn drawable(time: Nanos) -> Option<f64> {
    (time > Nanos::ZERO).then_some(time.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::canvas::LEFT;

    #[test]
    fn ticks_are_round_and_few() {
        let names = |axis: &Axis| {
            axis.ticks_at_most(NAMES)
                .into_iter()
                .map(time_name)
                .collect::<Vec<_>>()
        };
        let axis = Axis::logarithmic(2_300.0, 508_000.0, (0, 1_000));
        let expected = "2 µs, 5 µs, 10 µs, 20 µs, 50 µs, 100 µs, 200 µs, 500 µs";
        assert_eq!(names(&axis).join(", "), expected);
        let axis = Axis::logarithmic(2_300.0, 4_100.0, (0, 1_000));
        assert_eq!(names(&axis), ["2.5 µs", "3 µs", "3.5 µs", "4 µs", "4.5 µs"]);
        let axis = Axis::logarithmic(2_300.0, 2_301.0, (0, 1_000));
        assert!(axis.ticks_at_most(NAMES).len() >= 3);
        let axis = Axis::logarithmic(1e-9, 1e9, (0, 1_000));
        assert!((4..=12).contains(&axis.ticks_at_most(NAMES).len()));
        assert_eq!([0.0005, 12.0].map(number_name), ["0.0005", "12"]);
        let ticks = Axis::from_zero(1.99, (0, 1_000)).ticks_at_most(NAMES);
        let names: Vec<String> = ticks.into_iter().map(number_name).collect();
        assert_eq!(names, ["0", "0.5", "1", "1.5"]);
    }

    #[test]
    fn names_fit_on_the_left_whatever_the_number() {
        let counts = [999.0, 1e3, 250_000.0, 999_999.9, 1e6, 2.5e6, 1e8, 1e9];
        let expected = [
            "999", "1,000", "250,000", "1 M", "1 M", "2.5 M", "100 M", "1 G",
        ];
        assert_eq!(counts.map(count_name), expected);
        let shares = [1.0, 0.001, 1e-6, 1.5e-6, 1e-7, 2e-9, 9.5e-11];
        let expected = [
            "100 %", "0.1 %", "0.0001 %", "1.5e-4 %", "1e-5 %", "2e-7 %", "9.5e-9 %",
        ];
        assert_eq!(shares.map(share_name), expected);
        for (half, decade) in (2..20).flat_map(|half| (0..10).map(move |n| (half, n))) {
            let digits = f64::from(half) / 2.0;
            let count = count_name(digits * 10_f64.powi(decade));
            let share = share_name(digits * 10_f64.powi(-1 - decade));
            for name in [count, share] {
                assert!(width(&name) <= LEFT - 8, "{name}");
            }
        }
    }

    #[test]
    fn a_signed_axis_names_zero_and_both_sides() {
        let ticks = Axis::linear(-21_000.0, 33_000.0, (0, 1_000)).ticks_at_most(NAMES);
        let names: Vec<String> = ticks.into_iter().map(time_name).collect();
        assert_eq!(names, ["-20 µs", "0", "20 µs"]);
    }

    #[test]
    fn names_that_would_run_together_are_left_out() {
        let plot = |right| Plot {
            x: Axis::logarithmic(180_000.0, 520_000.0, (158, right)),
            y: Axis::from_zero(1.0, (30, 0)),
        };
        let names = |plot: Plot| {
            let mut canvas = Canvas::new(60);
            plot.draw_x(&mut canvas, time_name);
            let svg = canvas.finish("").into_string();
            let names = svg.split("µs</text>").map(|text| text.rsplit('>').next());
            let mut names: Vec<_> = names.map(Option::unwrap_or_default).collect();
            names.pop();
            names.concat()
        };
        assert_eq!(names(plot(490)), "200 300 500 ");
        assert_eq!(names(plot(1_490)), "200 250 300 350 400 450 500 550 ");
    }

    #[test]
    fn names_of_a_low_panel_do_not_overlap() {
        for (low, high) in [
            (2_300.0, 508_000.0),
            (5_000.0, 250_000.0),
            (2_300.0, 4_100.0),
        ] {
            let plot = Plot {
                x: Axis::from_zero(1.0, (LEFT, 600)),
                y: Axis::logarithmic(low, high, (116, 26)),
            };
            let mut canvas = Canvas::new(140);
            plot.draw_y(&mut canvas, time_name);
            let svg = canvas.finish("").into_string();
            let places = svg.split("<text").skip(1).filter_map(|text| {
                let (_, rest) = text.split_once(" y=\"")?;
                rest.split('"').next()?.parse().ok()
            });
            let places: Vec<i32> = places.collect();
            assert!(places.len() >= 3, "{svg}");
            let apart = places.windows(2).all(|two| two[0] - two[1] >= TEXT - 1);
            assert!(apart, "{low} to {high}: {places:?}");
        }
    }

    #[test]
    fn one_value_alone_has_a_place() {
        let axis = Axis::logarithmic(5_000.0, 5_000.0, (0, 100));
        assert_eq!(axis.place(5_000.0), 50);
        assert_eq!(Axis::suiting(0.0, 90.0, (0, 100)).place(0.0), 0);
        assert_eq!(Axis::from_zero(0.0, (0, 100)).place(0.0), 0);
    }
}
