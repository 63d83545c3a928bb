// The bodies of <dnnopt/graph.hpp> and of the headers that it includes.
#define DNNOPT_IMPLEMENT_GRAPH 1
#include <dnnopt/graph.hpp>
