# SPDX-License-Identifier: MIT
"""laconic launch on this machine: the results of threads, and no process that
stays behind.
"""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

from command import Command, FAILED, GOOD, HANG, LACONIC, USAGE
from processes import Process, Reader, free_port, handles, parent
import training

# Prints its process and that of a program that it starts, and waits for it.
WAITS = "sleep 600 & echo process $RANK $$; echo process $RANK $!; wait; exit 4"


class Launch(Command):
    def setUp(self):
        super().setUp()
        self.temporary = os.path.join(self.folder, "tmp")
        os.mkdir(self.temporary)
        self.environment = {
            name: value for name, value in os.environ.items()
            if not name.startswith(("OMPI_", "PMI_", "PMIX_", "LACONIC_"))}
        self.environment["TMPDIR"] = self.temporary

    def tearDown(self):
        self.assertEqual(os.listdir(self.temporary), [])

    def launch(self, workers, *words, options=()):
        return self.run_laconic("launch", "-n", str(workers), *options, "--",
                                *words, env=self.environment)

    def good(self, *words, **more):
        done = self.launch(*words, **more)
        self.assertEqual(done.returncode, GOOD, done.stderr)
        return done

    def start(self, workers, script):
        """A running job, its output, and all its processes but the first."""
        job = subprocess.Popen(
            (LACONIC, "launch", "-n", str(workers), "--", "sh", "-c", script),
            cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        reader = Reader(job.stdout)
        found = reader.wait_for(
            lambda text: self.processes(text, 2 * workers))
        self.assertTrue(found, reader.text)
        guards = {rank: Process(parent(pids[0].pid))
                  for rank, pids in found.items()}
        for process in [*sum(found.values(), []), *guards.values()]:
            self.addCleanup(process.close)
        return job, reader, found, guards

    @staticmethod
    def processes(text, count):
        lines = re.findall(r"process (\d+) (\d+)\n", text)
        if len(lines) < count:
            return None
        found = {}
        for rank, pid in lines:
            found.setdefault(int(rank), []).append(Process(int(pid)))
        return found

    def all_end(self, found, guards):
        for process in [*sum(found.values(), []), *guards.values()]:
            self.assertTrue(process.ends(), process.pid)

    def test_average_gives_what_threads_give(self):
        for algorithm in ("powersgd:fold=yes", "choco:gamma=0.2", "allreduce"):
            words = ["average", "--algorithm", algorithm, "--rounds", "12",
                     "--json", "--output", "y.npy", "--dimension", "40x25"]
            if algorithm.startswith("choco"):
                words += ["--compressor", "top-k:0.1"]
            threads = json.loads(self.succeeds(*words, "--workers", "4"))
            values = self.read("y.npy")
            done = self.good(4, *words)
            processes = json.loads(done.stdout)
            self.assertGreater(processes.pop("seconds"), 0)
            threads.pop("seconds")
            self.assertEqual(processes, threads)
            self.assertEqual(self.read("y.npy"), values)
            self.assertEqual(done.stderr, "")

    def test_train_gives_the_bits_of_threads(self):
        training.images(os.path.join(self.folder, "images"))
        for algorithm in ("powersgd", "streaming outer"):
            models = []
            for how in ("threads", "processes"):
                out = algorithm.split()[0] + "-" + how
                words = ("train", "--model", "lenet", "--data", "mnist",
                         "--data-dir", "images", "--batch", "5", "--epochs",
                         "1", "--workers", "3", "--out", out, "--algorithm",
                         *training.ALGORITHMS[algorithm])
                if how == "threads":
                    done = self.run_laconic(*words, env=self.environment)
                    self.assertEqual(done.returncode, GOOD, done.stderr)
                else:
                    self.good(3, *words)
                models.append(training.tensors(
                    os.path.join(self.folder, out, "model.safetensors")))
            self.assertEqual(models[0], models[1])

    def test_a_program_sees_the_variables(self):
        script = ("import json, os; print(json.dumps({k: v for k, v in "
                  "os.environ.items() if k.split('_')[0] in ('MASTER', 'RANK', "
                  "'LOCAL', 'WORLD', 'LACONIC')}), flush=True); "
                  "p = os.environ['LACONIC_TRANSPORT'].split('=')[1]"
                  ".split(',')[0]; print(len(open(p, 'rb').read()), "
                  "oct(os.stat(p).st_mode & 0o777))")
        done = self.good(3, sys.executable, "-c", script)
        lines = done.stdout.splitlines() + sorted(done.stderr.splitlines())
        self.assertEqual(len(lines), 6, done.stderr)
        ports, tokens = set(), set()
        for line in lines:
            line = re.sub("^worker [12]: ", "", line)
            if not line.startswith("{"):
                self.assertEqual(line, "32 0o600")
                continue
            seen = json.loads(line)
            ports.add(seen.pop("MASTER_PORT"))
            tokens.add(seen["LACONIC_TRANSPORT"])
            self.assertRegex(seen.pop("LACONIC_TRANSPORT"),
                             "^tcp:token=/[^,]+,listen=127.0.0.1$")
            self.assertEqual(seen, {
                "MASTER_ADDR": "127.0.0.1", "RANK": seen["RANK"],
                "LOCAL_RANK": seen["RANK"], "WORLD_SIZE": "3",
                "LOCAL_WORLD_SIZE": "3"})
        self.assertEqual((len(ports), len(tokens)), (1, 3))

    def test_the_port_of_worker_0_is_kept_for_it(self):
        script = (
            "import os, socket; p = int(os.environ['MASTER_PORT']) + 1\n"
            "a = socket.socket()\n"
            "try: a.bind(('127.0.0.1', p)); print('taken')\n"
            "except OSError: print('kept')\n"
            "b = socket.socket()\n"
            "b.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
            "b.bind(('127.0.0.1', p)); b.listen(); print('usable')")
        done = self.good(1, sys.executable, "-c", script)
        self.assertEqual(done.stdout, "kept\nusable\n")

    def test_a_port_in_use_is_named(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.launch(2, "true", options=("--port", str(port - 1)))
        self.assertEqual((done.returncode, done.stderr), (
            FAILED, "laconic: launch: port %d, where worker 0 listens, cannot "
            "be used: Address already in use\n" % port))

    def test_output_of_worker_0_is_left_as_it_is(self):
        done = self.good(2, "sh", "-c", r"printf 'a\000b\n\nend'; "
                         r"printf 'c\n\nlast' >&2")
        self.assertEqual(done.stdout, "a\0b\n\nend")
        # Standard output and error of another worker are one stream.
        self.assertEqual(done.stderr.replace("c\n\nlast", "", 1), "".join(
            "worker 1: %s\n" % line for line in
            ("a\0b", "", "endc", "", "last")))

    def test_long_lines_and_much_output_arrive(self):
        done = self.good(2, sys.executable, "-c",
                         "print('x' * 10000 + 'y'); print('z\\n' * 50000)")
        theirs = [line[len("worker 1: "):]
                  for line in done.stderr.split("\n")[:-1]]
        self.assertEqual("".join(theirs), "x" * 10000 + "y" + 50000 * "z")
        self.assertEqual(len(done.stdout), 10002 + 100001)

    def test_words_are_passed_on_as_they_are(self):
        done = self.good(1, "sh", "-c", 'for w; do echo "<$w>"; done', "sh",
                         "", "--", "-n", "--help", "a b", "$x")
        self.assertEqual(done.stdout,
                         "<>\n<-->\n<-n>\n<--help>\n<a b>\n<$x>\n")

    def test_the_words_may_follow_at_once(self):
        done = self.run_laconic("launch", "-n", "1", "sh", "-c", "echo $0",
                                "--port", env=self.environment)
        self.assertEqual((done.returncode, done.stdout), (GOOD, "--port\n"))

    def test_signals_are_as_before(self):
        done = self.good(1, "sh", "-c", "yes | head -n 1")
        self.assertEqual((done.stdout, done.stderr), ("y\n", ""))

    def test_input_is_empty(self):
        done = self.run_laconic("launch", "-n", "2", "--", "cat",
                                env=self.environment, input="secret")
        self.assertEqual((done.returncode, done.stdout, done.stderr),
                         (GOOD, "", ""))

    def test_wrong_words_are_usage(self):
        missing = "launch: -n N is missing, or --hosts A,B,..."
        for message, *words in (
                (missing, "--", "true"),
                ("launch: no command is given, expected -- COMMAND...",
                 "-n", "2"),
                ('launch: "trian" is no command of laconic and no program',
                 "-n", "2", "--", "trian"),
                ('launch: "./x.npy" is no command of laconic and no program',
                 "-n", "2", "--", "./x.npy"),
                ("launch: --master is given without --hosts",
                 "-n", "2", "--master", "a", "--", "true"),
                ('launch: host 2 of --hosts is "-oProxyCommand=x", expected a '
                 "name or an address", "--hosts", "a,-oProxyCommand=x", "--",
                 "true"),
                ('launch: host 2 of --hosts is "", expected a name or an '
                 "address", "--hosts", "a,,b", "--", "true"),
                ("launch: --workers has no value, expected --workers N",
                 "-n", "--", "true")):
            done = self.run_laconic("launch", *words, env=self.environment)
            self.assertEqual((done.returncode, done.stderr.split("\n")[0]),
                             (USAGE, "laconic: " + message))

    def test_a_working_folder_that_is_missing_is_named(self):
        done = self.launch(1, "true", options=("--folder", "/none"))
        self.assertEqual(done.returncode, FAILED)
        self.assertIn("laconic: launch: cannot enter the working folder /none:"
                      " No such file or directory\n", done.stderr)

    def test_one_that_fails_ends_the_rest(self):
        done = self.launch(3, "sh", "-c",
                           "[ $RANK = 1 ] && exit 3; exec sleep 600")
        self.assertEqual((done.returncode, done.stderr), (
            FAILED, "laconic: launch: worker 1 ended with exit code 3\n"))

    def test_exit_codes_and_signals_are_not_confused(self):
        for code in (137, 143, 200, 255):
            done = self.launch(1, "sh", "-c", "exit %d" % code)
            self.assertEqual((done.returncode, done.stderr), (
                FAILED, "laconic: launch: worker 0 ended with exit code %d\n"
                % code))
        for name, number, text in (("TERM", 15, "Terminated"),
                                   ("INT", 2, "Interrupt"),
                                   ("SEGV", 11, "Segmentation fault")):
            done = self.launch(1, "sh", "-c", "kill -s %s $$" % name)
            self.assertEqual((done.returncode, done.stderr), (
                FAILED, "laconic: launch: worker 0 was killed by signal %d "
                "(%s)\n" % (number, text)))

    def test_a_command_that_fails_is_reported_once_by_each(self):
        done = self.launch(2, "average", "--algorithm", "dpsgd", "--workers",
                           "5")
        self.assertEqual((done.returncode, done.stdout), (FAILED, ""))
        self.assertIn("laconic: average: --workers is 5, but the job has 2\n",
                      done.stderr)

    def test_one_that_is_killed_ends_the_rest(self):
        job, reader, found, guards = self.start(3, WAITS)
        found[2][0].kill()
        self.assertEqual(job.wait(HANG), FAILED)
        self.all_end(found, guards)
        reader.wait_for(lambda text: "launch:" in text)
        self.assertIn("laconic: launch: worker 2 was killed by signal 9 "
                      "(Killed)\n", reader.text)

    def test_one_that_ignores_sigterm_is_killed(self):
        job, _, found, guards = self.start(2, "trap '' TERM; " + WAITS)
        found[0][0].kill()
        self.assertEqual(job.wait(HANG), FAILED)
        self.all_end(found, guards)

    def test_a_worker_of_an_average_that_is_killed_is_named(self):
        job = subprocess.Popen(
            (LACONIC, "launch", "-n", "3", "--", "sh", "-c",
             'echo process $RANK $$; echo process $RANK $$; exec "$@"', "sh",
             LACONIC, "average", "--algorithm", "dpsgd", "--rounds",
             "4000000000"), cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        reader = Reader(job.stdout)
        found = reader.wait_for(lambda text: self.processes(text, 6))
        # Printed after some rounds.
        self.assertTrue(reader.wait_for(lambda text: "rounds" in text))
        found[1][0].kill()
        self.assertEqual(job.wait(HANG), FAILED)
        self.all_end(found, {})
        self.assertRegex(reader.text, "worker 1 ")

    def test_nothing_stays_when_the_launcher_is_killed(self):
        job, _, found, guards = self.start(3, WAITS)
        job.kill()
        job.wait()
        self.all_end(found, guards)

    def test_nothing_stays_when_a_guard_is_killed(self):
        job, _, found, guards = self.start(2, "echo process $RANK $$; "
                                           "echo process $RANK $$; "
                                           "exec sleep 600")
        guards[1].kill()
        self.assertEqual(job.wait(HANG), FAILED)
        self.all_end(found, guards)

    def test_the_token_needs_no_file_that_is_inherited(self):
        # A program may close what it does not know before it starts another.
        inner = ("import os; p = os.environ['LACONIC_TRANSPORT']; print(len("
                 "open(p.split('=')[1].split(',')[0], 'rb').read()))")
        script = ("import os, subprocess, sys; os.closerange(3, 100); "
                  "subprocess.run((sys.executable, '-c', sys.argv[1]), "
                  "check=True)")
        done = self.good(1, sys.executable, "-c", script, inner)
        self.assertEqual(done.stdout, "32\n")

    def refused(self, message, *words, ssh="touch started"):
        """Fails at once with this message: ssh was never started."""
        done = self.run_laconic("launch", "--hosts", "a", "--ssh", ssh, *words,
                                env=self.environment)
        self.assertEqual(done.returncode, USAGE)
        self.assertRegex(done.stderr.split("\n")[0],
                         "^laconic: launch: %s$" % message)
        self.assertNotIn("started", os.listdir(self.folder))

    def test_what_is_too_long_for_ssh_is_refused_at_once(self):
        self.refused("the command, with its folder and variables, has "
                     r"60\d\d\d bytes, expected at most 49152 with --hosts",
                     "--", "echo", "x" * 60000)
        self.refused("--program has 5000 characters, expected at most 4095",
                     "--program", "p" * 5000, "--", "true")
        self.refused("the address of worker 0 has 256 characters, expected at "
                     "most 255", "--master", "m" * 256, "--", "true")
        self.refused("--ssh has 65 words, expected 1 to 64", "--", "true",
                     ssh="touch started" + 63 * " x")
        self.refused("--ssh has 0 words, expected 1 to 64", "--", "true",
                     ssh=" ")

    def test_ssh_gets_the_longest_program(self):
        self.write("ssh", b'printf %s "$2" >seen; exit 3')
        done = self.run_laconic(
            "launch", "--hosts", "a", "--ssh", "sh ssh", "--program",
            "'" * 4095, "--", "true", env=self.environment)
        self.assertEqual((done.returncode, done.stderr), (
            FAILED, "laconic: launch: worker 0 on a ended with exit code 3\n"))
        self.assertEqual(self.read("seen").decode(),
                         "'" + "'\\''" * 4095 + "' launch --agent")

    def test_signals_are_passed_on_once(self):
        for number, name in ((signal.SIGINT, "INT"), (signal.SIGTERM, "TERM"),
                             (signal.SIGHUP, "HUP")):
            # The trap ends what is waited for: the signal may come before
            # the wait has begun.
            script = ("trap 'n=x$n; kill $!' %s; " % name +
                      WAITS.replace("exit 4", 'echo "signals $n"; exit 5'))
            job, reader, found, guards = self.start(2, script)
            os.killpg(job.pid, number)  # as a terminal does
            self.assertEqual(job.wait(HANG), 128 + number)
            self.all_end(found, guards)
            reader.wait_for(lambda text: False)
            self.assertEqual(reader.text.count("signals x\n"), 2, reader.text)
            self.assertNotIn("launch:", reader.text)

    def test_a_signal_to_a_guard_does_not_end_its_worker(self):
        job, reader, found, guards = self.start(2, WAITS)
        for guard in guards.values():
            guard.kill(signal.SIGTERM)
        found[1][1].kill()  # the sleep that worker 1 waits for
        self.assertEqual(job.wait(HANG), FAILED)
        self.all_end(found, guards)
        reader.wait_for(lambda text: "launch:" in text)
        self.assertIn("laconic: launch: worker 1 ended with exit code 4\n",
                      reader.text)

    def test_a_worker_that_prints_without_end_can_be_interrupted(self):
        marks = [os.path.join(self.folder, "mark-%d" % r) for r in range(2)]
        with open(os.devnull, "wb") as nowhere:
            job = subprocess.Popen(
                (LACONIC, "launch", "-n", "2", "--", "sh", "-c",
                 "touch '%s'-$RANK; exec yes" % marks[0][:-2]),
                stdout=nowhere, stderr=nowhere)
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        while not all(map(os.path.exists, marks)):
            self.assertIsNone(job.poll())
        job.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(HANG), 128 + signal.SIGINT)

    def test_a_second_signal_ends_all(self):
        script = ("trap 'echo asked' INT; "
                  "sleep 600 & echo process $RANK $$; "
                  "echo process $RANK $!; wait; wait; wait")
        script = script.replace("sleep 600 &", "setsid sleep 600 &")
        job, reader, found, guards = self.start(2, script)
        job.send_signal(signal.SIGINT)
        self.assertTrue(reader.wait_for(lambda text: text.count("asked") == 2))
        job.send_signal(signal.SIGINT)
        self.assertEqual(job.wait(HANG), 128 + signal.SIGINT)
        for pids in found.values():
            self.assertTrue(pids[0].ends())
            pids[1].kill()  # it left the group on purpose

    def start_lonely_run(self):
        """A run whose worker 1 does not come, when it handles signals."""
        training.images(os.path.join(self.folder, "images"))
        token = os.path.join(self.folder, "run-token")
        if not os.path.exists(token):
            self.assertEqual(self.run_laconic(
                "key", "--token", token).returncode, 0)
        job = subprocess.Popen(
            (LACONIC, "train", "--model", "lenet", "--data", "mnist",
             "--data-dir", "images", "--out", "out", "--transport",
             "tcp:token=%s,timeout=3000" % token),
            cwd=self.folder, env={
                **self.environment, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT":
                str(free_port() - 1), "RANK": "0", "WORLD_SIZE": "2"})
        self.addCleanup(job.wait)
        self.addCleanup(job.kill)
        while not handles(job.pid, signal.SIGUSR1):
            self.assertIsNone(job.poll())
            time.sleep(0.01)
        return job

    def test_a_signal_twice_ends_a_worker_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
            job = self.start_lonely_run()
            job.send_signal(number)
            while handles(job.pid, number):
                self.assertIsNone(job.poll())
                time.sleep(0.01)
            job.send_signal(number)
            self.assertEqual(job.wait(HANG), -number)

    def test_sighup_ends_a_worker_at_once(self):
        job = self.start_lonely_run()
        job.send_signal(signal.SIGHUP)
        self.assertEqual(job.wait(HANG), -signal.SIGHUP)

    def test_an_agent_refuses_what_is_no_message(self):
        head = b"laconic launch 1\n"
        for data in (b"", b"hello", head, head + b"\xff\xff\xff\xff",
                     head + b"\x40\0\0\0" + bytes(10),
                     head + b"\x40\0\0\0" + bytes(64)):
            done = subprocess.run(
                (LACONIC, "launch", "--agent"), input=data, timeout=HANG,
                env=self.environment, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (FAILED, b""))
            self.assertRegex(done.stderr, rb"^laconic: launch: .*, expected "
                             rb"the message of `laconic launch --hosts` of "
                             rb"the same version\n$")


if __name__ == "__main__":
    unittest.main()
