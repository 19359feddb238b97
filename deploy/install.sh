#!/usr/bin/env bash
# install.sh [--runner-only] [--cross] [--peers] [--emulator] [--browser] [--page] [--shells] [--tools] [--onnx-testdata] [--python] [--lint] [--site]: installs what building needs on Debian 12, as root
# or with sudo. Quick when nothing is missing. Used by build.sh and test.sh; runs on its own too.
#   --runner-only  only what the programs of deploy/cross.sh need: no LLVM, XGBoost, SQLite, googletest
#   --cross     also the cross compiler for AArch64, with which deploy/cross.sh builds
#   --peers     also the libraries that bench_cpu holds our kernels against (19 MB); nothing else wants them. ONNX Runtime is
#               no Debian package: BENCH_LIBONNXRUNTIME names its library (tests/bench/README.md)
#   --onnx-testdata  also ONNX's own models with their answers (6 MB), which two tests run; reading models needs no package
#   --python    also what the Python package, its wheel and tests written in Python need
#   --emulator  also qemu's user-mode emulator (12 MB), with which a test runs kernels for AArch64
#   --browser   also Chromium (280 MB), in which tests open the pages of tuner report and tuner dashboard
#   --page      also npm, with which page.sh builds the page of tuner dashboard; not if it is there from elsewhere
#   --shells    also zsh and fish, in which a test completes commands
#   --tools     also groff and iproute2, with which tests format manuals and make a network of two hosts
#   --lint      also clang-format, clang-tidy and a Markdown parser, for check.sh, and libclang for tests/mutation/run
#   --site      also MkDocs and what takes pictures, for site.sh
#   --looked-up installs nothing: names the packages, optional ones too, on which it depends what CMake configures
set -euo pipefail

runner_only=(
  build-essential cmake ninja-build ccache pkg-config
  libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler libssl-dev
  libboost-dev libspdlog-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
)
packages=(
  "${runner_only[@]}"
  llvm-22-dev liblld-22-dev                    # bookworm-security
  libxgboost-dev libsqlite3-dev
  libgtest-dev libgmock-dev
)

peers=(libdnnl-dev libopenblas0-pthread libblis4-openmp libxsmm-dev)
onnx_testdata=(libonnx-testdata)
python=(
  python3-grpcio python3-protobuf python3-setuptools git
  python3-dev python3-numpy pybind11-dev mypy       # deploy/python
  python3-wheel python3-venv patchelf               # deploy/python/wheel.sh
)

[[ ${1:-} != --runner-only ]] || { packages=("${runner_only[@]}"); shift; }
for option in "$@"; do
  case $option in
    --cross) packages+=(g++-aarch64-linux-gnu) ;;
    --peers) packages+=("${peers[@]}") ;;
    --emulator) packages+=(qemu-user) ;;
    --browser) packages+=(chromium) ;;
    --page) command -v npm >/dev/null || packages+=(npm) ;;
    --shells) packages+=(zsh fish) ;;
    --tools) packages+=(groff-base iproute2) ;;
    --onnx-testdata) packages+=("${onnx_testdata[@]}") ;;
    --python) packages+=("${python[@]}") ;;
    --lint) packages+=(clang-format clang-tidy python3-clang-22 python3-markdown-it) ;;
    --site) packages+=(mkdocs mkdocs-material chromium tmux aha) ;;
    --looked-up) printf '%s\n' "${packages[@]}" "${peers[@]}" "${onnx_testdata[@]}" "${python[@]}"; exit 0 ;;
    *) echo "install: found $option, expected --runner-only first, --cross, --peers, --emulator, --browser, --page, --shells, --tools, --onnx-testdata, --python, --lint, --site or --looked-up" >&2; exit 2 ;;
  esac
done

# dpkg-query fails when it does not know one of the names.
installed=" $({ dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true; } | sed -n 's/ installed$//p' | tr '\n' ' ') "
missing=()
for package in "${packages[@]}"; do
  [[ $installed == *" $package "* ]] || missing+=("$package")
done
[[ ${#missing[@]} -gt 0 ]] || { [[ ${BASH_SOURCE[0]} != "$0" ]] || echo "install: nothing is missing"; return 0 2>/dev/null || exit 0; }

if [[ $(id -u) -eq 0 ]]; then sudo=(); elif command -v sudo >/dev/null; then sudo=(sudo); else
  echo "install: ${#missing[@]} packages are missing (${missing[*]}); run this as root, or install sudo" >&2; exit 1
fi
apt() { "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 "$@"; }

echo "install: ${#missing[@]} packages are missing: ${missing[*]}" >&2
apt update -q >&2
if [[ " ${missing[*]} " == *llvm-22-dev* ]] && ! apt-cache show llvm-22-dev >/dev/null 2>&1; then
  cat >&2 <<'END'
install: apt knows no llvm-22-dev. On Debian 12 it comes from bookworm-security; this source seems to be off. Add a line like
  deb http://deb.debian.org/debian-security bookworm-security main
to /etc/apt/sources.list and run this again.
END
  exit 1
fi
apt install -q -y --no-install-recommends "${missing[@]}" >&2
