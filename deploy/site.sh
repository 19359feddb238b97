#!/usr/bin/env bash
# site.sh [FOLDER]: builds the documentation as a static site with search in FOLDER (build/site), checks its links, and takes the
# pictures of a report and of `tuner top` with the programs of build/release. Open FOLDER/index.html; the search
# needs a web server, for instance `python3 -m http.server -d FOLDER`.
# install.sh --site installs what this runs (MkDocs with the Material theme, Chromium, tmux, aha).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ $# -le 1 && ${1:-} != -* ]] || { [[ ${1:-} == -h || ${1:-} == --help ]] && { sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0; }; echo "site: expected one folder at most" >&2; exit 2; }
out=$(realpath -m "${1:-$root/build/site}")
if [[ -e $out && ! -f $out/.tuner_site && -n $(ls -A "$out" 2>/dev/null) ]]; then
  echo "site: $out is not empty and no site that this script made; name another folder" >&2
  exit 2
fi
for tool in mkdocs chromium tmux aha; do
  command -v $tool >/dev/null || { echo "site: $tool is not installed: deploy/install.sh --site" >&2; exit 2; }
done
bin=$root/build/release/bin
[[ -x $bin/tuner ]] || { echo "site: $bin/tuner is not built: deploy/build.sh release installed" >&2; exit 2; }
work=$(mktemp -d)
session=tuner_site_$$ started=()
cleanup() {
  tmux kill-session -t "$session" 2>/dev/null || true
  for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
  wait || true
  rm -rf "$work"
}
trap cleanup EXIT

picture() { # NAME URL WIDTH HEIGHT
  timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$work/chromium" --window-size="$3,$4" \
    --screenshot="$work/stage/tree/pictures/$1.png" "$2" >"$work/chromium.log" 2>&1 || { tail -3 "$work/chromium.log" >&2; return 1; }
}

# A job of a few seconds, its report, and the terminal view of a daemon that runs another one.
mkdir -p "$work/stage/tree/pictures" "$work/job"
cp "$root/examples/conv2d.json" "$work/job/"
echo "site: a job for the pictures" >&2
(cd "$work/job" && XDG_DATA_HOME=$work/data timeout 300 "$bin/tuner" submit conv2d.json --trials 96 --db job.db >job.log 2>&1 &&
  timeout 120 "$bin/tuner" report conv2d.json --db job.db --no-roofs -o report.html >>job.log 2>&1) || { tail -5 "$work/job/job.log" >&2; exit 1; }
picture report "file://$work/job/report.html" 1100 1400
(cd "$work/job" && exec "$bin/tuner" serve --listen "unix:$work/socket" --db farm.db >serve.log 2>&1) &
started+=($!)
for ((i = 0; i < 100; ++i)); do [[ -S $work/socket ]] && break; sleep 0.1; done
(cd "$work/job" && exec "$bin/measure_server" --daemon "unix:$work/socket" >worker.log 2>&1) &
started+=($!)
(cd "$work/job" && exec "$bin/tuner" submit conv2d.json --trials 400 --daemon "unix:$work/socket" >submit.log 2>&1) &
started+=($!)
tmux new-session -d -s "$session" -x 110 -y 14 "$bin/tuner top --daemon unix:$work/socket"
sleep 8
tmux capture-pane -e -p -t "$session" | aha --black --title "tuner top" >"$work/job/top.html"
picture top "file://$work/job/top.html" 900 250

/usr/bin/python3 -B "$root/deploy/site/stage.py" "$root" "$work/stage/tree"
# MkDocs leaves out a folder called templates at the top, so all pages are one level below it.
echo '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=tree/index.html"><a href="tree/index.html">tuner</a>' >"$work/stage/index.html"
{ cat "$root/deploy/site/mkdocs.yml"; printf 'docs_dir: %s\nsite_dir: %s\n' "$work/stage" "$work/site"; } >"$work/mkdocs.yml"
mkdocs build --strict --config-file "$work/mkdocs.yml" >"$work/mkdocs.log" 2>&1 || { grep -E 'WARNING|ERROR' "$work/mkdocs.log" >&2; exit 1; }
/usr/bin/python3 -B "$root/deploy/site/links.py" "$work/site"
rm -rf "$out"
mkdir -p "$(dirname "$out")"
mv "$work/site" "$out"
: >"$out/.tuner_site"
echo "site: $out/index.html"
