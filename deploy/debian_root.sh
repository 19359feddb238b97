# shellcheck shell=bash
# A fresh Debian 12 in a folder, and commands in it: sourced by fresh_root.sh and package_root.sh, which set `program` (their
# name), `keep` (1: roots stay) and `cache` (a compiler cache, or empty). Needs root and mmdebstrap.
# The root gets this machine's apt sources of Debian 12, its settings of how apt fetches, and its proxies.
refuse() { echo "$program: $*" >&2; exit 2; }
stop() { echo "$program: $*" >&2; exit 1; }
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

check_root_tools() {
  [[ $(id -u) -eq 0 ]] || stop "needs root, for namespaces and chroot"
  command -v mmdebstrap >/dev/null || stop "needs mmdebstrap: apt-get install mmdebstrap"
}

# Ctrl-C, an error or the end: first everything that runs in the root, then the root. Mounts were made in the namespace only
# and end with its last process.
roots=() inside='' scratch=$(mktemp -d)
remove() { rm -rf --one-file-system "$1" 2>/dev/null || { sleep 2; rm -rf --one-file-system "$1"; }; }  # a killed process may still be ending
clean_up() {
  [[ -z $inside ]] || { kill -KILL "$inside" 2>/dev/null || true; wait "$inside" 2>/dev/null || true; }
  for root in "${roots[@]}"; do
    if [[ $keep == 1 ]]; then echo "$program: $root is kept" >&2; else remove "$root"; fi
  done
  rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# This machine's way to Debian 12: the sources that name its suites, and how apt fetches.
sources=() environment=()
find_sources() {
  mapfile -t sources < <(grep -lsE '(^|[[:space:]])bookworm(-[a-z]+)?([[:space:]]|$)' /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
    /etc/apt/sources.list.d/*.sources || true)
  [[ ${#sources[@]} -gt 0 ]] || stop "no source of /etc/apt names bookworm (Debian 12)"
  grep -qsE '^[^#]*bookworm-security' "${sources[@]}" || stop "no source of /etc/apt names bookworm-security, which has LLVM 22"
  apt-config dump --no-empty --format '%f "%v";%n' Acquire | grep -v '^Acquire::IndexTargets' >"$scratch/apt.conf" || true
  environment=(PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LANG=C.UTF-8 TERM="${TERM:-dumb}")
  local name upper
  for name in http_proxy https_proxy ftp_proxy no_proxy all_proxy; do
    [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
    upper=${name^^}
    [[ -z ${!upper:-} ]] || environment+=("$upper=${!upper}")
  done
}

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
# in_root ROOT FOLDER COMMAND...: the command in that folder, with nothing of this machine's environment. Waits so that a signal is
# seen at once; --kill-child ends all processes of the namespace with it.
in_root() {
  local root=$1 folder=$2; shift 2
  unshare --mount --pid --ipc --uts --fork --kill-child=KILL --propagation private bash "$scratch/enter.sh" "$root" "$cache" \
    env -i "${environment[@]}" bash -c 'cd "$1" && shift && "$@"' root "$folder" "$@" </dev/null &
  inside=$!
  local code=0
  wait "$inside" || code=$?
  inside=''
  return "$code"
}

# make_root WHAT: a new root, named in $root; WHAT is what messages call it. Seconds it took are in $root_took.
make_root() {
  local start=$SECONDS
  root=$(mktemp -d "${TMPDIR:-/var/tmp}/tuner_$program.XXXXXX")
  roots+=("$root")
  chmod 755 "$root"
  echo "$program: $1: making Debian 12 in $root" >&2
  [[ ${#sources[@]} -gt 0 ]] || find_sources
  unshare --mount --pid --mount-proc --fork --kill-child=KILL --propagation private \
    env TMPDIR="$scratch" mmdebstrap --mode=root --variant=minbase --aptopt="$scratch/apt.conf" bookworm "$root" "${sources[@]}" >"$scratch/log" 2>&1 &
  inside=$!
  wait "$inside" || { cat "$scratch/log" >&2; inside=''; stop "$1: mmdebstrap failed"; }
  inside=''
  cp -L /etc/hosts /etc/resolv.conf "$root/etc/"
  carry_certificates "$root"
  root_took=$((SECONDS - start))
}
# Removes the last root that was made, unless it is kept.
remove_root() {
  [[ $keep == 0 ]] || return 0
  remove "$root"
  unset 'roots[-1]'
}
