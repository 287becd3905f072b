# SPDX-License-Identifier: MIT
"""Started by torchrun, two ranks."""
from training import trained


def check_two_ranks_have_one_model():
    trained(algorithm="powersgd:rank=1")
