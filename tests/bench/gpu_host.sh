#!/usr/bin/env bash
# gpu_host.sh prepare FOLDER [ARCH [CANDIDATES]]   here: packs of job files, and the two programs that measure them
# gpu_host.sh first FOLDER OUT                     there: is it usable; what the device can do; every pack; our best against the libraries
# gpu_host.sh confirm FOLDER OUT                   there: the winners of OUT in fresh processes, under sanitizers, under a profiler
# gpu_host.sh rehearse [FOLDER]                    here: both visits on a driver and libraries of our own, with small packs of the same jobs
#
# Measuring on a GPU host that is at hand for minutes: FOLDER (below 60 MB) is all that is carried there; nothing is compiled
# on it. OUT receives every log as it grows, so a host that goes away leaves what was measured; BUNDLE=FILE.tar.gz also keeps
# all of OUT as that one file, written anew after each step and every 15 seconds. A host that is wrong is told in one line
# before anything is measured (exit status 1); later on, what fails is told in a line and the rest goes on.
#
# ARCH: sm_90a unless given; CANDIDATES of each task: 40 (8 of ResNet-50), three in ten drawn at random, to judge the
# estimate. JOBS="FILE..." are the job files: gpu/jobs/{hopper,resnet50_nhwc}.json unless given; FILE=WEIGHT gets so many parts
# of the time (hopper 2, others 1). `confirm` takes the results of FOLDER/first.tar.gz where OUT has none.
# Each visit ends by itself: SECONDS_OF_PACKS=130, SECONDS_OF_PEERS=200 and PEER_SECONDS=6 (a task) of the first,
# SECONDS_OF_WINNERS=90, SECONDS_OF_SANITIZERS=40 (each) and SECONDS_OF_PROFILES=40 of the second. Afterwards, here:
# tuner records import OUT/*.jsonl; judge_estimates OUT/*.jsonl; deploy/figures.py --summarise keeps OUT/bench_*.json,
# OUT/calibration.json and OUT/device_properties.json. README.md tells more.
set -euo pipefail
usage() { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
[[ $# -ge 1 ]] || usage
what=$1 folder=${2:-}

# --- here ---

most_mb=60
root_of_tree() { cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd; }

# Job files, each with its weight, into jobs[] and weights[].
read_jobs() {
  local job
  jobs=("$root"/tests/bench/gpu/jobs/{hopper,resnet50_nhwc}.json) weights=()
  [[ -z ${JOBS:-} ]] || read -ra jobs <<<"$JOBS"
  for job in "${!jobs[@]}"; do
    case ${jobs[$job]} in
      *=*) weights[job]=${jobs[$job]##*=} jobs[job]=${jobs[$job]%=*} ;;
      */hopper.json | hopper.json) weights[job]=2 ;;
      *) weights[job]=1 ;;
    esac
  done
}

# The folder that is carried, with packs that `make_pack JOBFILE PACK MOST` makes.
fill() {
  local make_pack=$1 bin=$2 candidates=$3 i file name most
  mkdir -p "$folder/small"
  cp "$bin/runner" "$bin/bench_gpu" "${BASH_SOURCE[0]}" "$folder/"
  "$make_pack" "$root/tests/bench/gpu/jobs/small.json" "$folder/small/small.pack" $((candidates < 6 ? candidates : 6))
  : >"$folder/order"
  for i in "${!jobs[@]}"; do
    file=${jobs[$i]} most=$candidates
    name=$(basename "$file" .json)
    case $name in resnet50*) most=$((candidates < 8 ? candidates : 8)) ;; esac
    "$make_pack" "$file" "$folder/$name.pack" "$most"
    echo "$name ${weights[$i]}" >>"$folder/order"
  done
  du -sh "$folder"
  (($(du -sk "$folder" | cut -f1) < most_mb * 1024)) || { echo "gpu_host: $folder is larger than $most_mb MB: fewer CANDIDATES" >&2; exit 1; }
}

