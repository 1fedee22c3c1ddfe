// SPDX-License-Identifier: MIT OR Apache-2.0
//! All SQL statements for both databases: written for `SQLite`, and translated for `PostgreSQL` by
//! [`crate::postgresql`]. They use only what both understand.
//!
//! Columns whose names end in `_ns` hold times in whole nanoseconds. Maps of facts are JSON
//! objects, for `SQLite`'s `json_extract`. A recording's `body` is CBOR; the columns beside it
//! repeat what a person at the `sqlite3` shell will ask for.

/// The application id in the file's header: "PNCT", as in the frames of a record stream.
pub const APPLICATION_ID: i64 = 0x504e_4354;

/// The version of [`SCHEMA`], also in the file's header. No release wrote an earlier one.
pub const SCHEMA_VERSION: i64 = 5;

/// The tables and indices of a new file.
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
    provenance  TEXT,             -- JSON; null if the target never got so far
    state       TEXT NOT NULL,    -- stays 'running' if the owner dies
    error       TEXT,
    started     TEXT NOT NULL,    -- RFC 3339, UTC
    finished    TEXT,             -- RFC 3339, UTC
    digest      TEXT,
    console     TEXT NOT NULL,
    owner_pid   INTEGER NOT NULL,
    owner_start INTEGER NOT NULL, -- clock ticks from boot to the owner's start
    owner_boot  TEXT NOT NULL,    -- the boot's id
    machine     TEXT NOT NULL DEFAULT '', -- JSON
    punctual    TEXT NOT NULL DEFAULT '', -- the version that made it
    image_sha256 TEXT,            -- of the kernel's image; null on a host
    request     TEXT NOT NULL DEFAULT '{}', -- JSON: words that ask for the same again
    crc         INTEGER NOT NULL DEFAULT 0, -- CRC-32 of the row's other columns
    uid         TEXT NOT NULL DEFAULT '', -- the same in each store that has a copy of the run
    owner_host  TEXT NOT NULL DEFAULT '', -- the owner's machine
    key         TEXT NOT NULL DEFAULT ''  -- what is measured: the same for equal runs
) STRICT;
CREATE INDEX runs_by_key ON runs (key, number);
CREATE INDEX runs_by_seed ON runs (seed, suite, subject);
CREATE INDEX runs_by_image ON runs (image_sha256);
CREATE UNIQUE INDEX runs_by_uid ON runs (uid);
CREATE INDEX runs_by_suite ON runs (suite, number);
CREATE INDEX runs_by_subject ON runs (subject, number);
CREATE INDEX runs_by_kernel ON runs (kernel, number);
CREATE INDEX runs_by_bench ON runs (bench, number);
CREATE INDEX runs_by_host ON runs (owner_host, number);
CREATE INDEX runs_by_state ON runs (state, number);
CREATE INDEX runs_by_start ON runs (started, number);

CREATE TABLE owners ( -- of runs on a server: who cannot be seen from elsewhere says so here
    pid   INTEGER NOT NULL,
    start INTEGER NOT NULL,
    boot  TEXT NOT NULL,
    seen  INTEGER NOT NULL, -- seconds since 1970, by the server's clock
    PRIMARY KEY (boot, pid, start)
) STRICT;

CREATE TABLE steps (
    number INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    step   INTEGER NOT NULL, -- its number in the plan, from 0
    probe  TEXT NOT NULL,
    load   TEXT NOT NULL,
    crc    INTEGER NOT NULL, -- CRC-32 of the body
    body   TEXT NOT NULL     -- JSON: what the load did, and what was marked
) STRICT;
CREATE INDEX steps_by_run ON steps (run);

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
    body     BLOB NOT NULL,    -- CBOR
    step     INTEGER NOT NULL DEFAULT 0, -- its step's number in the plan, from 0
    repetition INTEGER NOT NULL DEFAULT 1 -- of the same probe, load and variant
) STRICT;
CREATE INDEX recordings_by_run ON recordings (run, probe);
CREATE INDEX recordings_by_probe ON recordings (probe, run);

