# Owns the compile options of our own tests, examples and benchmarks; none of them reaches the interface targets.

function(dnnopt_own_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  if(DNNOPT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${DNNOPT_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${DNNOPT_SANITIZE})
  endif()
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Without it ccache cannot cache a translation unit that uses a precompiled header.
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  endif()
  if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()
