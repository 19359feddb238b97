#!/usr/bin/env bash
# package_root.sh [--keep] [FOLDER]: what deploy/package.sh made in FOLDER (build/package/packages), tried in a fresh Debian 12.
# Tunes a small task and times the way from the end of the installation to the first answer (at most 60 s, no compiler there); opens
# the page and a report in a browser of this machine; builds a C program on the runtime library, and a C++ program on the client; runs
# a model by ONNX Runtime with the plugin; removes the packages, and looks for what they left. Then the wheel and the images, if there.
# What needs a program that is not here is left out, with a line. Exit code 0 when all that was tried holds. Some minutes, most of them
# apt's; needs root, mmdebstrap and 5 GB in TMPDIR (/var/tmp).
#   BENCH_MODEL, BENCH_LIBONNXRUNTIME   the program bench_model of a build with tests, and what deploy/onnxruntime.sh prints
set -euo pipefail
program=package_root keep=0 cache='' most_s=60
# shellcheck source=deploy/debian_root.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_root.sh"
packages=$source_dir/build/package/packages
while [[ $# -gt 0 ]]; do
  case $1 in
    --keep) keep=1; shift ;;
    -h | --help) sed -n '2,8s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) refuse "found $1, expected --keep or a folder" ;;
    *) packages=$(realpath "$1"); shift ;;
  esac
done
check_root_tools
all=(tuner tuner-worker tuner-runtime tuner-client tuner-onnxruntime)
for name in "${all[@]}"; do
  compgen -G "$packages/${name}_*.deb" >/dev/null || stop "$packages has no ${name}_*.deb: deploy/package.sh makes it"
done

report=()
told() { report+=("$1"); echo "$program: $1" >&2; }
inside_root() { in_root "$root" /srv/app bash -euc "$1"; }
apt='apt-get -q -y -o Dpkg::Use-Pty=0'
# get WHAT PACKAGE...: by apt, without what is only recommended.
get() {
  local what=$1; shift
  inside_root "export DEBIAN_FRONTEND=noninteractive; $apt install --no-install-recommends $*" >"$scratch/apt.log" 2>&1 ||
    { cat "$scratch/apt.log" >&2; stop "$what cannot be installed"; }
}
# Every path there is, without what the namespace mounts, home, and /tmp (sockets of the commands that ran).
files() { (cd "$root" && find . -xdev \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./srv -o -path ./tmp \) -prune -o -print | sort); }
# A block of a page in that language, the n-th.
block() { awk -v language="\`\`\`$2" -v wanted="$3" '$0 == language { ++n; on = n == wanted; next } /^```$/ { on = 0 } on' "$source_dir/$1"; }

first_answer() {
  local start=$SECONDS
  get "tuner and tuner-worker" "/srv/packages/tuner_*.deb" "/srv/packages/tuner-worker_*.deb"
  local brought
  brought=$(grep -oE "libllvm22|libxgboost0|libgrpc\\+\\+1\.51" "$scratch/apt.log" | sort -u | tr '\n' ' ')
  told "tuner and tuner-worker installed in $((SECONDS - start)) s: ${brought}came along"
  inside_root '! command -v cc && ! command -v gcc && ! command -v clang' >/dev/null || stop "there is a compiler; this root is not what a user has"
  start=$(date +%s%N)
  inside_root 'tuner submit job.json && tuner query job.json' >"$scratch/answer" 2>"$scratch/said" ||
    { cat "$scratch/answer" "$scratch/said" >&2; stop "the first command failed"; }
  local took_ms=$((($(date +%s%N) - start) / 1000000))
  told "first answer $((took_ms / 1000)).$((took_ms / 100 % 10)) s after the installation (at most $most_s s):"
  sed 's/^/  /' "$scratch/answer" >&2
  [[ $took_ms -le $((most_s * 1000)) ]] || stop "the first answer took longer than $most_s s"
  grep -q 'certified' "$scratch/answer" || stop "the answer does not say whether it is certified"
  inside_root 'command -v tuner measure_server measure_runner runner; runner --version' >&2
}

