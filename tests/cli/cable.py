# SPDX-License-Identifier: MIT
"""Two hosts on one machine: network namespaces that a virtual cable joins."""
import os
import subprocess
import sys

from command import HANG

SKIPPED = 77
ADDRESSES = ("10.213.77.1", "10.213.77.2")


def skip(why):
    print("skipped: " + why)
    sys.stdout.flush()
    os._exit(SKIPPED)  # unittest would catch SystemExit; the cleaner cleans


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, timeout=HANG,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          **more).stdout


# Removes namespaces and all that runs in them when its standard input ends:
# also if this program is killed.
CLEANER = """read line
for name; do
    ip netns pids "$name" | xargs -r kill -KILL
    ip netns delete "$name"
done 2> /dev/null"""


class Cable:
    """Two namespaces of this run, and a cable between them."""

    def __init__(self):
        self.names = tuple("laconic-%d-%s" % (os.getpid(), end)
                           for end in "ab")
        self.cleaner = subprocess.Popen(
            ("setsid", "--fork", "sh", "-c", CLEANER, "sh", *self.names),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def connect(self):
        for name in self.names:
            run("ip", "netns", "add", name)
        a, b = self.names
        run("ip", "-n", a, "link", "add", "cable", "type", "veth", "peer",
            "name", "cable", "netns", b)
        for name, address in zip(self.names, ADDRESSES):
            run("ip", "-n", name, "address", "add", address + "/24", "dev",
                "cable")
            for device in ("lo", "cable"):
                run("ip", "-n", name, "link", "set", device, "up")

    def processes(self):
        """The processes in both namespaces."""
        return [int(pid) for name in self.names
                for pid in run("ip", "netns", "pids", name).split()]

    def remove(self):
        self.cleaner.stdin.close()
        self.cleaner.stdout.read()  # until it has ended
        self.cleaner.stdout.close()
        self.cleaner.wait()
