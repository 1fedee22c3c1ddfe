// SPDX-License-Identifier: MIT OR Apache-2.0
//! The common parts of all pages: one HTML file that needs no network, script or other file.
//! It has a title, a list of contents, and one style for screens, paper, and the dark.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::text::clean_lines;

const STYLE: &str = include_str!("style.css");

/// The style of all pages, between `<style>` and `</style>`. Servers of pages state its checksum.
pub fn style() -> &'static str {
    STYLE
}

/// A page that is not text yet, so that more can be put into it.
pub struct Page {
    /// Its title and first heading.
    pub title: String,
    /// The opening.
    pub lead: Markup,
    /// The rest.
    pub chapters: Vec<Chapter>,
}

impl Page {
    /// The page as text.
    pub fn html(self) -> String {
        page(&self.title, &self.lead, self.chapters)
    }
}

/// A part of a page, which its contents name.
pub struct Chapter {
    /// Its heading.
    pub title: String,
    /// Its contents; if they are empty, the page goes without.
    pub body: Markup,
}

impl Chapter {
    /// A part of a page.
    pub fn new(title: impl Into<String>, body: Markup) -> Self {
        let title = title.into();
        Self { title, body }
    }
}

/// A whole page: its opening, then its chapters.
pub fn page(title: &str, lead: &Markup, chapters: Vec<Chapter>) -> String {
    let filled = chapters.into_iter().filter(|one| !one.body.0.is_empty());
    let chapters: Vec<Chapter> = filled.collect();
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                (lead)
                @if chapters.len() > 2 { nav { @for (number, one) in chapters.iter().enumerate() {
                    a href=(format!("#c{number}")) { (one.title) } " "
                } } }
                @for (number, one) in chapters.iter().enumerate() {
                    h2 id=(format!("c{number}")) { (one.title) }
                    (one.body)
                }
            }
        }
    };
    // Names of kernels, consoles and the like are a stranger's.
    clean_lines(&markup.into_string())
}

/// Something that may be wider than the screen: it scrolls by itself.
pub fn wide(content: &Markup) -> Markup {
    html! { div.wide { (content) } }
}

/// Something to be opened: its title, and the size of its contents in words.
pub fn folded(title: &str, size: &str, content: &Markup) -> Markup {
    html! { details { summary { (title) " " span { (size) } } (content) } }
}
