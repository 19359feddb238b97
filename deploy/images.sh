#!/usr/bin/env bash
# images.sh [--base TAR] PACKAGES FOLDER: container images of a daemon, a worker and a builder (deploy/container), made by podman of the
# Debian packages in PACKAGES. Written as FOLDER/tuner-daemon.tar and so on, for podman load -i FILE or docker load -i FILE.
#   --base TAR   a tar of a fresh Debian 12, for where no registry has docker.io/library/debian:12
# Exit 3: podman is not installed, or there is no base.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
base=''
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --base) [[ -f ${2:-} ]] || { echo "images: --base: expected a file, found ${2:-nothing}" >&2; exit 2; }; base=$(realpath "$2"); shift 2 ;;
    -*) echo "images: found $1, expected --base, PACKAGES and FOLDER" >&2; exit 2 ;;
    *) break ;;
  esac
done
[[ $# -eq 2 ]] || { echo "images: expected PACKAGES and FOLDER, found $# words" >&2; exit 2; }
packages=$(realpath "$1")
for name in tuner tuner-worker; do
  compgen -G "$packages/${name}_*.deb" >/dev/null || { echo "images: $packages has no ${name}_*.deb: deploy/package.sh makes it" >&2; exit 2; }
done
mkdir -p "$2"
folder=$(realpath "$2")
command -v podman >/dev/null || { echo "images: podman is not installed: apt-get install podman" >&2; exit 3; }

debian=docker.io/library/debian:12 from=()
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; [[ ${#from[@]} -eq 0 ]] || podman rmi "${from[1]}" >/dev/null 2>&1 || true' EXIT
if [[ $base ]]; then
  # A name of its own: the host's debian:12 stays what it is.
  from=(--from "localhost/tuner-base-$$:12")
  podman import "$base" "${from[1]}" >&2
elif ! podman image exists "$debian"; then
  podman pull -q "$debian" >&2 || { echo "images: there is no $debian here, and no registry that has it. Give a tar of a Debian 12: --base TAR" >&2; exit 3; }
fi
# What the image files name: the repository's folders, with these packages in it.
context=$scratch/context
mkdir -p "$context/build/package/packages"
cp "$packages"/tuner_*.deb "$packages"/tuner-worker_*.deb "$context/build/package/packages/"
for name in daemon worker builder; do
  # The network of the host, because the image gets Debian's packages. Isolation by chroot needs neither a container runtime nor
  # cgroups, so this works in containers and where limits cannot be raised.
  podman build -q --isolation chroot --network host "${from[@]}" -f "$root/deploy/container/$name.Containerfile" -t "tuner-$name" "$context" >&2
  rm -f "$folder/tuner-$name.tar"
  podman save -q --format docker-archive -o "$folder/tuner-$name.tar" "tuner-$name"
done
ls -l "$folder"/tuner-{daemon,worker,builder}.tar