# The page is served in the root; the network is this machine's, so a browser here opens it.
dashboard() {
  inside_root 'tuner report j1 -o report.html --no-roofs' 2>"$scratch/said" || { cat "$scratch/said" >&2; stop "there is no report"; }
  grep -q 'Explore the trials' "$root/srv/app/report.html" || stop "the report has no charts: $(cat "$scratch/said")"
  rm -f "$root/srv/app/seen"
  inside_root 'timeout 120 tuner dashboard --no-open >link 2>&1 & shown=$!
    for ((i = 0; i < 500; ++i)); do [[ ! -e seen ]] || break; sleep 0.2; done
    kill -INT $shown; wait $shown' >"$scratch/dashboard" 2>&1 &
  local serving=$! link=''
  for ((i = 0; i < 100; ++i)); do
    link=$(grep -oE 'http://127\.0\.0\.1:[0-9]+/#token=[A-Za-z0-9_.-]+' "$root/srv/app/link" 2>/dev/null || true)
    [[ -z $link ]] || break
    sleep 0.2
  done
  [[ -n $link ]] || { cat "$root/srv/app/link" "$scratch/dashboard" >&2; stop "tuner dashboard prints no link"; }
  local file code
  for file in / /app.js /app.css; do
    code=$(curl -s -o "$scratch/page" -w '%{http_code} %{size_download}' "${link%%/#*}$file")
    [[ $code == 200\ * && $code != "200 0" ]] || stop "the installed page has no $file: $code"
  done
  code=$(curl -s -H "Authorization: Bearer ${link##*token=}" "${link%%/#*}/api/jobs")
  [[ $code == *'"job":"j1"'* ]] || stop "the installed page lists no job: $code"
  local npm=$source_dir/build/package/dashboard_page.npm browser
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
  if [[ -n $browser && -d $npm/node_modules/playwright-core ]]; then
    CHROMIUM=$browser timeout 120 node "$source_dir/tests/deploy/installed_page.mjs" "$npm" "$link" "$root/srv/app/report.html" \
      >"$scratch/browser" 2>&1 ||
      { cat "$scratch/browser" >&2; touch "$root/srv/app/seen"; stop "the installed page does not work in Chromium"; }
    told "the installed page and a report work in Chromium: $(tail -1 "$scratch/browser")"
  else
    told "the installed page is served; no browser was tried: Chromium or $npm is missing"
  fi
  touch "$root/srv/app/seen"
  wait "$serving" || { cat "$scratch/dashboard" >&2; stop "tuner dashboard did not end well after Ctrl-C"; }
}

runtime() {
  block deploy/runtime/README.md c 1 >"$root/srv/app/app.c"
  get "gcc" gcc g++ libc6-dev man-db bash-completion fish zsh groff-base
  get "tuner-runtime" "/srv/packages/tuner-runtime_*.deb"
  for source in /srv/.local/share/tuner/tuner.db bundle; do
    inside_root "[[ -d bundle ]] || tuner build job.json -o bundle; cc app.c -ltuner_runtime -o app && ./app $source" >"$scratch/app" ||
      { cat "$scratch/app" >&2; stop "the C program failed"; }
    grep -q '(exact)$' "$scratch/app" || { cat "$scratch/app" >&2; stop "the C program did not get the tuned kernel"; }
    told "a C program on tuner-runtime and ${source##*/}: $(tail -1 "$scratch/app")"
  done
  inside_root "man --warnings -l /usr/share/man/man1/tuner-submit.1.gz 2>&1 >/dev/null | grep . && exit 1
    man -w measure_server measure_runner runner tuner-records-export" >&2 ||
    stop "manual pages are missing or have warnings"
  inside_root "source /usr/share/bash-completion/completions/tuner; COMP_WORDS=(tuner sub); COMP_CWORD=1; _tuner; [[ \${COMPREPLY[*]} == submit ]]" ||
    stop "completion of bash does not complete"
  inside_root "fish -c 'complete -C \"tuner show --as lo\"' | grep -qx loops" || stop "completion of fish does not complete"
  inside_root "zsh -fc 'autoload -Uz compinit; compinit -u -D; [[ \$_comps[tuner] == _tuner ]] && autoload +X -Uz _tuner'" ||
    stop "zsh does not find its completion"
  told "manual pages and completion are there"
}

