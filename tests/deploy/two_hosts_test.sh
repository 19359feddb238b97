#!/usr/bin/env bash
# two_hosts_test.sh BIN: a farm of two hosts, as docs/farm.md tells to make it. Hosts are network namespaces with a cable between
# them, which is pulled now and then while the last layer of ResNet-50 is tuned: then the job has ended, its answer was raced, and
# every trial was measured on the other host, once, strictly confined. Skipped, with the reason, where namespaces cannot be made.
set -euo pipefail
bin=${1:?the folder of the programs}
skip() { echo "skipped: $*"; exit 77; }
fail() { echo "FAILED: $*" >&2; tail -5 "$dir"/*.log >&2 || true; exit 1; }

command -v ip >/dev/null || skip "there is no program ip: deploy/install.sh --tools"
[[ $(id -u) -eq 0 ]] || skip "only root makes network namespaces"
id=$$
daemon_host=tuner-d$id worker_host=tuner-w$id
dir=$(mktemp -d)
pids=()
clean_up() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
  ip netns del "$daemon_host" 2>/dev/null || true
  ip netns del "$worker_host" 2>/dev/null || true
  rm -rf "$dir"
}
trap clean_up EXIT
ip netns add "$daemon_host" 2>"$dir/why" || skip "no network namespace can be made here: $(<"$dir/why")"
ip netns add "$worker_host"
ip link add "td$id" netns "$daemon_host" type veth peer name "tw$id" netns "$worker_host" 2>"$dir/why" ||
  skip "no cable between namespaces can be made here: $(<"$dir/why")"
on_daemon() { ip netns exec "$daemon_host" env HOME="$dir/d" XDG_RUNTIME_DIR="$dir/d" XDG_CACHE_HOME="$dir/d/cache" "$@"; }
on_worker() { ip netns exec "$worker_host" env HOME="$dir/w" XDG_RUNTIME_DIR="$dir/w" XDG_CACHE_HOME="$dir/w/cache" "$@"; }
# For what stays: the number of the process is then the program's own.
stay_on_daemon() { exec ip netns exec "$daemon_host" env HOME="$dir/d" XDG_RUNTIME_DIR="$dir/d" XDG_CACHE_HOME="$dir/d/cache" "$@"; }
stay_on_worker() { exec ip netns exec "$worker_host" env HOME="$dir/w" XDG_RUNTIME_DIR="$dir/w" XDG_CACHE_HOME="$dir/w/cache" "$@"; }
on_daemon true 2>"$dir/why" || skip "no command runs in a network namespace here: $(<"$dir/why")"  # as in a chroot
mkdir -p "$dir/d" "$dir/w"
on_daemon ip link set lo up
on_worker ip link set lo up
on_daemon ip addr add 10.77.0.1/24 dev "td$id"
on_worker ip addr add 10.77.0.2/24 dev "tw$id"
on_daemon ip link set "td$id" up
on_worker ip link set "tw$id" up
on_worker "$bin/runner" --probe >"$dir/probe" 2>/dev/null || true
grep -q '"isolation": *"strict"' "$dir/probe" || skip "root runs candidates of another host only with isolation strict, which this host does not have"

# As a person would: what is missing is refused first.
cd "$dir"
if on_daemon "$bin/tuner" serve --db farm.db --listen 10.77.0.1:7070 >refused.log 2>&1; then fail "listening beyond loopback without TLS"; fi
on_daemon "$bin/tuner" admin ca --db farm.db >admin.log || fail "tuner admin ca"
stay_on_daemon "$bin/tuner" serve --db farm.db --listen tls:10.77.0.1:7070 >serve.log 2>&1 &
pids+=($!)
for _ in $(seq 200); do grep -q '^listening on 10.77.0.1:7070' serve.log && break; sleep 0.1; done
grep -q '^listening on 10.77.0.1:7070' serve.log || fail "the daemon does not listen"
on_daemon "$bin/tuner" admin worker box --db farm.db --address 10.77.0.1:7070 -o box.credentials >>admin.log || fail "tuner admin worker"
on_daemon "$bin/tuner" admin token alice --db farm.db --address 10.77.0.1:7070 -o alice.credentials >>admin.log || fail "tuner admin token"
if on_worker "$bin/tuner" workers --daemon 10.77.0.1:7070 >stranger.log 2>&1; then fail "a stranger is answered"; fi
stay_on_worker "$bin/measure_server" --daemon box.credentials >worker.log 2>&1 &
pids+=($!)

cat >last.json <<'END'
{"op": "matmul", "a": [1, 2048], "b": [2048, 1000], "bias": true, "constant": ["b"], "target": "cpu", "trials": 48}
END
(
  while sleep 3; do
    on_worker ip link set "tw$id" down
    sleep 1.5
    on_worker ip link set "tw$id" up
  done
) &
flapping=$!
pids+=("$flapping")
status=0
timeout 400 ip netns exec "$worker_host" env HOME="$dir/w" XDG_RUNTIME_DIR="$dir/w" XDG_CACHE_HOME="$dir/w/cache" \
  "$bin/tuner" submit last.json --json --daemon alice.credentials >answer.json 2>submit.log || status=$?
kill "$flapping"
[[ $status -eq 0 ]] || fail "tuner submit ended with $status"
grep -q '"certified"' answer.json || fail "the answer says not whether it is certified"
on_daemon "$bin/tuner" records export --db farm.db -o records.jsonl >>admin.log 2>&1 || fail "tuner records export"
strict=$(grep -c '"isolation":"strict"' records.jsonl || true)
[[ $strict -ge 40 ]] || fail "$strict records of candidates that were confined strictly, expected 40 and more"
others=$(grep '"worker_id"' records.jsonl | grep -vc '"worker_id":"box"' || true)
[[ $others -eq 0 ]] || fail "$others records of workers that are not there"
echo "tuned over two hosts: $(grep -o '"certified": *[a-z]*' answer.json | head -1), $(grep -c 'was silent\|is here' serve.log) lines about the worker's comings and goings"
