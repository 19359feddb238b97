#!/usr/bin/env bash
# check.sh [--commits N | --all] [--minutes M] [BUILD_DIR]: format of everything, layering, structure, figures, prose, lint of the .cpp files that differ from the last commit.
#   --commits N  lint of those changed in the last N commits (in more than #include and namespace lines), without Clang's static analyzer, which takes as long as the rest
#   --minutes M  begin no file after M minutes of lint; those with the most changed lines come first, and what was left is listed
#   --all        lint of every one; also ALL=1. Two hours on two cores
# Warnings are errors. BUILD_DIR (build/dev) is a built one: lint reads its compile commands and generated headers.
# install.sh --lint installs what this runs.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
all=${ALL:-0} commits='' build='' minutes=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --commits) commits=${2:-}; [[ $commits =~ ^[1-9][0-9]*$ ]] || { echo "check: --commits: found ${2:-nothing}, expected a number >= 1" >&2; exit 2; }; shift 2 ;;
    --minutes) minutes=${2:-}; [[ $minutes =~ ^[1-9][0-9]*$ ]] || { echo "check: --minutes: found ${2:-nothing}, expected a number >= 1" >&2; exit 2; }; shift 2 ;;
    --all) all=1; shift ;;
    -h | --help) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "check: found $1, expected --commits, --minutes, --all or a build folder" >&2; exit 2 ;;
    *) [[ -z $build ]] || { echo "check: found $1 after the build folder $build" >&2; exit 2; }; build=$1; shift ;;
  esac
done
build=$(realpath "${build:-$root/build/dev}")
[[ -f $build/compile_commands.json ]] || { echo "check: $build is no configured build folder; deploy/build.sh dev makes one" >&2; exit 2; }
for tool in clang-format clang-tidy; do
  command -v $tool >/dev/null || { echo "check: $tool is not installed: deploy/install.sh --lint" >&2; exit 1; }
done
cd "$root"

mapfile -t files < <(git ls-files '*.h' '*.cpp')
clang-format --dry-run --Werror "${files[@]}"
echo "check: format of ${#files[@]} files is right"
ctest --test-dir "$build" -R '^tree/layering$' --no-tests=error --output-on-failure
# The table of what a change to the tree costs; tests/layering/structure_test.cpp holds its bounds.
structure=$("$build/tests/structure_test" 2>&1) || { echo "$structure" >&2; exit 1; }
grep '^structure: ' <<<"$structure"
# What compiling reads, with its bounds: the build does not grow unseen.
"$root/deploy/build_cost.py" "$build" | sed 's/^build cost/check/'
"$root/deploy/figures.py" --check "$build"
echo "check: figures of README.md and docs/ are those of tests/bench/results"

"$root/deploy/prose.py"
echo "check: no sentence of README.md and docs/ is longer than 30 words"

# A clone that is not deep enough is deepened; where that cannot be, the commits that are there count.
have() { git rev-list --count --first-parent HEAD; }
if [[ $all == 1 ]]; then
  which="all there are" commits=''
  mapfile -t lint < <(git ls-files '*.cpp')
else
  since=HEAD which="differ from the last commit"
  if [[ -n $commits ]]; then
    [[ $(have) -gt $commits || $(git rev-parse --is-shallow-repository) == false ]] || git fetch -q --deepen="$commits" 2>/dev/null || true
    [[ $(have) -gt $commits ]] || commits=$(($(have) - 1))
    since=HEAD~$commits which="changed in the last $commits commits"
  fi
  # A file that only moved, or whose includes did, reads as before.
  mapfile -t lint < <(git diff -M -z --numstat --diff-filter=d -I'^#include ' -I'^namespace ' -I'^}  // namespace' "$since" -- '*.cpp' |
    awk -v RS='\0' -F'\t' '$3 != "" { if ($1 + $2 > 0) print $1 + $2 "\t" $3; next } $1 ~ /^[0-9]/ { lines = $1 + $2; getline; getline; if (lines > 0) print lines "\t" $0 }' |
    sort -rn | cut -f2)
fi
# Sources that are built elsewhere (the examples) have no compile command here.
"$root/deploy/lint_commands.py" "$build"
commands=$build/lint
compiled=() others=()
for file in "${lint[@]}"; do
  if grep -qF "/$file\"" "$commands/compile_commands.json"; then compiled+=("$file"); else others+=("$file"); fi
done
echo "check: lint of ${#compiled[@]} .cpp files ($which)${others:+, not of ${#others[@]} that $build does not compile: ${others[*]}}"
[[ ${#compiled[@]} -gt 0 ]] || exit 0
start=$SECONDS
checks=${commits:+-clang-analyzer-*}  # added to those of .clang-tidy
left=$(mktemp)
trap 'rm -f "$left"' EXIT
deadline=$((minutes == 0 ? 0 : $(date +%s) + 60 * minutes))
# The commands are GCC's: Clang does not know every warning that they name. Counts of warnings in headers of others are left out.
lint_one() {
  if (($4 > 0 && $(date +%s) >= $4)); then
    echo "$3" >>"$5"
    return 0
  fi
  clang-tidy -p "$1" --quiet --checks="$2" --warnings-as-errors='*' --extra-arg=-Wno-unknown-warning-option "$3" 2> >(grep -vE '^[0-9]+ warnings? (generated|treated as errors?)' >&2)
}
export -f lint_one
printf '%s\n' "${compiled[@]}" | xargs -P "$(nproc)" -I{} bash -c 'lint_one "$@"' lint "$commands" "$checks" {} "$deadline" "$left" || { echo "check: lint FAILED, $((SECONDS - start)) s" >&2; exit 1; }
mapfile -t not_read <"$left"
echo "check: lint of $((${#compiled[@]} - ${#not_read[@]})) files is right, $((SECONDS - start)) s"
[[ ${#not_read[@]} -eq 0 ]] || echo "check: ${#not_read[@]} files were left after $minutes minutes: ${not_read[*]}"
