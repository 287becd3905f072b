# SPDX-License-Identifier: MIT
"""Compressed communication for distributed training, for NumPy.

>>> import numpy as np
>>> payload = encode(np.arange(-4.0, 4.0), "top-k:0.25")
>>> decode(payload, "top-k:0.25", 8)
array([-4., -3.,  0.,  0.,  0.,  0.,  0.,  0.], dtype=float32)

``Averager`` averages arrays over the processes of a job. ``laconic.torch`` has
the hooks for PyTorch; importing ``laconic`` alone does not import torch.
"""
from ._algorithm import Algorithm, Traffic
from ._averager import Averager
from ._callbacks import TransportLike
from ._compressor import (Compressor, Guarantee, Key, Memory, decode, encode)
from ._ffi import (CorruptError, Error, InvalidError, NoMemoryError,
                   NotFoundError, PeerError, SpaceError, UnsupportedError, lib)
from ._layout import Layout, Tensor
from ._plugins import (Param, Plugin, algorithms, compressors, topologies,
                       transports)
from ._topology import Spectrum, Topology
from ._transport import Hub, Listener, Peer, Transport

__version__: str = lib.lac_version().decode()

__all__ = [
    "Algorithm", "Averager", "Compressor", "CorruptError", "Error",
    "Guarantee", "Hub", "InvalidError", "Key", "Layout", "Listener", "Memory",
    "NoMemoryError", "NotFoundError", "Param", "Peer", "PeerError", "Plugin",
    "SpaceError", "Spectrum", "Tensor", "Topology", "Traffic", "Transport",
    "TransportLike", "UnsupportedError", "algorithms", "compressors",
    "decode", "encode", "topologies", "transports",
]
