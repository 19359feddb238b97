#!/usr/bin/env bash
# trial_rate.sh BEFORE AFTER ROUNDS FILE.json...
# How many trials a second two builds do: `tuner submit FILE --trials 96` with the programs of the folders BEFORE and AFTER (each a
# build/release/bin) in turn, ROUNDS times. Every job has a database and a cache of its own, so all is built anew; only what is
# known of the machine is shared. Prints of each its last line (trials, seconds, rate), the CPU seconds of all its processes, and
# the published time. Stop everything else first: the ratio counts. Beside others the CPU seconds are what says something.
set -euo pipefail
[[ $# -ge 4 ]] || { sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
before=$1 after=$2 rounds=$3
shift 3
facts=${XDG_CACHE_HOME:-$HOME/.cache}/tuner/shared/machine.json
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for round in $(seq "$rounds"); do
  for file in "$@"; do
    for which in before after; do
      rm -rf "${work:?}"/*
      mkdir -p "$work/cache/tuner/shared"
      [[ ! -f $facts ]] || cp "$facts" "$work/cache/tuner/shared/"
      bin=$before
      [[ $which = before ]] || bin=$after
      TIMEFORMAT='%U + %S'
      { time XDG_CACHE_HOME=$work/cache "$bin/tuner" submit "$file" --trials 96 --stop-below 0 --seed "$round" --db "$work/t.db" \
        >"$work/log" 2>&1; } 2>"$work/cpu" || { cat "$work/log" >&2; exit 1; }
      printf '%-20s %-6s %s; %s s CPU | %s\n' "$(basename "$file" .json)" "$which" "$(sed -n 's/^job j1: //p' "$work/log" | tail -1)" \
        "$(cat "$work/cpu")" "$(grep -m1 -oE '[0-9.]+ [a-z]+ \(95 %[^)]*\)' "$work/log"), $(grep -m1 -oE '[0-9.]+ times as fast' "$work/log")"
    done
  done
done
