# SPDX-License-Identifier: MIT
"""Settings, files and environments that do not fit: each has its message and
ends in time. Arguments: PROGRAM CASE."""
import base64
import errno
import hmac
import socket
import struct
import sys

import tcp_group
import tls
from tcp_strangers import expect_finish, wait_for_listener

NO_NAME = "no-such-host.invalid"


def expect_no_join(worker, pattern):
    worker.expect("^cannot join: " + pattern)
    worker.expect_exit(tcp_group.NOT_JOINED)


def a_port_in_use(make_group):
    with make_group(2) as group, socket.create_server(
            ("127.0.0.1", group.ports[0])):
        expect_no_join(group.start(0), f"tcp: cannot listen on port "
                       f"{group.ports[0]}: Address already in use$")


def a_name_that_does_not_resolve(make_group):
    with make_group(2) as group:
        lines = group.peers.read_text().replace("w0 127.0.0.1",
                                                f"w0 {NO_NAME}")
        group.peers.write_text(lines)
        expect_no_join(group.start(1, join=1), r"tcp: worker 1 cannot connect "
                       rf"with worker 0 \(w0\) at {NO_NAME}:\d+: \S+")


def nobody_is_there(make_group):
    with make_group(2) as group:
        expect_no_join(group.start(1, join=1), r"tcp: worker 1 cannot connect "
                       r"with worker 0 \(w0\) at 127.0.0.1:\d+: "
                       "Connection refused$")
        expect_no_join(group.start(0, join=1), r"tcp: worker 0 cannot connect "
                       r"with worker 1 \(w1\) at 127.0.0.1:\d+: it has not "
                       "come$")


def workers_come_in_any_order(make_group):
    """Worker 1 finds no worker at first."""
    with make_group(2) as group:
        with socket.create_server(("127.0.0.1", group.ports[0])) as early:
            group.start(1)
            early.accept()[0].close()
        group.start(0)
        expect_finish(group)


def nobody_dials_the_last_worker(make_group):
    """So it may be behind NAT, without an address that others reach."""
    with make_group(2) as group:
        group.peers.write_text(group.peers.read_text().replace(
            "w1 127.0.0.1", f"w1 {NO_NAME}"))
        group.start(0)
        group.start(1)
        expect_finish(group)


def one_address_to_listen_on(make_group):
    for name, more, code in [("all", "", 0), (
            "one", ",listen=127.0.0.1", errno.ECONNREFUSED)]:
        with make_group(2, name) as group, socket.socket() as other:
            group.start(0, more=more)
            wait_for_listener(group, 0)
            assert other.connect_ex(("127.0.0.2", group.ports[0])) == code
            group.start(1)
            expect_finish(group)


def dials_that_were_refused_are_closed(make_group):
    """A worker dials eleven times in three seconds, with room for fewer."""
    with make_group(2) as group:
        worker = tcp_group.Worker(
            ["sh", "-c", 'ulimit -n 10 && exec "$@"', "sh", group.program,
             group.spec(1, join=3), 60, 1, 1000])
        group.workers.append(worker)
        expect_no_join(worker, r"tcp: worker 1 cannot connect with worker 0 "
                       r"\(w0\) at 127.0.0.1:\d+: Connection refused$")


def no_line_for_this_worker(make_group):
    with make_group(2) as group:
        group.make_key(group.folder / "other")
        expect_no_join(
            group.run(f"tcp:peers={group.peers},key={group.folder}/other"),
            rf"tcp: no line of {group.peers} has this worker's key \S{{44}}, "
            "expected one$")


def a_wrong_line(make_group):
    with make_group(2) as group:
        with group.peers.open("a") as peers:
            peers.write("# spare\n\nw2 127.0.0.1 key\n")
        expect_no_join(group.start(0), rf"{group.peers}:5: the address is "
                       "'127.0.0.1', expected host:port")


