-- A database as version 2 of the schema wrote it: the text `sqlite3 FILE .dump` printed, without comments.
PRAGMA application_id = 0x54554e52;
PRAGMA user_version = 2;
BEGIN TRANSACTION;
CREATE TABLE task (
  task_id       INTEGER PRIMARY KEY,
  workload_key  TEXT NOT NULL,
  target        TEXT NOT NULL,
  crc           INTEGER NOT NULL,
  UNIQUE (workload_key, target)
) STRICT;
INSERT INTO task VALUES(2,'v1 work','cpu one',1844699530);
CREATE TABLE job (
  job_seq          INTEGER PRIMARY KEY,
  id               TEXT NOT NULL UNIQUE,
  request_id       TEXT UNIQUE,
  tasks            TEXT NOT NULL,
  trials           INTEGER NOT NULL,
  search           TEXT NOT NULL,
  seed             INTEGER NOT NULL,
  options          TEXT NOT NULL,
  state            TEXT NOT NULL,
  message          TEXT NOT NULL,
  submitted_at_us  INTEGER NOT NULL,
  finished_at_us   INTEGER NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
INSERT INTO job VALUES(1,'j1','request-j1','[["v1 work","cpu one"],["v1 other","cpu one","direct"]]',64,'random',-1,'{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":9,"run_timeout_s":10.0}','queued','',1700000000000000,0,2178385928);
CREATE TABLE trial (
  seq               INTEGER PRIMARY KEY,
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,
  task_id           INTEGER NOT NULL REFERENCES task,
  template_name     TEXT NOT NULL,
  template_version  INTEGER NOT NULL,
  config            TEXT NOT NULL,
  state             TEXT NOT NULL,
  attempt           INTEGER NOT NULL,
  fencing           INTEGER NOT NULL,
  worker_id         TEXT NOT NULL,
  rng_counter       INTEGER NOT NULL,
  model_digest      TEXT NOT NULL,
  crc               INTEGER NOT NULL
) STRICT;
INSERT INTO trial VALUES(3,1,0,2,'toy_x86',3,'a=1','done',0,0,'',-1152921504606846975,'m1',204176666);
INSERT INTO trial VALUES(4,1,0,2,'toy_x86',3,'a=2','done',0,0,'',-1152921504606846975,'m1',1264881612);
CREATE TABLE record (
  record_id           INTEGER PRIMARY KEY,
  trial_seq           INTEGER NOT NULL REFERENCES trial,
  task_id             INTEGER NOT NULL REFERENCES task,
  terminal            INTEGER NOT NULL,
  attempt             INTEGER NOT NULL,
  outcome             TEXT NOT NULL,
  cut                 INTEGER NOT NULL,
  time_ns             REAL NOT NULL,
  run_ns              TEXT NOT NULL,
  cpu_ns              TEXT NOT NULL,
  message             TEXT NOT NULL,
  sentinel_before_ns  REAL NOT NULL,
  sentinel_after_ns   REAL NOT NULL,
  build_ms            REAL NOT NULL,
  run_ms              REAL NOT NULL,
  queue_ms            REAL NOT NULL,
  artifact_digest     TEXT NOT NULL,
  max_error           REAL NOT NULL,
  peak_gflops         REAL NOT NULL,
  hardware            TEXT NOT NULL,
  toolchain           TEXT NOT NULL,
  harness_abi         INTEGER NOT NULL,
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  host                TEXT NOT NULL,
  options             TEXT NOT NULL,
  finished_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
INSERT INTO record VALUES(6,3,2,1,1,'ok',0,1000.5,'[1000.5,1001.5,999.5]','[1000.5,1000.5,1000.5]','',0.0,0.0,0.0,0.0,0.0,'',0.0,0.0,'cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":9,"run_timeout_s":10.0}',1700000001000000,1212781045);
INSERT INTO record VALUES(7,4,2,1,1,'ok',0,1100.0,'[1100.0,1101.0,1099.0]','[1100.0,1100.0,1100.0]','',0.0,0.0,0.0,0.0,0.0,'',0.0,0.0,'cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":9,"run_timeout_s":10.0}',1700000001000000,71963408);
CREATE TABLE proposal (
  proposal_seq        INTEGER PRIMARY KEY,
  job_seq             INTEGER NOT NULL REFERENCES job,
  task_index          INTEGER NOT NULL,
  asked               INTEGER NOT NULL,
  count               INTEGER NOT NULL,
  first_trial_seq     INTEGER NOT NULL,
  observed_record_id  INTEGER NOT NULL,
  donor_record_id     INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
INSERT INTO proposal VALUES(5,1,0,2,2,3,0,0,2000369821);
CREATE TABLE race (
  race_id           INTEGER PRIMARY KEY,
  job_seq           INTEGER NOT NULL REFERENCES job,
  task_index        INTEGER NOT NULL,
  task_id           INTEGER NOT NULL REFERENCES task,
  winner_trial_seq  INTEGER NOT NULL REFERENCES trial,
  finalists         TEXT NOT NULL,
  tie_set           TEXT NOT NULL,
  time_ns           REAL NOT NULL,
  interval_low_ns   REAL NOT NULL,
  interval_high_ns  REAL NOT NULL,
  ratio             REAL NOT NULL,
  ratio_low         REAL NOT NULL,
  ratio_high        REAL NOT NULL,
  regret_bound      REAL NOT NULL,
  options           TEXT NOT NULL,
  hardware          TEXT NOT NULL,
  toolchain         TEXT NOT NULL,
  harness_abi       INTEGER NOT NULL,
  worker_id         TEXT NOT NULL,
  host              TEXT NOT NULL,
  finished_at_us    INTEGER NOT NULL,
  crc               INTEGER NOT NULL
) STRICT;
INSERT INTO race VALUES(8,1,0,2,4,'[{"process":[0,1],"samples_ns":[100.0,101.5],"sentinel_ns":[50.0,51.0],"trial":3},{"process":[0,1],"samples_ns":[100.0,101.5],"sentinel_ns":[50.0,51.0],"trial":4}]','[4]',100.0,98.0,102.0,2.0,1.9599999999999999644,2.0400000000000000355,0.005000000000000000104,'{"limit_s":20.0,"min_repeat_ms":1.0,"processes":9,"rounds":5}','cpu X','llvm 22',1,'w1','host1',1700000002000000,686500666);
CREATE TABLE event (
  seq      INTEGER PRIMARY KEY,
  job_seq  INTEGER NOT NULL REFERENCES job,
  json     TEXT NOT NULL
) STRICT;
INSERT INTO event VALUES(9,1,'{"message":"begun"}');
CREATE INDEX job_same ON job (tasks, search, seed, job_seq);
CREATE INDEX trial_job ON trial (job_seq, seq);
CREATE INDEX trial_state ON trial (job_seq, state);
CREATE INDEX trial_open ON trial (job_seq, seq) WHERE state IN ('queued', 'leased');
CREATE INDEX record_trial ON record (trial_seq, record_id);
CREATE UNIQUE INDEX record_terminal ON record (trial_seq) WHERE terminal = 1;
CREATE INDEX record_rank ON record (task_id, terminal, outcome, cut, time_ns);
CREATE INDEX proposal_job ON proposal (job_seq, proposal_seq);
CREATE INDEX race_job ON race (job_seq, race_id);
CREATE INDEX race_task ON race (task_id, race_id);
CREATE INDEX event_job ON event (job_seq, seq);
COMMIT;
