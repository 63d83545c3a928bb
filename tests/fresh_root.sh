#!/usr/bin/env bash
# Runs README's two commands on a fresh Debian 12: debootstraps one into FOLDER, clones this repository's HEAD into it and
# starts tools/run.sh and tools/test.sh there. Needs root, debootstrap and about 6 GB. Not part of continuous integration.
# usage: tests/fresh_root.sh FOLDER [MIRROR]
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }

# Mounts live in a namespace of this process alone: however it ends, FOLDER holds no way into the machine's own /dev
# afterwards, and removing FOLDER is safe.
if [ -z "${DNNOPT_FRESH_ROOT_NAMESPACE:-}" ]; then
  DNNOPT_FRESH_ROOT_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

source=$(cd "$(dirname "$0")/.." && pwd)
folder=$1

if [ ! -x "$folder/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase bookworm "$folder" ${2:+"$2"}
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"
# Where this machine reaches the net through a proxy with an authority of its own, the new root needs both.
if [ -n "$(ls -A /usr/local/share/ca-certificates 2>/dev/null)" ]; then
  mkdir -p "$folder/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$folder/usr/local/share/ca-certificates/"
fi

mount -t proc proc "$folder/proc"
mount -t sysfs -o ro sysfs "$folder/sys"
mount -t tmpfs -o mode=755 tmpfs "$folder/dev"
mkdir "$folder/dev/shm" "$folder/dev/pts"
mount -t tmpfs tmpfs "$folder/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$folder/dev/pts"
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0"; do
  read -r name major minor <<<"$node"
  mknod -m 666 "$folder/dev/$name" c "$major" "$minor"
done
ln -s pts/ptmx "$folder/dev/ptmx"
ln -s /proc/self/fd "$folder/dev/fd"
for i in 0 1 2; do ln -s "/proc/self/fd/$i" "$folder/dev/$(echo stdin stdout stderr | cut -d' ' -f$((i + 1)))"; done

# A clone of what is committed, made outside so that the root needs no git.
rm -rf "$folder/srv/dnnopt"
git clone --quiet --no-hardlinks "$source" "$folder/srv/dnnopt"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$folder" /bin/bash -c "cd /srv/dnnopt && $1"
}
inside tools/run.sh
inside tools/test.sh
