# SPDX-License-Identifier: MIT
"""Builds the library with CMake and puts it into the package.

This works in a clone of the repository only: the sources of the library are
beside this folder, so a source distribution of this folder alone cannot be
built. The modules for tcp and MPI are built if OpenSSL 3, Open MPI or MPICH
are found. CMAKE_ARGS in the environment has further options for CMake.
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # before setuptools 70.1
    from wheel.bdist_wheel import bdist_wheel

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    """Return the version of the project."""
    path = ROOT / "CMakeLists.txt"
    if not path.exists():
        raise SystemExit(f"setup.py: there is no {path}; build the package in "
                         "a clone of the repository")
    return re.search(r"project\(laconic VERSION ([0-9.]+)",
                     path.read_text()).group(1)


def exists(package):
    """Return whether pkg-config has a package."""
    return subprocess.run(["pkg-config", "--exists", package]).returncode == 0


def build_library(folder):
    """Build the library and its modules in a folder."""
    options = {
        "CMAKE_BUILD_TYPE": "Release",
        "BUILD_TESTING": "OFF",
        "LAC_COMMAND": "OFF",
        "LAC_XXHASH_INLINE": "ON",
        "LAC_TCP": "ON" if exists("openssl >= 3.0") else "OFF",
    }
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    cache = folder / "CMakeCache.txt"
    # CMake refuses a folder of an earlier build with another generator.
    fresh = ["--fresh"] if cache.exists() and (
        f"CMAKE_GENERATOR:INTERNAL={generator}\n" not in cache.read_text()
    ) else []
    subprocess.run(
        ["cmake", "-S", str(ROOT), "-B", str(folder), "-G", generator,
         *fresh, "--log-level=WARNING",
         *(f"-D{name}={value}" for name, value in options.items()),
         *shlex.split(os.environ.get("CMAKE_ARGS", ""))], check=True)
    subprocess.run(
        ["cmake", "--build", str(folder), "--target", "library",
         "--parallel", os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL",
                                      str(os.cpu_count() or 1))], check=True)


class BuildWithLibrary(build_py):
    """Adds the library and its modules to the package."""

    def run(self):
        # Modules of an earlier build that no longer exist.
        shutil.rmtree(pathlib.Path(self.build_lib) / "laconic",
                      ignore_errors=True)
        super().run()
        if getattr(self, "editable_mode", False):
            return  # it uses LACONIC_LIBRARY or an installed library
        build = pathlib.Path(self.get_finalized_command("build").build_temp)
        build_library(build)
        target = pathlib.Path(self.build_lib) / "laconic" / "lib"
        target.mkdir()
        # The library finds its modules in its own folder.
        for path in [build / "liblaconic.so.0", *build.glob("laconic_*.so")]:
            shutil.copy(path, target / path.name)


class PlatformDistribution(Distribution):
    """It has a library for this machine."""

    def has_ext_modules(self):
        return True


class PlatformWheel(bdist_wheel):
    """The wheel serves every Python 3: the library does not link Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


# Nothing is written beside the sources.
WORK = ROOT / "build" / "python" / "work"
WORK.mkdir(parents=True, exist_ok=True)
setup(version=version(), license="MIT", distclass=PlatformDistribution,
      cmdclass={"build_py": BuildWithLibrary, "bdist_wheel": PlatformWheel},
      options={"build": {"build_base": str(WORK)},
               "egg_info": {"egg_base": str(WORK)}})
