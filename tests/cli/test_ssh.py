# SPDX-License-Identifier: MIT
"""laconic launch --hosts, with an sshd in each of two network namespaces that a
virtual cable joins. Needs root and openssh-server; otherwise it is skipped.

usage: test_ssh.py LACONIC
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

from cable import ADDRESSES, Cable, run, skip
from command import FAILED, GOOD, HANG, LACONIC
from processes import Process, Reader, words_of

PORT = "2222"  # nobody else is in the namespaces
SSHD = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")


class Ssh(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.cable = Cable()
        cls.addClassCleanup(cls.cable.remove)
        try:
            cls.cable.connect()
        except (OSError, subprocess.CalledProcessError) as error:
            skip("no network namespaces: %s" % error)
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
                cls.path(name))
        cls.servers = [cls.serve(name, address) for name, address
                       in zip(cls.cable.names, ADDRESSES)]
        cls.ssh = " ".join((
            "ssh", "-F", "none", "-p", PORT, "-i", cls.path("user"), "-o",
            "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o",
            "StrictHostKeyChecking=no", "-o", "LogLevel=ERROR", "-o",
            "UserKnownHostsFile=" + cls.path("known")))

    @classmethod
    def path(cls, *parts):
        return os.path.join(cls.folder, *parts)

    @classmethod
    def serve(cls, namespace, address):
        """Starts an sshd with keys of its own, and returns its process."""
        settings = cls.path("sshd-" + address)
        # A home without startup files, which might print something.
        os.makedirs(cls.path("home"), exist_ok=True)
        with open(settings, "w", encoding="ascii") as file:
            file.write("\n".join((
                "Port " + PORT, "ListenAddress " + address,
                "HostKey " + cls.path("host"), "PidFile none",
                "AuthorizedKeysFile " + cls.path("user.pub"),
                "PermitRootLogin yes", "StrictModes no", "UsePAM no",
                "PasswordAuthentication no", "MaxStartups 100",
                "SetEnv HOME=" + cls.path("home"), "")))
        server = subprocess.Popen(
            ("ip", "netns", "exec", namespace, SSHD, "-D", "-e", "-f",
             settings), text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.kill)
        reader = Reader(server.stderr)
        if not reader.wait_for(lambda text: "Server listening" in text):
            skip("sshd does not start: " + reader.text)
        return server

    def command(self, *words, hosts=ADDRESSES, options=()):
        return ("ip", "netns", "exec", self.cable.names[0], LACONIC, "launch",
                "--hosts", ",".join(hosts), "--ssh", self.ssh, "--program",
                LACONIC, *options, "--", *words)

    def launch(self, *words, **more):
        done = subprocess.run(self.command(*words, **more), text=True,
                              cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=HANG, check=False)
        self.nothing_stays()
        return done

    def strangers(self):
        known = {server.pid for server in self.servers}
        return [pid for pid in self.cable.processes() if pid not in known]

    def nothing_stays(self):
        """All but the servers end."""
        for pid in self.strangers():
            words = words_of(pid)
            process = Process(pid)
            self.addCleanup(process.close)
            self.assertTrue(process.ends(), words)
        self.assertEqual(self.strangers(), [])

    def start(self):
        """A running average on both hosts, and its two workers."""
        job = subprocess.Popen(
            self.command("average", "--algorithm", "dpsgd", "--rounds",
                         "4000000000"), cwd=self.folder, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        reader = Reader(job.stdout)
        # Printed after some rounds.
        self.assertTrue(reader.wait_for(lambda text: "rounds" in text),
                        reader.text)
        workers = [
            [Process(pid) for pid in map(
                int, run("ip", "netns", "pids", name).split())
             if words_of(pid)[:2] == ["laconic", "average"]]
            for name in self.cable.names]
        self.assertEqual([len(here) for here in workers], [1, 1])
        for process in sum(workers, []):
            self.addCleanup(process.close)
        return job, reader, [here[0] for here in workers]

    def test_average_over_the_cable_gives_what_threads_give(self):
        words = ("average", "--algorithm", "powersgd:fold=yes", "--rounds",
                 "10", "--json")
        for workers, options in ((2, ()), (5, ("-n", "5"))):
            done = self.launch(*words, options=options)
            self.assertEqual((done.returncode, done.stderr), (GOOD, ""))
            found = json.loads(done.stdout)
            expected = json.loads(run(LACONIC, *words, "--workers",
                                      str(workers)))
            self.assertGreater(found.pop("seconds"), 0)
            expected.pop("seconds")
            self.assertEqual(found, expected)

    def test_each_host_runs_its_workers(self):
        script = ("import json, os; e = os.environ; "
                  "p = e['LACONIC_TRANSPORT'].split('=')[1]; "
                  "s = os.stat(p); print('seen', json.dumps(["
                  "e['RANK'], e['LOCAL_RANK'], e['LOCAL_WORLD_SIZE'], "
                  "e['MASTER_ADDR'], e['MASTER_PORT'], "
                  "e['SSH_CONNECTION'].split()[2], os.getcwd(), s.st_size, "
                  "oct(s.st_mode & 0o777)]))")
        done = self.launch(sys.executable, "-c", script,
                           options=("-n", "3", "--port", "12345", "--master",
                                    "berta"))
        self.assertEqual(done.returncode, GOOD, done.stderr)
        seen = [json.loads(line.split("seen ")[1]) for line in
                (done.stdout + done.stderr).splitlines()]
        self.assertEqual(sorted(seen), [
            [str(rank), str(rank // 2), beside, "berta", "12345",
             ADDRESSES[rank % 2], self.folder, 32, "0o600"]
            for rank, beside in enumerate("212")])

    def test_words_are_passed_on_as_they_are(self):
        done = self.launch("sh", "-c", 'for w; do echo "<$w>"; done', "sh", "",
                           "--", "a  b", "$x'\"\\", "é\n", hosts=ADDRESSES[1:])
        self.assertEqual((done.returncode, done.stdout), (
            GOOD, "<>\n<-->\n<a  b>\n<$x'\"\\>\n<é\n>\n"))

    def test_the_program_may_have_any_path(self):
        folder = self.path("it's $HOME mine")
        os.mkdir(folder)
        program = os.path.join(folder, "laconic")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec "%s" "$@"\n' % LACONIC)
        os.chmod(program, 0o755)
        done = self.launch("echo", "found", hosts=ADDRESSES[1:],
                           options=("--program", program))
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (GOOD, "found\n", ""))

    def test_no_command_line_has_the_token_or_the_command(self):
        job, _, _ = self.start()
        lines = [words_of(pid) for pid in self.strangers()]
        by_ssh = [" ".join(w) for w in lines if w[:1] == ["ssh"]]
        self.assertEqual(len(by_ssh), 2)
        for line in by_ssh:
            self.assertTrue(line.endswith("launch --agent"), line)
        job.kill()
        job.wait()
        self.nothing_stays()

    def test_a_worker_that_is_killed_ends_all(self):
        for victim in (0, 1):
            job, reader, workers = self.start()
            workers[victim].kill()
            self.assertEqual(job.wait(HANG), FAILED)
            self.nothing_stays()
            self.assertRegex(
                reader.text, "worker %d on %s ended with exit code 137, as "
                r"after signal 9 \(Killed\)|worker %d "
                % (victim, ADDRESSES[victim], victim))

    def test_nothing_stays_when_the_launcher_is_killed(self):
        job, _, workers = self.start()
        job.kill()  # ip has become the launcher
        job.wait()
        for worker in workers:
            self.assertTrue(worker.ends())
        self.nothing_stays()

    def test_a_lost_connection_ends_all(self):
        job, reader, workers = self.start()
        by_ssh = [pid for pid in self.strangers()
                  if words_of(pid)[:1] == ["ssh"] and
                  ADDRESSES[1] in words_of(pid)]
        self.assertEqual(len(by_ssh), 1)
        os.kill(by_ssh[0], signal.SIGKILL)
        self.assertEqual(job.wait(HANG), FAILED)
        for worker in workers:
            self.assertTrue(worker.ends())
        self.nothing_stays()
        self.assertIn("worker 1 on %s " % ADDRESSES[1], reader.text)

    def test_tokens_are_removed(self):
        done = self.launch("sh", "-c", "echo ${LACONIC_TRANSPORT#*=}",
                           hosts=ADDRESSES[1:])
        self.assertFalse(os.path.exists(done.stdout.strip()))
        self.assertFalse(os.path.exists(os.path.dirname(done.stdout.strip())))

    def test_failures_name_the_host(self):
        done = self.launch("sh", "-c", "exit $((RANK * 7))")
        self.assertEqual((done.returncode, done.stderr), (
            FAILED, "laconic: launch: worker 1 on %s ended with exit code 7\n"
            % ADDRESSES[1]))
        done = self.launch("trian", hosts=ADDRESSES[1:])
        self.assertEqual(done.returncode, FAILED)
        self.assertIn('laconic: launch: cannot start "trian": No such file or '
                      "directory\n", done.stderr)
        self.assertIn("worker 0 on %s ended with exit code 127" % ADDRESSES[1],
                      done.stderr)
        done = self.launch("true", options=("--folder", "/none"))
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("cannot enter the working folder /none: No such file or "
                      "directory", done.stderr)

    def test_a_host_that_cannot_be_reached_is_named(self):
        done = self.launch("sleep", "600", hosts=(ADDRESSES[1], "10.213.77.3"),
                           options=("--ssh",
                                    self.ssh + " -o ConnectTimeout=1"))
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertIn("laconic: launch: worker 1 on 10.213.77.3 ended with "
                      "exit code 255: ssh failed\n", done.stderr)


if __name__ == "__main__":
    if os.geteuid() != 0:
        skip("network namespaces need root")
    for program in ("ip", "setsid", "ssh", "ssh-keygen"):
        if shutil.which(program) is None:
            skip(program + " is not installed")
    if SSHD is None:
        skip("sshd is not installed")
    unittest.main()
