# SPDX-License-Identifier: MIT
"""`make build`, `make train` and `make install` neither configure nor build
tests, fuzzers and benchmarks, so they need no cmocka, however often they are
run; and after `make test` they still build nothing but the product. `make
install` prints the variables that an installation elsewhere needs.

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
import unittest.mock

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

    def install(self, *words, folder="lib", loaded="", **environment):
        """What is printed after an installation in WORK/there by a user."""
        library = WORK / "there" / folder / "liblaconic.so"
        library.parent.mkdir(parents=True)
        library.touch()
        for name, prints in ("id", "1000"), ("ldconfig", loaded):
            tool = WORK / "bin" / name
            tool.write_text(f"#!/bin/sh\necho '{prints}'\n")
            tool.chmod(0o755)
        for name in "PKG_CONFIG_PATH", "LD_LIBRARY_PATH":
            environment.setdefault(name, "")
        with unittest.mock.patch.dict(os.environ, environment):
            printed = self.run_tool(*words)
        return printed[printed.rfind("to use what"):].splitlines()

    def test_an_installation_elsewhere_names_its_variables(self):
        there = WORK / "there"
        lines = self.install("make", "-s", "install", "NO_INSTALL=1",
                             f"PREFIX={there}")
        self.assertEqual(lines, [
            f"to use what is installed in {there}:",
            f"    export PATH={there}/bin${{PATH:+:$PATH}}",
            f"    export PKG_CONFIG_PATH={there}/lib/pkgconfig"
            "${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}",
            f"    export LD_LIBRARY_PATH={there}/lib"
            "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
            f"or link programs with -Wl,-rpath,{there}/lib instead of the "
            "last line"])
        # A shell takes the lines, and there is then nothing to print.
        found = self.run_tool(
            "sh", "-c", "\n".join(lines[1:-1]) +
            f"\ntools/update_loader.sh {there}/")
        self.assertEqual(found, "")

    def test_only_what_is_missing_is_named(self):
        library = WORK / "there" / "lib" / "machine"
        self.assertEqual(self.install(
            "tools/update_loader.sh", f"{WORK}/there", folder="lib/machine",
            loaded=f"\tliblaconic.so.0 => {library}/liblaconic.so.0",
            PATH=f"{os.environ['PATH']}:{WORK}/there/bin"), [
                f"to use what is installed in {WORK}/there:",
                f"    export PKG_CONFIG_PATH={library}/pkgconfig"
                "${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"])

    def test_a_cross_build_runs_nothing(self):
        self.run_tool("cmake", "--preset", "release", "-DBUILD_TESTING=OFF",
                      "-DCMAKE_SYSTEM_NAME=Linux")
        steps = self.run_tool("cmake", "--build", "build", "--target product")
        self.assertRegex(steps, r" -o laconic ")
        self.assertNotRegex(steps, r"laconic manual ")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
