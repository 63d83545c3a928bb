# Owns the compile options of our own tests, examples and benchmarks; none of them reaches the interface targets.

function(dnnopt_own_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 reports these falsely on inlined std::vector code when it optimizes; they stay visible as warnings.
    target_compile_options(
      ${target} PRIVATE -Wno-error=free-nonheap-object -Wno-error=array-bounds -Wno-error=stringop-overflow
                        -Wno-error=stringop-overread -Wno-error=restrict -Wno-error=maybe-uninitialized
                        -Wno-error=dangling-pointer)
  endif()
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