CREATE TABLE unsupported (
    number INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    probe  TEXT NOT NULL,
    load   TEXT NOT NULL,
    reason TEXT NOT NULL,
    step   INTEGER NOT NULL DEFAULT 0, -- its number in the plan, from 0
    crc    INTEGER NOT NULL DEFAULT 0, -- CRC-32 of the body
    body   TEXT NOT NULL DEFAULT ''    -- JSON: the reason
) STRICT;
CREATE INDEX unsupported_by_run ON unsupported (run);

CREATE TABLE baselines (
    number INTEGER PRIMARY KEY,
    name   TEXT NOT NULL,
    run    INTEGER NOT NULL REFERENCES runs -- one row for each run of a baseline
) STRICT;
CREATE UNIQUE INDEX baselines_by_name ON baselines (name, run);
CREATE INDEX baselines_by_run ON baselines (run);

CREATE TABLE stories (
    number INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,
    made   TEXT NOT NULL,    -- RFC 3339, UTC
    told   TEXT NOT NULL,    -- for people
    crc    INTEGER NOT NULL, -- CRC-32 of the body
    body   TEXT NOT NULL     -- JSON
) STRICT;
CREATE INDEX stories_by_run ON stories (run);

CREATE TABLE campaigns (
    number      INTEGER PRIMARY KEY AUTOINCREMENT, -- 3 is campaign c3; never given twice
    name        TEXT NOT NULL,
    begun       TEXT NOT NULL,    -- RFC 3339, UTC
    ended       TEXT,             -- RFC 3339, UTC; null if its process never said so
    told        TEXT NOT NULL DEFAULT '', -- for people: what it said at its end
    owner_pid   INTEGER NOT NULL,
    owner_start INTEGER NOT NULL,
    owner_boot  TEXT NOT NULL,
    owner_host  TEXT NOT NULL,
    crc         INTEGER NOT NULL, -- CRC-32 of the body
    body        TEXT NOT NULL     -- JSON: what it asks for
) STRICT;
CREATE INDEX campaigns_by_name ON campaigns (name);

CREATE TABLE planned_runs ( -- of campaigns, each by what it measures
    number   INTEGER PRIMARY KEY,
    campaign INTEGER NOT NULL REFERENCES campaigns ON DELETE CASCADE,
    setting  INTEGER NOT NULL, -- its number in the body, from 0
    subject  INTEGER NOT NULL, -- its number in the setting, from 0
    seed     INTEGER NOT NULL, -- the 64 bits, read as a signed number
    key      TEXT NOT NULL
) STRICT;
CREATE INDEX planned_runs_by_campaign ON planned_runs (campaign, number);
";

/// The current time, in seconds since 1970.
pub const NOW_S: &str = "unixepoch()";

/// Counts the tables, indices and the like in the file.
pub const COUNT_OBJECTS: &str = "SELECT count(*) FROM sqlite_schema";

/// Inserts a run at its beginning.
pub const INSERT_RUN: &str = "
INSERT INTO runs (suite, plan, seed, ns_per_insn, subject, kernel, boot, bench, machine,
    punctual, image_sha256, request, state, error, started, console, uid, owner_pid, owner_start,
    owner_boot, owner_host, key)
VALUES (:suite, :plan, :seed, :ns_per_insn, :subject, :kernel, :boot, :bench, :machine,
    :punctual, :image_sha256, :request, :state, :error, :started, :console, :uid, :owner_pid,
    :owner_start, :owner_boot, :owner_host, :key)
RETURNING number";

/// Sets the checksum of a run's row.
pub const SEAL_RUN: &str = "UPDATE runs SET crc = :crc WHERE number = :run";

/// Inserts the work that the load of a step did.
pub const INSERT_STEP: &str = "
INSERT INTO steps (run, step, probe, load, crc, body)
VALUES (:run, :step, :probe, :load, :crc, :body)";

