#!/usr/bin/env bash
# Formats every C++ source that git knows, or with --check names those that differ and fails.
# usage: tools/format.sh [--check] [CLANG_FORMAT]
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
if [ "${1:-}" = --check ]; then
  mode=(--dry-run --Werror)
  shift
fi
program=${1:-clang-format}
version=$("$program" --version | grep -oE 'version [0-9]+' | cut -d' ' -f2)
if [ "$version" != 14 ]; then
  echo "clang-format $version found; the sources are formatted by version 14, others differ in details" >&2
fi
git ls-files -z -- '*.hpp' '*.cpp' | xargs -0 -r "$program" "${mode[@]}"
