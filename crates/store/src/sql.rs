//! All the SQL that there is, so that a second backend would need no second copy of it.
//!
//! Times are columns that end in `_ns`, whole nanoseconds. Maps of facts are JSON
//! objects, for `SQLite`'s `json_extract`. A recording's `body` is CBOR; the columns beside
//! it repeat what a person at the `sqlite3` shell will ask for.

/// Stands in the file's header: "PNCT", as in the frames of a record stream.
pub const APPLICATION_ID: i64 = 0x504e_4354;

/// The version of [`SCHEMA`], also in the file's header.
pub const SCHEMA_VERSION: i64 = 1;

/// Everything that a new file gets.
pub const SCHEMA: &str = "
CREATE TABLE runs (
    number      INTEGER PRIMARY KEY AUTOINCREMENT, -- 17 is run r17; never given twice
    suite       TEXT NOT NULL,
    plan        TEXT NOT NULL,    -- TOML
    seed        INTEGER NOT NULL, -- the 64 bits, read as a signed number
    ns_per_insn INTEGER,          -- null in real time
    subject     TEXT NOT NULL,
    kernel      TEXT NOT NULL,
    boot        TEXT NOT NULL,
    bench       TEXT NOT NULL,
    bench_facts TEXT NOT NULL,    -- JSON
    provenance  TEXT,             -- JSON; null if the target never got so far
    state       TEXT NOT NULL,    -- stays 'running' if the owner dies
    error       TEXT,
    started     TEXT NOT NULL,    -- RFC 3339, UTC
    finished    TEXT,             -- RFC 3339, UTC
    digest      TEXT,
    console     TEXT NOT NULL,
    owner_pid   INTEGER NOT NULL,
    owner_start INTEGER NOT NULL, -- clock ticks from boot to the owner's start
    owner_boot  TEXT NOT NULL     -- the boot's id
) STRICT;

CREATE TABLE recordings (
    number   INTEGER PRIMARY KEY,
    run      INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    probe    TEXT NOT NULL,
    load     TEXT NOT NULL,
    variant  TEXT NOT NULL,
    count    INTEGER NOT NULL,
    min_ns   INTEGER, -- null where there is no sample
    mean_ns  INTEGER,
    max_ns   INTEGER,
    missed   INTEGER NOT NULL,
    overflow INTEGER NOT NULL,
    crc      INTEGER NOT NULL, -- CRC-32 (ISO-HDLC) of the body
    body     BLOB NOT NULL     -- CBOR
) STRICT;
CREATE INDEX recordings_by_run ON recordings (run);

CREATE TABLE unsupported (
    number INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    probe  TEXT NOT NULL,
    load   TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
CREATE INDEX unsupported_by_run ON unsupported (run);
";

/// How many tables, indices and the like the file has.
pub const COUNT_OBJECTS: &str = "SELECT count(*) FROM sqlite_schema";

/// A run, as it begins.
pub const INSERT_RUN: &str = "
INSERT INTO runs (suite, plan, seed, ns_per_insn, subject, kernel, boot, bench, bench_facts,
    state, error, started, console, owner_pid, owner_start, owner_boot)
VALUES (:suite, :plan, :seed, :ns_per_insn, :subject, :kernel, :boot, :bench, :bench_facts,
    :state, :error, :started, :console, :owner_pid, :owner_start, :owner_boot)";

/// What the target read back.
pub const UPDATE_PROVENANCE: &str = "
UPDATE runs SET provenance = :provenance WHERE number = :run";

/// What a probe delivered.
pub const INSERT_RECORDING: &str = "
INSERT INTO recordings (run, probe, load, variant, count, min_ns, mean_ns, max_ns,
    missed, overflow, crc, body)
VALUES (:run, :probe, :load, :variant, :count, :min_ns, :mean_ns, :max_ns,
    :missed, :overflow, :crc, :body)";

/// What could not be measured.
pub const INSERT_UNSUPPORTED: &str = "
INSERT INTO unsupported (run, probe, load, reason) VALUES (:run, :probe, :load, :reason)";

/// How a run ended.
pub const END_RUN: &str = "
UPDATE runs SET state = :state, error = :error, finished = :finished,
    console = :console, digest = :digest
WHERE number = :run";

/// Which runs there are.
pub const SELECT_NUMBERS: &str = "SELECT number FROM runs ORDER BY number";

/// All runs in one line each, newest first.
pub const SELECT_SUMMARIES: &str = "
SELECT number, suite, seed, subject, kernel, boot, bench, state, started, finished, digest,
    owner_pid, owner_start, owner_boot,
    (SELECT count(*) FROM recordings WHERE run = runs.number) AS recordings
FROM runs ORDER BY number DESC";

/// The finished run, newest first, that measured the very same.
pub const SELECT_EQUAL: &str = "
SELECT number FROM runs
WHERE state = 'finished' AND digest IS NOT NULL AND suite = :suite AND plan = :plan
    AND ns_per_insn IS :ns_per_insn AND subject = :subject AND kernel = :kernel
    AND boot = :boot AND bench = :bench AND bench_facts = :bench_facts
ORDER BY number DESC LIMIT 1";

/// A run but for what its probes delivered.
pub const SELECT_RUN: &str = "SELECT * FROM runs WHERE number = :run";

/// Whether a run is being written, and by whom.
pub const SELECT_OWNER: &str = "
SELECT number, state, owner_pid, owner_start, owner_boot FROM runs WHERE number = :run";

/// A run's recordings, in the order in which they came.
pub const SELECT_RECORDINGS: &str = "
SELECT probe, load, variant, crc, body FROM recordings WHERE run = :run ORDER BY number";

/// What a run could not measure, in the order in which it was said.
pub const SELECT_UNSUPPORTED: &str = "
SELECT probe, load, reason FROM unsupported WHERE run = :run ORDER BY number";

/// A run; what belongs to it goes with it.
pub const DELETE_RUN: &str = "DELETE FROM runs WHERE number = :run";
