#!/usr/bin/env bash
# Runs one fuzz target under AddressSanitizer and UBSan, then prints which share of the code under test its corpus runs.
# usage: tools/fuzz.sh [TARGET [SECONDS]]   (default: onnx_import_fuzz 600)
# Targets: onnx_import_fuzz (the importer), model_fuzz (what stands behind it: shapes, passes, lowering, evaluation), files_fuzz
# (caches, tables, .npy).
# The corpus starts from the graphs of the zoo, of the light models, of other domains, of ONNX's node tests and of the importer's
# own tests, for model_fuzz from random graphs too, for files_fuzz from documents, and grows in build/fuzz/corpus/TARGET. Fails on
# a finding and where the corpus runs too few of the lines: 90% of the importer's, 80% of the passes', half of the readers'.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${1:-onnx_import_fuzz}
seconds=${2:-600}
case $target in
  model_fuzz) under_test=include/dnnopt/passes least=80 ;;
  files_fuzz) under_test="include/dnnopt/npy.hpp include/dnnopt/memory include/dnnopt/backend/opencl/program_file.hpp" least=50 ;;
  *) under_test=include/dnnopt/onnx least=90 ;;
esac

tools/setup.sh
missing=()
for package in libclang-rt-14-dev llvm-14; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' $package 2>/dev/null || true)" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "the fuzzer needs: apt-get install ${missing[*]}" >&2
  exit 1
fi

tools/build.sh fuzz "$target" "${target}_coverage" dnnopt_onnx_tests write_graphs
seeds=build/fuzz/seeds/$target
corpus=build/fuzz/corpus/$target
rm -rf "$seeds"
mkdir -p "$seeds" "$corpus"
if [ "$target" = files_fuzz ]; then
  python3 tests/fuzz/write_documents.py "$seeds"
else
  python3 tests/fuzz/write_corpus.py "$seeds"
  DNNOPT_WRITE_CORPUS=$PWD/$seeds build/fuzz/bin/dnnopt_onnx_tests >/dev/null
  if [ "$target" = model_fuzz ]; then build/fuzz/bin/write_graphs "$seeds"; fi
fi
echo "$(ls "$seeds" | wc -l) seeds"
"build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -max_len=2000000 \
  -print_final_stats=1 -artifact_prefix="$corpus/../" "$corpus" "$seeds"

LLVM_PROFILE_FILE=build/fuzz/$target.profraw "build/fuzz/bin/${target}_coverage" -runs=0 "$corpus" "$seeds" 2>/dev/null
llvm-profdata-14 merge -sparse "build/fuzz/$target.profraw" -o "build/fuzz/$target.profdata"
report=$(llvm-cov-14 report "build/fuzz/bin/${target}_coverage" -instr-profile="build/fuzz/$target.profdata" $under_test)
echo "lines run by the corpus:"
awk '$8 ~ /^[0-9]+$/ { printf "  %-24s %5s lines, %5s missed, %s\n", $1, $8, $9, $10 }' <<<"$report"
awk -v least="$least" '$1 == "TOTAL" { share = $10 + 0 } END { if (share < least) { print "less than " least "%"; exit 1 } }' <<<"$report"
