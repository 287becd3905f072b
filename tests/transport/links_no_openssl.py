# SPDX-License-Identifier: MIT
"""The library links no OpenSSL, neither itself nor by another: LIBRARY."""
import subprocess
import sys

needed = subprocess.run(["ldd", sys.argv[1]], check=True, text=True,
                        stdout=subprocess.PIPE).stdout
assert "libc.so" in needed, needed
assert "libssl" not in needed and "libcrypto" not in needed, needed
