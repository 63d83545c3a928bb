// Owns what a plan of weights says: how the elements of one are made, and what the plan aims at.
#ifndef DNNOPT_ZOO_WEIGHT_PLAN_HPP
#define DNNOPT_ZOO_WEIGHT_PLAN_HPP

#include <cstdint>

namespace dnnopt::onnx {

/// What a weight does where it is read first.
enum class weight_role : std::uint8_t { unread, factors, bias, scale, shift, mean, variance, table };

/// How the elements of one weight are made: normal around `mean` with `deviation`.
struct weight_plan {
  weight_role role = weight_role::unread;
  float mean = 0;
  float deviation = 0.02f;
  /// Where not 0: the factors of one output lie together, this many; they lose `center` times their own mean, and then
  /// are scaled to have `deviation` exactly, so that narrow layers do not differ by chance.
  std::int64_t row = 0;
  float center = 0;
};

/// What the plan aims at.
struct weight_targets {
  double power = 1;              ///< variance of what a matrix product gives
  double convolution_power = 4;  ///< the same for convolutions: where swish-like functions are near to linear pieces,
                                 ///< so that a deviation does not grow from layer to layer
  double score_power = 6;        ///< the same where a softmax over classes reads it: above thresholds of detectors
  double linear_power = 0.25;    ///< the same for matrix products of a graph that normalizes nothing
  double bias = 0.1;             ///< deviation of a bias over the deviation of what it is added to
  double scale = 0.1;            ///< deviation of a scale around 1
  double gate_power = 0.05;      ///< the same where only a gate (a sigmoid) reads it, which else would be shut or open
  double plain_scale = 0.02;     ///< the same in a graph that normalizes nothing, where one scale serves many layers
  double center = 0.3;           ///< how much of its mean a convolution's row of factors loses, so that what all inputs
                                 ///< have in common (after rectifiers their mean) does not cover what tells them apart
};

}  // namespace dnnopt::onnx

#endif  // DNNOPT_ZOO_WEIGHT_PLAN_HPP
