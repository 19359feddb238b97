#!/usr/bin/env bash
# package_root.sh [--keep] [FOLDER]: the Debian packages in FOLDER (build/package/packages), tried in a fresh Debian 12.
# Installs them, tunes a small task and times the way from the end of the installation to the first answer (at most 60 s, no
# compiler there), builds a C program on the runtime library and a bundle, removes the packages, and looks for what they left.
# Exit code 0 when all holds. Some minutes, most of them apt's; needs root, mmdebstrap and 4 GB in TMPDIR (/var/tmp).
set -euo pipefail
program=package_root keep=0 cache='' most_s=60
# shellcheck source=deploy/debian_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"
packages=$source_dir/build/package/packages
while [[ $# -gt 0 ]]; do
  case $1 in
    --keep) keep=1; shift ;;
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) refuse "found $1, expected --keep or a folder" ;;
    *) packages=$1; shift ;;
  esac
done
check_root_tools
for name in tuner tuner-worker tuner-runtime; do
  compgen -G "$packages/${name}_*.deb" >/dev/null || stop "$packages has no ${name}_*.deb: deploy/package.sh makes it"
done

report=()
told() { report+=("$1"); echo "$program: $1" >&2; }
inside_root() { in_root "$root" /srv/app bash -euc "$1"; }
apt='apt-get -q -y -o Dpkg::Use-Pty=0'

make_root packages
told "Debian 12 in $root_took s"
mkdir -p "$root/srv/app" "$root/srv/packages"
cp "$packages"/tuner_*.deb "$packages"/tuner-*.deb "$root/srv/packages/"

# The program of the runtime library's README, and its task.
sed -n '/^```c$/,/^```$/p' "$source_dir/deploy/runtime/README.md" | sed '1d;$d' >"$root/srv/app/app.c"
cat >"$root/srv/app/job.json" <<'JOB'
{"op": "matmul", "a": [64, 256], "b": [256, 128], "constant": ["b"], "trials": 16}
JOB

# Every path there is, without what the namespace mounts, home, and /tmp (sockets of the commands that ran).
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./srv -o -path ./tmp \) -prune -o -print | sort); }
inside_root "$apt update" >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log" >&2; stop "apt reaches no source"; }
start=$SECONDS
inside_root "export DEBIAN_FRONTEND=noninteractive; $apt install --no-install-recommends /srv/packages/tuner_*.deb /srv/packages/tuner-worker_*.deb" \
  >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log" >&2; stop "the packages cannot be installed"; }
told "tuner and tuner-worker installed in $((SECONDS - start)) s: $(grep -oE "libllvm22|libxgboost0|libgrpc\\+\\+1\.51" "$scratch/apt.log" | sort -u | tr '\n' ' ')came along"
inside_root '! command -v cc && ! command -v gcc && ! command -v clang' >/dev/null || stop "there is a compiler; this root is not what a user has"

start=$(date +%s%N)
inside_root 'tuner submit job.json && tuner query job.json' >"$scratch/answer" 2>"$scratch/said" ||
  { cat "$scratch/answer" "$scratch/said" >&2; stop "the first command failed"; }
took_ms=$((($(date +%s%N) - start) / 1000000))
told "first answer $((took_ms / 1000)).$((took_ms / 100 % 10)) s after the installation (at most $most_s s):"
sed 's/^/  /' "$scratch/answer" >&2
[[ $took_ms -le $((most_s * 1000)) ]] || stop "the first answer took longer than $most_s s"
grep -q 'certified' "$scratch/answer" || stop "the answer does not say whether it is certified"
inside_root 'command -v tuner measure_server measure_runner runner; runner --version' >&2

inside_root "export DEBIAN_FRONTEND=noninteractive; $apt install --no-install-recommends gcc libc6-dev man-db bash-completion fish zsh groff-base" >"$scratch/apt.log" 2>&1 ||
  { cat "$scratch/apt.log" >&2; stop "gcc cannot be installed"; }
files >"$scratch/before_runtime"
inside_root "export DEBIAN_FRONTEND=noninteractive; $apt install --no-install-recommends /srv/packages/tuner-runtime_*.deb" >"$scratch/apt.log" 2>&1 ||
  { cat "$scratch/apt.log" >&2; stop "tuner-runtime cannot be installed"; }
for source in /srv/.local/share/tuner/tuner.db bundle; do
  inside_root "[[ -d bundle ]] || tuner build job.json -o bundle; cc app.c -ltuner_runtime -o app && ./app $source" >"$scratch/app" ||
    { cat "$scratch/app" >&2; stop "the C program failed"; }
  grep -q '(exact)$' "$scratch/app" || { cat "$scratch/app" >&2; stop "the C program did not get the tuned kernel"; }
  told "a C program on tuner-runtime and ${source##*/}: $(tail -1 "$scratch/app")"
done
inside_root "man --warnings -l /usr/share/man/man1/tuner-submit.1.gz 2>&1 >/dev/null | grep . && exit 1 || man -w measure_server measure_runner runner tuner-records-export" >&2 ||
  stop "manual pages are missing or have warnings"
inside_root "source /usr/share/bash-completion/completions/tuner; COMP_WORDS=(tuner sub); COMP_CWORD=1; _tuner; [[ \${COMPREPLY[*]} == submit ]]" ||
  stop "completion of bash does not complete"
inside_root "fish -c 'complete -C \"tuner show --as lo\"' | grep -qx loops" || stop "completion of fish does not complete"
inside_root "zsh -fc 'autoload -Uz compinit; compinit -u -D; [[ \$_comps[tuner] == _tuner ]] && autoload +X -Uz _tuner'" ||
  stop "zsh does not find its completion"
told "manual pages and completion are there"

# What is left of each package's files after it went, and what its removal did not take.
inside_root 'dpkg -L tuner tuner-worker tuner-runtime | sort -u' >"$scratch/owned"
inside_root "export DEBIAN_FRONTEND=noninteractive; $apt purge tuner tuner-worker tuner-runtime" >"$scratch/apt.log" 2>&1 ||
  { cat "$scratch/apt.log" >&2; stop "the packages cannot be removed"; }
left=$(while read -r path; do [[ -d $root$path || ! -e $root$path ]] || echo "$path"; done <"$scratch/owned")
left+=$(files | grep -iE 'tuner|measure_server|measure_runner|bin/runner' || true)
left+=$(inside_root "dpkg-query -W -f '\${Package} \${db:Status-Status}\n' 'tuner*' 2>/dev/null | grep -v not-installed || true")
[[ -z $left ]] || stop "left after the removal: $left"
told "removed; nothing is left outside home and /tmp"
remove_root
printf '%s: %s\n' "$program" "${report[@]}" "all holds"
