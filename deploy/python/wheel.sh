#!/usr/bin/env bash
# wheel.sh [--preset P | --built BUILD] [FOLDER]: builds the Python package as a wheel for this platform, into FOLDER (dist). Installs
# what is missing; Debian 12, as root or with sudo. --built takes what is in that build folder, and builds and installs nothing.
#
# The wheel has the package, its modules, the programs, and all libraries that they need but those of C and C++. It installs without a
# compiler and without Debian's packages: pip install dist/tuner-*.whl
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
preset=release
built=
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --preset) preset=${2:?wheel: --preset: expected release or dev}; shift 2 ;;
    --built) built=$(realpath "${2:?wheel: --built: expected a build folder}"); shift 2 ;;
    -*) echo "wheel: found $1, expected --preset P, --built BUILD or a folder" >&2; exit 2 ;;
    *) break ;;
  esac
done
[[ $# -le 1 ]] || { echo "wheel: found $2 after the folder $1" >&2; exit 2; }
mkdir -p "${1:-$root/dist}"
folder=$(realpath "${1:-$root/dist}")
[[ $built ]] || {
  "$root/deploy/install.sh" --python >&2
  "$root/deploy/build.sh" "$preset" python_package tuner measure_server measure_runner runner cuda_compiler >&2
}
build=${built:-$root/build/$preset}
python=/usr/bin/python3
[[ -x $python ]] || python=$(command -v python3)
compgen -G "$build/python/tuner/_kernels*.so" >/dev/null || {
  echo "wheel: $build/python has no modules: deploy/install.sh --python, then configure again" >&2; exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$work/tuner
mkdir -p "$made/_programs" "$made/_libraries"
cp -r "$build/python/tuner/." "$made"
rm -rf "$made/__pycache__" "$made/_proto/__pycache__"
for program in tuner measure_server measure_runner runner cuda_compiler; do
  cp "$build/bin/$program" "$made/_programs"
done
cp "$root/LICENSE" "$root/NOTICE" "$made"
strip "$made"/_programs/* "$made"/*.so

# Of the libraries, those of C and C++ are the system's: an interpreter has them already, perhaps others than here.
system='/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|util|stdc\+\+|gcc_s))\.so'
libraries=$(ldd "$made"/_programs/* "$made"/*.so | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u | grep -Ev "$system" || true)
if ldd "$made"/_programs/* "$made"/*.so | grep -q 'not found'; then
  echo "wheel: a library is missing: $(ldd "$made"/_programs/* | grep -m1 'not found')" >&2; exit 1
fi
mkdir "$made/_licences"
for library in $libraries; do
  cp -L "$library" "$made/_libraries/$(basename "$library")"
  # /lib may be a link to /usr/lib, and dpkg knows one of the names.
  package=$(dpkg -S "$library" 2>/dev/null || dpkg -S "/usr$library" 2>/dev/null || dpkg -S "$(realpath "$library")" 2>/dev/null) ||
    { echo "wheel: $library is of no package, and its licence is not known" >&2; exit 1; }
  package=${package%%:*}
  cp "/usr/share/doc/$package/copyright" "$made/_licences/$package"
done
chmod -R u+w "$made/_libraries"
# Libraries of libraries are looked for in the same place (DT_RPATH, not DT_RUNPATH).
patchelf --force-rpath --set-rpath '$ORIGIN' "$made"/_libraries/*
patchelf --force-rpath --set-rpath '$ORIGIN/../_libraries' "$made"/_programs/*
patchelf --force-rpath --set-rpath '$ORIGIN/_libraries' "$made"/*.so

# Wheels that say the same are the same, byte for byte: times in them are those of the commit.
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
rm -f "$folder"/tuner-*.whl
cp -r "$here" "$work/source"
rm -rf "$work/source/tuner/_proto" "$work/source/build" "$work/source"/*.egg-info
(cd "$work/source" && TUNER_WHEEL_FROM=$made "$python" setup.py -q bdist_wheel -d "$folder") >"$work/log" 2>&1 ||
  { cat "$work/log" >&2; exit 1; }
ls -l "$folder"/tuner-*.whl
