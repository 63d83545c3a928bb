#!/bin/sh
# Runs the kernel tests on Oclgrind: no invalid access, no data race, and every kernel version must have run.
# Usage: tests/oclgrind.sh KERNEL_TESTS LOG (the executable dnnopt_kernels_tests, and the file that the log goes to)
set -eu
tests=$1
log=$2
library=$(find /usr/lib /usr/local/lib -name 'liboclgrind-rt-icd.so' 2>/dev/null | head -n 1)
if [ -z "$library" ]; then
  echo "Oclgrind is not installed (Debian: oclgrind)" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$library" > "$folder/oclgrind.icd"
export OCL_ICD_VENDORS="$folder"
# Oclgrind lacks an intrinsic that inlining of restrict pointers leaves behind, so nothing is inlined,
# not even stores that ask for it (kernel_builder::add_store_function).
export OCLGRIND_BUILD_OPTIONS="-cl-opt-disable -Dalways_inline=noinline"
export OCLGRIND_CHECK_API=1 OCLGRIND_DATA_RACES=1
# The fixture of the kernel tests names what it ran. Oclgrind could count it too (OCLGRIND_INST_COUNTS), but writes beyond
# its own memory where a kernel computes with pointers to private arrays.
export DNNOPT_TEST_PRINT_VERSIONS=1
# What takes minutes on a simulator leaves cases out.
export DNNOPT_TEST_SIMULATED=1
export DNNOPT_TUNING_COMBINATIONS="${DNNOPT_TUNING_COMBINATIONS:-60}"
# Tests of that tag run kernels that others have here too, over extents that take a simulator minutes. A simulator
# computes on one processor, so the tests are dealt into parts, of which each processor takes the next.
parts=24
"$tests" "~[unsimulated]" --list-test-names-only > "$folder/names" || [ -s "$folder/names" ]
# Catch2 takes a comma in a name for the end of the name.
awk -v folder="$folder" -v parts="$parts" 'NF { gsub(/,/, "\\\\,"); print > (folder "/part" NR % parts) }' "$folder/names"
export tests
find "$folder" -name 'part*' -print | xargs -P "$(nproc)" -I '{}' sh -c '
  OCLGRIND_LOG="{}.errors" "$tests" --input-file "{}" > "{}.output" 2>&1 || echo "{}.output" >> "{}.failed"' || true
if [ -n "$(find "$folder" -name '*.failed')" ]; then
  cat $(cat "$folder"/*.failed) > "$log"
  grep -vE '^ran dnnopt_|^$' "$log" | grep -A 20 FAILED | head -n 200
  tail -n 3 "$log"
  exit 1
fi
ended=$(sed -n 's/^All tests passed (.* assertions\{0,1\} in \([0-9]*\) test cases\{0,1\})$/\1/p' "$folder"/*.output | awk '{ sum += $1 } END { print sum + 0 }')
dealt=$(grep -c . "$folder/names")
[ "$ended" = "$dealt" ] || { echo "$ended of $dealt tests ran"; exit 1; }
cat "$folder"/*.errors > "$folder/errors"
{ cat "$folder"/*.output | grep -E "^ran dnnopt_|^left out a case" || true; cat "$folder/errors"; } > "$log"
if [ -s "$folder/errors" ]; then
  head -n 40 "$folder/errors"
  exit 1
fi
missing=0
for version in $("$tests" "names of all kernel versions" | grep "^dnnopt_"); do
  runs=$(grep -cx "ran $version" "$log" || true)
  echo "$version: $runs runs"
  [ "$runs" -gt 0 ] || missing=1
done
[ "$missing" -eq 0 ] || { echo "a kernel version did not run" >&2; exit 1; }
echo "left out, for they take a simulator minutes: $("$tests" "[unsimulated]" --list-test-names-only | grep -c .) tests," \
     "and $(grep -c "^left out a case" "$log" || true) cases of others"
echo "Oclgrind: no errors"
