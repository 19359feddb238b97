-- The tables of a tuner database: the manual of the file, and the text it is created from.
--
-- One file, one writing process (an OS lock on FILE-lock), any number of readers. journal_mode = WAL, synchronous = FULL:
-- what a write acknowledged is on disk. PRAGMA application_id = 0x54554e52 ("TUNR"), PRAGMA user_version = the version of
-- this schema; a newer one is refused, an older one migrated (migrate.cpp).
--
-- Rows are added, never deleted, but for records that `tuner records prune` removes. In a job only trials, options (when to end), state, message and finished_at_us change (in an
-- imported one also what a later file adds); in a trial only state, attempt, fencing, worker_id and grants. Records never change.
--
-- Numbers called *_seq, seq or *_id come from one counter for the whole file: they order everything that happened.
-- Gaps are normal. Times of day are microseconds of Unix time, UTC, for people; order comes from the counter.
-- Unsigned 64-bit numbers (seed, rng_counter) are stored as the signed number with the same bits.
-- crc: CRC-32C over all other columns of the row (rows.cpp). It is checked at every read: SQLite's own pages have no
-- checksum, and a flipped bit in a time would otherwise win a search.

-- One (workload, target), interned. Both are canonical text this module never looks into.
CREATE TABLE task (
  task_id       INTEGER PRIMARY KEY,
  workload_key  TEXT NOT NULL,     -- 'v1 conv2d n=1 ic=512 ...'
  target        TEXT NOT NULL,     -- 'llvm -mcpu=haswell -threads=1'; ' constants=cold' is appended when its times are of
                                   -- cold constants (records.h, Constants): such records are kept apart from warm ones
  crc           INTEGER NOT NULL,
  UNIQUE (workload_key, target)
) STRICT;

-- What somebody submitted.
CREATE TABLE job (
  job_seq          INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,  -- what people type
  request_id       TEXT UNIQUE,           -- of the submission; repeating it changes nothing; NULL if it had none
  tasks            TEXT NOT NULL,         -- JSON: [["workload key", "target", algorithms, uses, constants], ...] in
                                          -- task_index order; the last three are left out if they are "", 1, "warm"
  trials           INTEGER NOT NULL,      -- wanted, per task on average
  search           TEXT NOT NULL,         -- 'xgb-annealing'
  seed             INTEGER NOT NULL,
  options          TEXT NOT NULL,         -- JSON: how to measure (MeasureOptions), when to end (StopOptions)
  state            TEXT NOT NULL,         -- queued | running | finished | cancelled | failed
  message          TEXT NOT NULL,         -- why, for people
  submitted_at_us  INTEGER NOT NULL,
  finished_at_us   INTEGER NOT NULL,      -- 0 while queued or running
  tenant           TEXT NOT NULL,         -- on whose behalf it runs; '' if nobody's in particular
  crc              INTEGER NOT NULL
) STRICT;
-- The job that a second submission of the same thing continues.
CREATE INDEX job_same ON job (tasks, search, seed, job_seq);

-- One config of one task, to be measured.
CREATE TABLE trial (
  seq               INTEGER PRIMARY KEY,  -- its id is 't' || seq; people see 'j3.17', its place among the trials of its job
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,     -- position in job.tasks
  task_id           INTEGER NOT NULL REFERENCES task,
  template_name     TEXT NOT NULL,
  template_version  INTEGER NOT NULL,
  config            TEXT NOT NULL,        -- 'tile_m=8 tile_n=32', sorted by knob
  state             TEXT NOT NULL,        -- queued | leased | done | cancelled
  attempt           INTEGER NOT NULL,     -- leases so far
  fencing           INTEGER NOT NULL,     -- of the last lease; grows with every lease
  worker_id         TEXT NOT NULL,        -- of the last lease
  rng_counter       INTEGER NOT NULL,     -- the proposer's random draws when it proposed this
  model_digest      TEXT NOT NULL,        -- digest of the cost model that it used; '' if none
  grants            TEXT NOT NULL,        -- its latest leases, a line each: 'attempt worker_id incarnation'. A result counts
                                          -- only if it comes from the life of a worker that had its attempt
  crc               INTEGER NOT NULL
) STRICT;
CREATE INDEX trial_job ON trial (job_seq, seq);
CREATE INDEX trial_state ON trial (job_seq, state);
CREATE INDEX trial_open ON trial (job_seq, seq) WHERE state IN ('queued', 'leased');

