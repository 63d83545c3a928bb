// Owns the sanitizers' settings of every test executable.

// The OpenCL driver keeps compiler state for the life of the process; what our own code leaks is still reported.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libpocl\nleak:libLLVM\nleak:libOpenCL\n"; }
