// Owns what tests of choosers share: sites of one node or of a planned block, on a device of given facts, without
// OpenCL.
#ifndef DNNOPT_TESTS_KERNELS_CHOOSE_FIXTURE_HPP
#define DNNOPT_TESTS_KERNELS_CHOOSE_FIXTURE_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/lower.hpp>
#include <dnnopt/backend/codegen/lowering_table.hpp>
#include <dnnopt/ops/standard.hpp>
#include <dnnopt/passes/fuse.hpp>
#include <dnnopt/passes/rdp.hpp>

namespace dnnopt::testing {

/// A processor of eight cores with vectors of 16 floats.
[[nodiscard]] inline device_info cpu_device() {
  device_info device;
  device.type = device_type::cpu;
  device.compute_units = 8;
  device.max_work_group_size = 4096;
  device.local_memory_bytes = 1048576;
  device.native_widths.float_width = 16;
  device.global_cache_bytes = 1048576;
  return device;
}

/// A GPU of 100 multiprocessors.
[[nodiscard]] inline device_info gpu_device() {
  device_info device;
  device.type = device_type::gpu;
  device.compute_units = 100;
  device.max_work_group_size = 1024;
  device.local_memory_bytes = 49152;
  device.native_widths.float_width = 1;
  return device;
}

/// A graph that is grown by name, and what lowering decides about it.
struct chooser {
  graph g;
  device_info device = cpu_device();
  codegen::tuning_table tuned;
  double weight_growth = std::numeric_limits<double>::infinity();
  memory_objects memory = memory_objects::buffers;

  [[nodiscard]] static const op_set& ops() {
    static const op_set all = standard_ops();
    return all;
  }
  value_id input(shape dims, dtype type = dtype::float32) {
    return g.add_input("x" + std::to_string(++names_), type, std::move(dims));
  }
  value_id constant(dim_list dims, dtype type = dtype::float32) {
    return g.add_constant("c" + std::to_string(++names_), tensor(type, std::move(dims)));
  }
  [[nodiscard]] index_expr symbol(std::string_view name) {
    return g.expressions().symbol(name, {1, std::int64_t{1} << 20});
  }
  value_id add(std::string_view op, std::vector<value_id> in, attribute_map attributes = {},
               std::string_view domain = "") {
    const value_id out = g.add_value("v" + std::to_string(++names_));
    g.add_node(ops().at(domain, op), std::string(op) + std::to_string(names_), std::move(in), {out},
               std::move(attributes));
    return out;
  }
  /// What the rows of the table that have the version, and are for the anchor of the block that fusion makes of the
  /// graph, decide. Precondition: all nodes become one block that stores `out`.
  [[nodiscard]] codegen::choice_or_reason choose(value_id out, std::string_view version) {
    if (g.outputs().empty()) {
      g.add_output(out);
      rdp{}.run(g);
      fuse_blocks{}.run(g);
    }
    const fused_block& block = g.blocks().at(0);
    const codegen::block_view view{g, block.members, block.outputs, block.anchor};
    codegen::lower_options options = codegen::default_lower_options(&device);
    options.tuned = &tuned;
    options.weight_growth = weight_growth;
    options.memory = memory;
    const codegen::lowering_site site = codegen::make_lowering_site(view, options);
    for (const codegen::lowering_row& row : codegen::lowering_table)
      if (row.version == version && (!row.kind || *row.kind == site.anchor_node().op->kind))
        return codegen::choice_of_row(site, row);
    return "no row of that version is for the anchor";
  }
  /// The choice of a row, or the reason against it, as one line.
  [[nodiscard]] std::string told(value_id out, std::string_view version) {
    const codegen::choice_or_reason made = choose(out, version);
    return made ? codegen::to_string(*made) : made.reason();
  }

 private:
  std::uint32_t names_ = 0;
};

template <class Value>
[[nodiscard]] attribute_map attribute_of(std::string name, Value&& value) {
  attribute_map made;
  made.set(std::move(name), std::forward<Value>(value));
  return made;
}

}  // namespace dnnopt::testing

#endif  // DNNOPT_TESTS_KERNELS_CHOOSE_FIXTURE_HPP
