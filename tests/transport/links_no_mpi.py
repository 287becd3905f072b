# SPDX-License-Identifier: MIT
"""The library links no MPI: LIBRARY."""
import subprocess
import sys

needed = subprocess.run(["readelf", "-d", sys.argv[1]], check=True, text=True,
                        stdout=subprocess.PIPE).stdout
assert "NEEDED" in needed, needed
assert "mpi" not in needed.replace(sys.argv[1], ""), needed
