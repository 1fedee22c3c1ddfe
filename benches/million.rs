// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long it takes to list a million runs, in a file and on a server: a page of the newest, of
//! some in the middle, and of those that a filter lets through.
//!
//! `cargo bench -p punctual-benches --bench million`.

use std::time::{Duration, Instant};

use anyhow::Result;
use punctual_benches::figure;
use punctual_model::run::State;
use punctual_store::{Filter, Place, Store};
use punctual_tests::Scratch;
use punctual_tests::server::{Server, place};
use rusqlite::Connection;

const RUNS: u64 = 1_000_000;
const PAGE: usize = 100;

/// Runs as a team has them: of a few suites and many kernels, with a plan, a machine and a
/// console of usual size; one in a thousand has failed, and four have a rare probe.
fn rows(series: &str, padding: &str) -> String {
    format!(
        "INSERT INTO runs (suite, plan, seed, ns_per_insn, subject, kernel, boot, bench, machine,
            punctual, state, started, finished, digest, console, owner_pid, owner_start,
            owner_boot, owner_host, uid)
        SELECT 'suite-' || (n % 7), {padding}, n, 1, 'subject-' || (n % 40),
            'kernel-' || (n % 200), 'quiet', 'virtual', {padding}, '0.1.0',
            CASE WHEN n % 1000 = 0 THEN 'failed' ELSE 'finished' END,
            '2026-01-' || substr('0' || (1 + n * 28 / {RUNS}), -2) || 'T00:00:00Z',
            '2026-02-01T00:00:00Z', 'd', {padding}, 1, 1, 'boot', 'host-' || (n % 11), n || ''
        FROM {series};
        INSERT INTO recordings (run, probe, load, variant, count, missed, overflow, crc, body)
        SELECT number, CASE WHEN number % 250000 = 0 THEN 'rare' ELSE 'timer' END, 'idle', 'cpu0',
            1, 0, 0, 0, 'x'
        FROM runs"
    )
}

fn main() -> Result<()> {
    let scratch = Scratch::new();
    let path = scratch.path("runs.db");
    drop(Store::open(&path)?);
    let series = format!(
        "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {RUNS})
          SELECT n FROM s) AS s"
    );
    let insert = rows(&series, "hex(zeroblob(200))").replace("'x'", "x'00'");
    // In memory, and not to last: only the store's own reading is measured.
    let fast = "PRAGMA cache_size = -2000000; PRAGMA synchronous = off; PRAGMA journal_mode = off";
    let connection = Connection::open(&path)?;
    connection.execute_batch(&format!("{fast}; {insert}; PRAGMA journal_mode = wal"))?;
    drop(connection);
    measure("sqlite", &path.into())?;

    let Some(server) = Server::new() else {
        return Ok(());
    };
    let place = place(&server.database("runs"));
    drop(Store::at(&place)?);
    let series = format!("(SELECT generate_series(1, {RUNS}::bigint) AS n) AS s");
    let insert = rows(&series, "repeat('0', 400)").replace(", -2)", ", -1, 3)");
    let insert = insert.replace(
        &format!("substr('0' || (1 + n * 28 / {RUNS}), -1, 3)"),
        &format!("lpad((1 + n * 28 / {RUNS})::text, 2, '0')"),
    );
    server.sql(
        "runs",
        &format!("SET search_path TO punctual; {insert}; ANALYZE"),
    );
    measure("postgresql", &place)
}

fn measure(name: &str, place: &Place) -> Result<()> {
    let store = Store::open_to_read(place)?;
    let with = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        filter
    };
    let text = |text: &str| Some(text.to_owned());
    let all = Filter::default();
    let middle = format!("r{}", RUNS / 2);
    let cases: [(&str, Option<&str>, Filter); 11] = [
        ("newest", None, all.clone()),
        ("middle", Some(&middle), all.clone()),
        ("oldest", Some("r101"), all),
        ("kernel", None, with(&|f| f.kernel = text("kernel-7"))),
        ("no-kernel", None, with(&|f| f.kernel = text("none"))),
        ("failed", None, with(&|f| f.state = Some(State::Failed))),
        (
            "interrupted",
            None,
            with(&|f| f.state = Some(State::Interrupted)),
        ),
        ("rare-probe", None, with(&|f| f.probe = text("rare"))),
        ("probe", None, with(&|f| f.probe = text("timer"))),
        (
            "date",
            None,
            with(&|f| {
                f.from = text("2026-01-03");
                f.until = text("2026-01-04");
            }),
        ),
        (
            "several",
            None,
            with(&|f| {
                f.kernel = text("kernel-8");
                f.suite = text("suite-3");
                f.host = text("host-5");
                f.state = Some(State::Failed);
            }),
        ),
    ];
    for (case, before, filter) in cases {
        let mut times: Vec<Duration> = Vec::new();
        let mut found = 0;
        for _ in 0..5 {
            let begun = Instant::now();
            found = store.page(&filter, before, PAGE)?.len();
            times.push(begun.elapsed());
        }
        times.sort();
        let [median, worst] = [times[2], times[4]].map(|time| time.as_secs_f64() * 1e3);
        println!("{name} {case}: {found} runs, {median:.1} ms, at most {worst:.1} ms");
        figure(&format!("store/{name}-{case}-ms"), median);
    }
    Ok(())
}
