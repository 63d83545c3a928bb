#!/usr/bin/env bash
# Runs one example and compares what it prints with examples/NAME.output. usage: examples/check.sh NAME PROGRAM BUILD
# An example that reads a network with real weights is skipped (77) when these are not there.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$1 program=$2
arguments=()
if [ -f "$here/$name.arguments" ]; then
  mapfile -t arguments <"$here/$name.arguments"
fi
for argument in "${arguments[@]}"; do
  case $argument in
    build/models/*.onnx)
      if [ ! -f "$here/../${argument%.onnx}.weights" ]; then
        echo "skipped: ${argument%.onnx}.weights is not there; tools/minilm_weights.py writes it"
        exit 77
      fi
      ;;
  esac
done
cd "$here/.."
diff -u "$here/$name.output" <("$program" "${arguments[@]}" || echo "exit code $?")
