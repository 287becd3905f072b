# SPDX-License-Identifier: MIT
"""Runs the checks of a module as one rank: run_checks.py MODULE.

Importing torch takes longer than a check, so all checks of a module run in the
same processes. Every check prints a line of JSON; the first that fails ends
the run, since the ranks are then no longer in step.
"""
import importlib
import json
import os
import sys
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist


def checks(module):
    return [(name[len("check_"):], function)
            for name, function in vars(module).items()
            if name.startswith("check_")]


def main():
    torch.set_num_threads(1)
    os.environ.setdefault("RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0"))
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    # Small models have several buckets, too.
    dist._DEFAULT_FIRST_BUCKET_BYTES = 64
    module = importlib.import_module(sys.argv[1])
    for name, function in checks(module):
        begun = time.monotonic()
        try:
            function()
            error = ""
        except BaseException:
            error = traceback.format_exc()
        line = json.dumps({"name": name, "error": error,
                           "rank": dist.get_rank(),
                           "seconds": time.monotonic() - begun})
        # Ranks may share a pipe: a line is one write.
        os.write(sys.stdout.fileno(), (line + "\n").encode())
        if error:
            sys.exit(1)
    # Without this, a thread of gloo that releases a tensor while Python ends
    # aborts the process.
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