def keys_that_cannot_be_used(make_group):
    with make_group(2) as group:
        missing = group.folder / "missing"
        spec = f"tcp:peers={group.peers},key="
        expect_no_join(group.run(f"{spec}{missing}"),
                       f"key {missing} does not exist; `laconic key` makes")
        group.keys[0].chmod(0o644)
        expect_no_join(group.start(0), f"key {group.keys[0]} has mode 0644: "
                       "others can use it, expected 0600$")
        group.keys[0].chmod(0o600)
        group.keys[0].write_text("not a key\n")
        expect_no_join(group.start(0), f"key {group.keys[0]} is not an Ed25519 "
                       "private key as `laconic key` writes it$")
        expect_no_join(group.run(f"{spec}{group.folder}"),
                       f"key {group.folder}: ")
        expect_no_join(group.run("tcp:timeout=1"), "tcp: no peers and no "
                       "token, expected peers=FILE or token=FILE$")


def other_settings_of_encryption(make_group):
    """Both ends name the difference."""
    with make_group(2) as group:
        first = group.start(0, join=3, more=",encryption=no")
        expect_no_join(group.start(1, join=3), ".*its setting is "
                       "encryption=no, this worker's encryption=yes$")
        expect_no_join(first, ".*its setting is encryption=yes, this worker's "
                       "encryption=no$")


class Torchrun:
    """Workers that share a token and an environment like torchrun's."""

    def __init__(self, group):
        self.group = group
        self.port = tcp_group.free_ports(1)[0]
        self.token = group.make_token("token")

    def start(self, rank, world, token=None, join=60, **changed):
        environment = {"MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(self.port - 1), "RANK": str(rank),
                       "WORLD_SIZE": str(world), **changed}
        return self.group.run(
            f"tcp:token={token or self.token},timeout={join}",
            environment=environment)


def a_wrong_token(make_group):
    with make_group(1) as group:
        job = Torchrun(group)
        first = job.start(0, 2)
        other = group.make_token("other")
        expect_no_join(job.start(1, 2, token=other), "tcp: worker 1 did not "
                       rf"meet worker 0 at 127.0.0.1:{job.port}: it does not "
                       "know the token of this worker")
        job.start(1, 2).expect_exit(0)
        first.expect_exit(0)


def tokens_that_cannot_be_used(make_group):
    with make_group(1) as group:
        job = Torchrun(group)
        short = group.folder / "short"
        short.write_bytes(bytes(31))
        short.chmod(0o600)
        expect_no_join(job.start(0, 2, token=short),
                       f"token {short} has 31 bytes, expected 32$")
        job.token.chmod(0o640)
        expect_no_join(job.start(0, 2), f"token {job.token} has mode 0640: "
                       "others can use it, expected 0600$")
        expect_no_join(job.start(0, 2, token=group.folder / "none"),
                       f"token {group.folder}/none: No such file")


def two_workers_with_one_rank(make_group):
    with make_group(1) as group:
        job = Torchrun(group)
        first = job.start(0, 3)
        second = job.start(1, 3)
        # Which of the two comes first is open; one of them is refused.
        third = job.start(1, 3)
        ended = next(worker for worker in cycle([second, third])
                     if worker.process.poll() is not None)
        expect_no_join(ended, r"tcp: worker 1 did not meet worker 0 at "
                       rf"127.0.0.1:{job.port}: worker 1 has come already$")
        job.start(2, 3).expect_exit(0)
        first.expect_exit(0)
        (third if ended is second else second).expect_exit(0)


def cycle(workers):
    """The workers again and again, until a hang is certain."""
    end = tcp_group.time.monotonic() + tcp_group.HANG
    while tcp_group.time.monotonic() < end:
        yield from workers
        tcp_group.time.sleep(0.01)


def a_worker_too_many(make_group):
    """All workers have come when it asks."""
    with make_group(1) as group:
        job = Torchrun(group)
        first = job.start(0, 2)
        second = job.start(1, 2)
        first.expect("joined")
        expect_no_join(job.start(1, 2, join=1), "tcp: worker 1 did not meet "
                       f"worker 0 at 127.0.0.1:{job.port}: Connection refused")
        first.expect_exit(0)
        second.expect_exit(0)


def other_world_sizes(make_group):
    with make_group(1) as group:
        job = Torchrun(group)
        first = job.start(0, 2, join=4)
        expect_no_join(job.start(2, 3), ".*: it is worker 2 of 3, worker 0 "
                       "expects workers 1 to 1 of 2$")
        expect_no_join(first, "tcp: worker 1 did not come to worker 0 at port "
                       rf"{job.port} within 4.0 seconds; last refused: it is "
                       "worker 2 of 3")


