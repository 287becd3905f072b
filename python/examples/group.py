# SPDX-License-Identifier: MIT
"""Joins the process group of an example, whatever started its processes.

torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and a user may set
them by hand. mpirun sets only the first two, under names of its own. A program
that is started alone is a group of one. USE_LIBUV=0 is for Debian's PyTorch 2,
which is built without libuv.
"""
import contextlib
import os
from typing import Iterator, Tuple

import torch.distributed as dist

# What Open MPI, MPICH and Intel MPI call RANK and WORLD_SIZE.
MPI_NAMES = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
             ("PMI_RANK", "PMI_SIZE"))


def settings() -> None:
    """Fill in the variables that torch.distributed reads."""
    for rank, size in MPI_NAMES:
        if "RANK" not in os.environ and rank in os.environ:
            os.environ["RANK"] = os.environ[rank]
            os.environ["WORLD_SIZE"] = os.environ[size]
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"),
                        ("MASTER_ADDR", "127.0.0.1"),
                        ("MASTER_PORT", "29500"), ("USE_LIBUV", "0")):
        os.environ.setdefault(name, value)


@contextlib.contextmanager
def joined() -> Iterator[Tuple[int, int]]:
    """A context with the rank and the number of processes."""
    settings()
    dist.init_process_group("gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()
