// SPDX-License-Identifier: MIT OR Apache-2.0
//! A command's output, block by block: written once, shown as text and as a page.

use maud::{Markup, PreEscaped, html};
use unicode_width::UnicodeWidthStr as _;

use crate::shell::{Chapter, folded, wide};
use crate::text::wrap;

/// A last column that is narrower is not worth its lines.
const NARROW: usize = 24;

/// A piece of a document.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A heading.
    Head(String),
    /// A paragraph.
    Para(String),
    /// Rows of cells under the names of their columns.
    Table {
        /// The names.
        head: Vec<String>,
        /// The rows.
        rows: Vec<Vec<String>>,
        /// The number of columns, from the first on, that are numbers.
        numbers: usize,
    },
    /// A drawing, as SVG; text has none.
    Figure(String),
    /// Lines as they are: a program, a file.
    Code(String),
    /// Details that a page opens on demand: a title, and its contents. Text has them indented.
    Fold(String, Vec<Block>),
}

/// The blocks as text, no line of a paragraph longer than `width`.
pub fn text(blocks: &[Block], width: usize) -> String {
    let mut lines = Vec::new();
    for block in blocks {
        put(block, "", width, &mut lines);
    }
    lines.join("\n") + "\n"
}

fn put(block: &Block, indent: &str, width: usize, lines: &mut Vec<String>) {
    if matches!(block, Block::Figure(_)) {
        return;
    }
    if !lines.is_empty() && indent.is_empty() {
        lines.push(String::new());
    }
    match block {
        Block::Head(text) | Block::Para(text) => lines.extend(wrap(text, indent, indent, width)),
        Block::Table {
            head,
            rows,
            numbers,
        } => {
            let rows: Vec<&Vec<String>> = [head].into_iter().chain(rows).collect();
            lines.extend(aligned(&rows, *numbers, indent, width));
        }
        Block::Figure(_) => {}
        Block::Code(text) => lines.extend(text.lines().map(|line| format!("{indent}{line}"))),
        Block::Fold(title, inner) => {
            lines.extend(wrap(title, indent, indent, width));
            let indent = &format!("{indent}  ");
            inner.iter().for_each(|one| put(one, indent, width, lines));
        }
    }
}

/// Aligns columns: numbers end one below the other, others begin so.
/// The last column continues below itself if the line is full, unless less than [`NARROW`] is left
/// for it.
fn aligned(rows: &[&Vec<String>], numbers: usize, indent: &str, width: usize) -> Vec<String> {
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.width()).max().unwrap_or(0)
    };
    let line = |row: &&Vec<String>| {
        let Some((last, cells)) = row.split_last() else {
            return Vec::new();
        };
        let pad = |column: usize, cell: &str| {
            let space = " ".repeat(wide(column).saturating_sub(cell.width()));
            if column < numbers {
                format!("{space}{cell}")
            } else {
                format!("{cell}{space}")
            }
        };
        let each = cells.iter().enumerate();
        let each = each.map(|(column, cell)| format!("{}  ", pad(column, cell)));
        let before = format!("{indent}{}", each.collect::<String>());
        let below = " ".repeat(before.width());
        if cells.len() < numbers || before.width() + NARROW > width {
            let last = pad(cells.len(), last);
            return vec![format!("{before}{last}").trim_end().to_owned()];
        }
        let lines = wrap(last, &before, &below, width);
        let lines = lines.iter().map(|line| line.trim_end().to_owned());
        lines.collect()
    };
    rows.iter().flat_map(line).collect()
}

/// The blocks as a page's lead, up to the first heading, and its chapters.
/// Each heading begins a chapter.
pub fn page(blocks: &[Block]) -> (Markup, Vec<Chapter>) {
    let is_head = |block: &Block| matches!(block, Block::Head(_));
    let mut parts = blocks.chunk_by(|_, next| !is_head(next)).peekable();
    let lead = parts.next_if(|part| !part.first().is_some_and(is_head));
    let chapter = |part: &[Block]| match part.split_first() {
        Some((Block::Head(title), rest)) => Chapter::new(title, markup(rest)),
        _ => Chapter::new("", markup(part)),
    };
    (
        lead.map_or_else(|| html! {}, markup),
        parts.map(chapter).collect(),
    )
}

fn markup(blocks: &[Block]) -> Markup {
    html! { @for block in blocks { (one(block)) } }
}

fn one(block: &Block) -> Markup {
    match block {
        Block::Head(title) => html! { h3 { (title) } },
        Block::Para(text) => html! { p { (text) } },
        Block::Table {
            head,
            rows,
            numbers,
        } => wide(&table(head, rows, *numbers)),
        Block::Figure(svg) => html! { (PreEscaped(svg)) },
        Block::Code(text) => wide(&html! { pre { (text) } }),
        Block::Fold(title, inner) => folded(title, "", &markup(inner)),
    }
}

fn table(head: &[String], rows: &[Vec<String>], numbers: usize) -> Markup {
    let last = head.len().saturating_sub(1);
    let class = |column: usize| match column {
        column if column < numbers => Some("number"),
        column if column == last => Some("free"),
        _ => None,
    };
    html! { table.text.kept {
        thead { tr { @for (column, cell) in head.iter().enumerate() {
            th class=[class(column)] { (cell) }
        } } }
        tbody { @for row in rows { tr { @for (column, cell) in row.iter().enumerate() {
            td class=[class(column)] { (cell) }
        } } } }
    } }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn text_and_page_say_the_same() {
        let cells = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let blocks = [
            Block::Para("The answer.".into()),
            Block::Head("More".into()),
            Block::Table {
                head: cells(&["ns", "where"]),
                rows: vec![cells(&["12", "here"]), cells(&["7", "there"])],
                numbers: 1,
            },
            Block::Figure("<svg></svg>".into()),
            Block::Code("if (a < b)\n\treturn;".into()),
            Block::Fold("Why".into(), vec![Block::Para("As <it> is.".into())]),
        ];
        let text = text(&blocks, 72);
        let (lead, chapters) = page(&blocks);
        assert_eq!((lead.0.as_str(), chapters.len()), ("<p>The answer.</p>", 1));
        let body = &chapters[0].body.0;
        for said in ["12", "here", "7", "there", "Why"] {
            assert!(
                text.contains(said) && body.contains(said),
                "{said}: {text} {body}"
            );
        }
        assert!(
            body.contains("<svg></svg>") && !text.contains("svg"),
            "{text} {body}"
        );
        assert!(
            text.contains("\n\treturn;\n") && body.contains("if (a &lt; b)"),
            "{text}"
        );
        assert!(text.contains("\n  As <it> is.") && body.contains("As &lt;it&gt; is."));
    }

    #[test]
    fn the_last_column_is_continued_below_itself() {
        let cells = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let table = Block::Table {
            head: cells(&["ns", "place"]),
            rows: vec![cells(&["1,234", "interrupts off by one, most in another"])],
            numbers: 1,
        };
        let whole = "   ns  place\n1,234  interrupts off by one, most in another\n";
        let below = "   ns  place\n1,234  interrupts off by one,\n       most in another\n";
        assert_eq!(text(from_ref(&table), 80), whole);
        assert_eq!(text(from_ref(&table), 32), below);
        // Nothing is gained there.
        assert_eq!(text(from_ref(&table), 20), whole);
    }
}
