#!/usr/bin/env bash
# cross_script_test.sh FOLDER: what cross.sh refuses, and what it built into FOLDER (build/aarch64), run by qemu. Where nothing was built,
# or qemu is not here, that part is skipped.
set -euo pipefail
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$1
failures=0
fail() { echo "FAILED: $*" >&2; failures=$((failures + 1)); }

# refuse PART ARGS...: exit code 2 and one line that has PART.
refuse() {
  local part=$1 code=0 said; shift
  said=$("$source_dir/deploy/cross.sh" "$@" 2>&1) || code=$?
  [[ $code == 2 && $said == *"$part"* && $said != *$'\n'* ]] || fail "cross.sh $*: exit code $code, said $said"
}
refuse "found nothing, expected aarch64 or native"
refuse "found riscv64, expected aarch64 or native" riscv64
refuse "found -j2, expected names of targets" aarch64 -j2
[[ $failures == 0 ]] || exit 1

runner=$folder/worker/runner
[[ -x $runner ]] || { echo "skipped: nothing was built for boards: deploy/cross.sh aarch64"; exit 0; }
command -v qemu-aarch64 >/dev/null || { echo "skipped: no qemu-aarch64: deploy/install.sh --emulator"; exit 0; }

# What a board must have is glibc.
for program in "$folder"/worker/*; do
  while read -r library; do
    case $library in
      libc.so.6 | libm.so.6 | ld-linux-aarch64.so.1) ;;
      *) fail "$program needs $library" ;;
    esac
  done < <(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
done
bytes=$(stat -c %s "$runner")
[[ $bytes -lt 10000000 ]] || fail "the runner has $bytes bytes"

worker=$folder/worker/measure_runner
if [[ -x $worker ]]; then  # with gRPC and OpenSSL in it, which are 13 MB
  bytes=$(stat -c %s "$worker")
  [[ $bytes -lt 23000000 ]] || fail "measure_runner has $bytes bytes, 10 MB more than gRPC"
  timeout 60 qemu-aarch64 -cpu cortex-a72 -L "$folder/sysroot" "$worker" --help >/dev/null || fail "measure_runner does not start"
fi

# The probe says what the emulator lacks, and whose times these are.
probe=$(timeout 120 qemu-aarch64 -cpu cortex-a72 -L "$folder/sysroot" "$runner" --probe) || fail "the probe: exit status $?"
echo "$probe"
for part in '"hardware":"cortex-a72 emulated on ' '"isolation":"none"' 'seccomp: ' '"peak_gflops":[0' '"read_gbps":[{'; do
  [[ $probe == *"$part"* ]] || fail "the probe does not say $part"
done
# It asks for GPUs in a process of its own, which the emulator must have started.
[[ $probe != *"gave no answer"* ]] || fail "the runner cannot start itself under qemu"
[[ $failures == 0 ]] && echo "cross_script: all as expected"
