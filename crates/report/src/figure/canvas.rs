//! Drawing by `plotters`, and what its SVG needs to suit a page of either colour.

use std::fmt::Write as _;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color as _, DrawingArea, EmptyElement, IntoDrawingArea as _, IntoFont as _,
    PathElement, Polygon, RGBColor, SVGBackend, ShapeStyle, Text, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use unicode_width::UnicodeWidthStr as _;

/// A figure's width, in units of which a page shows about three to four a millimetre.
///
/// `plotters` draws at whole units, therefore they are small.
pub const WIDTH: i32 = 1440;
/// The size of text.
pub const TEXT: i32 = 24;
/// How much of the width the legend takes.
pub const LEGEND: i32 = 300;
/// The radius of a sample's dot; no other circle has it.
pub const DOT: i32 = 2;

/// Stands for the colour of the text around the figure.
pub const INK: RGBColor = RGBColor(1, 2, 3);
/// Stands for the same, much fainter.
pub const FAINT: RGBColor = RGBColor(1, 2, 4);

/// Colours of equal lightness: a contrast of 3.7 or more on white and on near-black, told
/// apart also by those who see few colours.
pub const COLOURS: [RGBColor; 6] = [
    RGBColor(0x2a, 0x78, 0xc2),
    RGBColor(0xc8, 0x55, 0x1b),
    RGBColor(0x12, 0x87, 0x6a),
    RGBColor(0xb4, 0x55, 0x9a),
    RGBColor(0x8a, 0x70, 0x00),
    RGBColor(0x7a, 0x7a, 0x7a),
];

/// The dashes that tell lines apart without colour, one for each colour.
const DASHES: [&str; 6] = ["", "14 7", "4 5", "18 6 4 6", "9 4", "24 8"];

/// Something that can be drawn on.
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A subject's colour.
pub fn colour(column: usize) -> RGBColor {
    COLOURS[column % COLOURS.len()]
}

/// A drawing of a given height, made by `draw`.
///
/// # Panics
/// Never: drawing into memory does not fail.
pub fn drawing(height: i32, draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (WIDTH as u32, height as u32)).into_drawing_area();
    draw(&area)
        .and_then(|()| Ok(area.present()?))
        .expect("drawing into memory does not fail");
    drop(area);
    svg
}

/// Whether something could be drawn.
pub type Drawn = Result<(), Box<dyn std::error::Error>>;

/// How text is written.
pub fn text_style(colour: RGBColor, h_pos: HPos, v_pos: VPos) -> TextStyle<'static> {
    // `plotters` divides sizes by this when it writes SVG.
    let size = f64::from(TEXT) * 1.24;
    ("sans-serif", size)
        .into_font()
        .color(&colour)
        .pos(Pos::new(h_pos, v_pos))
}

/// Writes text in ink.
pub fn write(area: &Area<'_>, text: &str, at: (i32, i32), h_pos: HPos, v_pos: VPos) -> Drawn {
    let style = text_style(INK, h_pos, v_pos);
    Ok(area.draw(&Text::new(text.to_owned(), at, style))?)
}

/// Draws a line.
pub fn line(area: &Area<'_>, points: Vec<(i32, i32)>, style: ShapeStyle) -> Drawn {
    Ok(area.draw(&PathElement::new(points, style))?)
}

/// Draws a subject's sign: shapes tell subjects apart without colour.
pub fn marker(area: &Area<'_>, column: usize, at: (i32, i32)) -> Drawn {
    let style = colour(column).filled();
    let shape = |points: &[(i32, i32)]| {
        let points: Vec<(i32, i32)> = points.iter().map(|(x, y)| (at.0 + x, at.1 + y)).collect();
        Polygon::new(points, style)
    };
    match column % 4 {
        0 => area.draw(&(EmptyElement::at(at) + Circle::new((0, 0), 9, style)))?,
        1 => area.draw(&shape(&[(0, -11), (11, 0), (0, 11), (-11, 0)]))?,
        2 => area.draw(&shape(&[(-9, -9), (9, -9), (9, 9), (-9, 9)]))?,
        _ => area.draw(&shape(&[(-11, 9), (0, -11), (11, 9)]))?,
    }
    Ok(())
}

