#!/usr/bin/env bash
# verify_times.sh [BIN] [RUNS]
# Does `tuner verify --times` tell true times from false ones? BIN: a build/release/bin; RUNS (20): answers judged per row.
# Tunes five tasks in a database of its own and judges their answers RUNS times: as they are and 10 % too fast on a quiet machine;
# then, beside a program that streams through memory and a compiler on every CPU, as they are (2 x RUNS) and twice too fast.
# Prints per row how many answers were inside, OUTSIDE, and "cannot tell", and per task. Stop everything else first: 6 minutes.
# Exit status: 0; 1 a row breaks its promise; 2 wrong use or no certified answers.
#   QUIET_ONLY=1, LOADED_ONLY=1: half of it. KEEP=DIR: the databases and every verdict stay there; those of a run before are used.
set -euo pipefail
bin=$(realpath "${1:-build/release/bin}")
runs=${2:-20}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
[[ -x $bin/tuner && -x $bin/edited_answers && $runs =~ ^[0-9]+$ ]] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
work=${KEEP:-$(mktemp -d)}
mkdir -p "$work"
load=()
stop_load() {
  for pid in "${load[@]}"; do
    kill -- "-$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  load=()
}
finish() {
  stop_load
  [[ -n ${KEEP:-} ]] || rm -rf "$work"
}
trap finish EXIT
export XDG_CACHE_HOME=$work/cache
job=$work/tasks.json
cat >"$job" <<'JSON'
[{"name": "matmul_128", "op": "matmul", "a": [128, 128], "b": [128, 128], "trials": 32},
 {"name": "matmul_512", "op": "matmul", "a": [512, 512], "b": [512, 512], "trials": 32},
 {"name": "conv_14", "op": "conv2d", "data": [1, 64, 14, 14], "weight": [64, 64, 3, 3], "padding": 1, "constant": ["weight"], "trials": 32},
 {"name": "matmul_row", "op": "matmul", "a": [1, 1024], "b": [1024, 2048], "constant": ["b"], "trials": 32},
 {"name": "softmax", "op": "softmax", "rows": 512, "columns": 1000, "trials": 32}]
JSON
tasks=5

certified() { "$bin/tuner" query "$job" --db "$work/right.db" --json | grep -c '"certified": true' || true; }
for ((i = 0; i < 5; ++i)); do
  [[ -f $work/right.db && $(certified) -eq $tasks ]] && break
  "$bin/tuner" submit "$job" --db "$work/right.db" --fresh >"$work/submit.log" 2>&1 || true
done
[[ $(certified) -eq $tasks ]] || { echo "verify_times.sh: $(certified) of $tasks answers are certified; on a calmer machine" >&2; exit 2; }
for name in ten:0.9 twice:0.5; do
  [[ -f $work/${name%:*}.db ]] || "$bin/edited_answers" "$work/right.db" "$work/${name%:*}.db" "${name#*:}" >/dev/null
done

# DB COUNT LOAD: so many verdicts of it, a line "LOAD DB VERDICT TIME/PUBLISHED WORKLOAD" each, in verdicts.txt.
judge() {
  local done=0
  while ((done < $2)); do
    "$bin/tuner" verify "$job" --times --json --db "$work/$1.db" >"$work/now.json" 2>"$work/verify.log" || [[ $? -eq 1 ]] ||
      { cat "$work/verify.log" >&2; exit 2; }
    python3 - "$work/now.json" "$3" "$1" $(($2 - done)) >>"$work/verdicts.txt" <<'PY'
import json, sys
answers = json.load(open(sys.argv[1]))
for a in answers[:int(sys.argv[4])]:
    print(sys.argv[2], sys.argv[3], a["verdict"].replace(" ", "_"), "%.3f" % (a["time_ns"] / a["published"]["time_ns"]), a["workload"])
PY
    done=$((done + tasks))
    cat "$work/now.json" >>"$work/$1-$3.json"
  done
}
start_load() {
  "$bin/memory_stream" &
  load+=($!)
  for ((i = 0; i < $(nproc); ++i)); do
    while :; do
      c++ -std=c++20 -O2 -I"$root" -c "$root/templates/space/config_space.cpp" -o "$work/load-$1$i.o" 2>/dev/null || sleep 1
    done &
    load+=($!)
  done
  sleep 2
}
set -m  # every background job has a process group of its own, which stop_load ends
: >"$work/verdicts.txt"
if [[ -z ${LOADED_ONLY:-} ]]; then
  judge right "$runs" quiet
  judge ten "$runs" quiet
fi
if [[ -z ${QUIET_ONLY:-} ]]; then
  start_load l
  judge right $((2 * runs)) loaded
  judge twice "$runs" loaded
  stop_load
fi
python3 - "$work/verdicts.txt" <<'PY'
import collections, sys
factors = {"right": "1", "ten": "0.9", "twice": "0.5"}
rows = collections.defaultdict(list)
for line in open(sys.argv[1]):
    load, db, verdict, ratio, workload = line.split(None, 4)
    rows[load, db].append((verdict, float(ratio), " ".join(workload.split()[1:5])))
broken = 0
print("%-8s %-14s %4s %7s %8s %12s  %s" % ("load", "time edited by", "N", "inside", "OUTSIDE", "cannot tell", "promise"))
for (load, db), found in rows.items():
    n = len(found)
    count = collections.Counter(v for v, _, _ in found)
    inside, outside, unknown = count["inside"], count["OUTSIDE"], n - count["inside"] - count["OUTSIDE"]
    if db == "right" and load == "quiet":
        promise, kept = "0 OUTSIDE, at most 10 % cannot tell", outside == 0 and 10 * unknown <= n
    elif db == "right":
        promise, kept = "0 OUTSIDE", outside == 0
    elif load == "quiet":
        promise, kept = "all OUTSIDE", outside == n
    else:
        promise, kept = "75 % OUTSIDE", 4 * outside >= 3 * n
    broken += not kept
    print("%-8s %-14s %4d %7d %8d %12d  %s: %s" % (load, factors[db], n, inside, outside, unknown, promise, "kept" if kept else "BROKEN"))
print()
for (load, db), found in rows.items():
    for task in sorted({t for _, _, t in found}):
        mine = [(v, r) for v, r, t in found if t == task]
        words = ", ".join("%d %s" % (c, v.replace("_", " ")) for v, c in collections.Counter(v for v, _ in mine).items())
        print("%-8s %-5s %-34s %s; time over published %.2f .. %.2f" % (load, db, task, words, min(r for _, r in mine), max(r for _, r in mine)))
sys.exit(1 if broken else 0)
PY
