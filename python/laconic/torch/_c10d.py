# SPDX-License-Identifier: MIT
"""Messages through a process group of torch, where tcp cannot connect.

A message is two sends: its length, then its bytes. A length of -1 is an abort,
followed by its reason. Every session has two tags of its own in the group, one
for lengths and one for bytes; tags of the library, which algorithms do not
need, are ignored.
"""
from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any, List, Sequence, Tuple

import torch
import torch.distributed as dist

from .. import PeerError, SpaceError

# Tags of torch are below 2^31; programs number theirs from 0.
_TAG_BASE = 1 << 30
_ABORT = -1
_ABORT_BYTES = 512


# The peer, the work, and what is sent: its memory must stay.
_Sent = Tuple[int, Any, torch.Tensor]


class C10d:
    """Moves the messages of one session; see ``Transport.join_with``."""

    def __init__(self, group: Any, session: int) -> None:
        self._group = group
        self._ranks = [dist.get_global_rank(group, rank)
                       for rank in range(dist.get_world_size(group))]
        self._own = dist.get_rank(group)
        self._length_tag = _TAG_BASE + session % (_TAG_BASE // 2) * 2
        # Of the last exchange: a peer may receive them in its next one.
        self._sent: List[_Sent] = []
        self._aborts: List[_Sent] = []
        # Another thread aborts: its length must not precede other bytes.
        self._sending = threading.Lock()

    def exchange(
            self, sends: List[Tuple[int, int, memoryview]],
            receives: List[Tuple[int, int, int]],
            timeout: float) -> Sequence[Any]:
        """Send all messages and return those that were received."""
        limit = timedelta(seconds=min(max(timeout, 0.001), 1e6))
        before, self._sent = self._sent, []
        lengths = [torch.zeros(1, dtype=torch.int64) for _ in receives]
        works = [self._receive(peer, 0, length)
                 for (peer, _, _), length in zip(receives, lengths)]
        for peer, _, data in sends:
            self._sent += self._send(peer, len(data), bytearray(data))
        bodies = []
        for (peer, _, most), work, length in zip(receives, works, lengths):
            _wait(work, f"message of worker {peer}", limit)
            bodies.append(self._body(peer, int(length.item()), most, limit))
        for (peer, _, _), (work, _) in zip(receives, bodies):
            if work is not None:
                _wait(work, f"message of worker {peer}", limit)
        for peer, work, _ in before:
            _wait(work, f"message to worker {peer} has arrived", limit)
        return [body.numpy() for _, body in bodies]

    def _send(self, peer: int, length: int,
              data: bytearray) -> List[_Sent]:
        parts = [torch.tensor([length])]
        if data:
            parts.append(torch.frombuffer(data, dtype=torch.uint8))
        with self._sending:
            return [(peer, dist.isend(part, self._ranks[peer], self._group,
                                      self._length_tag + i), part)
                    for i, part in enumerate(parts)]

    def _receive(self, peer: int, part: int, into: torch.Tensor) -> Any:
        return dist.irecv(into, self._ranks[peer], self._group,
                          self._length_tag + part)

    def _body(self, peer: int, length: int, most: int,
              limit: timedelta) -> Tuple[Any, torch.Tensor]:
        if length == _ABORT:
            why = torch.zeros(_ABORT_BYTES, dtype=torch.uint8)
            _wait(self._receive(peer, 1, why), f"reason of worker {peer}",
                  limit)
            text = bytes(why.numpy()).rstrip(b"\0").decode(errors="replace")
            raise PeerError(f"worker {peer} aborted: {text}")
        if length < 0 or 0 < most < length:
            raise SpaceError(
                f"c10d: a message of worker {peer} has {length} bytes, "
                f"expected at most {most}")
        body = torch.empty(length, dtype=torch.uint8)
        return self._receive(peer, 1, body) if length else None, body

    def abort(self, why: str) -> None:
        """Make the exchanges of the others fail; this worker's own ends when
        they leave.
        """
        text = why.encode()[:_ABORT_BYTES].ljust(_ABORT_BYTES, b"\0")
        for peer in range(len(self._ranks)):
            if peer == self._own:
                continue
            try:
                self._aborts += self._send(peer, _ABORT, bytearray(text))
            except RuntimeError:
                pass  # It is gone.


def _wait(work: Any, what: str, limit: timedelta) -> None:
    try:
        work.wait(limit)
    except RuntimeError as error:
        reason = str(error).splitlines()[0]
        raise PeerError(f"c10d: no {what}: {reason}") from error
