#!/usr/bin/env bash
# Makes all that is published of a version from its tag: sources, Debian packages, the Python wheel, their checksums.
# usage: packaging/release.sh TAG FOLDER   TAG is v and the version, as in v0.1.0; FOLDER must not exist
set -euo pipefail
[ $# -eq 2 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
repository=$(cd "$(dirname "$0")/.." && pwd)
tag=$1 version=${1#v}
fail() {
  echo "release.sh: $*" >&2
  exit 1
}
git -C "$repository" rev-parse -q --verify "refs/tags/$tag^{commit}" >/dev/null || fail "there is no tag $tag"
[ ! -e "$2" ] || fail "$2 exists"
mkdir -p "$(dirname "$2")"
result=$(realpath "$2")

# Everything is made from what the tag holds, not from the working tree, and comes to its place once it is whole.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$work/release
mkdir "$folder"
sources=dnnopt-$version
git -C "$repository" archive --prefix="$sources/" -o "$folder/$sources.tar.gz" "$tag"
tar -xzf "$folder/$sources.tar.gz" -C "$work"
cd "$work/$sources"

stated=$(sed -n 's/^#define DNNOPT_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' include/dnnopt/version.hpp | paste -sd.)
[ "$stated" = "$version" ] || fail "$tag holds version $stated (include/dnnopt/version.hpp)"
heading=$(grep -m1 -F "## $version" CHANGELOG.md) || fail "CHANGELOG.md says nothing of $version"
[[ $heading != *"not released"* ]] || fail "CHANGELOG.md calls $version not released"

packaging/deb.sh build/deb
packaging/check_deb.sh build/deb/packages "$work/installed"
cp build/deb/packages/*.deb "$folder/"
if python3 -m pip --version >/dev/null 2>&1; then
  python3 -m pip wheel --quiet --no-deps --wheel-dir "$folder" ./bindings/python
else
  fail "the wheel needs pip (Debian: python3-pip)"
fi
(cd "$folder" && sha256sum -- * >SHA256SUMS)
mv "$folder" "$result"
ls -l "$result"
