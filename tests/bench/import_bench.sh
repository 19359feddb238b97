#!/usr/bin/env bash
# import_bench.sh [RECORDS]: writes that many records (default 1000000) of 500 tasks, 9 samples each, as our own JSON lines and
# as an AutoTVM log, imports each into a new database and exports it again; prints seconds, records a second and sizes.
# TUNER_BENCH_DIR: where to keep the files (default: a folder that is removed again; 1000000 records need 6 GB).
#   tests/bench/import_bench.sh 1000000
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tuner=${TUNER:-$root/build/release/bin/tuner}
records=${1:-1000000}
if [ -n "${TUNER_BENCH_DIR:-}" ]; then dir=$TUNER_BENCH_DIR; mkdir -p "$dir"; else dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; fi

own() {
  awk -v n="$records" 'BEGIN {
    srand(1)
    options = "{\"min_repeat_ms\":1.0,\"repeats\":9,\"build_timeout_s\":10.0,\"run_timeout_s\":10.0,\"memory_limit_bytes\":4294967296,\"cut_factor\":2.0,\"precision\":0.02}"
    tasks = 500; per = int((n + tasks - 1) / tasks); seq = 0
    for (t = 0; t < tasks && seq < n; ++t) {
      workload = sprintf("v1 matmul b=1 m=%d n=%d k=%d ta=0 tb=0 bias=0 act=none dtype=float32 const=none", 8 + t, 64 + t % 7, 128)
      uid = sprintf("j%d@1700000000%06d#0000%04x", t, t, t)
      printf "{\"format\":2,\"kind\":\"job\",\"job_uid\":\"%s\",\"job\":\"j%d\",\"request\":\"r%d\",\"tasks\":[{\"workload\":\"%s\",\"target\":\"llvm -mcpu=haswell -threads=1\",\"algorithms\":\"\",\"uses\":1}],\"trials\":%d,\"search\":\"random\",\"seed\":1,\"options\":%s,\"stop_below\":0.0,\"time_limit_s\":0.0,\"state\":\"finished\",\"message\":\"\",\"submitted\":\"2026-11-20T21:10:08.123456Z\",\"finished\":\"2026-11-20T22:10:08.123456Z\"}\n", uid, t, t, workload, per, options
      for (i = 0; i < per && seq < n; ++i) {
        ++seq; base = 1000 + 100000 * rand(); run = ""; cpu = ""
        for (s = 0; s < 9; ++s) { v = base * (1 + 0.01 * rand()); run = run (s ? "," : "") sprintf("%.15g", v); cpu = cpu (s ? "," : "") sprintf("%.15g", v * 0.999) }
        printf "{\"format\":2,\"kind\":\"trial\",\"job_uid\":\"%s\",\"job\":\"j%d\",\"trial\":\"t%d\",\"home_seq\":%d,\"task_index\":0,\"workload\":\"%s\",\"target\":\"llvm -mcpu=haswell -threads=1\",\"algorithms\":\"\",\"template\":\"matmul_x86\",\"template_version\":3,\"config\":{\"pack\":%d,\"tile_k\":%d,\"tile_m\":%d,\"tile_n\":%d,\"unroll\":%d},\"state\":\"done\",\"leases\":1,\"rng_counter\":%d,\"model_digest\":\"\",\"terminal\":true,\"attempt\":1,\"outcome\":\"ok\",\"cut\":false,\"message\":\"\",\"time_ns\":%.15g,\"run_ns\":[%s],\"cpu_ns\":[%s],\"sentinel_before_ns\":1234.5,\"sentinel_after_ns\":1236.25,\"queue_ms\":0.5,\"build_ms\":12.25,\"run_ms\":30.5,\"max_error\":0.03125,\"peak_gflops\":83.2,\"artifact\":\"%064x\",\"hardware\":\"cpu Example 3 GHz, 2 cores, 32 KiB L1d, 1 MiB L2\",\"toolchain\":\"llvm 22.1\",\"harness_abi\":1,\"worker\":\"w1\",\"worker_incarnation\":\"00112233\",\"host\":\"bench\",\"options\":%s,\"when\":\"2026-11-20T21:%02d:%02d.%06dZ\"}\n", uid, t, seq, seq, workload, i % 2, i % 64, int(i / 64) % 16, int(i / 1024) % 16, int(i / 16384), seq, base, run, cpu, seq, options, int(seq / 60) % 60, seq % 60, seq % 1000000
      }
    }
  }'
}
autotvm() {
  awk -v n="$records" 'BEGIN {
    srand(1)
    for (i = 0; i < n; ++i)
      printf "{\"input\": [\"llvm -keys=cpu -mcpu=haswell\", \"conv2d_NCHWc.x86\", [[\"TENSOR\", [1, %d, 7, 7], \"float32\"], [\"TENSOR\", [512, %d, 3, 3], \"float32\"], [1, 1], [1, 1, 1, 1], [1, 1], \"NCHW\", \"NCHW\", \"float32\"], {}], \"config\": {\"index\": %d, \"code_hash\": null, \"entity\": [[\"tile_ic\", \"sp\", [-1, %d]], [\"tile_oc\", \"sp\", [-1, %d]], [\"tile_ow\", \"sp\", [-1, 7]], [\"unroll_kw\", \"ot\", true]]}, \"result\": [[%.12g], 0, %.9g, %.6f], \"version\": 0.2, \"tvm_version\": \"0.19.0\"}\n", 8 * (i % 500 + 1), 8 * (i % 500 + 1), i, i % 32, i % 512, 0.001 * (1 + rand()), 0.5 + rand(), 1795202171 + i / 3
  }'
}
timed() {  # NAME COMMAND...
  local name=$1 from to
  shift
  from=$(date +%s.%N)
  "$@" >&2
  to=$(date +%s.%N)
  awk -v name="$name" -v n="$records" -v s="$(awk -v a="$from" -v b="$to" 'BEGIN { print b - a }')" \
    'BEGIN { printf "%-28s %8.1f s  %9.0f records a second\n", name, s, n / s }'
}
for form in own autotvm; do
  file=$dir/$form.jsonl
  [ -s "$file" ] || "$form" >"$file"
  rm -f "$dir/$form.db"*
  timed "import $form" "$tuner" records import "$file" --db "$dir/$form.db"
  timed "export $form" "$tuner" records export --db "$dir/$form.db" -o "$dir/$form.out"
  echo "    file $(du -h "$file" | cut -f1), database $(du -h "$dir/$form.db" | cut -f1)"
done
