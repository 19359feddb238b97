#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: installs what is missing, configures and builds (all targets when none is named). Used by run.sh and test.sh.
# PRESET is dev, release, asan or tsan. TUNER_WERROR=ON makes warnings of the compiler errors.
#
# What is configured follows what is installed: build/PRESET/configured_with lists the packages, with their versions, that
# the last configuration saw. When the list is another one now, CMake runs again before anything is built.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  dev | release | asan | tsan) preset=$1; shift ;;
  -h | --help) sed -n '2,3s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "build: found ${1:-nothing}, expected a preset: dev, release, asan or tsan" >&2; exit 2 ;;
esac
for target in "$@"; do
  [[ $target != -* ]] || { echo "build: found $target, expected names of targets" >&2; exit 2; }
done
[[ $# -gt 0 ]] || set -- all
"$root/deploy/install.sh" >&2

export CCACHE_BASEDIR=$root
cd "$root"
stamp=build/$preset/configured_with
mapfile -t looked_up < <("$root/deploy/install.sh" --looked-up)
now="TUNER_WERROR ${TUNER_WERROR:-OFF}
$({ dpkg-query -W -f='${Package} ${Version} ${db:Status-Status}\n' "${looked_up[@]}" 2>/dev/null || true; } | sed -n 's/ installed$//p' | sort)"
if [[ ! -f build/$preset/build.ninja || ! -f $stamp || $(<"$stamp") != "$now" ]]; then
  why=
  if [[ -f $stamp ]]; then
    changed=$({ diff "$stamp" - <<<"$now" || true; } | sed -n 's/^[<>] \([^ ]*\).*/\1/p' | sort -u | tr '\n' ' ')
    why=" again, for what has changed: ${changed% }"
  fi
  echo "build: configuring build/$preset$why" >&2
  mkdir -p "build/$preset"
  rm -f "$stamp"
  log=build/$preset/configure.log
  cmake --preset "$preset" -DTUNER_WERROR="${TUNER_WERROR:-OFF}" >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
  echo "$now" >"$stamp"
fi
# Ninja prints nothing to do as one line; a real build shows its progress.
plan=$(cmake --build "build/$preset" --target "$@" -- -n)
if [[ $plan != *'no work to do'* ]]; then
  echo "build: building $preset (the first time takes some minutes)" >&2
  TIMEFORMAT='%0R s, %0U s of CPU and %0S s of the system'
  took=$({ time cmake --build "build/$preset" --target "$@" >&3 2>&3; } 3>&2 2>&1)
  echo "build: $(grep -c '^\[' <<<"$plan") steps took $took" >&2
fi
