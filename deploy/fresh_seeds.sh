#!/usr/bin/env bash
# fresh_seeds.sh [MINUTES] [CTEST ARGS...]
# Runs the random tests of the release build with one fresh seed after the other (default: for 10 minutes), each printed.
# Ends at the first failure, which prints the command that repeats it. TUNER_TEST_ROUNDS=N draws N cases a seed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
minutes=10
if [[ ${1:-} =~ ^[0-9]+$ ]]; then minutes=$1; shift; fi
"$root/deploy/build.sh" release all
cd "$root"
end=$((SECONDS + 60 * minutes))
round=0
while ((round == 0 || SECONDS < end)); do
  round=$((round + 1))
  seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
  echo "fresh_seeds: round $round, TUNER_TEST_SEED=$seed" >&2
  TUNER_TEST_SEED=$seed ctest --preset release -L random -j 2 "$@"
done
echo "fresh_seeds: $round seeds, no failure" >&2
