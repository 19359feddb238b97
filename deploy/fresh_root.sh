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
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
refuse() { echo "fresh_root: $*" >&2; exit 2; }
stop() { echo "fresh_root: $*" >&2; exit 1; }

orders=(forward reverse) keep=0 cache='' tests=()
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
[[ $(id -u) -eq 0 ]] || stop "needs root, for namespaces and chroot"
command -v mmdebstrap >/dev/null || stop "needs mmdebstrap: apt-get install mmdebstrap"
[[ -z $(git -C "$source_dir" status --porcelain) ]] || echo "fresh_root: there are changes that are not committed; they are not tried" >&2

# The two commands, word for word; a README that says something else is an error here.
run_command="deploy/run.sh submit examples/conv2d.json --trials 128"
test_command="deploy/test.sh"
for command in "$run_command" "$test_command"; do
  grep -qE "^$command( |\$)" "$source_dir/README.md" || stop "README.md does not have the command \"$command\""
done

# Ctrl-C, an error or the end: first everything that runs in the root, then the root. Mounts were made in the namespace only
# and end with its last process.
roots=() inside='' scratch=$(mktemp -d)
remove() { rm -rf --one-file-system "$1" 2>/dev/null || { sleep 2; rm -rf --one-file-system "$1"; }; }  # a killed process may still be ending
clean_up() {
  [[ -z $inside ]] || { kill -KILL "$inside" 2>/dev/null || true; wait "$inside" 2>/dev/null || true; }
  for root in "${roots[@]}"; do
    if [[ $keep == 1 ]]; then echo "fresh_root: $root is kept" >&2; else remove "$root"; fi
  done
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# This machine's way to Debian 12: the sources that name its suites, and how apt fetches.
mapfile -t sources < <(grep -lsE '(^|[[:space:]])bookworm(-[a-z]+)?([[:space:]]|$)' /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
  /etc/apt/sources.list.d/*.sources || true)
[[ ${#sources[@]} -gt 0 ]] || stop "no source of /etc/apt names bookworm (Debian 12)"
grep -qsE '^[^#]*bookworm-security' "${sources[@]}" || stop "no source of /etc/apt names bookworm-security, which has LLVM 22"
apt-config dump --no-empty --format '%f "%v";%n' Acquire | grep -v '^Acquire::IndexTargets' >"$scratch/apt.conf" || true
environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LANG=C.UTF-8 TERM="${TERM:-dumb}")
for name in http_proxy https_proxy ftp_proxy no_proxy all_proxy; do
  [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
  upper=${name^^}
  [[ -z ${!upper:-} ]] || environment+=("$upper=${!upper}")
done

# Certificates of authorities that apt may need to reach its sources.
carry_certificates() {
  local file
  for file in /etc/ssl/certs/ca-certificates.crt /usr/local/share/ca-certificates/*.crt $(sed -n 's/^Acquire::[^ ]*CAInfo "\(.*\)";/\1/p' "$scratch/apt.conf"); do
    [[ ! -f $file ]] || install -D -m 644 "$file" "$1$file"
  done
}

# Runs in a mount, pid, ipc and uts namespace of its own, as its first process.
cat >"$scratch/enter.sh" <<'END'
set -e
root=$1 cache=$2; shift 2
hostname fresh
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in null zero full random urandom tty; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=666,mode=620 devpts "$root/dev/pts"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
for n in 0:stdin 1:stdout 2:stderr; do ln -s "/proc/self/fd/${n%:*}" "$root/dev/${n#*:}"; done
if [ -n "$cache" ]; then mkdir -p "$root/srv/.cache/ccache"; mount --bind "$cache" "$root/srv/.cache/ccache"; fi
chroot "$root" "$@"
exit $?
END
# in_root ROOT COMMAND...: the command in the clone, with nothing of this machine's environment. Waits so that a signal is
# seen at once; --kill-child ends all processes of the namespace with it.
in_root() {
  local root=$1; shift
  unshare --mount --pid --ipc --uts --fork --kill-child=KILL --propagation private bash "$scratch/enter.sh" "$root" "$cache" \
    env -i "${environment[@]}" bash -c 'cd /srv/tuner && "$@"' fresh_root "$@" </dev/null &
  inside=$!
  local code=0
  wait "$inside" || code=$?
  inside=''
  return "$code"
}

report=() failed=0
for order in "${orders[@]}"; do
  root=$(mktemp -d "${TMPDIR:-/var/tmp}/tuner_fresh_root.XXXXXX")
  roots+=("$root")
  chmod 755 "$root"
  echo "fresh_root: $order: making Debian 12 in $root" >&2
  start=$SECONDS
  unshare --mount --pid --mount-proc --fork --kill-child=KILL --propagation private \
    env TMPDIR="$scratch" mmdebstrap --mode=root --variant=minbase --aptopt="$scratch/apt.conf" bookworm "$root" "${sources[@]}" >"$scratch/log" 2>&1 &
  inside=$!
  wait "$inside" || { cat "$scratch/log" >&2; inside=''; stop "$order: mmdebstrap failed"; }
  inside=''
  cp -L /etc/hosts /etc/resolv.conf "$root/etc/"
  carry_certificates "$root"
  git clone -q --no-local "$source_dir" "$root/srv/tuner"
  report+=("$order  $((SECONDS - start)) s  Debian 12 and a clone of $(git -C "$source_dir" rev-parse --short HEAD)")

  commands=("$run_command" "$test_command")
  [[ $order == forward ]] || commands=("$test_command" "$run_command")
  for command in "${commands[@]}"; do
    words=($command)
    [[ $command != "$test_command" ]] || words+=("${tests[@]}")
    echo "fresh_root: $order: ${words[*]}" >&2
    start=$SECONDS code=0
    in_root "$root" "${words[@]}" || code=$?
    if [[ $code == 0 ]]; then result=passed; else result="FAILED, exit code $code" failed=1; fi
    report+=("$order  $((SECONDS - start)) s  ${words[*]}  $result")
    [[ $code == 0 ]] || break
  done
  if [[ $keep == 0 ]]; then remove "$root"; unset 'roots[-1]'; fi
done
printf 'fresh_root: %s\n' "${report[@]}"
[[ $failed == 0 ]] && echo "fresh_root: all passed" || { echo "fresh_root: FAILED"; exit 1; }
