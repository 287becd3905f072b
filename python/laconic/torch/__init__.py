# SPDX-License-Identifier: MIT
"""Compressed communication for PyTorch.

Gradients of DistributedDataParallel, in one line:

    ddp.register_comm_hook(
        laconic.torch.Hook(ddp, "powersgd:rank=2"), laconic.torch.hook)

Decentralised training of models that differ between workers: ``Gossip``.
"""
from ._gossip import Gossip
from ._hook import Hook, hook

__all__ = ["Gossip", "Hook", "hook"]
