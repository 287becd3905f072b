# SPDX-License-Identifier: MIT
"""`make build`, `make train` and `make install` neither configure nor build
tests, fuzzers and benchmarks, so they need no cmocka, however often they are
run; and after `make test` they still build nothing but the product.

A stand-in for cmake hides cmocka and prints the commands of a build instead of
running them, so nothing is compiled.
usage: test_make.py ROOT WORK CMAKE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT, WORK, CMAKE = map(pathlib.Path, sys.argv[1:4])
STAND_IN = f"""#!/bin/sh
case $1 in
--build) case $* in *'--target product') target=product ;; *) target=all ;; esac
         exec ninja -C build -t commands $target ;;
--install) exit 0 ;;
*) exec '{CMAKE}' "$@" $CONFIGURE ;;
esac
"""
HIDE_CMOCKA = "-DCMAKE_DISABLE_FIND_PACKAGE_cmocka=ON"
HANG = 600  # seconds after which a program hangs


class Make(unittest.TestCase):
    def setUp(self):
        shutil.rmtree(WORK, ignore_errors=True)
        self.tree = WORK / "tree"
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns(
            "build*", ".git", "runs", "__pycache__"))
        (WORK / "bin").mkdir()
        cmake = WORK / "bin" / "cmake"
        cmake.write_text(STAND_IN)
        cmake.chmod(0o755)

    def tearDown(self):
        shutil.rmtree(WORK)

    def run_tool(self, *words, configure=HIDE_CMOCKA):
        environment = {**os.environ, "CONFIGURE": configure,
                       "PATH": f"{WORK / 'bin'}:{os.environ['PATH']}"}
        for inherited in ("MAKEFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX"):
            environment.pop(inherited, None)
        done = subprocess.run(
            words, cwd=self.tree, env=environment, text=True, timeout=HANG,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def make(self, *words, **more):
        return self.run_tool("make", "NO_INSTALL=1", *words, **more)

    def cached(self, name):
        cache = (self.tree / "build" / "CMakeCache.txt").read_text()
        return re.search(rf"(?m)^{name}:\w+=(.*)$", cache).group(1)

    def assert_product(self, steps):
        self.assertRegex(steps, r" -o laconic ")
        self.assertRegex(steps, r" -o liblaconic\.so")
        self.assertRegex(steps, r" liblaconic\.a ")
        self.assertRegex(steps, r"laconic manual train ")
        other = re.search(r"\b(tests|fuzz|bench)/CMakeFiles/\S+", steps)
        self.assertIsNone(other, other and other.group())

    def test_users_need_no_tests(self):
        for words in (["build"], ["build"], ["install", "PREFIX=/opt/here",
                                             "DESTDIR=" + str(WORK)]):
            with self.subTest(words[0]):
                self.assert_product(self.make(*words))
        self.assertEqual(self.cached("BUILD_TESTING"), "OFF")
        self.assertEqual(self.cached("CMAKE_INSTALL_PREFIX"), "/opt/here")

    def test_the_tests_stay_configured(self):
        self.run_tool("cmake", "--preset", "release", configure="")
        self.assert_product(self.make("build", configure=""))
        self.assert_product(self.make("install", "DESTDIR=" + str(WORK),
                                      configure=""))
        steps = self.run_tool("cmake", "--build", "--preset", "release")
        self.assertRegex(steps, r"\btests/CMakeFiles/\S+")

    def test_a_cross_build_runs_nothing(self):
        self.run_tool("cmake", "--preset", "release", "-DBUILD_TESTING=OFF",
                      "-DCMAKE_SYSTEM_NAME=Linux")
        steps = self.run_tool("cmake", "--build", "build", "--target product")
        self.assertRegex(steps, r" -o laconic ")
        self.assertNotRegex(steps, r"laconic manual ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
