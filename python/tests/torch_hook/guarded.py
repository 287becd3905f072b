# SPDX-License-Identifier: MIT
"""Runs a program that ends itself if it hangs: guarded.py SECONDS PROGRAM ...

A launcher that is killed leaves its processes behind, without their
stacks. These print the stacks of all their threads, and exit.
"""
import faulthandler
import os
import runpy
import sys

if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(sys.argv[1]), exit=True)
    del sys.argv[:2]
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")
    faulthandler.cancel_dump_traceback_later()
