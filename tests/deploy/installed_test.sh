#!/usr/bin/env bash
# installed_test.sh BUILD: every file that `cmake --install` copies out of the build is made by the target `installed`, which
# deploy/run.sh builds. So an install after the README's first command finds all it needs.
set -euo pipefail
build=${1:?the build folder}
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
grep -q 'build.sh" release installed$' "$source_dir/deploy/run.sh" ||
  { echo "FAILED: deploy/run.sh does not build the target installed" >&2; exit 1; }
[[ -f $build/build.ninja ]] || { echo "skipped: $build is not built by ninja"; exit 77; }

cd "$build"
# `inputs` leaves out what the target names itself (ninja 1.11), `query` has it.
made=$(ninja -t inputs installed; ninja -t query deploy/package/installed | sed 's/^ *//')
# Names in quotes, below this folder, of what a compiler or linker makes.
mapfile -t copied < <(find . -name cmake_install.cmake -exec grep -hoE "\"$PWD/[^\"]+\"" {} + | tr -d '"' | sed "s#^$PWD/##" |
  grep -E '\.(a|so)$|^bin/' | sort -u)
[[ ${#copied[@]} -gt 20 ]] || { echo "FAILED: found ${#copied[@]} files that an install copies" >&2; exit 1; }
missing=0
for file in "${copied[@]}"; do
  grep -qxF "$file" <<<"$made" || { echo "FAILED: an install copies $file, which the target installed does not make" >&2; missing=1; }
done
echo "${#copied[@]} files are copied by an install"
exit "$missing"
