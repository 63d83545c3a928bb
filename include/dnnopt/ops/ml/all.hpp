// Owns nothing: includes every operator family of ai.onnx.ml that has rows of its own.
#ifndef DNNOPT_OPS_ML_ALL_HPP
#define DNNOPT_OPS_ML_ALL_HPP

#include <dnnopt/ops/ml/encoder.hpp>
#include <dnnopt/ops/ml/predictor.hpp>

#endif  // DNNOPT_OPS_ML_ALL_HPP
