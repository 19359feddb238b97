#!/usr/bin/env bash
# check.sh BUILD_DIR: format, layering and, for files changed against the last commit (or with ALL=1 for all), lint.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${1:-$root/build/dev}
cd "$root"
mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"
ctest --test-dir "$build" -R tree/layering --output-on-failure
if [[ ${ALL:-0} == 1 ]]; then mapfile -t lint < <(git ls-files '*.cpp'); else mapfile -t lint < <(git diff --name-only HEAD -- '*.cpp'); fi
[[ ${#lint[@]} -eq 0 ]] || clang-tidy -p "$build" --quiet "${lint[@]}"
