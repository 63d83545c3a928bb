#!/usr/bin/env bash
# Makes the figures of a GPU that docs/measurements/ shows: gpu_figures.sh FOLDER DEVICE PART...
#
# FOLDER holds the executables (built with DNNOPT_BUILD_BENCH), DEVICE is what `dnnopt bench --device` takes. Parts:
#   overhead   what profiling costs, three models, until the intervals are within 0.1%  130 to 330 s
#   means      monitor's means against full's, three models                              90 s
#   kernels    kernel times against injected copies, of a model and of plain kernels     50 s
#   timeline   100 equal layers, idle and loaded                                         240 s
#   predict    ten models from tables of lone kernels                                     100 s
#   search     networks under a latency limit, 448 x 448                                  250 s
#   outputs    eleven models' outputs beside ONNX Runtime's (needs onnx, onnxruntime)      30 s
#   torch      eleven models beside TorchInductor (needs PyTorch, timm, transformers)     300 s
#   tuned      the same with 60 s of search each, eager PyTorch and CUDA graphs          1000 s
#   batches    resnet50 and swin_tiny, batch 1 to 16, beside TorchInductor                 200 s
#   sustained  200 s of mobilenetv2_100 back to back                                       200 s
#   products   matrix products beside cuBLAS and CLBlast                                   60 s
#   errors     matrix products against float64, beside cuBLAS                             30 s
#   memory     kernels bound by memory, beside the copy kernel                             30 s
#   roofline   every launch of three models against the device's ceilings                  20 s
#   host       an inference against a bare loop over its commands                          30 s
#   choices    each choice of the default against its alternatives, three models          160 s
# Seconds are about those of an H200. Models get generated weights in a temporary folder.
set -euo pipefail

[ $# -ge 3 ] || { sed -n '2,/^set /p' "$0" | sed '$d; s/^# \{0,1\}//'; exit 2; }
folder=$(realpath "$1")
device=$2
shift 2
here=$(realpath "$(dirname "$0")")
# Which device that is, before time is spent on another one.
"$folder/time_kernels" "$device" auto 1 Relu:4 | sed -n 1p
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT

eleven="swin_tiny_patch4_window7_224 vit_base_patch16_224 convnext_tiny resnext50_32x4d regnety_032 resnet50
  mobilenetv2_100 efficientnet_b0 efficientvit_b2 bert_base gpt2"
three="squeezenet1_0 mobilenetv2_100 swin_tiny_patch4_window7_224"
# Paths of models with weights, made where they are missing.
ready() {
  for name in "$@"; do
    if [ ! -f "$models/$name.done" ]; then
      cp "$here/zoo/$name.onnx" "$models/"
      "$folder/dnnopt" weights "$models/$name.onnx" >/dev/null
      touch "$models/$name.done"
    fi
    echo "$models/$name.onnx"
  done
}
# Paths of models of the zoo, whose weights are missing.
zoo() {
  for name in "$@"; do echo "$here/zoo/$name.onnx"; done
}
timed() {
  echo "== $*"
  local began=$SECONDS status=0
  "$@" || status=$?
  echo "-- exit status $status, $((SECONDS - began)) s"
}

for part in "$@"; do
  # shellcheck disable=SC2046,SC2086
  case $part in
    overhead) timed "$folder/profile_model" overhead "$device" 180 0.001 0 $(ready $three) ;;
    means) timed "$folder/profile_model" overhead "$device" 2 0.001 10000 $(ready $three) ;;
    kernels)
      timed "$folder/dnnopt" profile $(ready squeezenet1_0) --device "$device" --warmup 20 --runs 60 --check-kernels \
        --check-seconds 40
      timed "$folder/profile_device" "$device" copies
      ;;
    timeline) timed "$folder/profile_device" "$device" timeline 120 best amid ;;
    predict)
      timed "$folder/profile_model" prediction "$device" $(ready $three mobilenetv1_100 mnasnet_100 \
        mobilenetv3_small_100 efficientnet_b0 resnet50 regnety_032 convnext_tiny)
      ;;
    search) timed "$folder/latency_search" "$device" 448 ;;
    outputs)
      timed python3 "$here/compare_onnxruntime.py" "$folder/dnnopt" $(zoo $eleven) --devices "$device" --require-device \
        --no-conditions
      ;;
    tuned) timed python3 "$here/compare_torch.py" "$folder/dnnopt" "$device" --tune 60 --rounds 3 ;;
    batches)
      python3 "$here/symbolic_batch.py" "$here/zoo/resnet50.onnx" "$models/resnet50_batch.onnx"
      timed python3 "$here/compare_torch.py" "$folder/dnnopt" "$device" "$models/resnet50_batch.onnx" \
        "$here/zoo/dynamic/swin_tiny_batch.onnx" --batches 16 8 4 2 1 --engines inductor
      ;;
    sustained) timed "$folder/sustained_latency" "$device" 200 $(ready mobilenetv2_100) ;;
    roofline)
      for model in $(ready resnet50 vit_base_patch16_224 swin_tiny_patch4_window7_224); do
        timed "$folder/dnnopt" profile "$model" --device "$device" --warmup 20 --runs 50 --roofline
      done
      ;;
    torch) timed python3 "$here/compare_torch.py" "$folder/dnnopt" "$device" --engines inductor --rounds 5 ;;
    products) timed python3 "$here/kernels/compare_products.py" "$folder" "$device" ;;
    errors) timed python3 "$here/kernels/product_errors.py" "$folder/dnnopt" "$device" ;;
    memory)
      timed "$folder/time_kernels" "$device" auto 20 Relu:4096x4096 Relu:8192x8192 Add:4096x4096:4096x4096 \
        MaxPool:64x64x64x64:kernel_shape=2,2:strides=2,2 MaxPool:256x64x64x64:kernel_shape=2,2:strides=2,2 \
        AveragePool:64x64x64x64:kernel_shape=2,2:strides=2,2 Softmax:16384x1024 Softmax:65536x1024 \
        LayerNormalization:16384x1024:1024:1024 LayerNormalization:65536x1024:1024:1024 Transpose:4096x4096 \
        Transpose:8192x8192 Erf:4096x4096 Erf:8192x8192
      ;;
    host) timed "$folder/host_cost" "$folder/recorded_opencl.so" "$device" 2000 $(ready mobilenetv2_100 efficientnet_b0) ;;
    choices) timed "$folder/choices" "$device" 50 0 $(ready resnet50 mobilenetv2_100 swin_tiny_patch4_window7_224) ;;
    *) echo "no part '$part'" >&2; exit 2 ;;
  esac
done
