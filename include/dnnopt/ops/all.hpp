// The operator types of ai.onnx, all families.
#ifndef DNNOPT_OPS_ALL_HPP
#define DNNOPT_OPS_ALL_HPP

#include <dnnopt/ops/activation.hpp>
#include <dnnopt/ops/arithmetic.hpp>
#include <dnnopt/ops/attention.hpp>
#include <dnnopt/ops/container.hpp>
#include <dnnopt/ops/control_flow.hpp>
#include <dnnopt/ops/conversion.hpp>
#include <dnnopt/ops/convolution.hpp>
#include <dnnopt/ops/extend.hpp>
#include <dnnopt/ops/gather.hpp>
#include <dnnopt/ops/generator.hpp>
#include <dnnopt/ops/logic.hpp>
#include <dnnopt/ops/loss.hpp>
#include <dnnopt/ops/matrix_product.hpp>
#include <dnnopt/ops/normalization.hpp>
#include <dnnopt/ops/permute.hpp>
#include <dnnopt/ops/pooling.hpp>
#include <dnnopt/ops/random.hpp>
#include <dnnopt/ops/recurrent.hpp>
#include <dnnopt/ops/reduction.hpp>
#include <dnnopt/ops/reshape.hpp>
#include <dnnopt/ops/resize.hpp>
#include <dnnopt/ops/scatter.hpp>
#include <dnnopt/ops/selection.hpp>
#include <dnnopt/ops/shape_query.hpp>
#include <dnnopt/ops/signal.hpp>
#include <dnnopt/ops/slice.hpp>
#include <dnnopt/ops/text.hpp>
#include <dnnopt/ops/unary_math.hpp>

#endif  // DNNOPT_OPS_ALL_HPP
