"""dnnopt for Conan 2: the headers and their bodies as a static library. conan create packaging/conan"""
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load


class Dnnopt(ConanFile):
    name = "dnnopt"
    description = "Graph optimizer and OpenCL execution of neural networks"
    license = "Apache-2.0"
    topics = ("onnx", "opencl", "neural-networks", "inference")
    settings = "os", "arch", "compiler", "build_type"
    package_type = "static-library"
    # With system_dependencies the headers are those of the system's packages (tools/setup.sh lists Debian's).
    options = {"system_dependencies": [True, False]}
    default_options = {"system_dependencies": False}

    @property
    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._root, "include", "dnnopt", "version.hpp"))
        self.version = ".".join(re.search(rf"VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "LICENSE", "include/*", "src/*", "cmake/*", "packaging/debian/*"):
            copy(self, pattern, self._root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        if self.options.system_dependencies:
            return
        for requirement in ("eigen/3.4.0", "range-v3/0.12.0", "boost/1.83.0", "nlohmann_json/3.11.3", "protozero/1.7.1",
                            "opencl-headers/2023.12.14", "opencl-clhpp-headers/2023.12.14"):
            self.requires(requirement, transitive_headers=True)

    def validate(self):
        check_min_cppstd(self, 20)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        for option in ("TESTS", "EXAMPLES", "C"):
            toolchain.cache_variables[f"DNNOPT_BUILD_{option}"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build(target="dnnopt_compiled")

    def package(self):
        for component in ("headers", "compiled"):
            CMake(self).install(component=component)
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # The package brings its own CMake files.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/dnnopt"]
        self.cpp_info.libs = ["dnnopt_compiled"]
