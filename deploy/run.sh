#!/usr/bin/env bash
# run.sh ARGS...: installs what is missing, builds release, runs `tuner ARGS...` in the folder it was called from.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
"$root/deploy/build.sh" release installed
exec "$root/build/release/bin/tuner" "$@"
