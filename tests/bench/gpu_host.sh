#!/usr/bin/env bash
# gpu_host.sh prepare FOLDER [ARCH [CANDIDATES]]   here: packs of the CUDA examples, and the two programs that measure them
# gpu_host.sh first FOLDER OUT                     there: probe, every pack, and our best against the libraries
# gpu_host.sh confirm FOLDER OUT                   there: the winners of OUT again, three times in fresh processes
#
# Measuring on a GPU host that is at hand for a short time: FOLDER (below 64 MB) is all that is carried there; nothing is compiled
# on it. OUT receives every log as it grows, so a host that goes away leaves what was measured. ARCH: sm_90a unless given; CANDIDATES
# of each task: 100, three in ten drawn at random, to judge the estimate. `first` takes about nine minutes and ends by itself
# (SECONDS_OF_PACKS=300, SECONDS_OF_PEERS=150). Afterwards, here: tuner records import OUT/*.jsonl; OUT/bench_*.json is what
# tests/bench/results keeps.
set -euo pipefail
usage() { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ $# -ge 2 ]] || usage
what=$1 folder=$2

prepare() {
  local bin arch=${1:-sm_90a} candidates=${2:-100} root
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  bin=${TUNER_BIN:-$root/build/release/bin}
  mkdir -p "$folder"
  cp "$bin/runner" "$bin/bench_gpu" "${BASH_SOURCE[0]}" "$folder/"
  for file in "$root"/examples/*_cuda.json; do
    local name
    name=$(basename "$file" .json)
    "$bin/tuner" pack "$file" -o "$folder/$name.pack" --target "cuda -arch=$arch" --candidates "$candidates" --random-share 30 --deadline 300
  done
  du -sh "$folder"
}

# Packs share the time that is given: each gets its part of what is left.
first() {
  local out=$1 packs=("$folder"/*.pack) end left
  mkdir -p "$out"
  "$folder/runner" --probe | tee "$out/probe.json"
  end=$((SECONDS + ${SECONDS_OF_PACKS:-300}))
  for i in "${!packs[@]}"; do
    left=$(((end - SECONDS) / (${#packs[@]} - i)))
    ((left > 5)) || { echo "gpu_host: no time left for ${packs[$i]}" | tee -a "$out/log"; continue; }
    measure run-pack "${packs[$i]}" "$out" --deadline "$left"
    ((i > 0)) || [[ -s $out/$(basename "${packs[0]}" .pack).jsonl ]] || { echo "gpu_host: nothing could be measured; mend that first" >&2; exit 1; }
  done
  end=$((SECONDS + ${SECONDS_OF_PEERS:-150}))
  for i in "${!packs[@]}"; do
    left=$(((end - SECONDS) / (${#packs[@]} - i)))
    ((left > 5)) || { echo "gpu_host: no time left for the peers of ${packs[$i]}" | tee -a "$out/log"; continue; }
    peers "${packs[$i]}" "$out" "" --deadline "$left"
  done
}

confirm() {
  local out=$1
  for round in 1 2 3; do
    for pack in "$folder"/*.pack; do
      [[ ! -s $out/$(basename "$pack" .pack).jsonl ]] || peers "$pack" "$out" "_again$round" --deadline 40
    done
  done
}

# One pack's failure is said, and the next goes on.
measure() {
  local pack=$2 out=$3 name
  name=$(basename "$pack" .pack)
  shift 3
  "$folder/runner" run-pack "$pack" -o "$out/$name.jsonl" "$@" 2>&1 | tee -a "$out/log" || echo "gpu_host: $name failed, see above" | tee -a "$out/log"
}
peers() {
  local pack=$1 out=$2 suffix=$3 name
  name=$(basename "$pack" .pack)
  shift 3
  "$folder/bench_gpu" "$pack" --results "$out/$name.jsonl" --json "$out/bench_$name$suffix.json" "$@" 2>&1 | tee -a "$out/log" ||
    echo "gpu_host: peers of $name failed, see above" | tee -a "$out/log"
}

case $what in
  prepare) prepare "${@:3}" ;;
  first | confirm) [[ $# -eq 3 ]] || usage; "$what" "$3" ;;
  *) usage ;;
esac
