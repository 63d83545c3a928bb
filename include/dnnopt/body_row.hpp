// Owns what a session tells of a body of control flow.
#ifndef DNNOPT_BODY_ROW_HPP
#define DNNOPT_BODY_ROW_HPP

#include <cstddef>
#include <cstdint>
#include <string>

namespace dnnopt {

/// A body of control flow on the device: what was made for it, and what its entries did, since the session was made.
struct body_row {
  std::string node;
  std::string op;
  std::string body;              ///< the attribute that holds it
  std::size_t depth = 0;         ///< 0 for a node of the model, 1 for one of a body, ...
  std::size_t alternatives = 0;  ///< other bodies of the node, which an entry of this one leaves out
  std::size_t programs = 0;      ///< 0: it was never entered
  std::size_t entered = 0;       ///< turns of a Loop or Scan count each
  std::uint64_t kernels = 0;     ///< device commands of all entries, those of bodies inside included
  std::uint64_t host_ops = 0;    ///< operators on the host of all entries, the same
};

}  // namespace dnnopt

#endif  // DNNOPT_BODY_ROW_HPP
