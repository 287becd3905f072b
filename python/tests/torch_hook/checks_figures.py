# SPDX-License-Identifier: MIT
"""200 steps: the model of plain DDP, and what compression costs, two ranks."""
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from training import batches, digest, model, same_everywhere, steps, wrap

STEPS = 200
WAYS = (
    {"calls": "step"},
    {"transport": "c10d"},
    {"options": {"gradient_as_bucket_view": True}},
    {"options": {"find_unused_parameters": True}},
    {"options": {"static_graph": True}, "calls": "step"},
)


def run(algorithm=None, **arguments):
    """Return the digest, the loss on other examples, and the buckets."""
    ddp, hook = wrap(model(hidden=64), algorithm, **arguments)
    optimizer = torch.optim.SGD(ddp.parameters(), 0.02, momentum=0.9)
    steps(ddp, optimizer, batches(STEPS, size=64))
    x, y = next(batches(1, first=10**6, size=2000))
    loss = cross_entropy(ddp.module(x), y).detach()
    dist.all_reduce(loss)
    buckets = 0
    if hook is not None:
        buckets = len(hook._plans)
        hook.close()
    return same_everywhere(digest(ddp)), loss.item() / 2, buckets


def check_allreduce_is_plain_ddp_and_powersgd_is_close():
    plain = run()
    exact = run("allreduce")
    assert exact[0] == plain[0] and exact[2] >= 3
    low_rank = run("powersgd:rank=2")
    assert low_rank[0] != plain[0] and low_rank[2] >= 3
    assert abs(low_rank[1] / plain[1] - 1) < 0.05, (low_rank[1], plain[1])
    if dist.get_rank() == 0:
        print(f"loss {plain[1]:.4f} exact, {low_rank[1]:.4f} powersgd rank 2")
    for way in WAYS:
        assert run("powersgd:rank=2", **way)[0] == low_rank[0], way
