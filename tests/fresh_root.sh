#!/usr/bin/env bash
# Runs README's two commands on a fresh Debian 12: debootstraps one into FOLDER, clones this repository's HEAD into it and
# starts tools/run.sh and tools/test.sh there. Needs root, debootstrap and about 6 GB. Not part of continuous integration.
# usage: tests/fresh_root.sh FOLDER [MIRROR]
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,5s/^# //p' "$0" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
mirror=${2:-http://deb.debian.org/debian}

if [ ! -x "$folder/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase bookworm "$folder" "$mirror"
fi
cp /etc/resolv.conf "$folder/etc/resolv.conf"
# Where this machine reaches the net through a proxy with an authority of its own, the new root needs both.
if [ -n "$(ls -A /usr/local/share/ca-certificates 2>/dev/null)" ]; then
  mkdir -p "$folder/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$folder/usr/local/share/ca-certificates/"
fi

mounted=()
unmount() {
  local i
  for ((i = ${#mounted[@]} - 1; i >= 0; --i)); do umount --recursive --lazy "${mounted[i]}"; done
}
trap unmount EXIT
for place in proc sys dev; do
  mountpoint -q "$folder/$place" && continue
  mount --rbind "/$place" "$folder/$place" && mounted+=("$folder/$place")
done

# A clone of what is committed, made outside so that the root needs no git.
rm -rf "$folder/root/dnnopt"
git clone --quiet --no-hardlinks "$source" "$folder/root/dnnopt"

inside() {
  env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
    chroot "$folder" /bin/bash -c "cd /root/dnnopt && $1"
}
inside tools/run.sh
inside tools/test.sh
