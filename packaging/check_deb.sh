#!/usr/bin/env bash
# Builds programs in C and C++ against the Debian packages and runs them, and the command line and Python from them.
# usage: packaging/check_deb.sh PACKAGES FOLDER            unpacks them into FOLDER
#        packaging/check_deb.sh --root PACKAGES FOLDER     installs them by dpkg into a fresh Debian 12 in FOLDER (needs root)
set -euo pipefail
# Mounts live in a namespace of this process alone, so that removing FOLDER is safe however it ends.
if [ "${1:-}" = --root ] && [ -z "${DNNOPT_CHECK_NAMESPACE:-}" ]; then
  DNNOPT_CHECK_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi
fresh=
[ "${1:-}" = --root ] && { fresh=1; shift; }
[ $# -eq 2 ] || { sed -n '2,4s/^# //p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
packages=$(cd "$1" && pwd)
mkdir -p "$2"
folder=$(cd "$2" && pwd)

check='set -e
cd "$WORK"
cp "$SOURCE/bindings/c/example.c" "$SOURCE"/packaging/conan/test_package/program.cpp "$SOURCE"/packaging/conan/test_package/CMakeLists.txt .
read -ra flags <<<"$(pkg-config --cflags --libs dnnopt)"
cc -std=c99 -Wall -Wextra -Werror example.c "${flags[@]}" -o example
began=$(date +%s)
cmake -B build -DCMAKE_BUILD_TYPE=Release ${PREFIX:+-DCMAKE_PREFIX_PATH=$PREFIX} >/dev/null
cmake --build build
echo "the program in C++ was built in $(($(date +%s) - began)) s"
build/program
cd "$SOURCE/bench/light"
"$WORK/example"
dnnopt --version
dnnopt run light_squeezenet.onnx
python3 -c "import dnnopt; s = dnnopt.InferenceSession(\"light_squeezenet.onnx\", {\"device\": \"reference\"}); print(s.get_inputs())"'

if [ -z "$fresh" ]; then
  for package in "$packages"/*.deb; do dpkg-deb -x "$package" "$folder"; done
  mkdir -p "$folder/work"
  libraries=$(dirname "$(find "$folder/usr/lib" -name libdnnopt.a)")
  env WORK="$folder/work" SOURCE="$source" PREFIX="$folder/usr" PATH="$folder/usr/bin:$PATH" LD_LIBRARY_PATH="$libraries" \
    LIBRARY_PATH="$libraries" PKG_CONFIG_PATH="$libraries/pkgconfig" PYTHONPATH="$folder/usr/lib/python3/dist-packages" \
    PYTHONDONTWRITEBYTECODE=1 PATH="$folder/usr/bin:/usr/bin:/bin" bash -c "$check"
  exit
fi

if [ ! -x "$folder/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase bookworm "$folder"
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"
mkdir -p "$folder/srv/packages" "$folder/srv/dnnopt" "$folder/srv/work"
cp "$packages"/*.deb "$folder/srv/packages/"
git -C "$source" archive HEAD bench/light bindings packaging | tar -x -C "$folder/srv/dnnopt"
# A driver for the CPU looks for it there.
mount -t proc proc "$folder/proc"
mount -t sysfs -o ro sysfs "$folder/sys"
inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive WORK=/srv/work \
    SOURCE=/srv/dnnopt ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$folder" /bin/bash -c "$1"
}
inside 'apt-get update -qq && apt-get install -y -qq --no-install-recommends /srv/packages/*.deb g++ cmake make pkg-config \
  ocl-icd-libopencl1 pocl-opencl-icd >/dev/null'
inside 'dpkg -l libdnnopt0.1 libdnnopt-dev dnnopt python3-dnnopt | tail -4'
inside "$check"
