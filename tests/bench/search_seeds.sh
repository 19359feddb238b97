#!/usr/bin/env bash
# search_seeds.sh [FILE] [TRIALS] [SEEDS]: tunes one workload on this machine with xgb-annealing and with random search, the
# same seeds, interleaved, each in a database of its own; prints the best time of each after TRIALS trials and who is ahead.
#   tests/bench/search_seeds.sh examples/conv2d.json 128 5
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tuner=${TUNER:-$root/build/release/bin/tuner}
file=${1:-$root/examples/conv2d.json} trials=${2:-128} seeds=${3:-5}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

best_us() {  # SEARCH SEED -> microseconds
  local db=$dir/$1-$2.db
  "$tuner" submit "$file" --trials "$trials" --search "$1" --seed "$2" --db "$db" >"$dir/$1-$2.log" 2>&1 ||
    { cat "$dir/$1-$2.log" >&2; exit 1; }
  grep -ho 'the model ranks[^;)]*' "$dir/$1-$2.log" | tail -n 1 >&2 || true
  "$tuner" query "$file" --db "$db" --json | grep -o '"time_ns": *[0-9.e+]*' | head -n 1 | awk -F: '{printf "%.1f", $2 / 1000}'
}

ahead=0
printf '%-5s %18s %12s %s\n' seed xgb-annealing_us random_us ahead
for ((seed = 0; seed < seeds; ++seed)); do
  model=$(best_us xgb-annealing "$seed")
  random=$(best_us random "$seed")
  if awk -v m="$model" -v r="$random" 'BEGIN { exit !(m <= r) }'; then who=model; ahead=$((ahead + 1)); else who=random; fi
  printf '%-5s %18s %12s %s\n' "$seed" "$model" "$random" "$who"
done
echo "xgb-annealing at least as good as random in $ahead of $seeds seeds after $trials trials"
