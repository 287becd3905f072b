# SPDX-License-Identifier: MIT
"""A shell on a terminal of its own, for tests of completion."""
import os
import pty
import select
import shlex
import shutil
import signal
import subprocess

from command import HANG, LACONIC

# Stands in for laconic: completes as it does, but prints the words of any other
# command line into a pipe, so that a test sees what the shell made of the keys.
STAND_IN = """#!/bin/sh
if [ "$1" = completion ]; then
    exec {laconic} "$@"
fi
{{ printf '%s\\n' "$@"; echo .; }} >{pipe}
"""
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
COMPINIT = "autoload -Uz compinit; compinit -u -D"
LOAD = {
    "bash": "source _laconic",
    "zsh": COMPINIT + "; source ./_laconic",
    "fish": "source _laconic",
}
# As zsh loads an installed script.
FROM_FPATH = "fpath=($PWD $fpath); " + COMPINIT


def available(name):
    return shutil.which(name) is not None


class Shell:
    """Runs in `folder`, which gets the stand-in, the pipe and the script."""

    def __init__(self, name, folder, load=None):
        os.mkdir(os.path.join(folder, "bin"))
        path = os.path.join(folder, "pipe")
        os.mkfifo(path)
        self.pipe = os.open(path, os.O_RDWR)
        program = os.path.join(folder, "bin", "laconic")
        with open(program, "w", encoding="ascii") as file:
            file.write(STAND_IN.format(laconic=shlex.quote(LACONIC),
                                       pipe=shlex.quote(path)))
        os.chmod(program, 0o755)
        self.environment = {
            **os.environ, "HOME": folder, "TERM": "xterm", "LC_ALL": "C",
            "PATH": os.path.dirname(program) + ":" + os.environ["PATH"]}
        for unwanted in "ZDOTDIR", "PROMPT_COMMAND", "BASH_ENV", "ENV":
            self.environment.pop(unwanted, None)
        with open(os.path.join(folder, "_laconic"), "wb") as file:
            subprocess.run((LACONIC, "completion", name), stdout=file,
                           check=True)
        self.process, self.terminal = pty.fork()
        if self.process == 0:
            try:
                os.chdir(folder)
                os.execvpe(name, START[name], self.environment)
            finally:
                os._exit(127)
        self.output = b""
        self.type(load or LOAD[name])

    def type(self, keys):
        """Types a line."""
        os.write(self.terminal, keys.encode() + b"\n")

    def words(self, keys):
        """The words after `laconic` that the shell makes of typed keys."""
        self.type("laconic " + keys)
        found = b""
        while not found.endswith(b".\n"):
            ready, _, _ = select.select([self.pipe, self.terminal], [], [],
                                        HANG)
            if not ready:
                raise TimeoutError(self.output.decode(errors="replace"))
            if self.terminal in ready:
                self.output += os.read(self.terminal, 4096)
            if self.pipe in ready:
                found += os.read(self.pipe, 4096)
        return found.decode().split("\n")[:-2]

    def close(self):
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self.terminal)
        os.close(self.pipe)
