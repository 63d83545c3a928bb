#!/usr/bin/env bash
# Configures and builds one preset through ccache. usage: tools/build.sh PRESET [TARGET...]
set -euo pipefail
cd "$(dirname "$0")/.."

preset=$1
shift
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  # What a unit depends on is asked of the compiler, which saves a run of the preprocessor for each.
  export CCACHE_DEPEND=1
  # A precompiled header is keyed by its own content; times of files do not matter.
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
fi
cmake --preset "$preset"
# All failures of a build are told at once.
cmake --build --preset "$preset" ${1:+--target "$@"} -- -k 0
