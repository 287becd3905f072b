# SPDX-License-Identifier: MIT
"""Compressed communication for PyTorch.

Gradients of DistributedDataParallel, in one line:

    ddp.register_comm_hook(
        laconic.torch.Hook(ddp, "powersgd:rank=2"), laconic.torch.hook)
"""
from ._hook import Hook, hook

__all__ = ["Hook", "hook"]
