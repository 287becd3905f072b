# SPDX-License-Identifier: MIT
"""Over MPI, two ranks of an MPI job."""
import laconic
import torch.distributed as dist
from training import model, same_everywhere, trained, wrap


def check_mpi_gives_the_model_of_tcp():
    for algorithm, compressor in (("powersgd:rank=2", None),
                                  ("error-feedback", "top-k:0.1")):
        expected = trained(algorithm=algorithm, compressor=compressor,
                           transport="tcp")
        for calls in ("bucket", "step"):
            assert expected == trained(
                algorithm=algorithm, compressor=compressor, calls=calls,
                transport="mpi")


def check_other_ranks_than_of_the_group_are_refused():
    alone = [dist.new_group([0]), dist.new_group([1])][dist.get_rank()]
    try:
        wrap(model(), "allreduce", group=alone, transport="mpi")
    except laconic.InvalidError as error:
        assert "as in the process group" in str(error)
        same_everywhere("refused")
    else:
        raise AssertionError("no error")