/// Sets the facts that the target read back.
pub const UPDATE_PROVENANCE: &str = "
UPDATE runs SET provenance = :provenance WHERE number = :run";

/// Deletes a probe's interim result.
pub const DELETE_RECORDING: &str = "
DELETE FROM recordings WHERE run = :run AND step = :step AND probe = :probe AND load = :load
    AND variant = :variant AND repetition = :repetition";

/// Inserts a probe's recording.
pub const INSERT_RECORDING: &str = "
INSERT INTO recordings (run, step, probe, load, variant, repetition, count, min_ns, mean_ns,
    max_ns, missed, overflow, crc, body)
VALUES (:run, :step, :probe, :load, :variant, :repetition, :count, :min_ns, :mean_ns,
    :max_ns, :missed, :overflow, :crc, :body)";

/// Inserts a measurement that was not possible.
pub const INSERT_UNSUPPORTED: &str = "
INSERT INTO unsupported (run, step, probe, load, reason, crc, body)
VALUES (:run, :step, :probe, :load, :reason, :crc, :body)";

/// Sets the end of a run.
pub const END_RUN: &str = "
UPDATE runs SET state = :state, error = :error, finished = :finished,
    console = :console, digest = :digest
WHERE number = :run";

/// Finds the run with a number.
pub const SELECT_NUMBER: &str = "SELECT number FROM runs WHERE number = :run";

/// Finds the numbers of all runs.
pub const SELECT_NUMBERS: &str = "SELECT number FROM runs ORDER BY number";

/// Finds the summary of each run for the list. Conditions and an order follow.
pub const SELECT_SUMMARIES: &str = "
SELECT number, suite, seed, subject, kernel, boot, bench, state, started, finished, digest,
    owner_pid, owner_start, owner_boot, owner_host,
    EXISTS (SELECT 1 FROM owners WHERE boot = owner_boot AND pid = owner_pid
        AND start = owner_start AND seen > unixepoch() - 60) AS owner_seen,
    (SELECT count(*) FROM recordings WHERE run = runs.number) AS recordings
FROM runs";

/// Finds the newest finished run that measured the very same.
pub const SELECT_EQUAL: &str = "
SELECT number FROM runs WHERE key = :key AND state = 'finished' AND digest IS NOT NULL
ORDER BY number DESC LIMIT 1";

/// Finds the runs that measure the very same, or did so before their owner died.
pub const SELECT_RUNNING_EQUAL: &str = "
SELECT number FROM runs WHERE key = :key AND state = 'running' ORDER BY number";

/// Finds the runs that may be the very same; the rest of their content decides.
pub const SELECT_ALIKE: &str = "
SELECT number FROM runs
WHERE seed = :seed AND suite = :suite AND subject = :subject AND started = :started
ORDER BY number";

/// Finds a run's row alone.
pub const SELECT_ROW: &str = "SELECT * FROM runs WHERE number = :run";

/// Finds a run without its probes' recordings.
pub const SELECT_RUN: &str = "
SELECT runs.*, EXISTS (SELECT 1 FROM owners WHERE boot = owner_boot AND pid = owner_pid
    AND start = owner_start AND seen > unixepoch() - 60) AS owner_seen
FROM runs WHERE number = :run";

/// Finds the state and the owner of a run.
pub const SELECT_OWNER: &str = "
SELECT number, state, owner_pid, owner_start, owner_boot, owner_host,
    EXISTS (SELECT 1 FROM owners WHERE boot = owner_boot AND pid = owner_pid
        AND start = owner_start AND seen > unixepoch() - 60) AS owner_seen
FROM runs WHERE number = :run";

/// Notes that a process that writes runs is still alive.
pub const SEE_OWNER: &str = "
INSERT INTO owners (pid, start, boot, seen) VALUES (:pid, :start, :boot, unixepoch())
ON CONFLICT (boot, pid, start) DO UPDATE SET seen = excluded.seen";

