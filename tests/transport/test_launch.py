# SPDX-License-Identifier: MIT
"""How tests start MPI jobs, with launchers that are scripts.

usage: test_launch.py RUN_MPI; RUN_MPI is tests/conformance/run_mpi.py
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import launch

RUN_MPI = sys.argv.pop(1)


class Launch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def job(self, script):
        """Runs a job with this launcher, or without one."""
        if script is not None:
            path = os.path.join(self.folder, "mpirun.openmpi")
            with open(path, "w", encoding="ascii") as file:
                file.write(f"#!{shutil.which('sh')}\n{script}\n")
            os.chmod(path, 0o755)
        return subprocess.run(
            [sys.executable, "-B", RUN_MPI, "openmpi", "program"], text=True,
            env={**os.environ, "PATH": self.folder, "TMPDIR": self.folder},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)

    def test_a_job_that_cannot_start_is_a_failure(self):
        """Open MPI 6 exits with 77 when it has too few slots."""
        self.assertEqual(self.job("exit 0").returncode, 0)
        for code in (1, launch.SKIPPED):
            self.assertEqual(self.job(f"exit {code}").returncode, 1)

    def test_only_a_missing_launcher_skips_a_test(self):
        done = self.job(None)
        self.assertEqual((done.returncode, done.stdout), (
            launch.SKIPPED, "skipped: mpirun.openmpi is not installed\n"))

    def test_a_job_has_a_folder_of_its_own_for_sessions(self):
        done = self.job('[ -d "$TMPDIR" ] && echo "$TMPDIR"')
        self.assertEqual(done.returncode, 0, done.stderr)
        used = done.stdout.strip()
        self.assertEqual(os.path.dirname(used), self.folder)
        self.assertFalse(os.path.exists(used))


if __name__ == "__main__":
    unittest.main()
