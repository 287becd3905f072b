# SPDX-License-Identifier: MIT
"""A TCP port on loopback that nobody uses at the moment."""
import socket


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
