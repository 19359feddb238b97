-- A database as version 6 of the schema wrote it: the text `sqlite3 FILE .dump` printed, without comments.
PRAGMA application_id = 0x54554e52;
PRAGMA user_version = 6;
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
INSERT INTO job VALUES(1,'j1','request-j1','[["v1 work","cpu one"]]',64,'random',-1,'{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":9,"run_timeout_s":10.0}','queued','',1700000000000000,0,551012008);
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
INSERT INTO trial VALUES(3,1,0,2,'toy_x86',3,'a=1','done',1,6,'w1',-1152921504606846975,'m1',3871456495);
INSERT INTO trial VALUES(4,1,0,2,'toy_x86',3,'a=2','leased',2,9,'w2',-1152921504606846975,'m1',865260727);
INSERT INTO trial VALUES(5,1,0,2,'toy_x86',3,'a=3','queued',0,0,'',-1152921504606846975,'m1',1012501621);
CREATE TABLE record (
  record_id  INTEGER PRIMARY KEY,
  trial_seq  INTEGER NOT NULL REFERENCES trial,
  task_id    INTEGER NOT NULL REFERENCES task,
  terminal   INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  cut INTEGER NOT NULL,
  message TEXT NOT NULL,
  time_ns REAL NOT NULL,
  run_ns TEXT NOT NULL,
  cpu_ns TEXT NOT NULL,
  sentinel_before_ns REAL NOT NULL,
  sentinel_after_ns REAL NOT NULL,
  queue_ms REAL NOT NULL,
  build_ms REAL NOT NULL,
  run_ms REAL NOT NULL,
  max_error REAL NOT NULL,
  peak_gflops REAL NOT NULL,
  artifact_digest TEXT NOT NULL,
  hardware TEXT NOT NULL,
  toolchain TEXT NOT NULL,
  harness_abi INTEGER NOT NULL,
  worker_id TEXT NOT NULL,
  worker_incarnation TEXT NOT NULL,
  host TEXT NOT NULL,
  options TEXT NOT NULL,
  finished_at_us INTEGER NOT NULL,
  device_state TEXT NOT NULL,
  memory_sentinel_before_ns REAL NOT NULL,
  memory_sentinel_after_ns REAL NOT NULL,
  discarded INTEGER NOT NULL,
  read_gbps REAL NOT NULL,
  page_faults INTEGER NOT NULL,
  crc        INTEGER NOT NULL
) STRICT;
INSERT INTO record VALUES(8,3,2,1,1,'ok',0,'',11.0,'[10.0,11.0,12.0]','[10.0,11.0,12.0]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',0.0,0.0,0,0.0,7,2966283983);
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
CREATE TABLE open_race (
  open_race_id       INTEGER PRIMARY KEY,
  id                 TEXT NOT NULL UNIQUE,
  job_seq            INTEGER NOT NULL REFERENCES job,
  task_index         INTEGER NOT NULL,
  finalists          TEXT NOT NULL,
  default_trial_seq  INTEGER NOT NULL,
  options            TEXT NOT NULL,
  state              TEXT NOT NULL,
  attempt            INTEGER NOT NULL,
  fencing            INTEGER NOT NULL,
  worker_id          TEXT NOT NULL,
  race_id            INTEGER NOT NULL,
  message            TEXT NOT NULL,
  crc                INTEGER NOT NULL
) STRICT;
INSERT INTO open_race VALUES(10,'race j1/1',1,0,'[3]',0,'{"limit_s":20.0,"min_repeat_ms":1.0,"processes":9,"rounds":3}','leased',1,11,'w3',0,'',2326528553);
CREATE TABLE event (
  seq      INTEGER PRIMARY KEY,
  job_seq  INTEGER NOT NULL REFERENCES job,
  json     TEXT NOT NULL
) STRICT;
CREATE TABLE learned (
  learned_id       INTEGER PRIMARY KEY,
  kind             TEXT NOT NULL,
  op               TEXT NOT NULL,
  target           TEXT NOT NULL,
  until_record_id  INTEGER NOT NULL,
  document         TEXT NOT NULL,
  made_at_us       INTEGER NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
CREATE TABLE origin (
  origin_id       INTEGER PRIMARY KEY,
  source          TEXT NOT NULL,
  format          TEXT NOT NULL,
  header          TEXT NOT NULL,
  imported_at_us  INTEGER NOT NULL,
  crc             INTEGER NOT NULL
) STRICT;
CREATE TABLE imported_job (
  job_seq    INTEGER PRIMARY KEY REFERENCES job,
  uid        TEXT NOT NULL UNIQUE,
  home_id    TEXT NOT NULL,
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;
CREATE TABLE imported_trial (
  seq        INTEGER PRIMARY KEY REFERENCES trial,
  job_seq    INTEGER NOT NULL REFERENCES job,
  home_seq   INTEGER NOT NULL,
  content    INTEGER NOT NULL,
  origin_id  INTEGER NOT NULL REFERENCES origin,
  crc        INTEGER NOT NULL
) STRICT;
CREATE TABLE foreign_task (
  foreign_task_id  INTEGER PRIMARY KEY,
  format           TEXT NOT NULL,
  task             TEXT NOT NULL,
  target           TEXT NOT NULL,
  crc              INTEGER NOT NULL,
  UNIQUE (format, task, target)
) STRICT;
CREATE TABLE foreign_record (
  foreign_id       INTEGER PRIMARY KEY,
  foreign_task_id  INTEGER NOT NULL REFERENCES foreign_task,
  origin_id        INTEGER NOT NULL REFERENCES origin,
  digest_high      INTEGER NOT NULL,
  digest_low       INTEGER NOT NULL,
  outcome          TEXT NOT NULL,
  time_ns          REAL NOT NULL,
  finished_at_us   INTEGER NOT NULL,
  document         TEXT NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
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
CREATE INDEX open_race_job ON open_race (job_seq, open_race_id) WHERE state != 'done';
CREATE INDEX event_job ON event (job_seq, seq);
CREATE INDEX learned_newest ON learned (kind, op, target, learned_id);
CREATE UNIQUE INDEX imported_trial_home ON imported_trial (job_seq, home_seq, content);
CREATE UNIQUE INDEX foreign_digest ON foreign_record (digest_high, digest_low);
CREATE INDEX foreign_rank ON foreign_record (foreign_task_id, outcome, time_ns);
COMMIT;
