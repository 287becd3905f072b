# SPDX-License-Identifier: MIT
"""laconic train under mpirun where workers have folders of their own, as on
machines without a common disk.

usage: test_train_folders_mpi.py LACONIC LIBRARY
"""
import contextlib
import fcntl
import glob
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "transport"))
import launch  # noqa: E402
import training  # noqa: E402

LIBRARY = sys.argv.pop(2) if __name__ == "__main__" else "openmpi"
LACONIC = os.path.abspath(sys.argv.pop(1))
STEPS = 16  # of 3 workers in an epoch; 240 examples, 5 a worker and step
OUTS = ("a", "b", "c")


def latest(folder):
    with open(os.path.join(folder, "latest"), encoding="ascii") as file:
        return int(file.read()[5:])


def contents(folder):
    """All files below a folder and their bytes."""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as file:
                found[os.path.relpath(path, folder)] = file.read()
    return found


class Folders(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        training.images(self.path("images"))

    def path(self, *parts):
        return os.path.join(self.folder, *parts)

    def words(self, out, *more):
        return [LACONIC, "train", "--data", "mnist", "--data-dir", "images",
                "--batch", "5", "--lr", "0.02", "--epochs", "2", "--out", out,
                "--algorithm", *training.ALGORITHMS["choco"], *more]

    def threads(self, out, *more):
        subprocess.run(
            self.words(out, "--workers", "3", *more), cwd=self.folder,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True,
            timeout=launch.HANG)

    def start(self, outs, *more, only=None):
        """Starts a worker for each of `outs`. `only` has further words for
        some ranks. pid-R will have the PID of worker R, and err-R what it
        prints to stderr: mpirun ends a job at the first worker that fails, and
        may then drop what workers have printed."""
        for path in glob.glob(self.path("err-*")):
            os.remove(path)
        for rank, out in enumerate(outs):
            words = self.words(out, *more, *(only or {}).get(rank, ()))
            with open(self.path(f"rank-{rank}.sh"), "w",
                      encoding="utf-8") as file:
                file.write(f"cd {shlex.quote(self.folder)}\n"
                           f"echo $$ > pid-{rank}\n"
                           f"exec {shlex.join(words)} 2> err-{rank}\n")
        script = 'exec sh "$0-' + launch.RANK + '.sh"'
        return subprocess.Popen(
            [*launch.launcher(LIBRARY, len(outs)), "sh", "-c", script,
             self.path("rank")], env=launch.environment(), text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def end(self, job):
        """Waits for the end; what the launcher and all workers printed."""
        try:
            _, err = job.communicate(timeout=launch.HANG)
        finally:
            job.kill()
            job.wait()
        for path in sorted(glob.glob(self.path("err-*"))):
            with open(path, encoding="utf-8") as file:
                err += file.read()
        return err

    def train(self, outs, *more, **which):
        job = self.start(outs, *more, **which)
        err = self.end(job)
        self.assertEqual(job.returncode, 0, err)
        return err

    def rejected(self, message, outs, *more, **which):
        job = self.start(outs, *more, **which)
        err = self.end(job)
        self.assertTrue(launch.is_failure(LIBRARY, job.returncode))
        self.assertIn(message, err)

    def saved(self, outs, step):
        """The tensors of all workers, each from its own folder."""
        return [training.tensors(self.path(
            out, f"step-{step}", f"worker-{rank}.safetensors"))
            for rank, out in enumerate(outs)]

    def assert_same_run(self, outs, step, whole):
        """The bits of a run in one folder."""
        self.assertEqual(self.saved(outs, step), self.saved(
            [whole] * len(outs), step))
        self.assertEqual(
            training.tensors(self.path(outs[0], "model.safetensors")),
            training.tensors(self.path(whole, "model.safetensors")))
        ours, theirs = (training.metrics(self.path(out))
                        for out in (outs[0], whole))
        for key in ("epoch", "step", "train_loss", "test_accuracy",
                    "consensus", "payload_bytes"):
            self.assertEqual([r[key] for r in ours],
                             [r[key] for r in theirs], key)

    def split(self, whole, outs):
        """Copies the run of one folder to one folder per worker."""
        for rank, out in enumerate(outs):
            shutil.rmtree(self.path(out), ignore_errors=True)
            shutil.copytree(
                self.path(whole), self.path(out),
                ignore=lambda folder, names: [
                    name for name in names if name.startswith("worker-")
                    and not name.startswith(f"worker-{rank}.")
                    or rank > 0 and name in ("metrics.jsonl",
                                             "model.safetensors")])

    def test_folders_of_their_own_give_the_bits_of_one(self):
        self.threads("whole")
        self.train(("one",) * 3)
        self.train(OUTS)
        self.assert_same_run(("one",) * 3, 32, "whole")
        self.assert_same_run(OUTS, 32, "whole")
        runs = []
        for rank, out in enumerate(OUTS):
            own = {f"step-{s}/worker-{rank}.safetensors" for s in (16, 32)}
            results = {"metrics.jsonl", "model.safetensors"} if rank == 0 \
                else set()
            self.assertEqual(set(contents(self.path(out))),
                             own | results | {"latest", "manifest.json"})
            self.assertEqual(latest(self.path(out)), 32)
            with open(self.path(out, "manifest.json"), "rb") as file:
                runs.append(json.load(file))
        self.assertEqual(runs[0]["facts"], runs[2]["facts"])
        self.assertEqual(len({run["run"] for run in runs}), 1)

    def test_a_folder_is_recognised_under_two_paths(self):
        """Workers 0 and 2 share a folder, worker 1 has its own, and its path
        is the same but for the folder that it starts in."""
        self.threads("whole")
        os.makedirs(self.path("one"))
        os.symlink("one", self.path("link"))
        os.makedirs(self.path("elsewhere"))
        for more in ((), ("--epochs", "3", "--resume")):
            self.train(("one", "elsewhere/one", "link"), *more)
        self.threads("whole", "--epochs", "3", "--resume")
        self.assert_same_run(("one", "elsewhere/one", "link"), 48, "whole")
        self.assertEqual(sorted(os.listdir(self.path("one", "step-48"))),
                         ["worker-0.safetensors", "worker-2.safetensors"])
        self.assertEqual(os.listdir(self.path("elsewhere", "one", "step-48")),
                         ["worker-1.safetensors"])
        self.assertFalse([name for folder in ("one", "elsewhere/one")
                          for name in os.listdir(self.path(folder))
                          if name.startswith(".laconic")])

    def kill(self, rank):
        """Kills a worker while checkpoints are written all the time."""
        words = ("--checkpoint-every", "1", "--epochs", "100000")
        job = self.start(OUTS, *words)
        while not all(os.path.exists(self.path(out, "latest"))
                      for out in OUTS):
            self.assertIsNone(job.poll())
            time.sleep(0.01)
        with open(self.path(f"pid-{rank}"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)
        self.end(job)
        self.assertNotEqual(job.returncode, 0)

    def test_a_run_continues_after_one_worker_was_killed(self):
        for rank in range(2):
            with self.subTest(rank):
                self.kill(rank)
                newest = max(latest(self.path(out)) for out in OUTS)
                epochs = newest // STEPS + 1
                words = ("--checkpoint-every", "1", "--epochs", str(epochs))
                err = self.train(OUTS, *words, "--resume")
                self.assertIn(f"resuming after step {newest}\n", err)
                self.threads("whole", *words)
                self.assert_same_run(OUTS, epochs * STEPS, "whole")
                for out in (*OUTS, "whole"):
                    shutil.rmtree(self.path(out))

    def test_a_kill_between_the_commits_of_folders_loses_nothing(self):
        """As if a run had been killed when some folders had committed a set
        and others had not."""
        self.threads("whole", "--epochs", "2")
        self.threads("three", "--epochs", "3")
        for behind in ((0,), (1, 2)):
            with self.subTest(behind):
                self.split("whole", OUTS)
                for rank in behind:
                    training.write(self.path(OUTS[rank]), "latest", b"step-16")
                err = self.train(OUTS, "--epochs", "3", "--resume")
                self.assertIn("resuming after step 32", err)
                self.assert_same_run(OUTS, 48, "three")

    def test_a_kill_within_the_first_checkpoint_loses_nothing(self):
        self.threads("whole", "--epochs", "1")
        self.threads("two", "--epochs", "2")
        for behind, first in (((1, 2), 16), ((0,), 16), ((0, 1, 2), 0)):
            with self.subTest(behind):
                self.split("whole", OUTS)
                for rank in behind:
                    os.remove(self.path(OUTS[rank], "latest"))
                err = self.train(OUTS, "--resume")
                self.assertEqual(f"resuming after step {first}" in err,
                                 first != 0)
                self.assert_same_run(OUTS, 32, "two")

    def test_a_set_that_no_folder_has_committed_is_ignored(self):
        """Files of a step after the latest are not trusted: they may be of
        different starts of the run."""
        self.threads("whole", "--epochs", "3")
        self.split("whole", OUTS)
        for out in OUTS:
            training.write(self.path(out), "latest", b"step-32")
        training.write(self.path("b", "step-48"), "worker-1.safetensors", b"")
        err = self.train(OUTS, "--epochs", "3", "--resume")
        self.assertIn("resuming after step 32", err)
        self.assert_same_run(OUTS, 48, "whole")

    def test_a_folder_that_lost_its_newest_set_takes_all_back(self):
        self.threads("whole")
        self.threads("three", "--epochs", "3")
        self.split("whole", OUTS)
        shutil.rmtree(self.path("b", "step-32"))
        err = self.train(OUTS, "--epochs", "3", "--resume")
        self.assertIn("worker 1 has no checkpoint of step 32", err)
        self.assertIn("resuming after step 16", err)
        self.assert_same_run(OUTS, 48, "three")

    def test_a_worker_without_any_checkpoint_is_named(self):
        self.threads("whole")
        self.split("whole", OUTS)
        shutil.rmtree(self.path("b"))
        before = contents(self.path("a"))
        self.rejected("worker 1 has no checkpoint of step 32", OUTS,
                      "--epochs", "3", "--resume")
        self.assertEqual(contents(self.path("a")), before)
        self.assertEqual(contents(self.path("b")), {})

    def test_nothing_changes_if_one_worker_cannot_load(self):
        self.threads("whole")
        self.split("whole", OUTS)
        path = self.path("c", "step-32", "worker-2.safetensors")
        with open(path, "r+b") as file:
            file.seek(-3, os.SEEK_END)
            file.write(b"x")
        before = [contents(self.path(out)) for out in OUTS]
        self.rejected("c/step-32/worker-2.safetensors", OUTS, "--epochs", "3",
                      "--resume")
        self.assertEqual([contents(self.path(out)) for out in OUTS], before)

    def test_other_data_on_one_machine_are_rejected(self):
        """The same sizes, and one pixel differs."""
        shutil.copytree(self.path("images"), self.path("others"))
        with open(self.path("others", "train-images-idx3-ubyte"),
                  "r+b") as file:
            file.seek(5000)
            pixel = file.read(1)[0]
            file.seek(5000)
            file.write(bytes([pixel ^ 1]))
        self.rejected('the data set is "mnist, 240 + 0 + 60 examples, hash',
                      OUTS, only={1: ("--data-dir", "others")})
        for out in OUTS:
            self.assertFalse(os.path.exists(self.path(out)))
        shutil.copytree(self.path("images"), self.path("copy"))
        self.train(OUTS, "--epochs", "1", only={1: ("--data-dir", "copy")})

    def test_another_setting_on_one_machine_is_rejected(self):
        for more, message in (
                (("--seed", "2"), '--seed is "2" on worker 1, but "1" on '
                 "worker 0"),
                (("--epochs", "3"), '--epochs is "3" on worker 1'),
                (("--resume",), "--resume is")):
            with self.subTest(more):
                self.rejected(message, OUTS, only={1: more})
                for out in OUTS:
                    self.assertFalse(os.path.exists(self.path(out)))

    def test_folders_of_different_runs_are_not_mixed(self):
        self.threads("whole")
        self.threads("another")
        self.split("whole", OUTS)
        self.split("another", ("x", "b", "y"))
        self.rejected("the folder of worker 1 holds run", OUTS, "--resume",
                      "--epochs", "3")

    def test_every_folder_is_locked(self):
        os.makedirs(self.path("b"))
        with contextlib.ExitStack() as stack:
            folder = os.open(self.path("b"), os.O_RDONLY)
            stack.callback(os.close, folder)
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.rejected("b: another run is writing to it", OUTS)
        self.assertEqual(contents(self.path("a")), {})

    def test_a_folder_that_holds_a_run_is_not_overwritten(self):
        self.threads("b", "--epochs", "1")
        before = contents(self.path("b"))
        # A process that ends before it joins is missed after the timeout.
        self.rejected("b: already holds a run", OUTS, "--timeout", "3")
        self.assertEqual(contents(self.path("b")), before)
        self.assertFalse(os.path.exists(self.path("a")))

    def stop(self, number, rank=None):
        """Sends a signal to a worker, or to mpirun, and resumes the run.
        Returns the exit code of mpirun and what was printed."""
        job = self.start(OUTS, "--epochs", "100000")
        while not os.path.exists(self.path("c", "latest")):
            self.assertIsNone(job.poll())
            time.sleep(0.01)
        if rank is None:
            job.send_signal(number)
        else:
            with open(self.path(f"pid-{rank}"), encoding="ascii") as file:
                os.kill(int(file.read()), number)
        err = self.end(job)
        # mpirun may end before workers that it has killed.
        for out in OUTS:
            folder = os.open(self.path(out), os.O_RDONLY)
            fcntl.flock(folder, fcntl.LOCK_EX)
            os.close(folder)
        newest = max(latest(self.path(out)) for out in OUTS)
        epochs = str(newest // STEPS + 1)
        self.train(OUTS, "--epochs", epochs, "--resume")
        self.threads("whole", "--epochs", epochs)
        self.assert_same_run(OUTS, int(epochs) * STEPS, "whole")
        for out in (*OUTS, "whole"):
            shutil.rmtree(self.path(out))
        return job.returncode, err

    def test_a_signal_to_one_worker_stops_all_with_a_checkpoint(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            with self.subTest(number):
                code, err = self.stop(number, rank=1)
                self.assertEqual(code, 128 + number, err)
                self.assertIn("stopped after a checkpoint", err)

    def test_sigusr1_to_mpirun_stops_all_with_a_checkpoint(self):
        code, err = self.stop(signal.SIGUSR1)
        self.assertEqual(code, 128 + signal.SIGUSR1, err)
        self.assertIn("stopped after a checkpoint", err)

    def test_a_run_continues_after_a_signal_to_mpirun(self):
        """Open MPI may kill the workers before they have written a checkpoint;
        the run then continues from the last one."""
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                code, err = self.stop(number)
                self.assertNotEqual(code, 0, err)
                if LIBRARY == "mpich":
                    self.assertEqual(code, 128 + number, err)
                    self.assertIn("stopped after a checkpoint", err)


if __name__ == "__main__":
    unittest.main(verbosity=1)
