// Owns the switch between headers that declare and translation units that hold their bodies (DNNOPT_IMPLEMENTATION).
#ifndef DNNOPT_DETAIL_IMPLEMENTATION_HPP
#define DNNOPT_DETAIL_IMPLEMENTATION_HPP

// Including dnnopt must not cost more than the libraries under it, so whatever needs many headers or instantiates many
// templates is declared only. Its bodies are compiled where DNNOPT_IMPLEMENTATION is defined before the first header of
// dnnopt; the CMake targets do that once per program, by src/*.cpp, each of which takes one part.
#ifdef DNNOPT_IMPLEMENTATION
#define DNNOPT_IMPLEMENT_GRAPH 1
#define DNNOPT_IMPLEMENT_OPERATORS 1
#define DNNOPT_IMPLEMENT_IMPORT 1
#define DNNOPT_IMPLEMENT_REFERENCE 1
#define DNNOPT_IMPLEMENT_PASSES 1
#define DNNOPT_IMPLEMENT_LOWERING 1
#define DNNOPT_IMPLEMENT_SESSION 1
#endif

#ifndef DNNOPT_IMPLEMENT_GRAPH
#define DNNOPT_IMPLEMENT_GRAPH 0
#endif
#ifndef DNNOPT_IMPLEMENT_OPERATORS
#define DNNOPT_IMPLEMENT_OPERATORS 0
#endif
#ifndef DNNOPT_IMPLEMENT_IMPORT
#define DNNOPT_IMPLEMENT_IMPORT 0
#endif
#ifndef DNNOPT_IMPLEMENT_REFERENCE
#define DNNOPT_IMPLEMENT_REFERENCE 0
#endif
#ifndef DNNOPT_IMPLEMENT_PASSES
#define DNNOPT_IMPLEMENT_PASSES 0
#endif
#ifndef DNNOPT_IMPLEMENT_LOWERING
#define DNNOPT_IMPLEMENT_LOWERING 0
#endif
#ifndef DNNOPT_IMPLEMENT_SESSION
#define DNNOPT_IMPLEMENT_SESSION 0
#endif

// In front of each such body. A weak symbol: the linker keeps one of several, so that two translation units, or a
// library and the program that links it, may both hold the bodies. `inline` will not do, because a function that is
// declared inline must have its body wherever it is called.
#define DNNOPT_BODY [[gnu::weak]]

#endif  // DNNOPT_DETAIL_IMPLEMENTATION_HPP
