#!/usr/bin/env bash
# page.sh FOLDER: builds the page of tuner dashboard (tuner/dashboard/page) into FOLDER, and the charts of tuner report: type check,
# then one file of script and one of style each by esbuild. Needs npm and its registry. Exit 3: npm is not installed, or its registry
# cannot be reached.
# Without FOLDER: into build/release/dashboard_page, where build/release/bin/tuner finds it. Quick when nothing has changed.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
case ${1:-} in
  -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
  -*) echo "page: found $1, expected a folder" >&2; exit 2 ;;
esac
[[ $# -le 1 ]] || { echo "page: found $2 after the folder $1" >&2; exit 2; }
folder=$(realpath -m "${1:-$root/build/release/dashboard_page}")
sources=$root/tuner/dashboard/page
stamp=$(cat "$root/deploy/page.sh" "$sources"/*.json "$sources"/*.html "$sources"/*.svg "$sources"/src/*.* "$sources"/src/views/* | sha256sum)
# What npm installs stands beside the page: a test drives a browser with it.
work=$folder.npm
if [[ -f $folder/app.js && -d $work/node_modules && $(cat "$work/stamp" 2>/dev/null) == "$stamp" ]]; then exit 0; fi
if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  echo "page: npm is not installed: deploy/install.sh --page" >&2; exit 3
fi

mkdir -p "$work" "$folder"
rm -rf "$work/src" "$work/stamp"
cp -r "$sources/." "$work/"
cd "$work"
npm ci --no-audit --no-fund --ignore-scripts >npm.log 2>&1 || { tail -5 npm.log >&2; echo "page: npm cannot install what the page needs; $work/npm.log says why" >&2; exit 3; }
node_modules/.bin/tsc -p .
# app: the dashboard. report: its charts, which tuner report writes into a file; no module, as files of a disk cannot load one.
{ cat node_modules/uplot/dist/uPlot.min.css; echo; cat src/components.css; } >report.css
{ cat report.css; echo; cat src/style.css; } >app.css
bundle() { node_modules/.bin/esbuild "$@" --minify --legal-comments=none --log-level=warning --allow-overwrite; }
for part in app report; do bundle $part.css --outfile="$folder/$part.css"; done
bundle src/app.ts --bundle --format=esm --target=es2022 --outfile="$folder/app.js"
bundle src/report.ts --bundle --format=iife --target=es2022 --outfile="$folder/report.js" \
  --banner:js="/* Charts by uPlot: $(tr '\n' ' ' <node_modules/uplot/LICENSE) */"
cp index.html icon.svg "$folder/"
cp node_modules/uplot/LICENSE "$folder/uplot_license.txt"
echo "$stamp" >"$work/stamp"
du -cb "$folder"/* | tail -1 | awk '{printf "page: %.0f kB\n", $1 / 1000}' >&2
