#!/usr/bin/env bash
# cross.sh aarch64 [TARGET...]: builds the programs of a worker that only runs kernels, for 64-bit ARM Linux, on Debian 12 for x86.
# cross.sh native [TARGET...]: builds the same programs for this host; needs no LLVM.
# Prints the folder to copy, build/aarch64/worker or build/runner_only/worker: programs that need nothing but glibc.
#
# Libraries for aarch64 come from Debian's arm64 packages, which are extracted into build/aarch64/sysroot by an apt configuration
# of its own: nothing is installed on this host but the cross compiler, no architecture is added to its dpkg, and root is not
# needed for it. apt checks the signatures of the sources that this host uses for Debian 12.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
stop() { echo "cross: $*" >&2; exit 1; }
case ${1:-} in
  aarch64) machine=aarch64 build=$root/build/aarch64; shift ;;
  native) machine=native build=$root/build/runner_only; shift ;;
  -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  *) echo "cross: found ${1:-nothing}, expected aarch64 or native" >&2; exit 2 ;;
esac
for target in "$@"; do
  [[ $target != -* ]] || { echo "cross: found $target, expected names of targets" >&2; exit 2; }
done
[[ $# -gt 0 ]] || set -- all
sysroot=$build/sysroot
packages=(libc6-dev libgrpc++-dev libprotobuf-dev libssl-dev zlib1g-dev libspdlog-dev libcli11-dev nlohmann-json3-dev libboost-dev)

# Sources of this host that name Debian 12, for every architecture.
copy_sources() {
  local file
  mkdir -p "$1"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    if grep -qsE '(^|[[:space:]])bookworm(-[a-z]+)?([[:space:]]|$)' "$file"; then
      sed -E '/^Architectures:/d; s/\barch=[^] ]+//; s/\[ *\]//' "$file" >"$1/${file##*/}"
    fi
  done
  compgen -G "$1/*" >/dev/null || stop "no source of /etc/apt names bookworm (Debian 12)"
}

# Downloads the packages and all that they depend on into $1/cache/archives.
download() {
  mkdir -p "$1/state/lists/partial" "$1/cache/archives/partial"
  : >"$1/state/status"
  copy_sources "$1/sources"
  local options=(-q -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Debug::NoLocking=1
    -o "Dir::State=$1/state" -o "Dir::State::status=$1/state/status" -o "Dir::Cache=$1/cache"
    -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$1/sources")
  { apt-get "${options[@]}" update &&
    apt-get "${options[@]}" install -y --no-install-recommends --download-only "${packages[@]}"; } >"$1/log" 2>&1 ||
    { cat "$1/log" >&2; stop "the arm64 packages of Debian 12 cannot be fetched"; }
}

# Links that begin at the root of the file system lead out of the sysroot.
relative_links() {
  local link
  while IFS= read -r link; do
    ln -sfn "$(realpath -ms --relative-to="$(dirname "$link")" "$1$(readlink "$link")")" "$link"
  done < <(find "$1" -type l -lname '/*')
}

make_sysroot() {
  local stamp=$build/sysroot.packages apt=$build/apt deb
  [[ ! -f $stamp || $(head -1 "$stamp") != "${packages[*]}" ]] || return 0
  echo "cross: fetching arm64 packages of Debian 12 into $sysroot" >&2
  rm -rf "$sysroot" "$apt" "$stamp"
  mkdir -p "$sysroot" "$apt"
  download "$apt"
  for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$deb" "$sysroot"; done
  relative_links "$sysroot"
  # gRPC's CMake package names its generators; those that run are this host's.
  mkdir -p "$sysroot/usr/bin"
  ln -sf /usr/bin/grpc_*_plugin "$sysroot/usr/bin/"
  { echo "${packages[*]}"; for deb in "$apt"/cache/archives/*.deb; do dpkg-deb -W --showformat='${Package} ${Version}\n' "$deb"; done; } >"$stamp.new"
  mv "$stamp.new" "$stamp"
  rm -rf "$apt"
}

# Code that a generator of another release makes does not compile, or worse.
check_generators() {
  local pair here there
  for pair in protobuf-compiler:libprotobuf-dev protobuf-compiler-grpc:libgrpc++-dev; do
    here=$(dpkg-query -W -f='${Version}' "${pair%:*}") there=$(sed -n "s/^${pair#*:} //p" "$build/sysroot.packages")
    [[ ${here%%-*} == "${there%%-*}" ]] ||
      stop "${pair%:*} of this host is $here, ${pair#*:} of the sysroot $there; apt-get upgrade one, or remove $build/sysroot.packages to fetch the other"
  done
}

# The newest glibc that a program asks for.
glibc_of() { "$1" -W --dyn-syms "$2" | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -1; }

export CCACHE_BASEDIR=$root
cd "$root"
mkdir -p "$build"
options=(-DTUNER_RUNNER_ONLY=ON -DTUNER_WERROR="${TUNER_WERROR:-OFF}" -DCMAKE_BUILD_TYPE=Release)
prefix=
if [[ $machine == aarch64 ]]; then
  deploy/install.sh --runner-only --cross >&2
  make_sysroot
  check_generators
  options+=(-DCMAKE_TOOLCHAIN_FILE="$root/deploy/cross/aarch64.cmake" -DTUNER_SYSROOT="$sysroot")
  prefix=aarch64-linux-gnu-
else
  deploy/install.sh --runner-only >&2
fi
cmake -G Ninja -S . -B "$build" "${options[@]}" >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build "$build" --target "$@" >&2

mkdir -p "$build/worker"
for program in "$build"/bin/*; do
  [[ -f $program ]] || continue  # none yet: only libraries were asked for
  name=${program##*/}
  "${prefix}strip" -o "$build/worker/$name" "$program"
  needs=$("${prefix}readelf" -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
  echo "$build/worker/$name: $(stat -c %s "$build/worker/$name") bytes; needs ${needs% }; glibc >= $(glibc_of "${prefix}readelf" "$program" | sed 's/GLIBC_//')"
done
