// Owns how an operand of a product in matrix steps comes to local memory.
#ifndef DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_LOADS_HPP
#define DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_LOADS_HPP

namespace dnnopt::codegen {

/// How an operand comes to local memory.
struct step_loads {
  bool inner_first = false;  ///< lines of its tile run along inner elements
  int copy = 0;              ///< elements that are copied at once; 0: they are loaded singly
  bool bits = false;         ///< of single loads: they give the bits of halves
  bool saturates = false;    ///< of single loads: what is computed saturates as a half
  bool tested = false;       ///< of copies: some are of zeros in place of padding
  int codes = 0;             ///< codes that are loaded at once, 1 or 4, where they become halves only in local memory
  bool gathered = false;     ///< of four codes: each is where its own index says, some perhaps in padding
  bool shifted = false;      ///< of products of bytes: the zero point of the codes may be another than 0
  bool turned = false;  ///< of copies of bytes: of constant codes that are turned once, in turned_codes.hpp's order
};

}  // namespace dnnopt::codegen

#endif  // DNNOPT_BACKEND_CODEGEN_FRAMES_STEPS_STEP_LOADS_HPP