/// Deletes processes that have not been seen for ten days.
pub const FORGET_OWNERS: &str = "DELETE FROM owners WHERE seen < unixepoch() - 864000";

/// The table, on a server, of the last transaction of each process that writes.
pub const COMMITS: &str = "
CREATE TABLE commits (
    writer TEXT PRIMARY KEY,
    number INTEGER NOT NULL, -- of the transaction, counted by the writer
    at     INTEGER NOT NULL  -- seconds since 1970, by the server's clock
) STRICT;
";

/// Begins a transaction; changes nothing if it was committed before.
pub const COMMIT_ONCE: &str = "
INSERT INTO commits (writer, number, at) VALUES (:writer, :number, unixepoch())
ON CONFLICT (writer) DO UPDATE SET number = excluded.number, at = excluded.at
    WHERE commits.number < excluded.number";

/// Deletes writers that have written nothing for ten days.
pub const FORGET_COMMITS: &str = "DELETE FROM commits WHERE at < unixepoch() - 864000";

/// Counts the bytes that the parts of a run take.
pub const SELECT_WEIGHT: &str = "
SELECT CAST(
    (SELECT coalesce(sum(octet_length(body)), 0) FROM recordings WHERE run = :run)
    + (SELECT coalesce(sum(octet_length(body)), 0) FROM steps WHERE run = :run)
    + (SELECT coalesce(sum(octet_length(body) + octet_length(told)), 0)
        FROM stories WHERE run = :run)
    + (SELECT octet_length(console) + octet_length(plan) FROM runs WHERE number = :run)
    AS BIGINT) AS bytes";

/// Finds a run's recordings, in the order in which they came.
pub const SELECT_RECORDINGS: &str = "
SELECT probe, load, variant, crc, body FROM recordings WHERE run = :run ORDER BY number";

/// Finds a run's steps, in their order.
pub const SELECT_STEPS: &str = "
SELECT step, probe, load, crc, body FROM steps WHERE run = :run ORDER BY number";

/// Finds what a run could not measure, in the order in which it was reported.
pub const SELECT_UNSUPPORTED: &str = "
SELECT step, probe, load, crc, body FROM unsupported WHERE run = :run ORDER BY number";

/// Finds the run with an identity.
pub const SELECT_BY_UID: &str = "SELECT number FROM runs WHERE uid = :uid";

/// Inserts an explanation of late samples of a run.
pub const INSERT_STORY: &str = "
INSERT INTO stories (run, made, told, crc, body) VALUES (:run, :made, :told, :crc, :body)";

/// Finds a run's stories, in the order in which they were told.
pub const SELECT_STORIES: &str = "
SELECT made, told, crc, body FROM stories WHERE run = :run ORDER BY number";

/// Finds the last number that a run got, in a file.
pub const SELECT_LAST: &str = "
SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'runs'";

/// Takes the next numbers on a server until one is reached, so that nobody else gets them.
pub const TAKE_NUMBERS: &str = "
SELECT max(nextval(name)) AS last FROM (
    SELECT name, generate_series(1, greatest(1, :wanted - last)) FROM (
        SELECT name, coalesce(pg_sequence_last_value(name), 0) AS last
        FROM (SELECT pg_get_serial_sequence('runs', 'number')::regclass AS name) AS named
    ) AS used
) AS taken";

/// Deletes a run with everything that belongs to it.
pub const DELETE_RUN: &str = "DELETE FROM runs WHERE number = :run";

/// Inserts a run of a baseline.
pub const INSERT_BASELINE: &str = "INSERT INTO baselines (name, run) VALUES (:name, :run)";

/// Finds all runs of all baselines, each baseline's in the order in which they were named.
pub const SELECT_BASELINES: &str = "SELECT name, run FROM baselines ORDER BY name, number";

/// Finds the baselines that hold a run.
pub const SELECT_BASELINES_OF: &str = "SELECT name FROM baselines WHERE run = :run ORDER BY name";

