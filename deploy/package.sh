#!/usr/bin/env bash
# package.sh [--wheel] [--images] [--base TAR] [FOLDER]: builds the Debian packages tuner, tuner-worker, tuner-runtime, tuner-client and
# tuner-onnxruntime (deploy/package/cpack.cmake) of this source tree, into FOLDER (build/package/packages). Installs what is missing;
# Debian 12, as root or with sudo. With the page of tuner dashboard, for which it needs npm.
#   --wheel    also the Python wheel (deploy/python/wheel.sh)
#   --images   also container images, by podman (deploy/images.sh); --base TAR: where no registry has Debian 12
# The build is one of its own, build/package, without tests; the compiler cache is shared with the others.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
wheel=0 images=0 base=()
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,7s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --wheel) wheel=1; shift ;;
    --images) images=1; shift ;;
    --base) [[ -f ${2:-} ]] || { echo "package: --base: expected a file, found ${2:-nothing}" >&2; exit 2; }; base=(--base "$(realpath "$2")"); shift 2 ;;
    -*) echo "package: found $1, expected --wheel, --images, --base or a folder" >&2; exit 2 ;;
    *) break ;;
  esac
done
[[ $# -le 1 ]] || { echo "package: found $2 after the folder $1" >&2; exit 2; }
[[ $images == 1 ]] || [[ ${#base[@]} -eq 0 ]] || { echo "package: --base is for --images; add that, or leave --base out" >&2; exit 2; }
build=$root/build/package
mkdir -p "${1:-$build/packages}"
folder=$(realpath "${1:-$build/packages}")
options=(--page)
[[ $wheel == 0 ]] || options+=(--python)
"$root/deploy/install.sh" "${options[@]}" >&2
for tool in dpkg-shlibdeps dpkg-deb gzip; do
  command -v $tool >/dev/null || { echo "package: $tool is not installed: apt-get install dpkg-dev" >&2; exit 1; }
done

export CCACHE_BASEDIR=$root
cd "$root"
mkdir -p "$build"
cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DTUNER_TESTS=OFF \
  -DTUNER_WERROR="${TUNER_WERROR:-OFF}" >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build "$build" >&2
"$root/deploy/page.sh" "$build/dashboard_page" >&2 ||
  { echo "package: the page of tuner dashboard cannot be built; it needs npm: deploy/install.sh --page" >&2; exit 1; }
# Packages that say the same are the same, byte for byte: times in them are those of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
rm -f "$folder"/tuner_*.deb "$folder"/tuner-*.deb "$folder"/tuner-*.whl "$folder"/tuner-*.tar
(umask 022; cpack --config "$build/CPackConfig.cmake" -B "$folder" >"$build/cpack.log" 2>&1) || { cat "$build/cpack.log" >&2; exit 1; }
rm -rf "$folder/_CPack_Packages"
if [[ $wheel == 1 ]]; then
  cmake --build "$build" --target python_package >&2
  "$root/deploy/python/wheel.sh" --built "$build" "$folder" >&2
fi
[[ $images == 0 ]] || "$root/deploy/images.sh" "${base[@]}" "$folder" "$folder" >&2
shopt -s nullglob
ls -l "$folder"/*.deb "$folder"/*.whl "$folder"/tuner-*.tar
