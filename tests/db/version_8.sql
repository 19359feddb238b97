-- A database as version 8 of the schema wrote it: the text `sqlite3 FILE .dump` printed, without comments.
PRAGMA application_id = 0x54554e52;
PRAGMA user_version = 8;
BEGIN TRANSACTION;
CREATE TABLE event (
  seq      INTEGER PRIMARY KEY,
  job_seq  INTEGER NOT NULL REFERENCES job,
  json     TEXT NOT NULL
) STRICT;
INSERT INTO event VALUES(26,1,'{"leased":1}');
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
CREATE TABLE foreign_task (
  foreign_task_id  INTEGER PRIMARY KEY,
  format           TEXT NOT NULL,
  task             TEXT NOT NULL,
  target           TEXT NOT NULL,
  crc              INTEGER NOT NULL,
  UNIQUE (format, task, target)
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
INSERT INTO learned VALUES(25,'predictor','work','cpu one',17,'{}',1700000004000000,1800890420);
CREATE TABLE origin (
  origin_id       INTEGER PRIMARY KEY,
  source          TEXT NOT NULL,
  format          TEXT NOT NULL,
  header          TEXT NOT NULL,
  imported_at_us  INTEGER NOT NULL,
  crc             INTEGER NOT NULL
) STRICT;
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
INSERT INTO race VALUES(18,1,0,3,5,'[{"process":[0,1],"samples_ns":[100.0,101.5],"sentinel_ns":[50.0,51.0],"trial":4},{"process":[0,1],"samples_ns":[100.0,101.5],"sentinel_ns":[50.0,51.0],"trial":5}]','[5,4]',100.0,98.0,102.0,0.0,0.0,0.0,0.0,'{"certified":true,"limit_s":20.0,"min_repeat_ms":1.0,"processes":9,"rounds":3}','cpu X','llvm 22',1,'w1','host1',1700000002000000,853645309);
CREATE TABLE task (
  task_id       INTEGER PRIMARY KEY,
  workload_key  TEXT NOT NULL,
  target        TEXT NOT NULL,
  crc           INTEGER NOT NULL,
  UNIQUE (workload_key, target)
) STRICT;
INSERT INTO task VALUES(3,'v1 work','cpu one',1730041635);
INSERT INTO task VALUES(8,'v1 other','cuda sm_90',69292665);
INSERT INTO task VALUES(10,'v1 work','cpu one constants=cold',3785073102);
CREATE TABLE quarantine (
  quarantine_id       INTEGER PRIMARY KEY,
  lease_id            TEXT NOT NULL,
  attempt             INTEGER NOT NULL,
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  host                TEXT NOT NULL,
  claimed_ns          REAL NOT NULL,
  why                 TEXT NOT NULL,
  received_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
INSERT INTO quarantine VALUES(23,'t6',1,'w2','inc2','host2',0.25,'no machine is as fast',1700000002000000,1257729383);
CREATE TABLE poison (
  poison_id           INTEGER PRIMARY KEY,
  workload_key        TEXT NOT NULL,
  target              TEXT NOT NULL,
  template_name       TEXT NOT NULL,
  template_version    INTEGER NOT NULL,
  config              TEXT NOT NULL,
  phase               TEXT NOT NULL,
  worker_id           TEXT NOT NULL,
  worker_incarnation  TEXT NOT NULL,
  alone               INTEGER NOT NULL,
  happened_at_us      INTEGER NOT NULL,
  crc                 INTEGER NOT NULL
) STRICT;
INSERT INTO poison VALUES(24,'v1 work','cpu one','toy_x86',3,'a=5','running','w2','inc2',1,1700000003000000,4056737047);
CREATE TABLE IF NOT EXISTS "record" (
  record_id                  INTEGER PRIMARY KEY,
  trial_seq                  INTEGER NOT NULL REFERENCES trial,
  task_id                    INTEGER NOT NULL REFERENCES task,
  terminal                   INTEGER NOT NULL,
  attempt                    INTEGER NOT NULL,
  outcome                    TEXT NOT NULL,
  cut                        INTEGER NOT NULL,
  message                    TEXT NOT NULL,
  time_ns                    REAL NOT NULL,
  run_ns                     TEXT NOT NULL,
  cpu_ns                     TEXT NOT NULL,
  sentinel_before_ns         REAL NOT NULL,
  sentinel_after_ns          REAL NOT NULL,
  queue_ms                   REAL NOT NULL,
  build_ms                   REAL NOT NULL,
  run_ms                     REAL NOT NULL,
  max_error                  REAL NOT NULL,
  peak_gflops                REAL NOT NULL,
  artifact_digest            TEXT NOT NULL,
  hardware                   TEXT NOT NULL,
  toolchain                  TEXT NOT NULL,
  harness_abi                INTEGER NOT NULL,
  worker_id                  TEXT NOT NULL,
  worker_incarnation         TEXT NOT NULL,
  host                       TEXT NOT NULL,
  options                    TEXT NOT NULL,
  finished_at_us             INTEGER NOT NULL,
  device_state               TEXT NOT NULL,
  memory_sentinel_before_ns  REAL NOT NULL,
  memory_sentinel_after_ns   REAL NOT NULL,
  discarded                  INTEGER NOT NULL,
  read_gbps                  REAL NOT NULL,
  page_faults INTEGER NOT NULL,
  isolation TEXT NOT NULL,
  crc                        INTEGER NOT NULL
) STRICT;
INSERT INTO record VALUES(12,4,3,1,1,'ok',0,'',999.0,'[1000.5,0.30000000000000004,999.0]','[1000.5,0.30000000000000004,999.0]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',300.25,0.33333333333333331482,2,21.5,0,'',2994316985);
INSERT INTO record VALUES(13,5,3,1,1,'ok',0,'',2000.0,'[2000.0]','[2000.0]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',0.0,0.0,0,0.0,0,'',2470269413);
INSERT INTO record VALUES(14,6,3,1,1,'wrong_answer',0,'out[0, 3] is 1.25, reference "1.5"',0.0,'[]','[]',100.25,101.49999999999999999,0.125,12.5,30.0,1.0000000000000000047e+300,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',0.0,0.0,0,0.0,0,'',249232238);
INSERT INTO record VALUES(15,9,8,1,1,'ok',1,'',7.375,'[7.25,7.5]','[7.25,7.5]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'1980 MHz, 55 C, "power cap", µ',0.0,0.0,0,0.0,0,'',1499269388);
INSERT INTO record VALUES(16,11,10,1,1,'ok',0,'',500.0,'[500.0]','[500.0]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"constants":"cold","cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',0.0,0.0,0,0.10000000000000000555,0,'',3293117620);
INSERT INTO record VALUES(17,4,3,0,3,'ok',0,'',1001.0,'[1001.0]','[1001.0]',100.25,101.49999999999999999,0.125,12.5,30.0,0.10000000000000000555,83.200000000000002842,'d1g35t','cpu X','llvm 22',1,'w1','inc1','host1','{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":5,"run_timeout_s":10.0}',1700000001000000,'',0.0,299.0,0,0.0,0,'',3124420864);
CREATE TABLE IF NOT EXISTS "job" (
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
  tenant TEXT NOT NULL,
  crc              INTEGER NOT NULL
) STRICT;
INSERT INTO job VALUES(1,'j1','request-j1','[["v1 work","cpu one"],["v1 other","cuda sm_90","direct",7]]',64,'random',-1,'{"build_timeout_s":10.0,"cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"precision":0.125,"repeats":9,"run_timeout_s":10.0,"stop_below":0.01,"time_limit_s":60.0}','queued','',1700000000000000,0,'',717794172);
INSERT INTO job VALUES(2,'j2','request-j2','[["v1 work","cpu one","",1,"cold"]]',64,'random',-1,'{"build_timeout_s":10.0,"constants":"cold","cut_factor":2.0,"memory_limit_bytes":4294967296,"min_repeat_ms":1.0,"repeats":9,"run_timeout_s":10.0}','queued','',1700000000000000,0,'',1547537300);
CREATE TABLE IF NOT EXISTS "trial" (
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
  grants            TEXT NOT NULL,
  crc               INTEGER NOT NULL
) STRICT;
INSERT INTO trial VALUES(4,1,0,3,'toy_x86',3,'a=1 b=2','done',0,0,'',-1152921504606846975,'m1','',825171646);
INSERT INTO trial VALUES(5,1,0,3,'toy_x86',3,'a=2 b=-3','done',0,0,'',-1152921504606846975,'m1','',2141756546);
INSERT INTO trial VALUES(6,1,0,3,'toy_x86',3,'a=3','done',0,0,'',-1152921504606846975,'m1','',1080619070);
INSERT INTO trial VALUES(7,1,0,3,'toy_x86',3,'a=4','queued',0,0,'',-1152921504606846975,'m1','',4094031455);
INSERT INTO trial VALUES(9,1,1,8,'toy_x86',3,'odd text, "quoted"','done',0,0,'',-1152921504606846975,'m1','',823128039);
INSERT INTO trial VALUES(11,2,0,10,'toy_x86',3,'a=7','done',0,0,'',-1152921504606846975,'m1','',4253321210);
INSERT INTO trial VALUES(19,1,0,3,'toy_x86',3,'a=8','leased',1,20,'w1',-1152921504606846975,'m1',replace('1 w1 \n','\n',char(10)),3456475811);
CREATE TABLE IF NOT EXISTS "open_race" (
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
  grants             TEXT NOT NULL,
  crc                INTEGER NOT NULL
) STRICT;
INSERT INTO open_race VALUES(21,'race j1/2',1,0,'[4,5]',0,'{"limit_s":20.0,"min_repeat_ms":1.0,"processes":9,"rounds":3}','leased',1,22,'w2',0,'',replace('1 w2 inc2\n','\n',char(10)),2078252499);
CREATE INDEX proposal_job ON proposal (job_seq, proposal_seq);
CREATE INDEX race_job ON race (job_seq, race_id);
CREATE INDEX race_task ON race (task_id, race_id);
CREATE INDEX event_job ON event (job_seq, seq);
CREATE INDEX learned_newest ON learned (kind, op, target, learned_id);
CREATE UNIQUE INDEX imported_trial_home ON imported_trial (job_seq, home_seq, content);
CREATE UNIQUE INDEX foreign_digest ON foreign_record (digest_high, digest_low);
CREATE INDEX foreign_rank ON foreign_record (foreign_task_id, outcome, time_ns);
CREATE INDEX quarantine_lease ON quarantine (lease_id, quarantine_id);
CREATE INDEX record_trial ON record (trial_seq, record_id);
CREATE UNIQUE INDEX record_terminal ON record (trial_seq) WHERE terminal = 1;
CREATE INDEX record_rank ON record (task_id, terminal, outcome, cut, time_ns);
CREATE INDEX job_same ON job (tasks, search, seed, job_seq);
CREATE INDEX trial_job ON trial (job_seq, seq);
CREATE INDEX trial_state ON trial (job_seq, state);
CREATE INDEX trial_open ON trial (job_seq, seq) WHERE state IN ('queued', 'leased');
CREATE INDEX open_race_job ON open_race (job_seq, open_race_id) WHERE state != 'done';
CREATE TABLE kernel (
  kernel_id      INTEGER PRIMARY KEY,
  digest         TEXT NOT NULL,
  tenant         TEXT NOT NULL,
  document       TEXT NOT NULL,
  brought_at_us  INTEGER NOT NULL,
  crc            INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX kernel_digest ON kernel (digest, tenant);
COMMIT;
