// SPDX-License-Identifier: MIT OR Apache-2.0
//! Histograms of Xenomai's latency.

use punctual_model::Nanos;

use crate::{between, has, read, refused, text};

#[test]
fn xenomais_bins_are_held_against_its_summary() {
    let name = "21b-xenomai-latency-B-10us.txt";
    has(&refused(name), &["latency -B", "largest sample is 52299"]);
    // Where the command line is there, too, it says how wide they are.
    let text = format!("root@board:~# latency -h -B 10000 -T 2\n{}", text(name));
    let run = read(name, text.as_bytes()).unwrap();
    let own = &run.recordings[0];
    assert_eq!((own.count, own.max()), (20_000, Some(Nanos(52_299))));
    assert_eq!(between(own, 0.4), (1.269, 9.999));
    assert_eq!(between(own, 0.9), (10.0, 19.999));
    let bins = own.histogram.bins();
    let above: u64 = bins
        .filter(|bin| bin.low.0 > 5_000)
        .map(|bin| bin.count)
        .sum();
    assert_eq!(above, 11_000);
    has(
        &refused("21-xenomai-bars-at-line-ends.txt"),
        &["latency -h"],
    );
}
