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
export OCLGRIND_LOG="$folder/errors"
# What takes minutes on a simulator leaves cases out.
export DNNOPT_TEST_SIMULATED=1
export DNNOPT_TUNING_COMBINATIONS="${DNNOPT_TUNING_COMBINATIONS:-200}"
# Tests of that tag run kernels that others have here too, over extents that take a simulator minutes.
if ! "$tests" "~[unsimulated]" > "$folder/output" 2>&1; then
  cat "$folder/output" > "$log"
  grep -vE '^ran dnnopt_|^$' "$log" | grep -A 20 FAILED | head -n 200
  tail -n 3 "$log"
  exit 1
fi
{ grep "^ran dnnopt_" "$folder/output" || true; cat "$folder/errors"; } > "$log"
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
echo "left out, for they take a simulator minutes: $("$tests" "[unsimulated]" --list-test-names-only | grep -c .) tests"
echo "Oclgrind: no errors"
