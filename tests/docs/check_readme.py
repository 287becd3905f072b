# SPDX-License-Identifier: MIT
"""Fail unless the C block of README.md is examples/roundtrip.c."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
blocks = re.findall(r"^```c\n(.*?)^```", (root / "README.md").read_text(),
                    re.M | re.S)
example = (root / "examples" / "roundtrip.c").read_text()
if blocks != [example]:
    print("README.md must have one C block, equal to examples/roundtrip.c")
    sys.exit(1)
