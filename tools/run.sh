#!/usr/bin/env bash
# Runs a network on the first OpenCL device and prints where its time goes.
# usage: tools/run.sh [MODEL.onnx [FLAGS of `dnnopt profile`...]]
# Without a model: the sentences of examples/data/sentences.txt by all-MiniLM-L6-v2 with its real weights.
set -euo pipefail
caller=$PWD
cd "$(dirname "$0")/.."

tools/setup.sh
tools/build.sh release dnnopt_tool 02_sentences
bin=build/release/bin

profile() {
  local model=$1
  shift
  # Leaves a model alone whose weights are there.
  "$bin/dnnopt" weights "$model"
  "$bin/dnnopt" profile "$model" "$@"
}

if [ $# -gt 0 ]; then
  model=$1
  shift
  case $model in /*) ;; *) model=$caller/$model ;; esac
  profile "$model" "$@"
elif python3 tools/minilm_weights.py build/models; then
  "$bin/02_sentences" build/models/minilm_l6_dynamic.onnx examples/data/sentences.txt --profile
else
  echo "running squeezenet1_0 with generated weights instead"
  mkdir -p build/models
  cp bench/zoo/squeezenet1_0.onnx build/models/
  profile build/models/squeezenet1_0.onnx
fi
