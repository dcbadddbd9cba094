"""Conan 2: `conan create packaging/conan`. Dependencies are the system's packages, as in packages.txt."""
import re
from pathlib import Path

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rmdir
from conan.tools.system.package_manager import Apt

# What each engine needs to compile. But for SQLite's, libraries are loaded when a URL asks for them.
ENGINES = {
    "sqlite": ["libsqlite3-dev"],
    "redis": ["libhiredis-dev", "libssl-dev"],
    "postgresql": ["libpq-dev", "libssl-dev"],
    "mariadb": ["libmariadb-dev", "libssl-dev"],
    "zookeeper": ["libssl-dev"],
    "etcd": ["libnghttp2-dev", "libssl-dev"],
}


class HoldfastConan(ConanFile):
    name = "holdfast"
    license = "Apache-2.0"
    description = "Distributed locks with one set of guarantees on many stores"
    topics = ("lock", "mutex", "distributed", "redis", "zookeeper", "etcd", "postgresql")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "fPIC": [True, False], **{each: [True, False] for each in ENGINES}}
    default_options = {"shared": False, "fPIC": True, **{each: True for each in ENGINES}}

    def export_sources(self):
        for each in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*"):
            copy(self, each, str(Path(self.recipe_folder) / ".." / ".."), self.export_sources_folder)

    def set_version(self):
        text = (Path(self.recipe_folder) / ".." / ".." / "CMakeLists.txt").read_text()
        self.version = re.search(r"project\(holdfast VERSION ([0-9.]+)", text).group(1)

    def configure(self):
        if self.options.shared:
            self.options.rm_safe("fPIC")

    def layout(self):
        cmake_layout(self)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("holdfast needs Linux")
        if self.settings.get_safe("compiler.cppstd"):
            check_min_cppstd(self, 20)

    def system_requirements(self):
        needed = {"libexpected-dev"}
        for engine, packages in ENGINES.items():
            if self.options.get_safe(engine):
                needed.update(packages)
        Apt(self).install(sorted(needed), check=True)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("PROGRAM", "TESTS", "EXAMPLES"):
            toolchain.cache_variables["HOLDFAST_" + part] = False
        for engine in ENGINES:
            toolchain.cache_variables["HOLDFAST_" + engine.upper()] = bool(self.options.get_safe(engine))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, str(Path(self.package_folder) / "licenses"))
        CMake(self).install()
        rmdir(self, str(Path(self.package_folder) / "lib" / "pkgconfig"))

    def package_info(self):
        # The installed holdfastConfig.cmake knows the dependencies; Conan writes none of its own.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs.append("lib/cmake/holdfast")
        self.cpp_info.libs = ["holdfast"]
