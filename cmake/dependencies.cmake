# Owns what the headers need; read by our own build and, installed, by dnnoptConfig.cmake.
include(CMakeFindDependencyMacro)

find_dependency(Eigen3 3.4)
find_dependency(range-v3)
find_dependency(Boost)
find_dependency(nlohmann_json)
find_dependency(OpenCLHeaders)
find_dependency(OpenCLHeadersCpp)
find_dependency(Threads)

# protozero ships no CMake package.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp)
if(NOT PROTOZERO_INCLUDE_DIR)
  message(FATAL_ERROR "protozero/pbf_reader.hpp is not found (Debian: libprotozero-dev); "
                      "set PROTOZERO_INCLUDE_DIR to the folder that holds protozero/")
endif()
mark_as_advanced(PROTOZERO_INCLUDE_DIR)
