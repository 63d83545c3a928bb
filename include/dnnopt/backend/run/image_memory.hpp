// Owns which image holds which intermediate tensor of a program: images are shared whole, by lifetimes.
#ifndef DNNOPT_BACKEND_RUN_IMAGE_MEMORY_HPP
#define DNNOPT_BACKEND_RUN_IMAGE_MEMORY_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <dnnopt/backend/program/storages.hpp>
#include <dnnopt/backend/program/texel_images.hpp>
#include <dnnopt/memory/objects/shared_images.hpp>

namespace dnnopt {

/// The images of a program's intermediate tensors; those of inputs and outputs are the caller's side. Their dims are
/// numbers, so that all bindings of symbols share them.
struct image_memory {
  std::vector<opencl::image_shape> objects;
  std::map<value_id, std::size_t> object_of;  ///< index into `objects`
  std::uint64_t bytes = 0;                    ///< of all objects
  std::uint64_t naive_bytes = 0;              ///< of an image for each tensor
};

/// Plans the images of a program in the order of its steps: tensors never alive together share an object that covers
/// both, of one kind and texel type (memory/objects/shared_images.hpp, by program::image_strategy), and that ends where
/// kernels rely on finding its border (pointer_argument::ends_rows).
/// O(images * objects) beyond O(V + E).
[[nodiscard]] inline image_memory plan_image_memory(const program& p) {
  const graph& g = *p.g;
  const program_storages storages = storages_of(p);
  using usage = memory::image_usage<2>;
  std::map<std::tuple<memory_object, dtype, std::int64_t>, std::vector<std::pair<value_id, usage>>> groups;
  std::map<value_id, std::array<bool, 2>> ends;
  for (const placed_node& step : p.steps)
    for (const codegen::kernel_plan& plan : step.lowered.kernels)
      for (const codegen::pointer_argument& a : plan.pointers)
        if (a.held != no_value && (a.ends_rows || a.ends_planes)) {
          std::array<bool, 2>& own = ends[a.held];
          own[0] = own[0] || a.ends_rows;
          // Layers end where planes do, however many there are.
          own[1] = own[1] || (a.ends_planes && a.object == memory_object::image2d);
        }
  const symbol_values none;
  const auto shape_for = [&](value_id like, std::int64_t width, std::int64_t height) {
    codegen::texel_storage storage = texel_storage_of(g.facts(like));
    storage.extents = {width, height};
    return image_shape_of(storage, none);
  };
  image_memory result;
  for (value_id v = 0; v < g.value_count(); ++v) {
    const value_facts& facts = g.facts(v);
    if (!lies_in_image(facts) || storages.touched[v].first < 0 || g.is_input(v) || g.is_output(v)) continue;
    const codegen::texel_storage storage = texel_storage_of(facts);
    std::int64_t width = storage.extents.width.evaluate(none);
    std::int64_t height = storage.extents.height.evaluate(none);
    result.naive_bytes += image_shape_of(storage, none).bytes();
    // Texels of a row are counted on by the tensor's own extents.
    if (storage.object == memory_object::image1d_buffer) width *= std::exchange(height, 1);
    groups[{storage.object, facts.type, storage.layer_rows}].emplace_back(
        v, usage{storages.touched[v].first, storages.touched[v].last + 1, {width, height}, ends[v]});
  }
  for (const auto& [kind, tensors] : groups) {
    std::vector<usage> usages;
    for (const auto& [v, use] : tensors) usages.push_back(use);
    const memory::image_plan<2> plan = memory::plan_images<2>(usages, p.image_strategy);
    const std::size_t first = result.objects.size();
    for (const memory::extents<2>& size : plan.object_sizes) {
      result.objects.push_back(shape_for(tensors.front().first, size[0], size[1]));
      result.bytes += result.objects.back().bytes();
    }
    for (std::size_t i = 0; i < tensors.size(); ++i)
      result.object_of.emplace(tensors[i].first, first + plan.object_ids[i]);
  }
  return result;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_RUN_IMAGE_MEMORY_HPP
