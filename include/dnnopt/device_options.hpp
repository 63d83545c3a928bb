// Owns which options of passes a device decides: what multiplies quantized operands.
#ifndef DNNOPT_DEVICE_OPTIONS_HPP
#define DNNOPT_DEVICE_OPTIONS_HPP

#include <dnnopt/backend/measure/device_lowering.hpp>
#include <dnnopt/backend/measure/opened_device.hpp>
#include <dnnopt/compile_options.hpp>
#include <dnnopt/graph.hpp>

namespace dnnopt {

/// Sets what compile() lets the device decide before the passes run on `g`: compile_options::integer_products and
/// code_products. Errors: as computes_in_integers and computes_in_codes.
inline void decide_products(compile_options& options, opened_device& device, const graph& g) {
  options.integer_products = computes_in_integers(device, g, options.form, options.integer_dots);
  options.code_products = computes_in_codes(device, g, options.form, options.matrix_steps);
}

}  // namespace dnnopt

#endif  // DNNOPT_DEVICE_OPTIONS_HPP