# The program of the client's page, on a daemon and a worker of the root.
client() {
  get "tuner-client" "/srv/packages/tuner-client_*.deb"
  block deploy/client/README.md cpp 1 | sed 's/127\.0\.0\.1:7070/unix:\/tmp\/farm/; s/conv2d\.json/job.json/; s/trials = 64/trials = 8/' \
    >"$root/srv/app/client.cpp"
  inside_root 'c++ -std=c++17 client.cpp -ltuner_client -o client
    tuner serve --db farm.db --listen unix:/tmp/farm >serve.log 2>&1 & daemon=$!
    for ((i = 0; i < 100; ++i)); do [[ ! -S /tmp/farm ]] || break; sleep 0.1; done
    measure_server --daemon unix:/tmp/farm --work-dir work >worker.log 2>&1 & worker=$!
    for ((i = 0; i < 100; ++i)); do tuner workers --daemon unix:/tmp/farm 2>/dev/null | grep -q llvm && break; sleep 0.2; done
    timeout 100 ./client; code=$?
    kill -TERM $worker; wait $worker; kill -TERM $daemon; wait $daemon; exit $code' >"$scratch/client" 2>&1 ||
    { cat "$scratch/client" "$root/srv/app/serve.log" >&2; stop "the C++ program failed"; }
  grep -qE ' ns$' "$scratch/client" || { cat "$scratch/client" >&2; stop "the C++ program got no answer"; }
  told "a C++ program on tuner-client: $(tail -1 "$scratch/client")"
}

# bench_model holds ONNX Runtime's answers with the plugin against those without it.
onnxruntime() {
  get "tuner-onnxruntime" "/srv/packages/tuner-onnxruntime_*.deb"
  local plugin=/usr/lib/x86_64-linux-gnu/tuner/libtuner_onnxruntime.so
  [[ -f $root$plugin ]] || stop "tuner-onnxruntime has no $plugin"
  local bench=${BENCH_MODEL:-} library=${BENCH_LIBONNXRUNTIME:-}
  local model=$scratch/try.onnx
  if [[ ! -x $bench || ! -f $library ]]; then
    inside_root "! ldd $plugin | grep 'not found'" || stop "the plugin lacks a library"
    told "tuner-onnxruntime is installed, and has its libraries; it ran no model: BENCH_MODEL or BENCH_LIBONNXRUNTIME is not given"
    return
  fi
  "$(dirname "$bench")/write_model" mobilenetv2 "$model" 64 >/dev/null || stop "write_model failed"
  cp "$model" "$root/srv/app/model.onnx"
  cp -L "$library" "$root/srv/app/libonnxruntime.so.1"
  cp "$bench" "$root/srv/app/bench_model"
  inside_root "tuner compile model.onnx -o model --no-tune && timeout 300 env BENCH_LIBONNXRUNTIME=/srv/app/libonnxruntime.so.1 \
      ./bench_model model.onnx model --rounds 5 --provider $plugin" >"$scratch/onnx" 2>&1 ||
    { cat "$scratch/onnx" >&2; stop "ONNX Runtime with the plugin failed"; }
  told "ONNX Runtime with the installed plugin gives the answers of ONNX Runtime alone: $(grep -m1 'ONNX Runtime with our provider' "$scratch/onnx" | sed 's/^ *//')"
}

# What is left of each package's files after it went, and what its removal did not take.
removal() {
  inside_root "dpkg -L ${all[*]} | sort -u" >"$scratch/owned"
  inside_root "export DEBIAN_FRONTEND=noninteractive; $apt purge ${all[*]}" >"$scratch/apt.log" 2>&1 ||
    { cat "$scratch/apt.log" >&2; stop "the packages cannot be removed"; }
  local left
  left=$(while read -r path; do [[ -d $root$path || ! -e $root$path ]] || echo "$path"; done <"$scratch/owned")
  left+=$(files | grep -iE 'tuner|measure_server|measure_runner|bin/runner' || true)
  left+=$(inside_root "dpkg-query -W -f '\${Package} \${db:Status-Status}\n' 'tuner*' 2>/dev/null | grep -v not-installed || true")
  [[ -z $left ]] || stop "left after the removal: $left"
  told "removed; nothing is left outside home and /tmp"
}

