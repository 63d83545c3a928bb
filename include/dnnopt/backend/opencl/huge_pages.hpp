// Owns host memory that asks for huge pages, for buffers of devices that are the host's own processor.
#ifndef DNNOPT_BACKEND_OPENCL_HUGE_PAGES_HPP
#define DNNOPT_BACKEND_OPENCL_HUGE_PAGES_HPP

#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <dnnopt/device_info.hpp>

namespace dnnopt::opencl {

/// Frees what huge_pages() gives.
struct free_pages {
  void operator()(void* memory) const noexcept { std::free(memory); }
};
using page_memory = std::unique_ptr<void, free_pages>;

/// Bytes of a huge page, as Linux has them on x86-64 and, with pages of 4 KiB, on AArch64.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

/// Whether kernels run on the host's own processor, where a buffer's address is one of the process.
[[nodiscard]] inline bool is_host_processor(const device_info& info) noexcept {
  return info.type == device_type::cpu && info.host_unified_memory;
}

/// The least size in bytes of a buffer that is better made over huge_pages() on the device of `info`; more than any
/// buffer where none is. Only where a kernel's address is the process's own: drivers take such memory from malloc, in
/// pages of 4 KiB, and a model's weights outnumber the entries of a TLB by far (figures:
/// docs/measurements/opencl_runtime.md). A smaller buffer may hold no whole huge page.
[[nodiscard]] inline std::size_t huge_pages_from(const device_info& info) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  if (is_host_processor(info)) return huge_page_bytes;
#else
  (void)info;
#endif
  return std::numeric_limits<std::size_t>::max();
}

/// `bytes` of uninitialized host memory that begins at a huge page and asks the system to use them (madvise, a wish: a
/// system without free huge pages gives small ones). The last page is not filled up: what lies behind the last whole
/// huge page is in small ones. Null where there is no memory.
[[nodiscard]] inline page_memory huge_pages(std::size_t bytes) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  void* memory = nullptr;
  if (::posix_memalign(&memory, huge_page_bytes, bytes) != 0) return nullptr;
  (void)::madvise(memory, bytes / huge_page_bytes * huge_page_bytes, MADV_HUGEPAGE);
  return page_memory(memory);
#else
  (void)bytes;
  return nullptr;
#endif
}

}  // namespace dnnopt::opencl

#endif  // DNNOPT_BACKEND_OPENCL_HUGE_PAGES_HPP
