#!/usr/bin/env bash
# test.sh [--preset dev|release|asan|tsan] [--suite fast|long] [CTEST ARGS...]
# Installs what is missing, builds everything, runs the tests, and lists what was skipped. `fast` leaves out the tests labelled long.
# Up to three tests that fail run once more, alone; what passes then is listed.
# `long` also installs the cross compiler and builds the programs for boards, so that no test skips for want of a Debian package.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
preset=release suite=fast
while [[ $# -gt 0 ]]; do
  case $1 in
    --preset) preset=${2:?--preset needs a name}; shift 2 ;;
    --suite) suite=${2:?--suite needs fast or long}; shift 2 ;;
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) break ;;
  esac
done
case $preset in dev | release | asan | tsan) ;; *) echo "test: --preset: found $preset, expected dev, release, asan or tsan" >&2; exit 2 ;; esac
case $suite in fast) label=(-LE long) ;; long) label=() ;; *) echo "test: --suite: found $suite, expected fast or long" >&2; exit 2 ;; esac

"$root/deploy/install.sh" --onnx-testdata --python >&2 || echo "test: no libonnx-testdata or python3-grpcio: their tests are skipped" >&2
"$root/deploy/build.sh" "$preset" all
"$root/deploy/install.sh" --emulator >&2 || echo "test: no qemu: the test that runs code for AArch64 is skipped" >&2
"$root/deploy/install.sh" --browser --page >&2 || echo "test: no Chromium: the test that opens a report is skipped" >&2
"$root/deploy/install.sh" --shells >&2 || echo "test: no zsh or fish: the tests that complete commands in them are skipped" >&2
"$root/deploy/install.sh" --tools >&2 || echo "test: no groff or iproute2: the tests that format manuals or make networks are skipped" >&2
if [[ $suite == long ]]; then  # half a minute of packages and some minutes of compiling
  "$root/deploy/cross.sh" aarch64 >&2 || echo "test: no programs for aarch64: the tests of boards are skipped" >&2
fi
cd "$root"
echo "test: preset $preset, suite $suite" >&2
log=build/$preset/Testing/Temporary/LastTest.log status=0
rm -f "$log"  # that of an earlier run
failed=build/$preset/Testing/Temporary/LastTestsFailed.log
rm -f "$failed"
ctest --preset "$preset" "${label[@]}" -j 2 "$@" || status=$?
if [[ -f $log ]]; then
  deploy/skipped_cases.py "$log" || echo "test: what was skipped cannot be listed; $log has it" >&2
fi
if [[ $status -ne 0 && -f $failed ]]; then  # one of 380 may have needed time that the others took
  ! deploy/failed_again.py "build/$preset" || status=0
fi
exit "$status"
