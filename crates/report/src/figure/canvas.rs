// SPDX-License-Identifier: MIT OR Apache-2.0
//! Drawing: SVG, in the ink of the text around it.

use maud::{Markup, html};

/// A figure's width, in units; a page shows about eight tenths of a pixel for each.
pub const WIDTH: i32 = 640;
/// The left end of values, to the right of an axis's names.
pub const LEFT: i32 = 78;
/// The right end of values.
pub const RIGHT: i32 = WIDTH - 22;
/// The size of text.
pub const TEXT: i32 = 15;

/// Colours of equal lightness: a contrast of 3.7 or more on white and on near-black.
/// People who see few colours can tell them apart, too.
const COLOURS: [&str; 6] = [
    "#2a78c2", "#c8551b", "#12876a", "#b4559a", "#8a7000", "#7a7a7a",
];

/// The dashes that tell lines apart without colour, one for each colour.
const DASHES: [&str; 6] = ["", "9 4", "3 3", "11 4 3 4", "6 3", "15 5"];

/// The ink of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The colour of text.
    Text,
    /// The same, much fainter.
    Faint,
    /// A limit's: the colour of text, dotted.
    Limit,
    /// A subject's colour, by the number of its column.
    Column(usize),
}

impl Ink {
    fn colour(self) -> &'static str {
        match self {
            Self::Text | Self::Faint | Self::Limit => "currentColor",
            Self::Column(column) => COLOURS[column % COLOURS.len()],
        }
    }

    fn opacity(self) -> Option<&'static str> {
        (self == Self::Faint).then_some("0.18")
    }

    fn dashes(self) -> Option<&'static str> {
        match self {
            Self::Limit => Some("2 4"),
            Self::Column(column) => Some(DASHES[column % DASHES.len()]).filter(|d| !d.is_empty()),
            _ => None,
        }
    }
}

/// The end of a text that is at its given place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// Its first letter.
    Start,
    /// Its middle.
    Middle,
    /// Its last letter.
    End,
}

/// A drawing that grows.
pub struct Canvas {
    height: i32,
    parts: Vec<Markup>,
}

impl Canvas {
    /// Creates an empty one.
    pub fn new(height: i32) -> Self {
        let parts = Vec::new();
        Self { height, parts }
    }

    /// A line; that of a subject has the subject's dashes.
    pub fn line(&mut self, points: &[(i32, i32)], ink: Ink, width: f32) {
        let points = joined(points);
        self.parts.push(html! {
            polyline fill="none" stroke=(ink.colour()) stroke-opacity=[ink.opacity()]
                stroke-dasharray=[ink.dashes()] stroke-width=(width) points=(points) {}
        });
    }

    /// Text, its middle at the height given.
    pub fn write(&mut self, text: &str, (x, y): (i32, i32), anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => None,
            Anchor::Middle => Some("middle"),
            Anchor::End => Some("end"),
        };
        // A third of a letter's height: "dy" in "em" is not understood everywhere.
        let y = y + TEXT / 3;
        self.parts
            .push(html! { text x=(x) y=(y) text-anchor=[anchor] { (text) } });
    }

    /// A full rectangle between two corners.
    pub fn rectangle(&mut self, one: (i32, i32), other: (i32, i32), ink: Ink) {
        let (x, y) = (one.0.min(other.0), one.1.min(other.1));
        let (width, height) = ((one.0 - other.0).abs(), (one.1 - other.1).abs());
        self.parts.push(html! {
            rect x=(x) y=(y) width=(width) height=(height) fill=(ink.colour())
                fill-opacity=[ink.opacity()] {}
        });
    }

    /// Dots of a subject.
    pub fn dots(&mut self, places: impl Iterator<Item = (i32, i32)>, ink: Ink) {
        let path: Vec<String> = places.map(|(x, y)| format!("M{x} {y}h0")).collect();
        let path = path.concat();
        self.parts.push(html! {
            path fill="none" stroke=(ink.colour()) stroke-width="3" stroke-linecap="round" d=(path) {}
        });
    }

    /// A ring around a place.
    pub fn ring(&mut self, (x, y): (i32, i32), ink: Ink) {
        self.parts.push(html! {
            circle cx=(x) cy=(y) r="6" fill="none" stroke=(ink.colour()) stroke-width="2" {}
        });
    }

    /// A subject's sign: shapes tell subjects apart without colour.
    pub fn sign(&mut self, column: usize, at: (i32, i32)) {
        self.parts.push(sign(column, at));
    }

    /// The finished `svg` element, with a title for those who cannot see it.
    pub fn finish(self, title: &str) -> Markup {
        let view = format!("0 0 {WIDTH} {}", self.height);
        html! {
            svg viewBox=(view) role="img" aria-label=(title) {
                title { (title) }
                g fill="currentColor" font-size=(TEXT) {
                    @for part in self.parts { (part) "\n" }
                }
            }
        }
    }

    /// The drawing, as small as a letter.
    pub fn swatch(self) -> Markup {
        html! {
            svg.swatch viewBox="0 0 36 16" fill="currentColor" aria-hidden="true" {
                @for part in self.parts { (part) }
            }
        }
    }
}

/// The width of a number with its unit, or a little less.
pub fn width(text: &str) -> i32 {
    text.chars().count() as i32 * TEXT * 11 / 20
}

/// The room for the widest of some texts with a gap beside it; `least` at least.
pub fn room<'a>(texts: impl Iterator<Item = &'a str>, gap: i32, least: i32) -> i32 {
    let widest = texts.map(width).max().unwrap_or(0);
    least.max(widest + gap)
}

fn joined(points: &[(i32, i32)]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    points.join(" ")
}

fn sign(column: usize, (x, y): (i32, i32)) -> Markup {
    let fill = Ink::Column(column).colour();
    let shape: &[(i32, i32)] = match column % 4 {
        0 => return html! { circle cx=(x) cy=(y) r="5" fill=(fill) {} },
        1 => &[(0, -6), (6, 0), (0, 6), (-6, 0)],
        2 => &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
        _ => &[(-6, 5), (0, -6), (6, 5)],
    };
    let points: Vec<(i32, i32)> = shape.iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    html! { polygon points=(joined(&points)) fill=(fill) {} }
}

/// A subject's line and sign, for a key.
pub fn swatch(column: usize) -> Markup {
    let mut canvas = Canvas::new(16);
    canvas.line(&[(0, 8), (36, 8)], Ink::Column(column), 2.5);
    canvas.sign(column, (18, 8));
    canvas.swatch()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::assert_has;

    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            if value <= 0.03928 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
    }

    #[test]
    fn colours_can_be_seen_on_white_and_on_near_black() {
        let dark = luminance("#14171a") + 0.05;
        for colour in COLOURS {
            let light = luminance(colour) + 0.05;
            assert!(1.05 / light > 3.5 && light / dark > 3.5, "{colour}");
        }
    }

    #[test]
    fn dots_of_one_colour_are_one_path() {
        let mut canvas = Canvas::new(100);
        canvas.dots([(10, 50), (20, 50), (30, 50)].into_iter(), Ink::Column(0));
        let svg = canvas.finish("a <b>").into_string();
        assert_has(
            &svg,
            &[
                "d=\"M10 50h0M20 50h0M30 50h0\"",
                "<title>a &lt;b&gt;</title>",
            ],
        );
    }
}
