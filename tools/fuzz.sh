#!/usr/bin/env bash
# Runs one fuzz target under AddressSanitizer and UBSan, then prints which share of the code under test its corpus runs.
# usage: tools/fuzz.sh [TARGET [SECONDS]]   (default: onnx_import_fuzz 600)
# The corpus starts from the graphs of bench/zoo and bench/light and grows in build/fuzz/corpus/TARGET.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-onnx_import_fuzz}
seconds=${2:-600}

tools/setup.sh
missing=()
for package in libclang-rt-14-dev llvm-14; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' $package 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "the fuzzer needs: apt-get install ${missing[*]}" >&2
  exit 1
fi

tools/build.sh fuzz "$target" "${target}_coverage"
corpus=build/fuzz/corpus/$target
mkdir -p "$corpus"
"build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=4096 -max_len=2000000 \
  -print_final_stats=1 -artifact_prefix="$corpus/../" "$corpus" bench/zoo bench/zoo/dynamic bench/light

LLVM_PROFILE_FILE=build/fuzz/$target.profraw "build/fuzz/bin/${target}_coverage" -runs=0 \
  "$corpus" bench/zoo bench/zoo/dynamic bench/light 2>/dev/null
llvm-profdata-14 merge -sparse "build/fuzz/$target.profraw" -o "build/fuzz/$target.profdata"
llvm-cov-14 report "build/fuzz/bin/${target}_coverage" -instr-profile="build/fuzz/$target.profdata" include/dnnopt/onnx
