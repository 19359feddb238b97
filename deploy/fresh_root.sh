#!/usr/bin/env bash
# fresh_root.sh [--order forward|reverse|both] [--keep] [--cache DIR] [--tests REGEX]
# Runs the README's two commands as a new user would: in a fresh Debian 12 with a clone of HEAD and no compiler cache.
# Exit code 0 when all pass. One to two hours on two cores; needs root, mmdebstrap and 10 GB in TMPDIR (/var/tmp).
#   --order   forward: run.sh, then test.sh, as printed; reverse: test.sh first; both (the default): each order in a root of its own
#   --keep    leaves the roots there afterwards and says where
#   --cache   a compiler cache of this machine to be used inside: for work on this script; the times are no new user's then
#   --tests   only the tests that match (test.sh -R REGEX)
# The root gets this machine's apt sources of Debian 12, its settings of how apt fetches, and its proxies.
set -euo pipefail
program=fresh_root orders=(forward reverse) keep=0 cache='' tests=()
# shellcheck source=deploy/debian_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"

while [[ $# -gt 0 ]]; do
  case $1 in
    --order | --cache | --tests) [[ $# -gt 1 ]] || refuse "$1 needs a value" ;;&
    --order)
      case $2 in
        forward | reverse) orders=("$2") ;;
        both) orders=(forward reverse) ;;
        *) refuse "--order: found $2, expected forward, reverse or both" ;;
      esac
      shift 2 ;;
    --cache) cache=$2; [[ -d $cache ]] || refuse "--cache: $cache is no folder"; shift 2 ;;
    --tests) tests=(-R "$2"); shift 2 ;;
    --keep) keep=1; shift ;;
    -h | --help) sed -n '2,9s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) refuse "found $1, expected --order, --keep, --cache or --tests" ;;
  esac
done
check_root_tools
[[ -z $(git -C "$source_dir" status --porcelain) ]] || echo "fresh_root: there are changes that are not committed; they are not tried" >&2

# The two commands, word for word; a README that says something else is an error here.
run_command="deploy/run.sh submit examples/conv2d.json --trials 128"
test_command="deploy/test.sh"
for command in "$run_command" "$test_command"; do
  grep -qE "^$command( |\$)" "$source_dir/README.md" || stop "README.md does not have the command \"$command\""
done

report=() failed=0
for order in "${orders[@]}"; do
  make_root "$order"
  start=$SECONDS
  git clone -q --no-local "$source_dir" "$root/srv/tuner"
  report+=("$order  $((root_took + SECONDS - start)) s  Debian 12 and a clone of $(git -C "$source_dir" rev-parse --short HEAD)")

  commands=("$run_command" "$test_command")
  [[ $order == forward ]] || commands=("$test_command" "$run_command")
  for command in "${commands[@]}"; do
    words=($command)
    [[ $command != "$test_command" ]] || words+=("${tests[@]}")
    echo "fresh_root: $order: ${words[*]}" >&2
    start=$SECONDS code=0
    in_root "$root" /srv/tuner "${words[@]}" || code=$?
    if [[ $code == 0 ]]; then result=passed; else result="FAILED, exit code $code" failed=1; fi
    report+=("$order  $((SECONDS - start)) s  ${words[*]}  $result")
    [[ $code == 0 ]] || break
  done
  remove_root
done
printf 'fresh_root: %s\n' "${report[@]}"
[[ $failed == 0 ]] && echo "fresh_root: all passed" || { echo "fresh_root: FAILED"; exit 1; }
