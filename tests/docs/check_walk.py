# SPDX-License-Identifier: MIT
"""Fail unless the walks of docs/architecture.md are the program's own.

A block that follows <!-- walk: ALGORITHM COMPRESSOR --> lists the functions
between the caller and the transport, one a line, each with its file. It must
equal the call stack of an unoptimised build, and have at most 10 frames; the
transport's own exchange counts as one more than lac_transport_exchange.
usage: check_walk.py ROOT WALK_PROGRAM
"""
import pathlib
import re
import subprocess
import sys

FRAMES_MAX = 10
WALK = re.compile(r"<!-- walk: (.*?) -->\n```\n(.*?)```", re.S)


def symbol(program, address):
    """The function at a return address, and its file below src."""
    found = subprocess.run(
        ["addr2line", "-f", "-e", program, hex(int(address, 16) - 1)],
        check=True, capture_output=True, text=True).stdout.split("\n")
    return found[0], found[1].split("/src/")[-1].split(":")[0]


def stack_of(program, arguments):
    """The frames from the public call to lac_transport_exchange."""
    out = subprocess.run([program, *arguments], check=True, timeout=600,
                         capture_output=True, text=True).stdout
    frames = [("lac_transport_exchange", "transport/transport.c")]
    for address in out.split():
        frames.append(symbol(program, address))
        if frames[-1][0].startswith("lac_algorithm_"):
            return frames[::-1]
    raise SystemExit(f"no call of the library in the stack of {arguments}")


def main(root, program):
    text = (pathlib.Path(root) / "docs/architecture.md").read_text()
    walks = WALK.findall(text)
    failed = len(walks) < 2
    for arguments, block in walks:
        frames = stack_of(program, arguments.split())
        stated = [tuple(line.split()[:2]) for line in block.splitlines()]
        if stated != frames:
            failed = True
            print(f"{arguments}: architecture.md differs from the program:")
            for function, path in frames:
                print(f"{function:26}{path}")
        if len(frames) + 1 > FRAMES_MAX:
            failed = True
            print(f"{arguments}: {len(frames) + 1} frames, "
                  f"at most {FRAMES_MAX}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
