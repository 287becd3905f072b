# SPDX-License-Identifier: MIT
"""Where the library finds the values of a tensor.

Values on the CPU stay where they are. Values on a CUDA device go through
pinned memory, by copies on the stream that is current when they are ready:

    stage     device -> host, and an event after it
    wait      until the event: now the host may read
    restore   host -> device, and the future is set on the same stream, so
              that whoever waits for it is ordered after the copy

No machine with such a device was at hand: this is tested with a fake one.
"""
from __future__ import annotations

from typing import Any, Optional

import torch

# A fake in the tests.
cuda: Any = torch.cuda


class Staged:
    """A tensor that the library works on where it is, or not at all."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values
        self.host = values
        self.future: Any = future_on(values.device)

    def wait(self) -> None:
        """Wait until the host may read the values."""

    def restore(self) -> None:
        """Give the values back and complete the future."""
        self.future.set_result(self.values)


class StagedOnDevice(Staged):
    """A tensor on a device, copied to pinned memory and back."""

    def __init__(self, values: torch.Tensor,
                 host: Optional[torch.Tensor]) -> None:
        super().__init__(values)
        self.host = pinned(values) if host is None else host
        self._stream = cuda.current_stream(values.device)
        self.host.copy_(values, non_blocking=True)
        self._copied = cuda.Event()
        self._copied.record(self._stream)

    def wait(self) -> None:
        self._copied.synchronize()

    def restore(self) -> None:
        with cuda.stream(self._stream):
            self.values.copy_(self.host, non_blocking=True)
            super().restore()


def future_on(device: torch.device) -> Any:
    """Return a future for a tensor on a device."""
    return torch.futures.Future(
        devices=None if device.type == "cpu" else [device])


def pinned(values: torch.Tensor) -> torch.Tensor:
    """Return pinned memory for the values."""
    return torch.empty(values.shape, dtype=values.dtype, pin_memory=True)


def stage(values: torch.Tensor,
          host: Optional[torch.Tensor] = None) -> Staged:
    """Begin to bring values to the host; ``host`` is memory from before."""
    if values.device.type == "cpu":
        return Staged(values)
    return StagedOnDevice(values, host)
