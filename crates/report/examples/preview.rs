// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes the page of invented runs to the path given: `preview PATH [seeds|gaps|probes]`.

#[path = "../src/fixtures.rs"]
#[allow(dead_code)]
mod fixtures;

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments
        .next()
        .ok_or_else(|| std::io::Error::other("a path is missing"))?;
    let runs = match arguments.next().as_deref() {
        Some("seeds") => fixtures::seeds(5),
        Some("probes") => fixtures::all_probes(),
        Some("gaps") => fixtures::with_gaps(),
        _ => fixtures::whole(),
    };
    print!("{}", punctual_report::table(&runs, 80, true));
    let documents = punctual_published::documents().map_err(std::io::Error::other)?;
    std::fs::write(path, punctual_report::page(&runs, &documents))
}
