#!/usr/bin/env bash
# Installs the C library into a folder and builds a program against it as its users do, by pkg-config alone.
# usage: bindings/c/tests/installed.sh CMAKE BUILD CC
set -euo pipefail
cmake=$1 build=$2 compiler=$3
source=$(cd "$(dirname "$0")/../../.." && pwd)
if ! command -v pkg-config >/dev/null; then
  echo "skipped: no pkg-config"
  exit 77
fi
place=$build/installed_c
rm -rf "$place"
for component in c c_dev; do
  "$cmake" --install "$build" --component $component --prefix "$place/first" >/dev/null
done
# Packages move: nothing in it may know where it was installed.
mv "$place/first" "$place/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$place/moved" -name dnnopt.pc)")
export PKG_CONFIG_PATH
read -ra flags <<<"$(pkg-config --cflags --libs dnnopt)"
"$compiler" -std=c99 -Wall -Wextra -Werror "$source/bindings/c/example.c" "${flags[@]}" \
  -o "$place/example"
cd "$source/bench/light"
LD_LIBRARY_PATH=$(pkg-config --variable=libdir dnnopt) "$place/example" | tee /dev/stderr | grep -q 'first 0.0010'
