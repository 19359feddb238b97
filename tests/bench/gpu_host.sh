#!/usr/bin/env bash
# gpu_host.sh prepare FOLDER [ARCH [CANDIDATES]]   here: packs of job files, and the two programs that measure them
# gpu_host.sh first FOLDER OUT                     there: is it usable; what the device can do; every pack; our best against the libraries
# gpu_host.sh confirm FOLDER OUT                   there: the winners of OUT in fresh processes, under sanitizers, under a profiler
#
# Measuring on a GPU host that is at hand for minutes: FOLDER (below 64 MB) is all that is carried there; nothing is compiled
# on it. OUT receives every log as it grows, so a host that goes away leaves what was measured. A host that is wrong is told in
# one line before anything is measured (exit status 1); later on, what fails is told in a line and the rest goes on.
#
# ARCH: sm_90a unless given; CANDIDATES of each task: 50 (10 of ResNet-50), three in ten drawn at random, to judge the
# estimate. JOBS="FILE..." are the job files: those of examples/ and of gpu/jobs/ unless given, nothing as large as 8192x8192.
# Each visit ends by itself:
# SECONDS_OF_PACKS=170 and SECONDS_OF_PEERS=120 of the first, SECONDS_OF_WINNERS=150, SECONDS_OF_SANITIZERS=60 (each) and
# SECONDS_OF_PROFILES=60 of the second. Afterwards, here: tuner records import OUT/*.jsonl; judge_estimates OUT/*.jsonl;
# deploy/figures.py --summarise keeps OUT/bench_*.json and OUT/calibration.json. README.md tells more.
set -euo pipefail
usage() { sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ $# -ge 2 ]] || usage
what=$1 folder=$2

# --- here ---

prepare() {
  local bin arch=${1:-sm_90a} candidates=${2:-50} root file name most
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  bin=${TUNER_BIN:-$root/build/release/bin}
  local jobs=("$root"/examples/*_cuda.json "$root"/tests/bench/gpu/jobs/{memory_bound,resnet50}.json)
  [[ -z ${JOBS:-} ]] || read -ra jobs <<<"$JOBS"
  mkdir -p "$folder/small"
  cp "$bin/runner" "$bin/bench_gpu" "${BASH_SOURCE[0]}" "$folder/"
  for file in "$root/tests/bench/gpu/jobs/small.json" "${jobs[@]}"; do
    name=$(basename "$file" .json) most=$candidates
    case $name in
      memory_bound_cuda) [[ -n ${JOBS:-} ]] || continue ;;  # as large as 8192x8192: gpu/jobs/memory_bound is for short visits
      small) name=small/small most=$((candidates < 6 ? candidates : 6)) ;;
      resnet50) most=$((candidates < 10 ? candidates : 10)) ;;
    esac
    "$bin/tuner" pack "$file" -o "$folder/$name.pack" --target "cuda -arch=$arch" --candidates "$most" --random-share 30 --deadline 300
  done
  du -sh "$folder"
  (($(du -sk "$folder" | cut -f1) < 64 * 1024)) || { echo "gpu_host: $folder is larger than 64 MB: fewer CANDIDATES" >&2; exit 1; }
}

# --- there ---

say() { echo "gpu_host: $*" | tee -a "$out/log"; }
logged() { "$@" 2>&1 | tee -a "$out/log"; }
name_of() { basename "$1" .pack; }

# Calls `$2 PACK SECONDS` for each pack that this run has something to do for; each gets its part of the $1 seconds that are left.
share() {
  local end=$((SECONDS + $1)) step=$2 left i
  for i in "${!packs[@]}"; do
    left=$(((end - SECONDS) / (${#packs[@]} - i)))
    if ((left > 5)); then "$step" "${packs[$i]}" "$left"; else say "no time left for $(name_of "${packs[$i]}") ($step)"; fi
  done
}

# Small kernels of every operator: a host that cannot run one of them ends the visit in one line.
usable() {
  local text reason right all
  "$folder/runner" --probe >"$out/probe.json" 2>"$out/probe.err" || { say "stopped: runner --probe failed: $(head -n 1 "$out/probe.err")"; exit 1; }
  if ! text=$("$folder/runner" run-pack "$small" -o "$out/small.jsonl" --deadline 60 2>&1); then
    echo "$text" >>"$out/log"
    reason=$(grep -m 1 '^runner: ' <<<"$text" || tail -n 1 <<<"$text")
    say "stopped: ${reason#runner: }"
    exit 1
  fi
  echo "$text" >>"$out/log"
  all=$(wc -l <"$out/small.jsonl")
  right=$(grep -c '"outcome":"ok"' "$out/small.jsonl" || true)
  ((right > 0)) || { say "stopped: not one of $all small kernels is right: mend that first, see small.jsonl"; exit 1; }
  say "$right of $all runs of small kernels are right"
}

measure() { logged "$folder/runner" run-pack "$1" -o "$out/$(name_of "$1").jsonl" --deadline "$2" || say "$(name_of "$1") failed, see above"; }

# bench_gpu on a pack, with what is known of it. Arguments: pack, name of the JSON, options.
bench() {
  local pack=$1 json=$2 results
  results=$out/$(name_of "$pack").jsonl
  shift 2
  [[ -s $results ]] || { say "$(name_of "$pack") has no results: not compared"; return; }
  logged "$folder/bench_gpu" "$pack" --results "$results" --json "$json" "$@" || say "bench_gpu of $(name_of "$pack") failed, see above"
}
peers() { bench "$1" "$out/bench_$(name_of "$1").json" --best 3 --rounds 5 --deadline "$2"; }

first() {
  usable
  logged "$folder/bench_gpu" "$small" --calibrate --json "$out/calibration.json" || say "calibrating failed, see above"
  share "${SECONDS_OF_PACKS:-170}" measure
  share "${SECONDS_OF_PEERS:-120}" peers
}

again() { bench "$1" "$out/bench_$(name_of "$1")_again$round.json" --rounds 5 --deadline "$2"; }

# Of each task, whatever it computed.
digests() { grep -o '"output_sha256": "[0-9a-f]*"' "$out/bench_$1_again$2.json" 2>/dev/null || true; }
compare_outputs() {
  local pack name one two three count
  for pack in "${packs[@]}"; do
    name=$(name_of "$pack")
    one=$(digests "$name" 1) two=$(digests "$name" 2) three=$(digests "$name" 3)
    count=$(wc -l <<<"$one")
    if [[ -z $one || $count != "$(wc -l <<<"$two")" || $count != "$(wc -l <<<"$three")" ]]; then
      say "$name: not every task ran in three processes"
    elif [[ $one == "$two" && $one == "$three" ]]; then
      say "$name: $count outputs are bitwise equal in three processes"
    else
      say "$name: outputs DIFFER from process to process, see output_sha256 in bench_${name}_again*.json"
    fi
  done
}

# The path of a tool of NVIDIA's. None: a line says so.
tool() { command -v "$1" || command -v "/usr/local/cuda/bin/$1" || { say "no $1 on this host: not run" >&2; return 1; }; }

# Our kernels alone: the libraries are named so that none is found.
sanitize() {
  local sanitizer=$1 check=$2 log=$out/$2.txt
  if TUNER_LIBCUBLAS=none TUNER_LIBCUBLASLT=none TUNER_LIBCUDNN=none timeout "${SECONDS_OF_SANITIZERS:-60}" \
    "$sanitizer" --tool "$check" --error-exitcode 9 "$folder/bench_gpu" "$small" --check --best 6 >"$log" 2>&1; then
    say "$check of the small kernels: $(grep -m 1 SUMMARY "$log" || echo no summary)"
  else
    say "$check failed or ran out of time, see $check.txt: $(tail -n 1 "$log")"
  fi
}
profile() {
  local name log
  name=$(name_of "$1") log=$out/profile_$(name_of "$1").txt
  [[ -s $out/$name.jsonl ]] || return 0
  if timeout "$2" "$profiler" --log-file "$log" "$folder/bench_gpu" "$1" --results "$out/$name.jsonl" --check >>"$out/log" 2>&1; then
    say "profile of $name: profile_$name.txt"
  else
    say "profiling $name failed or ran out of time, see profile_$name.txt"
  fi
}

confirm() {
  local round sanitizer profiler check
  for round in 1 2 3; do share $((${SECONDS_OF_WINNERS:-150} / 3)) again; done
  compare_outputs
  if sanitizer=$(tool compute-sanitizer); then for check in memcheck racecheck; do sanitize "$sanitizer" "$check"; done; fi
  if profiler=$(tool ncu); then share "${SECONDS_OF_PROFILES:-60}" profile; fi
}

case $what in
  prepare) prepare "${@:3}" ;;
  first | confirm)
    [[ $# -eq 3 ]] || usage
    out=$3 small=$folder/small/small.pack packs=("$folder"/*.pack)
    mkdir -p "$out"
    "$what"
    ;;
  *) usage ;;
esac
