// Owns which rewriting rules may fire.
#ifndef DNNOPT_PASSES_REWRITING_REWRITE_OPTIONS_HPP
#define DNNOPT_PASSES_REWRITING_REWRITE_OPTIONS_HPP

namespace dnnopt::rewriting {

/// What the engine is told.
struct rewrite_options {
  bool change_meaning = true;  ///< whether rules may fire that change overflow, infinities or NaN
};

}  // namespace dnnopt::rewriting

#endif  // DNNOPT_PASSES_REWRITING_REWRITE_OPTIONS_HPP