prepare() {
  local arch=${1:-sm_90a} bin
  root=$(root_of_tree)
  bin=${TUNER_BIN:-$root/build/release/bin}
  read_jobs
  compiled_pack() { "$bin/tuner" pack "$1" -o "$2" --target "cuda -arch=$arch" --candidates "$3" --random-share 30 --deadline 300; }
  fill compiled_pack "$bin" "${2:-40}"
}

# The whole of both visits. What NVIDIA's tools would do is running the program.
rehearse() {
  local bin build lib tool name missing=() expected
  root=$(root_of_tree)
  build=${TUNER_BUILD:-$root/build/release}
  bin=${TUNER_BIN:-$build/bin}
  folder=${folder:-$(mktemp -d)}
  read_jobs
  made_up_pack() { "$bin/rehearsal_pack" "$1" -o "$2"; }
  fill made_up_pack "$bin" 3
  mkdir -p "$folder/tools"
  for tool in compute-sanitizer ncu; do
    cat >"$folder/tools/$tool" <<'TOOL'
#!/bin/bash
log=/dev/stdout
while [[ $1 == --* ]]; do [[ $1 != --log-file ]] || log=$2; shift 2; done
"$@" || exit
echo "==== ERROR SUMMARY: 0 errors" >>"$log"
TOOL
    chmod +x "$folder/tools/$tool"
  done
  for lib in cuda:CUDA cublas:CUBLAS cublaslt:CUBLASLT cudnn:CUDNN; do
    name=$(find "$build" -name "libfake${lib%%:*}.so" -print -quit)
    [[ -n $name ]] || { echo "gpu_host: no libfake${lib%%:*}.so below $build: build it first" >&2; exit 1; }
    export "TUNER_LIB${lib##*:}=$name"
  done
  export TUNER_LIBNVML=$TUNER_LIBCUDA PATH=$folder/tools:$PATH
  # Two hosts: the second has what is carried, and what came back of the first.
  BUNDLE=$folder/first.tar.gz bash "$folder/gpu_host.sh" first "$folder" "$folder/out"
  BUNDLE=$folder/second.tar.gz bash "$folder/gpu_host.sh" confirm "$folder" "$folder/again"
  mkdir -p "$folder/back"
  tar -xzf "$folder/second.tar.gz" -C "$folder/back"
  expected=(log probe.json device_properties.json calibration.json small.jsonl memcheck.txt racecheck.txt)
  for name in "${jobs[@]}"; do
    name=$(basename "$name" .json)
    expected+=("$name.jsonl" "bench_$name.json" "bench_${name}_again"{1,2,3}".json" "profile_$name.txt")
  done
  for name in "${expected[@]}"; do [[ -s $folder/back/$name ]] || missing+=("$name"); done
  if ((${#missing[@]} > 0)); then echo "gpu_host: the rehearsal left no ${missing[*]}" >&2; exit 1; fi
  if grep -E 'gpu_host: .*(failed|stopped|no time left|DIFFER|not every)' "$folder/back/log" >&2; then exit 1; fi
  echo "gpu_host: rehearsed: ${#expected[@]} files came back, see $folder/back"
}

# --- there ---

say() { echo "gpu_host: $*" | tee -a "$out/log"; }
logged() { "$@" 2>&1 | tee -a "$out/log"; }
name_of() { basename "$1" .pack; }

# All of OUT as one file, whole at any time.
bundle() {
  [[ -n ${BUNDLE:-} ]] || return 0
  tar -czf "$BUNDLE.$BASHPID" -C "$out" . 2>/dev/null && mv "$BUNDLE.$BASHPID" "$BUNDLE" || rm -f "$BUNDLE.$BASHPID"
}
# Also while a step takes long. Ends with this script.
keep_bundling() {
  [[ -n ${BUNDLE:-} ]] || return 0
  (while sleep 15; do bundle; done) >/dev/null 2>&1 &
  trap "kill $! 2>/dev/null || true; bundle" EXIT
}

# The packs in the order of FOLDER/order, and the parts of the time that each one gets.
read_order() {
  local name weight
  packs=() parts=()
  if [[ -s $folder/order ]]; then
    while read -r name weight; do packs+=("$folder/$name.pack") parts+=("$weight"); done <"$folder/order"
  else
    packs=("$folder"/*.pack)
    for name in "${packs[@]}"; do parts+=(1); done
  fi
}

# Calls `$2 PACK SECONDS` for each pack that this run has something to do for; each gets its part of the $1 seconds that are left.
share() {
  local end=$((SECONDS + $1)) step=$2 left i j sum
  for i in "${!packs[@]}"; do
    sum=0
    for ((j = i; j < ${#packs[@]}; ++j)); do sum=$((sum + parts[j])); done
    left=$(((end - SECONDS) * parts[i] / sum))
    if ((left > 5)); then "$step" "${packs[$i]}" "$left"; else say "no time left for $(name_of "${packs[$i]}") ($step)"; fi
    bundle
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
# An algorithm of a library that breaks the device ends the process. Then its heuristic's first ones must do.
peers() {
  local json begin=$SECONDS
  json=$out/bench_$(name_of "$1").json
  bench "$1" "$json" --best 3 --rounds 5 --peer-seconds "${PEER_SECONDS:-6}" --deadline "$2"
  grep -qs '"stopped": "the device failed' "$json" || return 0
  mv "$json" "${json%.json}_stopped.json"
  say "once more with a short search"
  bench "$1" "$json" --best 3 --rounds 5 --peer-seconds 0.1 --deadline $(($2 - (SECONDS - begin) > 20 ? $2 - (SECONDS - begin) : 20))
}

# What cuDNN asks of the device. A host may have NVIDIA's libraries as Python packages only: then their folders are searched.
device_properties() {
  local folders
  logged "$folder/bench_gpu" --device-properties "$out/device_properties.json" && return
  folders=$(python3 -c 'import glob, nvidia; print(":".join(f for p in nvidia.__path__ for f in sorted(glob.glob(p + "/*/lib"))))' 2>/dev/null || true)
  [[ -n $folders ]] || { say "no device properties, see above"; return; }
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folders
  say "once more with the libraries of Python packages"
  logged "$folder/bench_gpu" --device-properties "$out/device_properties.json" || say "no device properties, see above"
}

first() {
  keep_bundling
  usable
  device_properties
  logged "$folder/bench_gpu" "$small" --calibrate --json "$out/calibration.json" || say "calibrating failed, see above"
  bundle
  share "${SECONDS_OF_PACKS:-130}" measure
  share "${SECONDS_OF_PEERS:-200}" peers
}

# Ours alone: for outputs that are compared the peer is no news.
again() {
  TUNER_LIBCUBLAS=none TUNER_LIBCUBLASLT=none TUNER_LIBCUDNN=none bench "$1" "$out/bench_$(name_of "$1")_again$round.json" --rounds 5 --deadline "$2"
}

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
  if TUNER_LIBCUBLAS=none TUNER_LIBCUBLASLT=none TUNER_LIBCUDNN=none timeout "${SECONDS_OF_SANITIZERS:-40}" \
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
  keep_bundling
  if [[ ! -s $out/small.jsonl && -s $folder/first.tar.gz ]]; then tar -xzf "$folder/first.tar.gz" -C "$out"; fi
  for round in 1 2 3; do share $((${SECONDS_OF_WINNERS:-90} / 3)) again; done
  compare_outputs
  bundle
  if sanitizer=$(tool compute-sanitizer); then for check in memcheck racecheck; do sanitize "$sanitizer" "$check"; bundle; done; fi
  if profiler=$(tool ncu); then share "${SECONDS_OF_PROFILES:-40}" profile; fi
}

case $what in
  prepare) [[ $# -ge 2 ]] || usage; prepare "${@:3}" ;;
  rehearse) [[ $# -le 2 ]] || usage; rehearse ;;
  first | confirm)
    [[ $# -eq 3 ]] || usage
    out=$3 small=$folder/small/small.pack
    mkdir -p "$out"
    read_order
    "$what"
    ;;
  *) usage ;;
esac
