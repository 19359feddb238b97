#!/usr/bin/env bash
# onnxruntime.sh [FOLDER]: gets the library of ONNX Runtime 1.30 for this CPU out of its npm package (110 MB), into FOLDER
# (build/onnxruntime), and prints its path, for BENCH_LIBONNXRUNTIME. Nothing is installed. Quick when it is there.
# Exit 3: npm is not installed, or its registry cannot be reached.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  -h | --help) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  -*) echo "onnxruntime: found $1, expected a folder" >&2; exit 2 ;;
esac
[[ $# -le 1 ]] || { echo "onnxruntime: found $2 after the folder $1" >&2; exit 2; }
folder=${1:-$root/build/onnxruntime}
version=1.30.0
integrity=sha512-twhs1C2C/BFkz1yc5OY0KIU2GUq6DURO7hD4bx5Q2Qy3nAMJwRXW8xU3NVczE29VA9lolLOYepoD8fjTGOfIqw==
case $(uname -m) in
  x86_64) cpu=x64 ;;
  aarch64) cpu=arm64 ;;
  *) echo "onnxruntime: its package has no library for $(uname -m)" >&2; exit 3 ;;
esac
library=$folder/libonnxruntime.so.1
if [[ ! -f $library || $(cat "$folder/version" 2>/dev/null) != "$version" ]]; then
  command -v npm >/dev/null || { echo "onnxruntime: npm is not installed: deploy/install.sh --page" >&2; exit 3; }
  mkdir -p "$folder"
  work=$(mktemp -d "$folder/.work-XXXXXX")
  trap 'rm -rf "$work"' EXIT
  (cd "$work" && npm pack "onnxruntime-node@$version" >npm.log 2>&1) ||
    { tail -3 "$work/npm.log" >&2; echo "onnxruntime: npm cannot get the package" >&2; exit 3; }
  package=$work/onnxruntime-node-$version.tgz
  found=sha512-$(openssl dgst -sha512 -binary "$package" | base64 -w0)
  [[ $found == "$integrity" ]] || { echo "onnxruntime: found a package with $found, expected $integrity" >&2; exit 1; }
  tar -xzf "$package" -C "$work" --strip-components=5 "package/bin/napi-v6/linux/$cpu/libonnxruntime.so.1"
  mv "$work/libonnxruntime.so.1" "$library"
  echo "$version" >"$folder/version"
fi
echo "$library"
