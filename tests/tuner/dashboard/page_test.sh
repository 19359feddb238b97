#!/usr/bin/env bash
# page_test.sh BUILD: builds the dashboard's page and tries it in Chromium (page_test.mjs). Exit 77, with the reason: what it needs is
# not here.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
build=$(realpath "${1:?page_test: expected the build folder}")
for browser in chromium chromium-browser google-chrome; do
  if path=$(command -v $browser); then export CHROMIUM=$path; break; fi
done
[[ -n ${CHROMIUM:-} ]] || { echo "skipped: no Chromium here; deploy/install.sh --browser installs it"; exit 77; }
code=0
said=$("$root/deploy/page.sh" "$build/dashboard_page" 2>&1) || code=$?
[[ $code -ne 3 ]] || { echo "skipped: ${said##*$'\n'}"; exit 77; }
[[ $code -eq 0 ]] || { echo "$said"; exit $code; }
# Ten thousand small commits: in memory, where there is some.
folder=$(mktemp -d -p "$([[ -w /dev/shm ]] && echo /dev/shm || echo "${TMPDIR:-/tmp}")")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder XDG_CACHE_HOME=$folder XDG_RUNTIME_DIR=$folder
node "$root/tests/tuner/dashboard/page_test.mjs" "$build" "$folder"
