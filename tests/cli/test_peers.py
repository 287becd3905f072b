# SPDX-License-Identifier: MIT
"""laconic peers check: processes on the loopback address that are found, and
what keeps one from being found.
"""
import json
import os
import socket
import subprocess
import unittest

from command import Command, FAILED, GOOD, HANG, LACONIC, USAGE
from processes import free_port

NAMES = ("anna", "berta", "clara")


class Peers(Command):
    def setUp(self):
        super().setUp()
        self.keys = {name: self.key(name) for name in NAMES + ("stranger",)}

    def key(self, name):
        done = self.run_laconic("key", "--file", name + ".key", "--json")
        return json.loads(done.stdout)["key"]

    def lines(self, ports, **keys):
        return "".join("%s 127.0.0.1:%d %s\n" % (
            name, port, {**self.keys, **keys}[name])
            for name, port in zip(NAMES, ports))

    def put(self, text, name="peers"):
        self.write(name, text.encode())

    def start(self, name, *more, peers="peers"):
        job = subprocess.Popen(
            (LACONIC, "peers", "check", peers, "--key", name + ".key", *more),
            cwd=self.folder, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.addCleanup(job.kill)
        return job

    def run_all(self, *jobs):
        """Starts (name, options, file) with a peers file of new ports, again
        if a port was taken meanwhile."""
        for _ in range(5):
            done = self.attempt(jobs)
            if not any("cannot listen" in err for _, _, err in done):
                break
        return done

    def attempt(self, jobs):
        ports = [free_port() for _ in NAMES]
        self.ports = ports
        self.prepare(ports)
        running = [self.start(name, *more, peers=file)
                   for name, more, file in jobs]
        return [(job.returncode, out, err) for job in running
                for out, err in [job.communicate(timeout=HANG)]]

    def prepare(self, ports):
        self.put(self.lines(ports))

    def test_all_answer(self):
        for code, out, err in self.run_all(
                *((name, ("--json",), "peers") for name in NAMES)):
            self.assertEqual((code, err), (GOOD, ""))
            peers = json.loads(out)["peers"]
            self.assertEqual([p["name"] for p in peers], list(NAMES))
            self.assertEqual([p["rank"] for p in peers], [0, 1, 2])
            self.assertEqual(sorted(p["status"] for p in peers),
                             ["ok", "ok", "this machine"])
            for peer, port in zip(peers, self.ports):
                self.assertEqual(peer["address"], "127.0.0.1:%d" % port)
                if peer["status"] == "ok":
                    self.assertGreater(peer["rtt_seconds"], 0)
                    self.assertGreater(peer["mbit"], 0)
                else:
                    self.assertIsNone(peer["rtt_seconds"])
                    self.assertIsNone(peer["mbit"])

    def test_the_table_has_a_line_for_each(self):
        done = self.run_all(*((name, (), "peers") for name in NAMES))
        for rank, (code, out, err) in enumerate(done):
            self.assertEqual((code, err), (GOOD, ""))
            rows = out.splitlines()
            self.assertRegex(rows[0], r"^name +rank +address +status +round "
                             r"trip +Mbit/s$")
            self.assertEqual([row.split()[0] for row in rows[1:]], list(NAMES))
            self.assertIn("this machine", rows[1 + rank])
            self.assertLessEqual(max(len(row) for row in rows), 80)

    def test_one_that_is_missing_is_named(self):
        short = ("--timeout", "4")
        done = self.run_all(("anna", short, "peers"),
                            ("clara", (*short, "--json"), "peers"))
        # The worker with the higher rank dials.
        reasons = ("it does not answer", "Connection refused")
        for (code, _, err), reason in zip(done, reasons):
            self.assertEqual(code, FAILED)
            self.assertEqual(err, "laconic: worker 1, berta at 127.0.0.1:%d, "
                             "is missing: %s\n" % (self.ports[1], reason))
        self.assertRegex(done[0][1], r"\nberta +1 +\S+ +missing +- +-\n")
        self.assertRegex(done[0][1], r"\nclara +2 +\S+ +ok +\S+ ms +\d+\n")
        peers = json.loads(done[1][1])["peers"]
        self.assertEqual([p["status"] for p in peers],
                         ["ok", "Connection refused", "this machine"])
        self.assertIsNone(peers[1]["mbit"])

    def test_one_with_another_key_is_missing(self):
        self.prepare = lambda ports: (
            self.put(self.lines(ports)),
            self.put(self.lines(ports, berta=self.keys["stranger"]), "wrong"))
        short = ("--timeout", "2")
        done = self.run_all(("anna", short, "wrong"), ("berta", short, "peers"))
        for (code, _, err), other in zip(done, ("berta", "anna")):
            self.assertEqual(code, FAILED)
            self.assertRegex(err, "worker . *, %s at .* is missing: " % other)

    def refused(self, message, name="anna", text=None, code=FAILED):
        if text is not None:
            self.put(text)
        done = self.run_laconic("peers", "check", "peers", "--timeout", "2",
                                "--key", name + ".key")
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.split("\n")[0], "laconic: " + message)
        self.assertEqual(done.returncode, code)

    def test_a_wrong_line_is_named(self):
        good = "# comment\n\nanna 127.0.0.1:7 %s\n" % self.keys["anna"]
        for line, what in (
                ("berta", "address is '', expected host:port or [IPv6]:port; "
                 "a line is `name address:port key`"),
                ("berta 127.0.0.1 x", "address is '127.0.0.1', expected "
                 "host:port or [IPv6]:port; a line is `name address:port key`"),
                ("berta 127.0.0.1:8 x", "key is 'x', expected the 44 "
                 "characters that `laconic key` prints"),
                ("berta 127.0.0.1:8 %s x" % self.keys["berta"],
                 "fourth word is 'x', expected three words on a line")):
            self.refused("peers:4: the " + what, text=good + line + "\n")

    def test_a_key_twice_is_refused(self):
        self.refused("peers:2: berta has the key of anna, expected one key a "
                     "worker", text=self.lines((7, 8),
                                               berta=self.keys["anna"]))

    def test_a_worker_without_a_line_is_refused(self):
        self.refused("tcp: no line of peers has this worker's key %s, expected "
                     "one" % self.keys["stranger"], "stranger",
                     self.lines((7, 8, 9)))

    def test_files_that_are_missing_are_named(self):
        self.refused("peers file peers: No such file or directory")
        self.refused("key none.key does not exist; `laconic key` makes one",
                     "none", self.lines((7, 8, 9)))
        self.refused("peers: no worker, expected a line for each",
                     text="# nobody\n")

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused("tcp: cannot listen on port %d: Address already in "
                         "use" % port, text=self.lines((port, 8, 9)))

    def test_paths_may_have_any_characters(self):
        os.mkdir(os.path.join(self.folder, "a,b=(c)"))
        self.put(self.lines((free_port(),)), "a,b=(c)/peers,timeout=0")
        done = self.run_laconic("peers", "check", "a,b=(c)/peers,timeout=0",
                                "--key", "anna.key")
        self.assertEqual((done.returncode, done.stderr), (GOOD, ""))

    def test_wrong_words_are_usage(self):
        for words in (("check",), ("chekc", "peers"), ("list", "peers")):
            self.fails(USAGE, 'peers: "%s" was given, expected check FILE' %
                       words[0], "peers", *words)
        self.fails(USAGE, "peers: 0 arguments are given, expected check FILE",
                   "peers")


if __name__ == "__main__":
    unittest.main()
