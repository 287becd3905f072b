# SPDX-License-Identifier: MIT
"""Runs duties of the conformance suite under mpirun: LIBRARY PROGRAM DUTY.

The duty steady may end in a number of workers, as in steady3.

Every worker must report that it went well. The status of mpirun says nothing:
after a failure, and most duties bring one about, MPI is not finalised.
"""
import subprocess
import sys

import launch



def main(library, program, duty):
    ends_well = duty.startswith("steady") or duty == "guest"
    workers = int(duty[-1]) if duty[-1].isdigit() else 4
    command = [*launch.launcher(library, workers), program]
    if duty != "guest":
        command.append(f"mpi:library={library}")
    if not ends_well:
        command.append(duty)
    result = subprocess.run(command, env=launch.environment(), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=100, check=False)
    print(result.stdout, result.stderr)
    good = all(f"worker {rank} of {workers}: good" in result.stdout
               for rank in range(workers))
    if ends_well and result.returncode != 0:
        good = False
    return 0 if good and "FAILED" not in result.stderr else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
