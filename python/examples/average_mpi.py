#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fits a linear model with the gradients of all processes of an MPI job.

    mpirun -n 4 python3 average_mpi.py

Each process has its own examples. PowerSGD sends two thin factors of the
gradient instead of the gradient, and error feedback adds what that drops to
the next one. The result is as close as with exact averages.
"""
import numpy as np
from mpi4py import MPI

import laconic

STEPS = 300
ROWS, COLS = 48, 32


def fit(averager, inputs, targets):
    """Return the weights after gradient descent on the mean squared error."""
    weight = np.zeros((ROWS, COLS), np.float32)
    for _ in range(STEPS):
        error = inputs @ weight.T - targets
        gradient = {"weight": error.T @ inputs / len(inputs)}
        weight -= 0.05 * averager.mean(gradient)["weight"]
    return weight


def main():
    comm = MPI.COMM_WORLD
    truth = np.random.default_rng(0).standard_normal(
        (ROWS, COLS)).astype(np.float32)
    rng = np.random.default_rng([1, comm.rank])
    inputs = rng.standard_normal((256, COLS)).astype(np.float32)
    targets = inputs @ truth.T

    with laconic.Averager("powersgd:rank=2", comm=comm) as averager:
        weight = fit(averager, inputs, targets)
        sent = averager.traffic.payload_bytes
    # All processes have the same weights, bit for bit.
    assert len(set(comm.allgather(weight.tobytes()))) == 1
    error = np.linalg.norm(weight - truth) / np.linalg.norm(truth)
    if comm.rank == 0:
        print(f"{comm.size} processes: relative error {error:.1e}, "
              f"{sent} bytes sent for {STEPS * weight.nbytes} of gradients")


if __name__ == "__main__":
    main()
