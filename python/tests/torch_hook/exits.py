# SPDX-License-Identifier: MIT
"""Ends 50 programs without closing their hooks: exits.py FOLDER.

Programs are pairs of forks, since importing torch takes longer than the rest.
Every fork goes through the whole end of the interpreter. Prints how each
ended.
"""
import collections
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from training import batches, model, optimizer_of, steps, wrap

PAIRS = 25


def program(folder, pair, rank, ended):
    """Pairs end in different ways."""
    way = 5 if pair >= PAIRS - 2 else pair % 5
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/{pair}", rank=rank,
        world_size=2, timeout=timedelta(seconds=60))
    dist._DEFAULT_FIRST_BUCKET_BYTES = 64
    ddp, hook = wrap(model(), "powersgd:rank=1", timeout=60.0,
                     transport=("tcp", "c10d")[pair % 2])
    optimizer = optimizer_of(ddp)
    steps(ddp, optimizer, batches(2))
    if way == 1 and rank == 0:
        sys.exit(3)
    if way == 2 and rank == 0:
        raise ValueError("a mistake of the user")
    if way in (1, 2):
        steps(ddp, optimizer, batches(1, 2))
    if way in (3, 5) and rank == 0:
        # A call is under way, which rank 1 never makes: it ends at once, or
        # in the last two pairs only after rank 0.
        hook._session.submit(lambda: hook._algorithm.reduce(
            [p.grad.numpy() for p in hook._parameters.values()]))
    if way == 5 and rank == 1:
        os.close(ended[1])
        os.read(ended[0], 1)
    if way == 4:
        x, y = next(batches(1))
        cross_entropy(ddp(x), y)


def main(folder):
    torch.set_num_threads(1)
    # PyTorch 2 imports much with the first optimizer: once for all forks.
    optimizer_of(model())
    ended = collections.Counter()
    for pair in range(PAIRS):
        children, pipe = [], os.pipe()
        for rank in range(2):
            child = os.fork()
            if child == 0:
                program(folder, pair, rank, pipe)
                return
            children.append(child)
        os.close(pipe[0])
        os.close(pipe[1])
        for child in children:
            _, status = os.waitpid(child, 0)
            ended[os.waitstatus_to_exitcode(status)] += 1
    print(dict(ended))


if __name__ == "__main__":
    main(sys.argv[1])
