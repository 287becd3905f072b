# SPDX-License-Identifier: MIT
"""LACONIC_MODULES names the folder of the transport modules.

usage: test_modules.py LACONIC
"""
import os
import sys
import unittest

sys.dont_write_bytecode = True
from command import Command, FAILED, USAGE

JOIN = ["average", "--algorithm", "allreduce", "--transport",
        "mpi:library=openmpi", "--workers", "2"]


class Modules(Command):
    def join(self, folder):
        os.environ["LACONIC_MODULES"] = folder
        self.addCleanup(os.environ.pop, "LACONIC_MODULES", None)
        return self.run_laconic(*JOIN)

    def test_modules_are_looked_for_in_the_folder(self):
        done = self.join(self.folder)
        self.assertEqual(done.returncode, FAILED)
        self.assertIn(f"there is no laconic_mpi_openmpi.so in {self.folder}/",
                      done.stderr)

    def test_the_launcher_decides_the_module(self):
        clean = {name: value for name, value in os.environ.items()
                 if not name.startswith(("OMPI_", "PMI_", "PMIX_"))}
        for variable, library in (
                ("OMPI_COMM_WORLD_SIZE", "openmpi"), ("PMI_SIZE", "mpich"),
                ("PMIX_RANK", "openmpi")):
            for transport in ((), ("--transport", "mpi")):
                done = self.run_laconic(*JOIN[:3], *transport, env={
                    **clean, variable: "2", "LACONIC_MODULES": self.folder})
                self.assertEqual(done.returncode, FAILED)
                self.assertIn(f"there is no laconic_mpi_{library}.so in "
                              f"{self.folder}/", done.stderr)

    def test_a_relative_folder_is_refused(self):
        done = self.join("lib")
        self.assertEqual(done.returncode, USAGE)
        self.assertIn('laconic: LACONIC_MODULES: modules: the folder is "lib"',
                      done.stderr)


if __name__ == "__main__":
    unittest.main()
