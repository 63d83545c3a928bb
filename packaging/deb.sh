#!/usr/bin/env bash
# Makes the Debian packages from a build folder's configuration, and checks them by lintian where it is installed.
# usage: packaging/deb.sh BUILD [CMAKE-FLAGS...]   the packages lie in BUILD/packages
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
build=$1
shift
# The place of libraries (lib/x86_64-linux-gnu) follows from the prefix.
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DDNNOPT_BUILD_TESTS=OFF "$@"
cmake --build "$build" --target dnnopt_tool dnnopt_c dnnopt_c_static dnnopt_compiled
packages=$(cd "$build" && pwd)/packages
rm -rf "$packages"
(umask 022 && cd "$build" && cpack -G DEB -B "$packages")
rm -rf "$packages/_CPack_Packages"
if command -v lintian >/dev/null; then
  # lintian's refusal to run as root is for the machine's sake, not the packages'.
  lintian --allow-root --fail-on error "$packages"/*.deb
else
  echo "not checked: lintian is not installed (Debian: lintian)" >&2
fi
ls -l "$packages"/*.deb