# In the same root, after the packages have gone: the wheel brings all that it needs but numpy.
wheel() {
  get "Python" python3 python3-pip python3-numpy python3-grpcio python3-protobuf
  inside_root 'pip3 install --no-index --no-deps --break-system-packages -q /srv/packages/tuner-*.whl' >"$scratch/pip" 2>&1 ||
    { cat "$scratch/pip" >&2; stop "the wheel cannot be installed"; }
  cat >"$root/srv/app/wheel.py" <<'PYTHON'
import numpy as np
import tuner
kernel = tuner.tune("job.json", trials=8, db="wheel.db")
a, b = (tuner.aligned(np.random.default_rng(1).random(shape, dtype=np.float32)) for shape in ((64, 256), (256, 128)))
error = float(np.abs(kernel.pack(b=b)(a) - a @ b).max() / np.abs(a @ b).max())
assert error < 1e-5, error
print(f"largest error {error:.1e}")
PYTHON
  inside_root 'timeout 200 python3 wheel.py' >"$scratch/wheel" 2>&1 || { cat "$scratch/wheel" >&2; stop "the wheel's package failed"; }
  told "the wheel, without any of the packages: $(tail -1 "$scratch/wheel")"
}

# podman with storage of its own, so that nothing of it stays here. runc: crun refuses hosts with both versions of cgroups.
images() {
  command -v podman runc >/dev/null || { told "the images were not tried: podman and runc are not both installed"; return; }
  mkdir -p "$root/srv/podman"
  cat >"$scratch/containers.conf" <<'END'
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
END
  printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' "$root/srv/podman/"{graph,run} >"$scratch/storage.conf"
  local podman=(env CONTAINERS_CONF="$scratch/containers.conf" CONTAINERS_STORAGE_CONF="$scratch/storage.conf" podman) name
  for name in daemon worker builder; do
    "${podman[@]}" load -q -i "$packages/tuner-$name.tar" >&2 || stop "tuner-$name.tar cannot be loaded"
  done
  chmod 755 "$root/srv/app"
  "${podman[@]}" run --rm --network none -v "$root/srv/app/job.json:/job.json:ro" --entrypoint tuner tuner-daemon \
    submit /job.json --db /data/try.db --trials 8 >"$scratch/image" 2>&1 || { cat "$scratch/image" >&2; stop "the image tuner-daemon tunes nothing"; }
  grep -q 'certified' "$scratch/image" || { cat "$scratch/image" >&2; stop "the image's answer does not say whether it is certified"; }
  for name in worker builder; do
    "${podman[@]}" run --rm --network none --entrypoint measure_server "tuner-$name" --help >/dev/null || stop "the image tuner-$name does not start"
  done
  "${podman[@]}" rmi --all --force >/dev/null 2>&1 || true
  told "the images are loaded and run; in tuner-daemon a task was tuned: $(grep -m1 'certified' "$scratch/image" | sed 's/^ *//')"
}

make_root packages
told "Debian 12 in $root_took s"
mkdir -p "$root/srv/app" "$root/srv/packages"
cp "$packages"/tuner_*.deb "$packages"/tuner-*.deb "$root/srv/packages/"
compgen -G "$packages/tuner-*.whl" >/dev/null && cp "$packages"/tuner-*.whl "$root/srv/packages/"
cat >"$root/srv/app/job.json" <<'JOB'
{"op": "matmul", "a": [64, 256], "b": [256, 128], "constant": ["b"], "trials": 16}
JOB
inside_root "$apt update" >"$scratch/apt.log" 2>&1 || { cat "$scratch/apt.log" >&2; stop "apt reaches no source"; }
first_answer
dashboard
runtime
client
onnxruntime
removal
if compgen -G "$packages/tuner-*.whl" >/dev/null; then wheel; fi
if [[ -f $packages/tuner-daemon.tar ]]; then images; fi
remove_root
printf "$program: %s\n" "${report[@]}" "all holds"
