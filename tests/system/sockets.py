"""Writes to a control socket as another program may do, and returns the answer."""

import json
import socket

from conftest import scaled


def written_to(directory, name, line):
    """Sends a line to the socket with this name in any folder of the directory, and returns the answer."""
    (path,) = (found for found in directory.rglob(name) if found.is_socket())
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(scaled(20))
        client.connect(str(path))
        client.sendall(line + b"\n")
        return json.loads(client.makefile().readline())
