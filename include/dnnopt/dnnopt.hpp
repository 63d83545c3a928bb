// The umbrella: everything that a program needs to load, compile, run and profile a model.
#ifndef DNNOPT_DNNOPT_HPP
#define DNNOPT_DNNOPT_HPP

#include <dnnopt/session.hpp>
#include <dnnopt/version.hpp>

#endif  // DNNOPT_DNNOPT_HPP
