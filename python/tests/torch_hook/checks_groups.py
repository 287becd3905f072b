# SPDX-License-Identifier: MIT
"""Several groups at once, three ranks."""
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import laconic
import laconic.torch
from training import (batches, digest, model, optimizer_of, same_everywhere,
                      steps, trained, wrap)


def check_three_ranks_have_one_model():
    expected = trained(algorithm="powersgd:rank=1")
    assert trained(algorithm="powersgd:rank=1", transport="c10d",
                   calls="step") == expected
    trained(algorithm="error-feedback", compressor="sign")
    trained(algorithm="allreduce")


def check_ranks_have_uneven_inputs():
    trained(algorithm="powersgd:rank=1", around=lambda ddp: ddp.join(),
            data=lambda: batches(2 + 2 * dist.get_rank()))


def check_groups_at_once_do_not_mix():
    """Rank 1 is in both groups, and trains a model in each at once."""
    groups = {name: dist.new_group(ranks) for name, ranks in (
        ("low", [0, 1]), ("high", [1, 2]))}
    mine = {name: group for name, group in groups.items()
            if dist.get_rank(group) >= 0}
    for transport in ("auto", "c10d"):
        apart = {}
        for name, group in groups.items():
            if name in mine:
                apart[name] = run({name: group}, transport)[name]
            dist.barrier()
        together = run(mine, transport)
        assert together == apart
        for name, group in mine.items():
            same_everywhere(together[name], group)


def run(groups, transport):
    pairs = {name: wrap(model(), "powersgd:rank=1", group=group,
                        transport=transport)
             for name, group in groups.items()}
    optimizers = [optimizer_of(ddp) for ddp, _ in pairs.values()]
    for x, y in batches(5):
        for optimizer in optimizers:
            optimizer.zero_grad()
        sum(cross_entropy(ddp(x), y) for ddp, _ in pairs.values()).backward()
        for optimizer in optimizers:
            optimizer.step()
    for _, hook in pairs.values():
        hook.close()
    return {name: digest(ddp) for name, (ddp, _) in pairs.items()}


def check_another_group_is_refused():
    group = dist.new_group([0, 1])
    if dist.get_rank() == 2:
        try:
            laconic.torch.Hook(model(), "allreduce", group=group)
        except laconic.InvalidError as error:
            assert "not in the group" in str(error)
        else:
            raise AssertionError("no error")


def check_a_state_of_three_loads_into_two():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    steps(ddp, optimizer_of(ddp), batches(3))
    state = hook.state_dict()
    hook.close()
    group = dist.new_group([0, 1])
    if dist.get_rank() == 2:
        return
    ddp, hook = wrap(model(), "powersgd:rank=1", group=group)
    try:
        hook.load_state_dict(state)
    except laconic.InvalidError as error:
        assert "3" in str(error) and "2" in str(error), error
    else:
        raise AssertionError("no error")
    hook.load_state_dict(state, other_world=True)
    steps(ddp, optimizer_of(ddp), batches(3, 3))
    same_everywhere(digest(ddp), group)
    hook.close()
