# SPDX-License-Identifier: MIT
"""Which transport a command takes: --transport, LACONIC_TRANSPORT, an MPI
launcher, the variables of torchrun, or threads; and its messages for tcp.
"""
import json
import os
import unittest

from command import Command, FAILED, GOOD, USAGE
from processes import free_port

NO_TOKEN = ("average: MASTER_ADDR, RANK and WORLD_SIZE are set, but there is "
            "no token: expected --transport tcp:token=FILE, or --transport "
            "local for threads")


class Transport(Command):
    def setUp(self):
        super().setUp()
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "PMI_", "PMIX_", "LACONIC_"))}

    def torchrun(self, world=1, rank=0):
        """The variables of torchrun. Worker 0 listens on MASTER_PORT + 1."""
        self.environment.update(
            MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port() - 1),
            RANK=str(rank), WORLD_SIZE=str(world))

    def average(self, *more):
        return self.run_laconic("average", "--algorithm", "dpsgd", "--rounds",
                                "3", "--json", *more, env=self.environment)

    def workers(self, *more):
        done = self.average(*more)
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
        return json.loads(done.stdout)["workers"]

    def refused(self, code, message, *more):
        done = self.average(*more)
        self.assertEqual((done.stdout, done.stderr.split("\n")[0]),
                         ("", "laconic: " + message))
        self.assertEqual(done.returncode, code)
        self.assertEqual("try `laconic average" in done.stderr, code == USAGE)

    def token(self, name="token"):
        self.assertEqual(self.run_laconic("key", "--token", name).returncode,
                         GOOD)
        return name

    def test_torchrun_without_a_token_is_usage(self):
        self.torchrun()
        self.refused(USAGE, NO_TOKEN)
        for name in ("MASTER_ADDR", "RANK", "WORLD_SIZE"):
            kept = self.environment.pop(name)
            self.assertEqual(self.workers(), 8)
            self.environment[name] = kept

    def test_a_named_transport_wins(self):
        self.torchrun()
        self.assertEqual(self.workers("--transport", "local"), 8)
        self.environment["LACONIC_TRANSPORT"] = "local"
        self.assertEqual(self.workers(), 8)
        self.environment["LACONIC_TRANSPORT"] = "smoke"
        self.assertEqual(self.workers("--transport", "local"), 8)
        self.refused(USAGE, 'no transport is named "smoke"; `laconic list` '
                     "shows those there are")
        for nothing in ("", "auto"):
            self.environment["LACONIC_TRANSPORT"] = nothing
            self.refused(USAGE, NO_TOKEN)

    def test_smpirun_comes_first(self):
        """Only a build with LAC_SMPI has its transport."""
        self.torchrun()
        self.environment["OMPI_COMM_WORLD_SIZE"] = "2"
        self.environment["SMPI_GLOBAL_SIZE"] = "4"
        self.refused(USAGE, 'no transport is named "smpi"; `laconic list` '
                     "shows those there are")
        self.assertEqual(self.workers("--transport", "local"), 8)

    def test_mpi_comes_before_torchrun(self):
        self.torchrun()
        self.environment["OMPI_COMM_WORLD_SIZE"] = "4"
        self.refused(USAGE, "average: --workers is 8, but the job has 4",
                     "--workers", "8")

    def test_the_number_of_workers_is_that_of_the_job(self):
        spec = "tcp:token=" + self.token()
        self.torchrun(world=1)
        self.assertEqual(self.workers("--transport", spec), 1)
        self.assertEqual(
            self.workers("--transport", spec, "--workers", "1"), 1)
        self.refused(USAGE, "average: --workers is 3, but the job has 1",
                     "--transport", spec, "--workers", "3")
        # It counts for a token only.
        self.environment["OMPI_COMM_WORLD_SIZE"] = "5"
        self.assertEqual(
            self.workers("--transport", spec, "--workers", "1"), 1)

    def test_the_timeout_is_added_to_a_spec_of_any_length(self):
        folder = os.path.join(self.folder, *(["long" * 12] * 8))
        path = self.token(os.path.join(folder, "timeout=9"))
        self.torchrun(world=2)
        port = int(self.environment["MASTER_PORT"]) + 1
        self.refused(FAILED, "tcp: worker 1 did not come to worker 0 at port "
                     "%d within 0.3 seconds" % port, "--timeout", "0.3",
                     "--transport", "tcp:token=" + path)
        self.refused(FAILED, "tcp: worker 1 did not come to worker 0 at port "
                     "%d within 0.2 seconds" % port, "--timeout", "30",
                     "--transport", "tcp:timeout=0.2,token=" + path)

    def test_files_fail_and_words_are_usage(self):
        self.torchrun()
        for code, message, spec in (
                (FAILED, "token none: No such file or directory",
                 "tcp:token=none"),
                (FAILED, "peers file none: No such file or directory",
                 "tcp:none,key=k"),
                (USAGE, "tcp: no peers and no token, expected peers=FILE or "
                 "token=FILE", "tcp"),
                (USAGE, 'tcp: no setting is named "tokne", expected peers, '
                 "token, key, listen, port, encryption, timeout; did you "
                 "mean token?",
                 "tcp:tokne=x")):
            self.run_laconic("key", "--file", "k")
            self.refused(code, message, "--transport", spec)

    def test_plain_text_is_warned_of(self):
        self.torchrun()
        spec = "tcp:token=%s,encryption=" % self.token()
        done = self.average("--transport", spec + "no")
        self.assertEqual(done.returncode, GOOD)
        self.assertEqual(done.stderr, "laconic: encryption=no: whoever is on "
                         "the network can read and change what the workers "
                         "send\n")
        self.assertEqual(self.workers("--transport", spec + "yes"), 1)


if __name__ == "__main__":
    unittest.main()
