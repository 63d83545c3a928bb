// Owns the choice between forms of packed weights under a limit of device memory: the usual ones, which may take more
// memory than the weights to save time, where the program then fits, else smaller ones.
#ifndef DNNOPT_BACKEND_STORAGE_FIT_PROGRAM_HPP
#define DNNOPT_BACKEND_STORAGE_FIT_PROGRAM_HPP

#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <dnnopt/backend/program/arrange_memory.hpp>
#include <dnnopt/backend/program/weight_packing.hpp>
#include <dnnopt/backend/storage/stored_program.hpp>

namespace dnnopt {

/// A program with its memory arranged.
struct fitted_program {
  stored_program stored;
  memory_report memory;
  double lower_seconds = 0;  ///< of all attempts, without what arranging took
};

/// codegen::lower_options::weight_growth of the attempts, in their order: every form, then those that take at most
/// twice the memory of the weights, then none that takes more.
inline constexpr std::array<double, 3> weight_growths{std::numeric_limits<double>::infinity(), 2, 1};

/// `maker`'s program with its memory arranged, for `limit` bytes of device memory (0: no limit). Where it does not fit,
/// what packs weights is lowered again with smaller forms of them; the figures' notes name each step that took one. The
/// maker's own options bound all attempts. Precondition: its device is not null. Errors: those of the maker and of
/// arrange_memory; memory_limit is that of the smallest forms.
[[nodiscard]] inline fitted_program fit_program(const stored_program_maker& maker, const memory_options& arranging,
                                                std::uint64_t limit) {
  using clock = std::chrono::steady_clock;
  const auto packed_bytes = [](const program& p) {
    std::map<node_id, std::uint64_t> bytes;
    const symbol_values symbols = symbols_of_packing(*p.g);
    for (const placed_node& step : p.steps) bytes[step.id] = packed_bytes_of(step, symbols);
    return bytes;
  };
  double seconds = 0;
  std::exception_ptr refused;
  std::map<node_id, std::uint64_t> usual;  // packed bytes of the first attempt
  std::map<node_id, std::uint64_t> tried;  // of the last one
  for (const double growth : weight_growths) {
    const clock::time_point begin = clock::now();
    fitted_program made{refused ? maker.with_growth(growth) : maker.usual(), {}, 0};
    program& p = made.stored.placed;
    seconds += std::chrono::duration<double>(clock::now() - begin).count();
    std::map<node_id, std::uint64_t> bytes = packed_bytes(p);
    if (refused && bytes == tried) continue;
    try {
      made.memory = arrange_memory(p, maker.options().device->base_address_alignment_bytes, arranging,
                                   static_cast<std::int64_t>(limit));
    } catch (const error& e) {
      if (e.code() != errc::memory_limit) throw;
      if (!refused) usual = bytes;
      tried = std::move(bytes);
      refused = std::current_exception();
      continue;
    }
    if (refused)
      for (const auto& [id, now] : bytes)
        if (const auto before = usual.find(id); before != usual.end() && now < before->second)
          made.stored.figures.notes.push_back("'" + p.g->node_at(id).name + "' keeps its weights in " +
                                              std::to_string(now) + " bytes, not in the usual " +
                                              std::to_string(before->second) + ", for the memory limit of " +
                                              std::to_string(limit) + " bytes");
    made.lower_seconds = seconds;
    return made;
  }
  std::rethrow_exception(refused);
}

/// The same of a program that is made for it. Errors: those of make_stored_program too.
[[nodiscard]] inline fitted_program fit_program(const std::shared_ptr<const graph>& g, precision wanted,
                                                const codegen::lower_options& how, bool require_device,
                                                const memory_options& arranging, std::uint64_t limit,
                                                const std::map<std::string, texel_layout>& exchanged = {}) {
  const auto begin = std::chrono::steady_clock::now();
  const stored_program_maker maker(g, wanted, how, require_device, exchanged);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fitted_program made = fit_program(maker, arranging, limit);
  made.lower_seconds += seconds;
  return made;
}

}  // namespace dnnopt

#endif  // DNNOPT_BACKEND_STORAGE_FIT_PROGRAM_HPP