-- What measuring found. Written once. terminal = 1: the one that closed its trial; 0: an extra sample of a closed trial.
CREATE TABLE record (
  record_id  INTEGER PRIMARY KEY,
  trial_seq  INTEGER NOT NULL REFERENCES trial,
  task_id    INTEGER NOT NULL REFERENCES task,
  terminal   INTEGER NOT NULL,
  -- RECORD FIELDS: here stands a column for each field that record_fields.h tells, in its order
  crc        INTEGER NOT NULL
) STRICT;
CREATE INDEX record_trial ON record (trial_seq, record_id);
CREATE UNIQUE INDEX record_terminal ON record (trial_seq) WHERE terminal = 1;
-- Answers "fastest ok record of a task" and "outcomes of a task" without looking at another row.
CREATE INDEX record_rank ON record (task_id, terminal, outcome, cut, time_ns);

-- Records that `tuner records prune` removed, in numbers: what usage and outcomes tell of stays true. A trial that is 'done'
-- and has no terminal record lost it so. Rows are never changed; an import that brings records back adds negative numbers.
CREATE TABLE pruned (
  pruned_id     INTEGER PRIMARY KEY,
  job_seq       INTEGER NOT NULL REFERENCES job,
  task_id       INTEGER NOT NULL REFERENCES task,
  outcome       TEXT NOT NULL,     -- of these records
  records       INTEGER NOT NULL,  -- so many
  closed        INTEGER NOT NULL,  -- those of them that were terminal
  run_ms        REAL NOT NULL,     -- the sum of theirs
  pruned_at_us  INTEGER NOT NULL,
  crc           INTEGER NOT NULL
) STRICT;
CREATE INDEX pruned_task ON pruned (task_id, outcome);

-- One call of SearchStrategy::propose: what the search had seen when it proposed which trials. Together with the job's
-- search and seed this is all it takes to play the search again, bit for bit.
CREATE TABLE proposal (
  proposal_seq        INTEGER PRIMARY KEY,
  job_seq             INTEGER NOT NULL REFERENCES job,
  task_index          INTEGER NOT NULL,  -- position in job.tasks
  asked               INTEGER NOT NULL,  -- how many configs the search was asked for
  count               INTEGER NOT NULL,  -- how many trials it gave: seq first_trial_seq .. first_trial_seq + count - 1
  first_trial_seq     INTEGER NOT NULL,  -- 0 if count is 0: the space is exhausted
  observed_record_id  INTEGER NOT NULL,  -- it had observed the terminal records of this job and task up to this
                                         -- record_id, in this order, and no others
  donor_record_id     INTEGER NOT NULL,  -- records of other jobs it was warmed with have ids up to this; 0: with none
  crc                 INTEGER NOT NULL
) STRICT;
CREATE INDEX proposal_job ON proposal (job_seq, proposal_seq);

-- The finalists of a task measured against each other, interleaved, in several processes. Written once.
CREATE TABLE race (
  race_id           INTEGER PRIMARY KEY,
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,
  task_id           INTEGER NOT NULL REFERENCES task,
  winner_trial_seq  INTEGER NOT NULL REFERENCES trial,
  finalists         TEXT NOT NULL,  -- JSON: [{"trial": seq, "samples_ns": [...], "sentinel_ns": [...], "process": [...]}]:
                                    -- sample i, the pulses beside it (harness ABI < 4: the sentinel), the number of its
                                    -- process (0, 1, ...); also memory_ns, the memory sentinel, and other_ns with
                                    -- other_process: samples with the other kind of constants
  tie_set           TEXT NOT NULL,  -- JSON: [trial seq, ...]: finalists that cannot be told from the winner, itself included
  time_ns           REAL NOT NULL,  -- the winner's: lower quartile in each process (harness ABI < 4: median), trimmed mean
                                    -- over the processes
  interval_low_ns   REAL NOT NULL,  -- a fresh process lies between low and high in 95 % of cases
  interval_high_ns  REAL NOT NULL,
  ratio             REAL NOT NULL,  -- the same three for time divided by sentinel_ns
  ratio_low         REAL NOT NULL,
  ratio_high        REAL NOT NULL,
  regret_bound      REAL NOT NULL,  -- the winner is slower than the best finalist by at most this fraction (95 %)
  options           TEXT NOT NULL,  -- JSON: RaceOptions, and results besides the times: certified, uncertified_why, turns,
                                    -- discarded, default_trial, default_time_ns, stored_trial, won_by, other_time_ns. A race stored before
                                    -- "certified" existed is certified if its interval is narrow enough
  hardware          TEXT NOT NULL,
  toolchain         TEXT NOT NULL,
  harness_abi       INTEGER NOT NULL,
  worker_id         TEXT NOT NULL,
  host              TEXT NOT NULL,
  finished_at_us    INTEGER NOT NULL,  -- daemon's clock
  crc               INTEGER NOT NULL
) STRICT;
CREATE INDEX race_job ON race (job_seq, race_id);
CREATE INDEX race_task ON race (task_id, race_id);

