#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Programs of other projects, with the protocol of bench_exchange.

usage: exchange_peers.py torch|mpi LAYOUT CONTENDER...

torch: "all_reduce" over Gloo, and the communication hooks "fp16_compress" and
"powerSGD RANK" of Debian's python3-torch, in the group of MASTER_ADDR,
MASTER_PORT, RANK and WORLD_SIZE. The hooks get a bucket with all gradients, as
from DDP if all gradients fit one bucket: with two, the PowerSGD hook hangs on
Gloo. DDP itself and the backward pass are not part of the time.
mpi: "MPI_Allreduce" of Open MPI, called through ctypes.

Each result is the mean over the workers, in the place of the gradients.
"""
import ctypes
import datetime
import os
import sys
import time

MPI_IN_PLACE = ctypes.c_void_p(1)


def read_layout(path):
    """The shapes of a layout file; a vector has one dimension."""
    shapes = []
    with open(path) as file:
        for line in file:
            rows, cols = map(int, line.split()[1:])
            shapes.append((rows,) if cols == 1 else (rows, cols))
    return shapes


# --- PyTorch -----------------------------------------------------------------

class Bucket:
    """What the hooks use of a torch.distributed.GradBucket, which has no
    constructor in Python."""

    def __init__(self, flat, tensors):
        self.flat, self.tensors = flat, tensors

    def index(self):
        return 0

    def buffer(self):
        return self.flat

    def gradients(self):
        return self.tensors

    def is_last(self):
        return True


def torch_contender(text, world):
    """A function that replaces the buffer of a bucket by the mean."""
    import torch.distributed as dist
    from torch.distributed.algorithms.ddp_comm_hooks import (
        default_hooks, powerSGD_hook)
    name, *rank = text.split()
    if name == "all_reduce":
        def reduce(bucket):
            dist.all_reduce(bucket.buffer())
            bucket.buffer().div_(world)
        return reduce
    if name == "fp16_compress":
        return lambda bucket: default_hooks.fp16_compress_hook(
            dist.group.WORLD, bucket).wait()
    if name == "powerSGD":
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=int(rank[0]),
            start_powerSGD_iter=2)
        # Without the uncompressed iterations at the start.
        state.iter = state.start_powerSGD_iter
        return lambda bucket: powerSGD_hook.powerSGD_hook(
            state, bucket).wait()
    sys.exit(f"{text}: expected all_reduce, fp16_compress or powerSGD RANK")


class Torch:
    def __init__(self, shapes, contenders):
        import torch
        import torch.distributed as dist
        from training_speed import blas_of_this_process
        torch.set_num_threads(1)
        dist.init_process_group("gloo", timeout=datetime.timedelta(hours=1))
        self.world, rank = dist.get_world_size(), dist.get_rank()
        self.barrier = dist.barrier
        self.versions = (f"PyTorch {torch.__version__} with Gloo, "
                         f"{blas_of_this_process()}")
        sizes = [torch.Size(shape).numel() for shape in shapes]
        self.ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
        self.gradient, self.mean = self.draw(torch, rank)
        self.values = self.gradient.clone()
        self.shapes = shapes
        self.contenders = [torch_contender(text, self.world)
                           for text in contenders]

    def draw(self, torch, rank):
        def of(worker):
            generator = torch.Generator().manual_seed(worker)
            return torch.randn(self.ends[-1], generator=generator)
        mean = sum(of(worker) for worker in range(self.world)) / self.world
        return of(rank), mean

    def prepare(self, first, count):
        begin = self.ends[first - 1] if first else 0
        end = self.ends[first + count - 1]
        flat = self.values[begin:end]
        flat.copy_(self.gradient[begin:end])
        tensors, at = [], begin
        for i in range(first, first + count):
            tensors.append(self.values[at:self.ends[i]].view(self.shapes[i]))
            at = self.ends[i]
        self.exact = self.mean[begin:end]
        return Bucket(flat, tensors)

    def error(self, bucket):
        return float((bucket.flat - self.exact).norm() / self.exact.norm())


# --- Open MPI ----------------------------------------------------------------

class Mpi:
    def __init__(self, shapes, contenders):
        import numpy
        if contenders != ["MPI_Allreduce"]:
            sys.exit(f"{contenders}: expected MPI_Allreduce")
        self.numpy = numpy
        # Open MPI's own modules look up the symbols of the library.
        self.library = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
        self.library.MPI_Init(None, None)
        self.world, rank = self.ask("MPI_Comm_size"), self.ask("MPI_Comm_rank")
        text = ctypes.create_string_buffer(4096)
        self.library.MPI_Get_library_version(
            text, ctypes.byref(ctypes.c_int()))
        self.versions = text.value.decode().split(",")[0]
        sizes = [int(numpy.prod(shape)) for shape in shapes]
        self.ends = [sum(sizes[:i + 1]) for i in range(len(sizes))]
        drawn = [numpy.random.default_rng(worker).standard_normal(
            self.ends[-1], numpy.float32) for worker in range(self.world)]
        self.gradient = drawn[rank]
        self.mean = sum(drawn) / numpy.float32(self.world)
        self.values = self.gradient.copy()
        self.contenders = [self.reduce]

    def handle(self, name):
        return ctypes.byref(ctypes.c_char.in_dll(self.library, name))

    def ask(self, function):
        number = ctypes.c_int()
        self.library[function](
            self.handle("ompi_mpi_comm_world"), ctypes.byref(number))
        return number.value

    def barrier(self):
        self.library.MPI_Barrier(self.handle("ompi_mpi_comm_world"))

    def prepare(self, first, count):
        begin = self.ends[first - 1] if first else 0
        end = self.ends[first + count - 1]
        values = self.values[begin:end]
        values[:] = self.gradient[begin:end]
        self.exact = self.mean[begin:end]
        return values

    def reduce(self, values):
        self.library.MPI_Allreduce(
            MPI_IN_PLACE, ctypes.c_void_p(values.ctypes.data), values.size,
            self.handle("ompi_mpi_float"), self.handle("ompi_mpi_op_sum"),
            self.handle("ompi_mpi_comm_world"))
        values *= self.numpy.float32(1 / self.world)

    def error(self, values):
        norm = self.numpy.linalg.norm
        return float(norm(values - self.exact) / norm(self.exact))

    def close(self):
        self.library.MPI_Finalize()


# --- the protocol ------------------------------------------------------------

def serve(program):
    print(f"ready {program.versions}", flush=True)
    for line in sys.stdin:
        contender, tensor, rounds = line.split()
        reduce = program.contenders[int(contender)]
        values = (program.prepare(0, len(program.ends)) if tensor == "all"
                  else program.prepare(int(tensor), 1))
        program.barrier()
        start = time.monotonic()
        for _ in range(int(rounds)):
            reduce(values)
        seconds = (time.monotonic() - start) / int(rounds)
        print(f"{seconds:.9f} {program.error(values):.9g} nan", flush=True)


def main():
    if len(sys.argv) < 4 or sys.argv[1] not in ("torch", "mpi"):
        sys.exit("usage: exchange_peers.py torch|mpi LAYOUT CONTENDER...")
    kind, layout, *contenders = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    program = (Torch if kind == "torch" else Mpi)(
        read_layout(layout), contenders)
    serve(program)
    if kind == "mpi":
        program.close()


if __name__ == "__main__":
    main()
