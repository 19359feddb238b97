#!/usr/bin/env bash
# two_releases.sh OLD NEW: databases go from one release to the next. OLD and NEW are folders with programs (a build/release/bin).
# OLD's tuner tunes three tasks into a database, and prints answers, jobs and records of it. NEW's submits the same job, which migrates
# the file and measures nothing, and must print the same. Then OLD must refuse the file in one line, if its schema is another one.
# Exit code 0: all holds.
set -euo pipefail
[[ $# -eq 2 && -x $1/tuner && -x $2/tuner ]] || { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
old=$(realpath "$1")/tuner new=$(realpath "$2")/tuner
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME=$work/cache XDG_DATA_HOME=$work/data XDG_RUNTIME_DIR=$work TUNER_RACE_LIMIT_S=2
cd "$work"
cat >job.json <<'END'
[{"op": "matmul", "a": [48, 64], "b": [64, 96], "constant": ["b"]},
 {"op": "softmax", "rows": 16, "columns": 128},
 {"op": "conv2d", "data": [1, 8, 14, 14], "weight": [16, 8, 3, 3], "padding": 1, "constant": ["weight"], "bias": true}]
END
version() { od -An -tu4 -j60 -N4 --endian=big "$1" | tr -d ' '; }  # user_version
# What people read of a database; the first line of an export names the program.
answers() {
  "$1" query job.json --db "$2" --json
  "$1" jobs --db "$2" --json | grep -v '"silent_s"'
  "$1" records export --db "$2" -o - | sed 1d
}

"$old" submit job.json --trials 24 --db t.db >submit.log 2>&1 || { cat submit.log >&2; exit 1; }
before=$(version t.db)
answers "$old" t.db >before.txt
lines=$(wc -l <before.txt)
trials=$(grep -cE '"kind": ?"trial"' before.txt || true)
[[ $trials -gt 40 ]] || { echo "two_releases: $old exported $trials trials, expected more than 40" >&2; exit 1; }
same() {  # same WHEN: the new program's answers are those of the old one
  answers "$new" t.db >after.txt
  diff before.txt after.txt >difference && return
  echo "two_releases: FAILED: from schema $before, $1: $(grep -c '^[<>]' difference) of $lines lines differ" >&2
  head -20 difference >&2
  exit 1
}
# Readers migrate nothing: they say what does.
if ! "$new" query job.json --db t.db >said 2>&1; then
  [[ $(wc -l <said) -eq 1 && $(<said) == *"schema version $before"*migrates* ]] || { cat said >&2; exit 1; }
fi
# The same job again measures nothing.
"$new" submit job.json --trials 24 --db t.db >again.log 2>&1 || { cat again.log >&2; exit 1; }
after=$(version t.db)
same "after the same job again"
"$new" submit - --trials 4 --db t.db >more.log 2>&1 <<<'{"op": "softmax", "rows": 8, "columns": 64}' || { cat more.log >&2; exit 1; }
"$new" records export --db t.db -o - >more.txt
kept=$(grep -E '"kind": ?"trial"' before.txt | grep -Fxcf - more.txt || true)
[[ $kept -eq $trials ]] || { echo "two_releases: FAILED: $kept of $trials trials are left after new ones" >&2; exit 1; }
if [[ $after != "$before" ]]; then
  if "$old" query job.json --db t.db >refusal 2>&1; then echo "two_releases: FAILED: the old program opens schema $after" >&2; exit 1; fi
  [[ $(wc -l <refusal) -eq 1 ]] || { cat refusal >&2; exit 1; }
fi
echo "two_releases: schema $before to $after: $lines lines of answers, jobs and records are the same, of $trials trials"
[[ $after == "$before" ]] || echo "two_releases: the old program says: $(cat refusal)"
