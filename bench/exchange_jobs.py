# SPDX-License-Identifier: MIT
"""Hosts, links and jobs of workers for bench/exchange.py.

A job is a group of two workers that make rounds on request; between requests
they sleep. Each reads requests from one named pipe and answers on another,
because mpirun passes its input to one process only.
"""
import os
import select
import shlex
import signal
import socket
import subprocess
import time

WORLD = 2
SUBNET = "10.79.0"
START_SECONDS = 180  # until all workers of a job are ready
STOP_SECONDS = 5     # until a worker that should exit is stopped

# Every thread of a worker that computes is its own.
ENVIRONMENT = {
    **{f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")},
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

# Connects a worker to its pipes in the folder $0 and to its messages.
CONNECT = ('rank=${OMPI_COMM_WORLD_RANK:-$RANK}; '
           'exec "$@" <"$0/in.$rank" >"$0/out.$rank" 2>>"$0/messages"')


class Failure(Exception):
    """A job or a command failed; the text is for the user."""


def run(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from error
    if done.returncode:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def remove_namespace(name):
    if not os.path.exists(f"/run/netns/{name}"):
        return
    # Processes that mpirun left behind, should it have been killed.
    for process in run("ip", "netns", "pids", name).split():
        try:
            os.kill(int(process), signal.SIGKILL)
        except ProcessLookupError:
            pass
    run("ip", "netns", "del", name)


# --- where workers run -------------------------------------------------------

class Loopback:
    """Both workers on this machine, as it is."""
    address = "127.0.0.1"
    mpi_interface = "lo"

    def interface(self, rank):
        return "lo"

    def enter(self, rank):
        return []

    def port(self):
        """One of two neighbouring ports that are free."""
        while True:
            with socket.socket() as first, socket.socket() as second:
                first.bind((self.address, 0))
                port = first.getsockname()[1]
                try:
                    second.bind((self.address, port + 1))
                    return port
                except OSError:
                    pass

    def mpirun(self, folder):
        return ["mpirun", "-np", str(WORLD), "--oversubscribe"]

    def sent(self):
        return [0] * WORLD

    def close(self):
        pass


class Namespaces:
    """Two network namespaces, one for each worker, joined by a veth pair."""
    address = f"{SUBNET}.1"
    mpi_interface = f"{SUBNET}.0/24"

    def __init__(self):
        self.names = [f"laconic{os.getpid()}-{i}" for i in range(WORLD)]
        self.shaped = False
        self.last_port = 29400

    def open(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "link", "add", "lac0", "netns", self.names[0], "type",
            "veth", "peer", "name", "lac1", "netns", self.names[1])
        for i, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"{SUBNET}.{i + 1}/24", "dev",
                f"lac{i}")
            run("ip", "-n", name, "link", "set", f"lac{i}", "up")

    def close(self):
        for name in self.names:
            remove_namespace(name)

    def shape(self, bits):
        """Limit both directions to `bits` per second, 0 for no limit.

        The bucket holds 1 ms of the link, or ten packets: a larger one would
        let a whole compressed gradient pass at the speed of memory.
        """
        for i, name in enumerate(self.names):
            device = ("dev", f"lac{i}", "root")
            if bits:
                burst = max(bits // 8 // 1000, 10 * 1514)
                run("tc", "-n", name, "qdisc", "replace", *device, "tbf",
                    "rate", f"{bits}bit", "burst", str(burst), "latency",
                    "50ms")
            elif self.shaped:
                run("tc", "-n", name, "qdisc", "del", *device)
        self.shaped = bool(bits)

    def interface(self, rank):
        return f"lac{rank}"

    def enter(self, rank):
        """The prefix of a command that runs on host `rank`. The host has a
        name of its own: Open MPI takes equal names for one machine."""
        return ["ip", "netns", "exec", self.names[rank], "unshare", "--uts",
                "sh", "-c", f'hostname laconic{rank}; exec "$@"', "sh"]

    def port(self):
        self.last_port += 10
        return self.last_port

    def mpirun(self, folder):
        """mpirun on host 0, with a script in place of ssh to reach host 1.
        Only the link is allowed, neither shared memory nor loopback."""
        agent = os.path.join(folder, "agent")
        with open(agent, "w") as file:
            file.write('#!/bin/sh\nshift\nexec '
                       f'{shlex.join(self.enter(1))} sh -c "$*"\n')
        os.chmod(agent, 0o700)
        hosts = ",".join(f"{SUBNET}.{i + 1}:1" for i in range(WORLD))
        return [*self.enter(0), "mpirun", "-np", str(WORLD), "--host", hosts,
                "--mca", "plm_rsh_agent", agent,
                "--mca", "oob_tcp_if_include", f"{SUBNET}.0/24"]

    def sent(self):
        """The bytes that each host has put on the link."""
        return [int(run("ip", "netns", "exec", name, "cat",
                        f"/sys/class/net/lac{i}/statistics/tx_bytes"))
                for i, name in enumerate(self.names)]


def mpi_options(host):
    """The options of mpirun for workers on these hosts."""
    # Bound to a core, both workers would share the first one.
    return ["--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl",
            "tcp,self", "--mca", "btl_tcp_if_include", host.mpi_interface]


# --- jobs --------------------------------------------------------------------

class Job:
    """Two workers with a list of contenders.

    mpi: whether mpirun starts them; else the variables of PyTorch's launcher
    describe the group.
    """
    gradient_bytes = 4 * 25557032  # that an exact mean sends: of ResNet-50

    def __init__(self, name, command, contenders, mpi, host, folder):
        self.name, self.contenders = name, contenders
        self.folder = os.path.join(folder, name.replace(" ", "-"))
        self.command, self.mpi, self.host = command, mpi, host
        self.processes, self.inputs, self.outputs = [], [], []
        self.versions = None

    def open(self):
        os.mkdir(self.folder)
        for rank in range(WORLD):
            for pipes, kind in ((self.inputs, "in"), (self.outputs, "out")):
                path = os.path.join(self.folder, f"{kind}.{rank}")
                os.mkfifo(path)
                # Both ends, so that opening does not wait for the worker.
                pipes.append(os.open(path, os.O_RDWR))
        connected = ["sh", "-c", CONNECT, self.folder, *self.command,
                     *self.contenders]
        if self.mpi:
            self.start([*self.host.mpirun(self.folder), *mpi_options(self.host),
                        *connected], {})
        else:
            group = {"MASTER_ADDR": self.host.address, "WORLD_SIZE": str(WORLD),
                     "MASTER_PORT": str(self.host.port())}
            for rank in range(WORLD):
                group["RANK"] = str(rank)
                group["GLOO_SOCKET_IFNAME"] = self.host.interface(rank)
                self.start([*self.host.enter(rank), *connected], group)
        answers = self.answers(START_SECONDS)
        self.versions = answers[0].removeprefix("ready ")

    def start(self, command, group):
        with open(os.path.join(self.folder, "messages"), "a") as messages:
            self.processes.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=messages,
                stderr=messages, start_new_session=True,
                env={**os.environ, **ENVIRONMENT, **group}))

    def messages(self):
        with open(os.path.join(self.folder, "messages")) as file:
            return file.read().strip()[-2000:] or "no message"

    def answers(self, seconds):
        """A line of each worker."""
        deadline = time.monotonic() + seconds
        lines = [b""] * WORLD
        while not all(line.endswith(b"\n") for line in lines):
            waiting = [fd for fd, line in zip(self.outputs, lines)
                       if not line.endswith(b"\n")]
            ready = select.select(waiting, [], [], 0.5)[0]
            for fd in ready:
                lines[self.outputs.index(fd)] += os.read(fd, 4096)
            ended = [p.poll() for p in self.processes]
            codes = [code for code in ended if code is not None]
            if not ready and codes:
                raise Failure(f"{self.name}: a worker ended with {codes[0]}, "
                              f"expected an answer: {self.messages()}")
            if time.monotonic() > deadline:
                raise Failure(f"{self.name}: no answer for {seconds} s: "
                              f"{self.messages()}")
        return [line.decode().strip() for line in lines]

    def turn(self, contender, tensor, rounds, seconds):
        """One request: (seconds of a round of the slower worker, the larger
        error, the bytes that the busier host sent in a round)."""
        before = self.host.sent()
        for pipe in self.inputs:
            os.write(pipe, f"{contender} {tensor} {rounds}\n".encode())
        figures = [[float(x) for x in line.split()]
                   for line in self.answers(seconds)]
        sent = max(now - then for now, then in zip(self.host.sent(), before))
        return (max(f[0] for f in figures), max(f[1] for f in figures),
                sent / rounds)

    def close(self):
        for pipe in self.inputs + self.outputs:
            os.close(pipe)
        self.inputs, self.outputs = [], []
        for process in self.processes:
            # The end of its input ends a worker; one in a long round or without
            # its peer is stopped.
            for end in (None, signal.SIGTERM, signal.SIGKILL):
                try:
                    if end is not None:
                        os.killpg(process.pid, end)
                    process.wait(STOP_SECONDS)
                    break
                except (subprocess.TimeoutExpired, ProcessLookupError):
                    pass
        self.processes = []
