#!/usr/bin/env bash
# When build.sh configures: once, and again whenever the packages it looks up are other ones. How test.sh and .ci/run end: with ctest's
# exit status and the skipped cases. Packages, apt, CMake and ctest are played by small scripts, so this takes no time and changes nothing.
set -euo pipefail
unset TUNER_WERROR  # as .ci/run exports it, and this test sets it itself
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/tree/deploy" "$dir/tree/.ci" "$dir/bin"
cp "$source_dir"/deploy/{build,install,run,test}.sh "$source_dir"/deploy/{failed_again,skipped_cases}.py "$dir/tree/deploy/"
cp "$source_dir/.ci/run" "$dir/tree/.ci/"
grep -E '^deploy/(run|test)[.]sh' "$source_dir/README.md" >"$dir/tree/README.md"
printf '#!/bin/sh\necho "check.sh $*" >>"$FAKE/log"\n' >"$dir/tree/deploy/check.sh"
printf '#!/bin/sh\necho "cross.sh $*" >>"$FAKE/log"\n[ ! -f "$FAKE/cross_fails" ]\n' >"$dir/tree/deploy/cross.sh"
chmod +x "$dir"/tree/deploy/{check,cross}.sh
export FAKE=$dir/state PATH=$dir/bin:$PATH
mkdir -p "$FAKE"

# state/packages has lines "name version"; state/log what was called.
cat >"$dir/bin/dpkg-query" <<'END'
#!/usr/bin/env bash
declare -A versions
while read -r name version; do versions[$name]=$version; done <"$FAKE/packages"
all=1
for name in "${@:3}"; do
  version=${versions[$name]:-}
  if [[ -z $version ]]; then all=0
  elif [[ $2 == *Version* ]]; then echo "$name $version installed"; else echo "$name installed"; fi
done
[[ $all == 1 ]]
END
cat >"$dir/bin/apt-get" <<'END'
#!/usr/bin/env bash
[[ " $* " == *" install "* ]] || exit 0
echo "apt-get install" >>"$FAKE/log"
[[ ! -f $FAKE/apt_fails ]] || exit 100
for name in "$@"; do case $name in -* | DPkg* | install) ;; *) echo "$name 1.0" >>"$FAKE/packages" ;; esac; done
END
cat >"$dir/bin/cmake" <<'END'
#!/usr/bin/env bash
case "$*" in
  *--build*-n) echo "ninja: no work to do." ;;
  --preset*) echo "configure $*" >>"$FAKE/log"; [[ ! -f $FAKE/cmake_fails ]] || exit 1; touch "build/$2/build.ninja" ;;
esac
END
printf '#!/bin/sh\nexit 0\n' >"$dir/bin/apt-cache"
# One test that said what is in state/printed; -N lists tests only.
cat >"$dir/bin/ctest" <<'END'
#!/usr/bin/env bash
echo "ctest $*" >>"$FAKE/log"
[[ " $* " != *" -N "* ]] || exit 0
[[ $1 != --test-dir ]] || exit "$(cat "$FAKE/alone_status")"
mkdir -p "build/$2/Testing/Temporary"
{ echo "1/1 Test: a/program"; echo "Output:"; cat "$FAKE/printed" 2>/dev/null; echo "<end of output>"; } >"build/$2/Testing/Temporary/LastTest.log"
[[ ! -f $FAKE/failed ]] || cp "$FAKE/failed" "build/$2/Testing/Temporary/LastTestsFailed.log"
echo "100% tests passed, 0 tests failed out of 1"
exit "$(cat "$FAKE/ctest_status" 2>/dev/null || echo 0)"
END
printf '#!/bin/sh\necho 0\n' >"$dir/bin/id"
chmod +x "$dir"/bin/*
touch "$FAKE/packages" "$FAKE/log"

failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }
# expect TIMES WHAT COMMAND...: the command succeeds and configures so often.
expect() {
  local times=$1 what=$2 before after; shift 2
  before=$(grep -c '^configure' "$FAKE/log" || true)
  "$@" >"$dir/output" 2>&1 || { cat "$dir/output" >&2; fail "$what: failed"; }
  after=$(grep -c '^configure' "$FAKE/log" || true)
  [[ $((after - before)) == "$times" ]] || fail "$what: configured $((after - before)) times, expected $times"
}
# refuse PART COMMAND...: exit code 2, one line that has PART, and nothing was called.
refuse() {
  local part=$1 code=0; shift
  local before; before=$(wc -l <"$FAKE/log")
  "$@" >"$dir/output" 2>&1 || code=$?
  [[ $code == 2 ]] || fail "$*: exit code $code, expected 2"
  [[ $(wc -l <"$dir/output") == 1 && $(<"$dir/output") == *"$part"* ]] || fail "$*: said $(<"$dir/output")"
  [[ $(wc -l <"$FAKE/log") == "$before" ]] || fail "$*: did something"
}
cd "$dir/tree"

expect 1 "the first build" deploy/build.sh release
expect 0 "the second build" deploy/build.sh release
expect 1 "another preset" deploy/build.sh asan
grep -q 'libgrpc++-dev' "$FAKE/packages" || fail "what is missing was not installed"

# The order of the README: run.sh, then test.sh, which installs libonnx-testdata.
printf '#!/bin/sh\necho tuned\n' >"$dir/tuner"; chmod +x "$dir/tuner"
mkdir -p build/release/bin && cp "$dir/tuner" build/release/bin/tuner
expect 0 "run.sh with nothing new" deploy/run.sh submit x.json
expect 1 "test.sh, which brings libonnx-testdata" deploy/test.sh
grep -q 'libonnx-testdata' "$dir/output" || fail "it does not say what has changed: $(<"$dir/output")"
expect 0 "test.sh once more" deploy/test.sh
expect 0 "run.sh after test.sh" deploy/run.sh submit x.json

sed -i '/^libonnx-testdata/d' "$FAKE/packages"
expect 1 "a package that has gone" deploy/build.sh release
sed -i 's/^llvm-22-dev .*/llvm-22-dev 2.0/' "$FAKE/packages"
expect 1 "another version" deploy/build.sh release
echo "unrelated 1.0" >>"$FAKE/packages"
expect 0 "a package that nothing looks up" deploy/build.sh release
expect 1 "warnings as errors" env TUNER_WERROR=ON deploy/build.sh release
expect 1 "and not" deploy/build.sh release
grep -q 'TUNER_WERROR=ON' "$FAKE/log" || fail "TUNER_WERROR is not handed to CMake"

