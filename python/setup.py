"""Builds the package: the C++ library by CMake, unless HOLDFAST_C_LIBRARY names one that was built before, and the
module that calls it. Both go into the wheel."""
import os
import pathlib
import re
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_ext import build_ext

SOURCE = pathlib.Path(__file__).resolve().parents[1]
NAME = "libholdfast_c.so.1"


def version():
    return re.search(r"project\(holdfast VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text()).group(1)


def build_library(folder):
    """Configures and builds the shared library of the C interface alone; where it is."""
    subprocess.run(["cmake", "-S", SOURCE, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                    "-DHOLDFAST_C=ON", "-DHOLDFAST_PROGRAM=OFF", "-DHOLDFAST_TESTS=OFF", "-DHOLDFAST_EXAMPLES=OFF",
                    "-DHOLDFAST_INSTALL=OFF", "-DHOLDFAST_HARDEN=ON"], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "holdfast_c"], check=True)
    return pathlib.Path(folder) / "libholdfast_c.so"


class Build(build_ext):
    def run(self):
        known = os.environ.get("HOLDFAST_C_LIBRARY")
        library = pathlib.Path(known) if known else build_library(pathlib.Path(self.build_temp) / "cmake")
        for extension in self.extensions:
            extension.library_dirs.append(str(library.resolve().parent))
        super().run()
        folder = pathlib.Path(self.get_ext_fullpath("holdfast._native")).parent
        shutil.copy(library.resolve(), folder / NAME)


setup(version=version(), cffi_modules=["build_native.py:ffi"], cmdclass={"build_ext": Build},
      options={"bdist_wheel": {"py_limited_api": "cp39"}})
