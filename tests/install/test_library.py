# SPDX-License-Identifier: MIT
"""The library is built without the command where cJSON, oneDNN and zlib are
missing, and with xxhash compiled in it needs no libxxhash.so.

usage: test_library.py ROOT WORK CMAKE CC
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT, WORK, CMAKE, CC = map(pathlib.Path, sys.argv[1:5])
HANG = 600  # seconds after which a program hangs
MISSING = "-DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON"
QUICK = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS=-O0", "-DLAC_MPI=OFF",
         f"-DCMAKE_C_COMPILER={CC}"]


def run(*words, **environment):
    return subprocess.run(
        list(map(str, words)), env={**os.environ, **environment}, text=True,
        timeout=HANG, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False)


class Library(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        self.build = WORK / "build"

    def tearDown(self):
        shutil.rmtree(WORK)

    def check(self, *words, **environment):
        done = run(*words, **environment)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def configure(self, *options, **environment):
        return run(CMAKE, "-S", ROOT, "-B", self.build, "-G", "Ninja", *QUICK,
                   *options, **environment)

    def configure_alone(self, *options):
        # pkg-config finds no package at all, and with them no cJSON.
        done = self.configure("-DLAC_COMMAND=OFF", MISSING, *options,
                              PKG_CONFIG_LIBDIR=str(WORK))
        self.assertEqual(done.returncode, 0, done.stdout)
        cache = (self.build / "CMakeCache.txt").read_text()
        self.assertNotRegex(cache, r"(?im)^[^#/\n]*(dnnl|cjson|zlib_lib)")

    def test_xxhash_is_compiled_in(self):
        self.configure_alone("-DLAC_XXHASH_INLINE=ON")
        self.check(CMAKE, "--build", self.build, "--target", "library")
        library = self.build / "liblaconic.so"
        self.assertTrue((self.build / "laconic_tcp.so").exists())
        self.assertFalse((self.build / "liblaconic.a").exists())
        self.assertNotIn("xxhash", self.check("ldd", library))
        self.assertNotRegex(self.check("nm", "--dynamic", library), "XXH")
        loaded = ctypes.CDLL(str(library), mode=os.RTLD_NOW)
        loaded.lac_version.restype = ctypes.c_char_p
        self.assertRegex(loaded.lac_version(), rb"^\d+\.\d+\.\d+$")
        self.check_installed()

    def check_installed(self):
        self.check(CMAKE, "--build", self.build)
        self.check(CMAKE, "--install", self.build, "--prefix", WORK / "tree")
        names = {path.name for path in (WORK / "tree").rglob("*")}
        self.assertLessEqual(
            {"liblaconic.so.0", "liblaconic.a", "transport.h"}, names)
        self.assertNotIn("laconic", {path.name for path in (
            WORK / "tree").rglob("bin/*")})
        file = next((WORK / "tree").rglob("laconic.pc"))
        self.assertNotIn("xxhash", file.read_text())

    def test_xxhash_is_linked_otherwise(self):
        done = self.configure("-DLAC_COMMAND=OFF", MISSING)
        self.assertEqual(done.returncode, 0, done.stdout)
        steps = self.check("ninja", "-C", self.build, "-t", "commands",
                           "library")
        self.assertRegex(steps, r"liblaconic\.so.*xxhash")
        self.assertIsNone(re.search("XXH_INLINE_ALL|src/cli|src/nn", steps))

    def test_the_command_needs_what_is_missing(self):
        done = self.configure(MISSING)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ZLIB", done.stdout)

    def test_the_library_alone_has_tests_of_kernels_and_results(self):
        done = self.configure("-DLAC_COMMAND=OFF", "-DBUILD_TESTING=ON")
        self.assertEqual(done.returncode, 0, done.stdout)
        names = set(self.check("ctest", "--test-dir", self.build, "-N").split())
        self.assertLessEqual({"kernels.natural", "compress.natural",
                              "conformance.gossip_values"}, names)
        self.assertFalse([name for name in names
                          if name.startswith("command.")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