# A configuration that failed is tried again, even with the same packages.
rm build/release/configured_with; touch "$FAKE/cmake_fails"
! deploy/build.sh release >/dev/null 2>&1 || fail "a failed configuration was taken for a good one"
rm "$FAKE/cmake_fails"
expect 1 "after a failed configuration" deploy/build.sh release

# Nor is it taken for the one before it: what that one asked for is configured anew.
touch "$FAKE/cmake_fails"
! TUNER_WERROR=ON deploy/build.sh release >/dev/null 2>&1 || fail "a failed configuration was taken for a good one"
rm "$FAKE/cmake_fails"
expect 1 "after another configuration failed" deploy/build.sh release

# Optional packages that cannot be had: test.sh goes on without them, and what is configured is what is there.
sed -i '/^libonnx-testdata/d' "$FAKE/packages"; touch "$FAKE/apt_fails"
expect 0 "no libonnx-testdata to be had" deploy/test.sh
grep -q 'no libonnx-testdata' "$dir/output" || fail "test.sh does not say that libonnx-testdata is missing"

rm "$FAKE/apt_fails"

# How test.sh ends: with ctest's exit status, below the list of what was skipped.
ends() {
  local status=$1 code=0; shift
  "$@" >"$dir/output" 2>&1 || code=$?
  [[ $code == "$status" ]] || fail "$*: exit status $code, expected $status: $(<"$dir/output")"
}
said() { grep -qxF -- "$1" "$dir/output" || fail "nobody said '$1': $(<"$dir/output")"; }
ends 0 deploy/test.sh
[[ $(tail -1 "$dir/output") == "test: no case was skipped" ]] || fail "the list is not the end: $(<"$dir/output")"
printf 'skipped: A.B: no device\nskipped: nothing was built: deploy/cross.sh aarch64\n' >"$FAKE/printed"
ends 0 deploy/test.sh --preset asan
said "test: 1 case skipped here:"
said "  a/program: A.B: no device"
said "  a/program: nothing was built: deploy/cross.sh aarch64"
echo 8 >"$FAKE/ctest_status"
ends 8 deploy/test.sh
said "  a/program: A.B: no device"
# What failed runs once more, alone: only if all of it passes then has nothing failed.
echo "1:a/program" >"$FAKE/failed"
for status in 0 8; do
  echo "$status" >"$FAKE/alone_status"
  ends "$status" deploy/test.sh
  [[ $(grep '^ctest' "$FAKE/log" | tail -1) == *"--test-dir build/release -R ^a/program$ "* ]] || fail "it did not run again"
done
rm "$FAKE/failed"  # ctest ends before it runs tests, after a run in which one failed
echo 0 >"$FAKE/alone_status"
ends 8 deploy/test.sh
# Tests that are only listed have skipped nothing, whatever ran before.
ends 0 deploy/test.sh -N
! grep -q 'A.B' "$dir/output" || fail "the list of an earlier run was printed"
rm "$FAKE/ctest_status"

# The programs of boards and what else Debian has are for the long suite; without them it goes on.
! grep -q '^cross.sh' "$FAKE/log" || fail "the fast suite builds the programs of boards"
ends 0 deploy/test.sh --suite long
grep -qx 'cross.sh aarch64' "$FAKE/log" || fail "the long suite does not build the programs of boards"
[[ $(grep '^ctest' "$FAKE/log" | tail -1) != *"-LE long"* ]] || fail "the long suite leaves out long tests"
for package in libonnx-testdata python3-grpcio python3-setuptools qemu-user chromium zsh fish groff-base iproute2; do
  grep -q "^$package " "$FAKE/packages" || fail "the long suite does not install $package"
done
touch "$FAKE/cross_fails"
ends 0 deploy/test.sh --suite long
said "test: no programs for aarch64: the tests of boards are skipped"

# Continuous integration ends with what the tests said last, the cases that it did not run included.
ends 0 .ci/run
sed -n '/^ci: every step passed/,$p' "$dir/output" >"$dir/end"
for line in "100% tests passed, 0 tests failed out of 1" "  a/program: A.B: no device" "  a/program: nothing was built: deploy/cross.sh aarch64"; do
  grep -qxF -- "$line" "$dir/end" || fail ".ci/run does not end with '$line': $(<"$dir/end")"
done

# Options that are not known change nothing and leave no file behind.
before=$(find . | sort)
refuse "found --frobnicate, expected a preset" deploy/build.sh --frobnicate
refuse "found nothing, expected a preset" deploy/build.sh
refuse "found -j9, expected names of targets" deploy/build.sh release -j9
refuse "found --frobnicate" deploy/install.sh --frobnicate
refuse "--preset: found quick" deploy/test.sh --preset quick
[[ $(find . | sort) == "$before" ]] || fail "files were left behind"

[[ $failures == 0 ]] && echo "build_script: all as expected"
