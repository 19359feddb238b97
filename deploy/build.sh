#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: (all targets when none is named) installs what is missing, configures once and builds. Used by run.sh and test.sh.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=$1; shift
[[ $# -gt 0 ]] || set -- all
"$root/deploy/install.sh" >&2

export CCACHE_BASEDIR=$root
cd "$root"
if [[ ! -f build/$preset/build.ninja ]]; then
  echo "build: configuring build/$preset" >&2
  cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log" >&2; exit 1; }
  mv "build-$preset.log" "build/$preset/configure.log"
fi
# Ninja prints nothing to do as one line; a real build shows its progress.
if ! cmake --build "build/$preset" --target "$@" -- -n | grep -q 'no work to do'; then
  echo "build: building $preset (the first time takes some minutes)" >&2
  cmake --build "build/$preset" --target "$@" >&2
fi