/// A name that fits into the legend.
pub fn short(name: &str) -> String {
    const LONGEST: usize = 18;
    if name.width() <= LONGEST {
        return name.to_owned();
    }
    let characters: Vec<char> = name.chars().collect();
    let half = (LONGEST - 1) / 2;
    let (start, end) = (
        &characters[..half.min(characters.len())],
        &characters[characters.len().saturating_sub(half)..],
    );
    format!(
        "{}…{}",
        start.iter().collect::<String>(),
        end.iter().collect::<String>()
    )
}

/// Makes the drawing part of a page: it takes its ink from the text around it, has a
/// title for those who cannot see it, and dots that are short to write.
pub fn finish(svg: &str, title: &str) -> String {
    let mut finished = String::new();
    let mut dots: Option<(String, String)> = None;
    for line in svg.lines() {
        if let Some((colour, at)) = dot(line) {
            match &mut dots {
                Some((same, path)) if *same == colour => path.push_str(&at),
                _ => {
                    flush(&mut finished, dots.take());
                    dots = Some((colour, at));
                }
            }
            continue;
        }
        flush(&mut finished, dots.take());
        if line.starts_with("<svg") {
            finished.push_str(&opening(line, title));
        } else {
            finished.push_str(&themed(line));
        }
        finished.push('\n');
    }
    flush(&mut finished, dots);
    finished
}

/// The colour and the place of a sample's dot.
fn dot(line: &str) -> Option<(String, String)> {
    let radius = format!(" r=\"{DOT}\"");
    if !line.starts_with("<circle") || !line.contains(&radius) {
        return None;
    }
    let (x, y) = (attribute(line, "cx")?, attribute(line, "cy")?);
    Some((attribute(line, "fill")?.to_owned(), format!("M{x} {y}h0")))
}

fn flush(svg: &mut String, dots: Option<(String, String)>) {
    if let Some((colour, path)) = dots {
        let width = 2 * DOT;
        writeln!(
            svg,
            "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\" stroke-linecap=\"round\" d=\"{path}\"/>"
        )
        .expect("writing to memory does not fail");
    }
}

fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

fn opening(line: &str, title: &str) -> String {
    let view = attribute(line, "viewBox").unwrap_or_default();
    let title = title
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;");
    format!("<svg viewBox=\"{view}\" role=\"img\" aria-label=\"{title}\"><title>{title}</title>")
}

fn themed(line: &str) -> String {
    // Only tags hold colours; between them stands escaped text.
    if !line.starts_with('<') {
        return line.to_owned();
    }
    let mut line = line.to_owned();
    for (from, to) in [
        ("=\"#010203\"", "=\"currentColor\""),
        (
            "stroke=\"#010204\"",
            "stroke=\"currentColor\" stroke-opacity=\"0.18\"",
        ),
        (
            "fill=\"#010204\"",
            "fill=\"currentColor\" fill-opacity=\"0.18\"",
        ),
        (" opacity=\"1\"", ""),
    ] {
        line = line.replace(from, to);
    }
    if line.starts_with("<polyline") {
        for (colour, dashes) in COLOURS
            .iter()
            .zip(DASHES)
            .filter(|(_, dashes)| !dashes.is_empty())
        {
            let stroke = format!("stroke=\"{}\"", hex(*colour));
            line = line.replace(&stroke, &format!("{stroke} stroke-dasharray=\"{dashes}\""));
        }
    }
    line
}

fn hex(colour: RGBColor) -> String {
    format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: RGBColor) -> f64 {
        let part = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.03928 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        };
        0.2126 * part(colour.0) + 0.7152 * part(colour.1) + 0.0722 * part(colour.2)
    }

    #[test]
    fn colours_can_be_seen_on_white_and_on_near_black() {
        let dark = luminance(RGBColor(0x14, 0x17, 0x1a)) + 0.05;
        for colour in COLOURS {
            let light = luminance(colour) + 0.05;
            assert!(1.05 / light > 3.5 && light / dark > 3.5, "{colour:?}");
        }
    }

    #[test]
    fn dots_of_one_colour_become_one_path() {
        let svg = drawing(100, |area| {
            for x in [10, 20, 30] {
                area.draw(&Circle::new((x, 50), DOT, colour(0).filled()))?;
            }
            Ok(())
        });
        let svg = finish(&svg, "dots");
        assert_eq!(svg.matches("<path").count(), 1, "{svg}");
        assert!(svg.contains("d=\"M10 50h0M20 50h0M30 50h0\""), "{svg}");
    }
}
