# README's program and its output are examples/01_run_a_model.cpp and what that prints, letter by letter.
file(READ "${SOURCE}/README.md" readme)
foreach(file IN ITEMS 01_run_a_model.cpp 01_run_a_model.output)
  file(READ "${SOURCE}/examples/${file}" text)
  string(FIND "${readme}" "\n${text}```" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not hold examples/${file} as it is")
  endif()
endforeach()
