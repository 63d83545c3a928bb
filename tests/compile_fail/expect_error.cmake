# Compiles SOURCE, which must fail with the message that its first line gives as `// build error: <regular expression>`.
# The same source must compile with DNNOPT_CORRECTED defined, so that it fails for the stated reason and no other.
file(STRINGS "${SOURCE}" first LIMIT_COUNT 1)
if(NOT first MATCHES "^// build error: (.+)$")
  message(FATAL_ERROR "${SOURCE}: the first line must be `// build error: <regular expression>`")
endif()
set(expected "${CMAKE_MATCH_1}")

list(TRANSFORM FOLDERS PREPEND "-I")
list(TRANSFORM DEFINITIONS PREPEND "-D")
set(command "${COMPILER}" -std=c++20 -fsyntax-only ${FOLDERS} ${DEFINITIONS} "${SOURCE}")

execute_process(COMMAND ${command} RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles, but must not")
endif()
if(NOT text MATCHES "${expected}")
  message(FATAL_ERROR "${SOURCE}: the compiler's text does not match `${expected}`:\n${text}")
endif()

execute_process(COMMAND ${command} -DDNNOPT_CORRECTED RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile with DNNOPT_CORRECTED defined:\n${text}")
endif()
