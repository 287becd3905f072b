# SPDX-License-Identifier: MIT
"""A rank that fails in step 3: failing.py HOW TRANSPORT.

HOW is "kill", "fork" (killed, but its child lives on), "raise", "backward" (it
raises there) or "join" (killed there, while rank 0 has no more inputs).
The others print the PeerError that they get, and exit with 0.
"""
import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import laconic
from training import batches, model, optimizer_of, wrap


def fail(how):
    print("failed", time.time(), flush=True)
    if how == "fork" and os.fork() == 0:
        os.close(1)
        os.close(2)
        signal.alarm(100)
        signal.pause()
    if how in ("kill", "fork", "join"):
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError("a mistake of the user")


def train(how, ddp, hook, optimizer):
    for step, (x, y) in enumerate(batches(6)):
        last = dist.get_world_size() - 1
        if how == "join" and dist.get_rank() == 0 and step == 2:
            return
        optimizer.zero_grad()
        if step == 3 and dist.get_rank() == last and how in (
                "kill", "fork", "raise"):
            fail(how)
        out = ddp(x)
        if step == 3 and dist.get_rank() == last:
            # Not before rank 0 has taken part in a bucket of this step.
            ddp.module[0].weight.register_hook(
                lambda _: (hook._last.result(), fail(how)))
        cross_entropy(out, y).backward()
        optimizer.step()


def main():
    how, transport = sys.argv[1:]
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    dist._DEFAULT_FIRST_BUCKET_BYTES = 64
    # A deadline that is a failure of this test.
    ddp, hook = wrap(model(), "powersgd:rank=1", transport=transport,
                     timeout=60.0)
    try:
        if how == "join":
            with ddp.join():
                train(how, ddp, hook, optimizer_of(ddp))
        else:
            train(how, ddp, hook, optimizer_of(ddp))
    except laconic.PeerError as error:
        print("noticed", time.time(), error, flush=True)
        sys.exit(0)
    sys.exit("no error")


if __name__ == "__main__":
    main()
