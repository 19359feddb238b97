#!/usr/bin/env bash
# fitted_table.sh FIT_DEFAULTS SOURCES: the table that default configs are fitted from is the one that today's results give.
set -euo pipefail
[[ $# -eq 2 ]] || { sed -n '2s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2; }
fit_defaults=$1
cd "$2"
table=templates/fitted_defaults/measured_shapes.inc
made=$(mktemp)
trap 'rm -f "$made"' EXIT
"$fit_defaults" table tests/bench/results/*.json >"$made" 2>/dev/null
cmp "$made" "$table" || { echo "make it anew: fit_defaults table tests/bench/results/*.json > $table"; exit 1; }
size=$(stat -c %s "$table")
((size <= 200000)) || { echo "$table: found $size bytes, expected at most 200000"; exit 1; }
