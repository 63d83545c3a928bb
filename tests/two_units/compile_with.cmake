# Compiles SOURCE, and through it every header with its bodies, by another COMPILER than the build's, warnings as errors.
# FOLDERS are include folders; our own are below OURS, warnings of the others are not ours. With STAMP, that file is
# written where it compiles, and beside it what it depends on.
list(REMOVE_DUPLICATES FOLDERS)
set(command "${COMPILER}" -std=c++20 -fsyntax-only -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow
            -Werror)
foreach(folder IN LISTS FOLDERS)
  # A compiler's own place, which must stay behind its library's.
  if(folder STREQUAL "/usr/include")
    continue()
  endif()
  cmake_path(IS_PREFIX OURS "${folder}" ours)
  if(ours)
    list(APPEND command "-I${folder}")
  else()
    list(APPEND command -isystem "${folder}")
  endif()
endforeach()
list(TRANSFORM DEFINITIONS PREPEND "-D")
if(STAMP)
  list(APPEND command -MD -MF "${STAMP}.d" -MT "${STAMP}")
endif()
execute_process(COMMAND ${command} ${DEFINITIONS} "${SOURCE}" RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${COMPILER} refuses it:\n${text}")
endif()
if(STAMP)
  file(TOUCH "${STAMP}")
endif()