/// Deletes a baseline; its runs stay.
pub const DELETE_BASELINE: &str = "DELETE FROM baselines WHERE name = :name";

/// Inserts a campaign at its beginning.
pub const INSERT_CAMPAIGN: &str = "
INSERT INTO campaigns (name, begun, owner_pid, owner_start, owner_boot, owner_host, crc, body)
VALUES (:name, :begun, :owner_pid, :owner_start, :owner_boot, :owner_host, :crc, :body)
RETURNING number";

/// Finds campaigns with this name and checksum that were begun before, newest first.
pub const SELECT_CAMPAIGN_LIKE: &str = "
SELECT number, body FROM campaigns WHERE name = :name AND crc = :crc ORDER BY number DESC";

/// Takes a campaign up again.
pub const TAKE_UP_CAMPAIGN: &str = "
UPDATE campaigns SET ended = NULL, told = '', owner_pid = :owner_pid, owner_start = :owner_start,
    owner_boot = :owner_boot, owner_host = :owner_host
WHERE number = :campaign";

/// Deletes a campaign's planned runs before they are planned anew: another version of Punctual has
/// others.
pub const DELETE_PLANNED: &str = "DELETE FROM planned_runs WHERE campaign = :campaign";

/// Inserts a planned run of a campaign.
pub const INSERT_PLANNED: &str = "
INSERT INTO planned_runs (campaign, setting, subject, seed, key)
VALUES (:campaign, :setting, :subject, :seed, :key)";

/// Sets the end of a campaign, unless another process has taken it up.
pub const END_CAMPAIGN: &str = "
UPDATE campaigns SET ended = :ended, told = :told
WHERE number = :campaign AND owner_pid = :owner_pid AND owner_start = :owner_start
    AND owner_boot = :owner_boot";

/// Finds the summary of each campaign for the list. Conditions and an order follow.
pub const SELECT_CAMPAIGNS: &str = "
SELECT number, name, begun, ended, told, crc, body, owner_pid, owner_start, owner_boot,
    owner_host, EXISTS (SELECT 1 FROM owners WHERE boot = owner_boot AND pid = owner_pid
        AND start = owner_start AND seen > unixepoch() - 60) AS owner_seen,
    (SELECT count(*) FROM planned_runs WHERE campaign = campaigns.number) AS asked,
    (SELECT count(*) FROM planned_runs WHERE campaign = campaigns.number AND EXISTS (
        SELECT 1 FROM runs WHERE key = planned_runs.key AND state = 'finished' AND digest IS NOT NULL
    )) AS finished
FROM campaigns";

/// Finds the runs of a campaign that were begun, in its order.
pub const SELECT_PLANNED: &str = "
SELECT planned_runs.setting, planned_runs.subject, planned_runs.seed AS planned_seed, runs.number, runs.state,
    runs.digest, runs.owner_pid, runs.owner_start, runs.owner_boot, runs.owner_host,
    EXISTS (SELECT 1 FROM owners WHERE boot = runs.owner_boot AND pid = runs.owner_pid
        AND start = runs.owner_start AND seen > unixepoch() - 60) AS owner_seen,
    (SELECT count(*) FROM stories WHERE run = runs.number) AS stories
FROM planned_runs JOIN runs ON runs.key = planned_runs.key
WHERE campaign = :campaign ORDER BY planned_runs.number, runs.number";

/// Finds a campaign's row alone.
pub const SELECT_CAMPAIGN_ROW: &str = "SELECT * FROM campaigns WHERE number = :campaign";

/// Finds the campaign that was begun last.
pub const SELECT_LAST_CAMPAIGN: &str = "SELECT max(number) AS number FROM campaigns";

/// Finds the rows of the runs that a campaign asks for.
pub const SELECT_PLANNED_ROWS: &str = "
SELECT * FROM planned_runs WHERE campaign = :campaign ORDER BY number";