-- Races that were decided on: what a daemon goes on with after a restart. Only state, attempt, fencing, worker_id, grants,
-- race_id and message change.
CREATE TABLE open_race (
  open_race_id       INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,  -- of its lease: 'race j1/2 1700000000000000'
  job_seq            INTEGER NOT NULL REFERENCES job,
  task_index         INTEGER NOT NULL,
  finalists          TEXT NOT NULL,     -- JSON: [trial seq, ...], the most promising first
  default_trial_seq  INTEGER NOT NULL,  -- the finalist with the default config; 0: none
  options            TEXT NOT NULL,     -- JSON: RaceOptions, and stored_trial: the finalist that is the answer so far
  state              TEXT NOT NULL,     -- queued | leased | done
  attempt            INTEGER NOT NULL,
  fencing            INTEGER NOT NULL,
  worker_id          TEXT NOT NULL,
  race_id            INTEGER NOT NULL,  -- of its result; 0: it has none, or not yet
  message            TEXT NOT NULL,     -- why it ended without one
  grants             TEXT NOT NULL,     -- as in trial
  crc                INTEGER NOT NULL
) STRICT;
CREATE INDEX open_race_job ON open_race (job_seq, open_race_id) WHERE state != 'done';

-- Results that cannot be: faster than any such machine, or than the time that passed. Kept for people; nothing is
-- decided from them.
CREATE TABLE quarantine (
  quarantine_id       INTEGER PRIMARY KEY,
  lease_id            TEXT NOT NULL,     -- 't12', or the id of a race
  attempt             INTEGER NOT NULL,
  worker_id           TEXT NOT NULL,     -- who sent it
  worker_incarnation  TEXT NOT NULL,
  host                TEXT NOT NULL,
  claimed_ns          REAL NOT NULL,     -- a call would take so long
  why                 TEXT NOT NULL,     -- what it breaks, for people
  received_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
CREATE INDEX quarantine_lease ON quarantine (lease_id, quarantine_id);

-- The poison ledger: workers that were lost while they built or ran a config, and configs that were measured after that.
-- What the lines of a config say together tells whether it is sent to workers again (tuner/daemon/tables/poison_ledger.h).
CREATE TABLE poison (
  poison_id           INTEGER PRIMARY KEY,
  workload_key        TEXT NOT NULL,
  target              TEXT NOT NULL,
  template_name       TEXT NOT NULL,
  template_version    INTEGER NOT NULL,
  config              TEXT NOT NULL,
  phase               TEXT NOT NULL,     -- building | running: what the lost worker was at; survived: a result came;
                                         -- poison: the verdict on the lines before
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  alone               INTEGER NOT NULL,  -- 1: the worker had nothing else, so nothing else can have killed it
  happened_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;

-- What watchers of a job are told. `json` is opaque here.
CREATE TABLE event (
  seq      INTEGER PRIMARY KEY,
  job_seq  INTEGER NOT NULL REFERENCES job,
  json     TEXT NOT NULL
) STRICT;
CREATE INDEX event_job ON event (job_seq, seq);

-- Kernels that users brought as source: the documents that keys of tasks name by digest. Stored with the first job of a tenant that
-- needs one; never deleted, as jobs and trials are not.
CREATE TABLE kernel (
  kernel_id      INTEGER PRIMARY KEY,
  digest         TEXT NOT NULL,     -- 64 hexadecimal digits, of what it means: equal for texts that differ in white space
  tenant         TEXT NOT NULL,     -- who brought it, and may have it again; '' if nobody in particular
  document       TEXT NOT NULL,     -- any bytes (templates/source_kernel/source_document.h)
  brought_at_us  INTEGER NOT NULL,
  crc            INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX kernel_digest ON kernel (digest, tenant);

-- Documents computed from the records: a predictor, a cover set. The newest of a (kind, op, target) counts; older ones stay.
CREATE TABLE learned (
  learned_id       INTEGER PRIMARY KEY,
  kind             TEXT NOT NULL,     -- 'predictor' | 'cover' ...: its writer defines the document
  op               TEXT NOT NULL,     -- operator it is about; '' if about several
  target           TEXT NOT NULL,     -- target it is about; '' if about several
  until_record_id  INTEGER NOT NULL,  -- records with ids up to this were read
  document         TEXT NOT NULL,     -- JSON
  made_at_us       INTEGER NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
CREATE INDEX learned_newest ON learned (kind, op, target, learned_id);

-- A file or another database that rows came from (`tuner records import`, `merge`). Rows measured here have none.
CREATE TABLE origin (
  origin_id       INTEGER PRIMARY KEY,
  source          TEXT NOT NULL,      -- its name as it was given
  format          TEXT NOT NULL,      -- jsonl | csv | autotvm | t4 | database
  header          TEXT NOT NULL,      -- what the file states once for all its foreign records. t4: the document without its
                                      -- results; csv: the first line; else ''
  imported_at_us  INTEGER NOT NULL,
  crc             INTEGER NOT NULL
) STRICT;

-- The jobs that came from another database. They are never continued here.
CREATE TABLE imported_job (
  job_seq    INTEGER PRIMARY KEY REFERENCES job,
  uid        TEXT NOT NULL UNIQUE,    -- names the job in every database (exchange/identity.h, job_uid)
  home_id    TEXT NOT NULL,           -- its id in the database that made it; it has another id here if that was taken
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;

-- The trials that came from another database, and how they are recognised when they come again.
CREATE TABLE imported_trial (
  seq        INTEGER PRIMARY KEY REFERENCES trial,
  job_seq    INTEGER NOT NULL REFERENCES job,
  home_seq   INTEGER NOT NULL,        -- its seq in the database that made it
  content    INTEGER NOT NULL,        -- digest of task, template, version and config, because two copies of one file may both
                                      -- have continued to count
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX imported_trial_home ON imported_trial (job_seq, home_seq, content);

-- Records of other tuners. Kept as they were written, never mixed with trials of ours: their templates, knobs and clocks
-- are not ours. A task of theirs, interned.
CREATE TABLE foreign_task (
  foreign_task_id  INTEGER PRIMARY KEY,
  format           TEXT NOT NULL,     -- autotvm | t4 | csv
  task             TEXT NOT NULL,     -- in the words of the file: template and arguments, name of the kernel
  target           TEXT NOT NULL,     -- in the words of the file
  crc              INTEGER NOT NULL,
  UNIQUE (format, task, target)
) STRICT;
CREATE TABLE foreign_record (
  foreign_id       INTEGER PRIMARY KEY,
  foreign_task_id  INTEGER NOT NULL REFERENCES foreign_task,
  origin_id        INTEGER NOT NULL REFERENCES origin,
  digest_high      INTEGER NOT NULL,  -- digest of its whole content: the same record from a second file changes nothing
  digest_low       INTEGER NOT NULL,
  outcome          TEXT NOT NULL,     -- as in record
  time_ns          REAL NOT NULL,     -- median of its times; 0 unless ok
  finished_at_us   INTEGER NOT NULL,  -- 0 if the file does not say
  document         TEXT NOT NULL,     -- the record as it was written: a line, or an element of `results`
  crc              INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX foreign_digest ON foreign_record (digest_high, digest_low);
CREATE INDEX foreign_rank ON foreign_record (foreign_task_id, outcome, time_ns);
