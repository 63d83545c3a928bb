// Owns the switch between header-only use and a library that is compiled once (CMake target dnnopt::compiled).
#ifndef DNNOPT_DETAIL_COMPILED_HPP
#define DNNOPT_DETAIL_COMPILED_HPP

// A program pays about a minute of compile time for each translation unit that calls dnnopt::compile. With
// DNNOPT_COMPILED defined the few functions through which everything heavy is reached are declared only, and src/*.cpp
// holds their bodies, each file those of one part.
#ifdef DNNOPT_COMPILED
#define DNNOPT_INLINE
#else
#define DNNOPT_INLINE inline
#define DNNOPT_BODIES_OPERATORS 1
#define DNNOPT_BODIES_IMPORT 1
#define DNNOPT_BODIES_REFERENCE 1
#define DNNOPT_BODIES_LOWERING 1
#define DNNOPT_BODIES_SESSION 1
#endif

#ifndef DNNOPT_BODIES_OPERATORS
#define DNNOPT_BODIES_OPERATORS 0
#endif
#ifndef DNNOPT_BODIES_IMPORT
#define DNNOPT_BODIES_IMPORT 0
#endif
#ifndef DNNOPT_BODIES_REFERENCE
#define DNNOPT_BODIES_REFERENCE 0
#endif
#ifndef DNNOPT_BODIES_LOWERING
#define DNNOPT_BODIES_LOWERING 0
#endif
#ifndef DNNOPT_BODIES_SESSION
#define DNNOPT_BODIES_SESSION 0
#endif

#endif  // DNNOPT_DETAIL_COMPILED_HPP
