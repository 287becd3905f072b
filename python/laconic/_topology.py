# SPDX-License-Identifier: MIT
"""Topologies: which workers exchange messages, and with which weights."""
from __future__ import annotations

from ctypes import POINTER, byref, c_uint32, c_void_p
from typing import Dict, List, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _ffi
from ._arguments import c_text, number
from ._ffi import lib
from ._handle import Handle, Resource


class Spectrum(NamedTuple):
    """The spectrum of a mixing matrix W."""

    lambda2: float  #: the second largest eigenvalue
    lambdan: float  #: the smallest eigenvalue
    gap: float      #: 1 - max(abs(lambda2), abs(lambdan))
    beta: float     #: the 2-norm of I - W


class Topology(Handle):
    """The network that a spec names, for a number of workers.

    >>> ring = Topology("ring", 4)
    >>> ring.neighbours(0)
    {1: 0.3333333333333333, 3: 0.3333333333333333}
    >>> ring.matrix().sum(axis=0)
    array([1., 1., 1., 1.])
    >>> round(ring.gap, 3)
    0.667
    """

    def __init__(self, spec: str, workers: int, *, seed: int = 1) -> None:
        pointer = c_void_p()
        lib.lac_topology_open(
            byref(pointer), c_text(spec, "topology"),
            number(workers, "topology: workers", 32),
            number(seed, "topology: seed"))
        self._own(Resource(
            "topology", pointer, lib.lac_topology_close, forks=True))
        self.spec = spec
        self.workers = int(lib.lac_topology_workers(pointer))
        #: After how many rounds the network repeats.
        self.period = int(lib.lac_topology_period(pointer))
        #: Whether every round is drawn at random, as in random-matching.
        self.drawn = bool(lib.lac_topology_is_drawn(pointer))
        #: How many pairs are neighbours in any round.
        self.edge_count = int(lib.lac_topology_edge_count(pointer))
        #: The largest number of neighbours of a worker in a round.
        self.max_degree = int(lib.lac_topology_max_degree(pointer))
        self.hash = int(lib.lac_topology_hash(pointer))

    def _rank(self, rank: int) -> int:
        if number(rank, "topology: rank") >= self.workers:
            raise _ffi.InvalidError(
                f"topology: rank is {rank}, expected less than "
                f"{self.workers}")
        return rank

    def neighbours(self, rank: int, round: int = 0) -> Dict[int, float]:
        """Return the weights of the neighbours of a worker in a round."""
        edges = POINTER(_ffi.Edge)()
        with self._resource as t:
            count = lib.lac_topology_edges(
                t, self._rank(rank), number(round, "topology: round"),
                byref(edges))
            return {edges[k].peer: edges[k].weight for k in range(count)}

    def self_weight(self, rank: int, round: int = 0) -> float:
        """Return the weight that a worker gives to its own value."""
        with self._resource as t:
            return float(lib.lac_topology_self_weight(
                t, self._rank(rank), number(round, "topology: round")))

    def peers(self, rank: int) -> List[int]:
        """Return the neighbours of a worker in any round."""
        peers = POINTER(c_uint32)()
        with self._resource as t:
            count = lib.lac_topology_peers(t, self._rank(rank), byref(peers))
            return peers[:count]

    def matrix(self, round: int = 0) -> npt.NDArray[np.float64]:
        """Return the mixing matrix of a round."""
        w = np.empty((self.workers, self.workers))
        with self._resource as t:
            lib.lac_topology_matrix(
                t, number(round, "topology: round"), w.ctypes.data)
        return w

    @property
    def spectrum(self) -> Spectrum:
        """The spectrum of the mixing matrix, computed in time workers^3.

        If every round is drawn, it is that of the mean matrix.
        """
        found = _ffi.Spectrum()
        with self._resource as t:
            lib.lac_topology_spectrum(t, byref(found))
        return Spectrum(found.lambda2, found.lambdan, found.gap, found.beta)

    @property
    def gap(self) -> float:
        """The spectral gap."""
        return self.spectrum.gap
