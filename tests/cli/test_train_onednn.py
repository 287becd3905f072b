# SPDX-License-Identifier: MIT
"""laconic train --resume with another oneDNN than the one that the run began
with: one warning, and the run goes on.

usage: test_train_onednn.py LACONIC
"""
import json
import os
import shutil
import unittest

from image_runs import ImageRuns, WORKERS
import training


class OneDNN(ImageRuns):
    def manifest(self, out):
        return json.loads(self.read(out + "/manifest.json"))

    def began_with(self, out, versions):
        """Copies the run `whole`, stopped in its middle, to `out` with other
        versions in the manifest."""
        shutil.copytree(self.path("whole"), self.path(out))
        self.write(out + "/latest", b"step-16")
        shutil.rmtree(self.path(out, "step-32"))
        manifest = {**self.manifest(out), "versions": versions}
        self.write(out + "/manifest.json", json.dumps(manifest).encode())

    def warnings(self, out, *words):
        """Resumes a run and returns its warnings about oneDNN."""
        done = self.train(out, *words, "--resume")
        self.assertIn("accuracy", done.stdout)
        return [line for line in done.stderr.splitlines() if "oneDNN" in line]

    def test_a_resume_with_another_version_warns_once(self):
        self.train("whole")
        ours = self.manifest("whole")["versions"]
        version, code = ours["onednn"], ours["onednn_instructions"]
        found = json.loads(self.succeeds("version", "--json"))["onednn"]
        self.assertEqual((version, code),
                         (found["version"], found["instructions"]))
        without = {k: v for k, v in ours.items() if k != "onednn_instructions"}
        for name, versions, before in (
                ("same", ours, None),
                ("empty", {}, None),  # a manifest of an older version
                ("older", without, None),
                ("number", {"onednn": 2, "onednn_instructions": []}, None),
                ("version", {**ours, "onednn": "1.0.0"}, "1.0.0 for " + code),
                ("both", {"onednn": "1.0.0", "onednn_instructions": "mmx"},
                 "1.0.0 for mmx"),
                ("unknown", {**without, "onednn": "1.0.0"}, "1.0.0"),
                ("only", {"onednn_instructions": "mmx"}, "? for mmx"),
                ("code", {**ours, "onednn_instructions": "mmx"},
                 version + " for mmx")):
            with self.subTest(name):
                self.began_with(name, versions)
                expected = [] if before is None else [
                    "laconic: %s was trained with oneDNN %s and continues with "
                    "oneDNN %s for %s: its bits will differ from those of a "
                    "run without this change" % (name, before, version, code)]
                self.assertEqual(self.warnings(name, "--quiet"), expected)
                # The steps are those of this oneDNN, and so is the manifest.
                self.assertEqual(
                    training.checkpoint(self.path(name), 32, WORKERS),
                    training.checkpoint(self.path("whole"), 32, WORKERS))
                self.assertEqual(self.manifest(name)["versions"], ours)
                self.assertEqual(self.warnings(name), [])

    def test_a_run_that_begins_again_is_not_warned(self):
        self.train("whole", "--epochs", "1")
        manifest = self.manifest("whole")
        manifest["versions"]["onednn"] = "1.0.0"
        os.mkdir(self.path("new"))
        self.write("new/manifest.json", json.dumps(manifest).encode())
        self.assertEqual(self.warnings("new", "--epochs", "1"), [])


if __name__ == "__main__":
    unittest.main()
