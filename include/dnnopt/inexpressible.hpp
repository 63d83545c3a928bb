// Owns what ends the writing of an index map or of a kernel that cannot be written.
#ifndef DNNOPT_INEXPRESSIBLE_HPP
#define DNNOPT_INEXPRESSIBLE_HPP

#include <string_view>

#include <dnnopt/error.hpp>

namespace dnnopt {

/// Something that index maps or kernels cannot say, found where they are written: a view whose map needs numbers that
/// nobody knows, an element that is read where another one is computed, a store of other neighbours than texels have.
/// Whoever has another form to try catches it by its type: lowering goes on to the next row of its table. Where no form
/// is left, lowering gives the reasons as a value (codegen::lowering), and users see an error of code `unsupported`.
class inexpressible : public error {
 public:
  explicit inexpressible(std::string_view why) : error(errc::unsupported, why) {}
};

}  // namespace dnnopt

#endif  // DNNOPT_INEXPRESSIBLE_HPP
