# Owns the Debian packages that CPack makes of the components: libdnnopt0.1 (the C library), libdnnopt-dev (headers and
# libraries for C and C++), dnnopt (the command line) and python3-dnnopt. packaging/deb.sh builds and checks them.

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME dnnopt)
set(CPACK_PACKAGE_VENDOR "the maintainers of dnnopt")
set(CPACK_PACKAGE_CONTACT "the maintainers of dnnopt <maintainers@dnnopt.example>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "optimizer and OpenCL execution of neural networks")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(abi "${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")
set(version "${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}")

# CPack puts the space before each line, and the dot on empty ones.
set(text "dnnopt takes an .onnx file, optimizes its graph and runs it through any\nOpenCL 1.2 driver, which is loaded at run time.")
set(CPACK_COMPONENTS_ALL c c_dev headers compiled tools debian_python)
foreach(component IN ITEMS c_dev headers compiled)
  string(TOUPPER "${component}" upper)
  set(CPACK_COMPONENT_${upper}_GROUP dev)
endforeach()
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)

set(CPACK_DEBIAN_C_PACKAGE_NAME "libdnnopt${abi}")
set(CPACK_DEBIAN_C_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_C_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_C_PACKAGE_RECOMMENDS "ocl-icd-libopencl1")
set(CPACK_DEBIAN_C_DESCRIPTION "${text}\n\nThis package has the C library.")
# Who links the library must depend on the package: shlibs says so, the trigger tells ldconfig.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/debian/shlibs" CONTENT "libdnnopt ${abi} libdnnopt${abi} (>= @PROJECT_VERSION@)\n" @ONLY)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/debian/triggers" CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_C_PACKAGE_CONTROL_EXTRA "${PROJECT_BINARY_DIR}/debian/shlibs;${PROJECT_BINARY_DIR}/debian/triggers")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdnnopt-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
string(JOIN ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libdnnopt${abi} (= ${version})" "libeigen3-dev (>= 3.4)" librange-v3-dev
       libboost-dev libboost-graph-dev opencl-c-headers opencl-clhpp-headers libprotozero-dev nlohmann-json3-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "${text}\n\nThis package has the C++20 headers, their bodies as sources and as a\nlibrary, and the C header with its libraries.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME dnnopt)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_TOOLS_PACKAGE_RECOMMENDS "ocl-icd-libopencl1")
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "pocl-opencl-icd")
set(CPACK_DEBIAN_TOOLS_DESCRIPTION "${text}\n\nThis package has the tool that runs, verifies, times, profiles and tunes\nmodels.")

set(CPACK_DEBIAN_DEBIAN_PYTHON_PACKAGE_NAME python3-dnnopt)
set(CPACK_DEBIAN_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3, python3-numpy, libdnnopt${abi} (>= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEBIAN_PYTHON_DESCRIPTION "${text}\n\nThis package has the Python interface, with the calls of ONNX Runtime.")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/bindings/python/dnnopt" DESTINATION lib/python3/dist-packages COMPONENT debian_python
        EXCLUDE_FROM_ALL PATTERN "__pycache__" EXCLUDE)

# What Debian wants of every package: its licence, and what changed.
find_program(DNNOPT_GZIP gzip DOC "compresses the changelog of Debian packages")
if(DNNOPT_GZIP)
  set(changelog "${PROJECT_BINARY_DIR}/debian/changelog")
  configure_file(packaging/debian/changelog.in "${changelog}" @ONLY)
  execute_process(COMMAND "${DNNOPT_GZIP}" -9nc "${changelog}" OUTPUT_FILE "${changelog}.Debian.gz")
  configure_file(packaging/debian/dnnopt.1 "${PROJECT_BINARY_DIR}/debian/dnnopt.1" COPYONLY)
  execute_process(COMMAND "${DNNOPT_GZIP}" -9nc "${PROJECT_BINARY_DIR}/debian/dnnopt.1"
                  OUTPUT_FILE "${PROJECT_BINARY_DIR}/debian/dnnopt.1.gz")
  install(FILES "${PROJECT_BINARY_DIR}/debian/dnnopt.1.gz" DESTINATION share/man/man1 COMPONENT tools EXCLUDE_FROM_ALL)
endif()
foreach(pair IN ITEMS "c=libdnnopt${abi}" "headers=libdnnopt-dev" "tools=dnnopt" "debian_python=python3-dnnopt")
  string(REGEX MATCH "^[^=]+" component "${pair}")
  string(REGEX REPLACE "^[^=]+=" "" package "${pair}")
  install(FILES packaging/debian/copyright DESTINATION "share/doc/${package}" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${PROJECT_BINARY_DIR}/debian/changelog.Debian.gz" DESTINATION "share/doc/${package}" COMPONENT ${component}
          EXCLUDE_FROM_ALL)
endforeach()
include(CPack)