def the_reason_reaches_those_who_wait(make_group):
    """Worker 0 gives up, and worker 1 reports why."""
    with make_group(1) as group:
        job = Torchrun(group)
        first = job.start(0, 3, join=3)
        second = job.start(1, 3)
        expect_no_join(first, "tcp: worker 2 did not come")
        expect_no_join(second, ".*127.0.0.1.*: tcp: worker 2 did not come")


def write_shared_key(token, path):
    """The key that all workers but worker 0 derive from the token."""
    secret = hmac.digest(bytes(32), token.read_bytes(), "sha256")
    seed = hmac.digest(
        secret, b"laconic tcp 1 rendezvous: others\x01", "sha256")
    der = bytes.fromhex("302e020100300506032b657004220420") + seed
    path.write_text("-----BEGIN PRIVATE KEY-----\n"
                    f"{base64.b64encode(der).decode()}\n"
                    "-----END PRIVATE KEY-----\n")
    return tcp_group.certificate_of(path)


def a_token_opens_only_the_rendezvous(make_group):
    """Worker 2, which the test plays, meets the others with the token. Worker 1
    then refuses the key of the token and takes that of the run."""
    with make_group(3) as group:
        job = Torchrun(group)
        for rank in range(2):
            job.start(rank, 3)
        group.ports[0] = job.port
        wait_for_listener(group, 0)
        shared = group.folder / "shared"
        certificate = write_shared_key(job.token, shared)
        meeting = tls.Connection(job.port, certificate, shared)
        meeting.write(struct.pack(
            "<4sHHIIHH32s32s64s12x", b"LACM", 1, 160, 3, 2, 1, 0,
            base64.b64decode(group.texts[2]), meeting.binding(), b"127.0.0.1"))
        reply = meeting.read(12 + 3 * 98)
        meeting.close()
        entries = [struct.unpack_from("<64xH32s", reply, 12 + 98 * rank)
                   for rank in range(3)]
        group.ports[1] = entries[1][0]
        group.texts = [base64.b64encode(key).decode() for _, key in entries]
        received, reason = tls.Connection(
            group.ports[1], certificate, shared).read_to_the_end()
        assert received == b"" and "alert" in reason, (received, reason)
        member = tcp_group.Member(group, 2)
        member.join()
        member.run_rounds(200)
        expect_finish(group)


def environments_that_cannot_be_used(make_group):
    with make_group(1) as group:
        job = Torchrun(group)
        for changed, message in [
                ({"RANK": "2"}, "tcp: RANK is 2, expected one below "
                 "WORLD_SIZE, which is 2$"),
                ({"RANK": "-1"}, "tcp: with a token, RANK in the environment "
                 "is -1, expected a number up to 16383"),
                ({"RANK": "1x"}, "tcp: with a token, RANK in the environment "
                 "is 1x, expected a number"),
                ({"RANK": "18446744073709551617"}, "tcp: with a token, RANK "
                 "in the environment is 18446744073709551617, expected"),
                ({"RANK": ""}, "tcp: with a token, RANK in the environment is "
                 "missing, expected a number"),
                ({"WORLD_SIZE": "16385"}, "tcp: with a token, WORLD_SIZE in "
                 "the environment is 16385, expected a number up to 16384"),
                ({"WORLD_SIZE": "0", "RANK": "0"}, "tcp: RANK is 0, expected "
                 "one below WORLD_SIZE, which is 0$"),
                ({"MASTER_PORT": "65535"}, "tcp: with a token, MASTER_PORT in "
                 "the environment is 65535, expected a number up to 65534"),
                ({"MASTER_ADDR": ""}, "tcp: with a token, MASTER_ADDR in the "
                 "environment is missing, expected the address of worker 0$"),
                ({"MASTER_ADDR": "a" * 256}, "tcp: with a token, MASTER_ADDR "
                 "in the environment is too long")]:
            expect_no_join(job.start(1, 2, join=1, **changed), message)
        expect_no_join(job.start(1, 2, join=1, MASTER_ADDR=NO_NAME),
                       f"tcp: worker 1 did not meet worker 0 at {NO_NAME}:"
                       rf"{job.port}: \S+")


if __name__ == "__main__":
    tcp_group.main(sys.modules[__name__])
