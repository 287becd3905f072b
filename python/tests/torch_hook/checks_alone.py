# SPDX-License-Identifier: MIT
"""One process, with a group of one."""
from training import agrees_with_plain, batches, model, optimizer_of, steps
from training import trained, wrap


def check_one_process_trains():
    """A mean over one worker: every exact way gives plain DDP's model."""
    agrees_with_plain()
    assert trained(algorithm="allreduce", calls="step") == trained()


def check_a_state_resumes():
    ddp, hook = wrap(model(), "powersgd:rank=1")
    steps(ddp, optimizer_of(ddp), batches(3))
    hook.load_state_dict(hook.state_dict())
    steps(ddp, optimizer_of(ddp), batches(3))
    hook.close()
