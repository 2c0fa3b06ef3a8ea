"""The process in which a filter node runs a selection: python -m rodeo.selection.worker FILE SOCKET MEMORY.

Reads requests from the socket (rodeo/selection/event.py), calls the function that FILE decorates with rodeo.select, and answers each with a line of JSON.
"""

import importlib.util
import json
import mmap
import os
import socket
import sys
import traceback

from rodeo.selection.decorator import Selection, decision_of
from rodeo.selection.event import REQUEST, read_event


def load(path):
    """The selection in a file. Raises what the file raises, and ValueError unless the file has exactly one selection."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("rodeo_user_selection", path)
    if spec is None or spec.loader is None:
        raise ValueError("is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {id(one): one for one in vars(module).values() if isinstance(one, Selection)}
    if len(found) != 1:
        raise ValueError(f"has {len(found)} functions that are decorated with @rodeo.select, not one")
    return next(iter(found.values()))


def said(error):
    """An exception in one line: its text, and where in the user's file it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"


def answer_to(selection, request, memory):
    """The function's answer for one event, in the form for the node."""
    try:
        decision = decision_of(selection(read_event(request, memory)))
    except Exception as error:  # an error of the user's function is an answer, too
        return {"error": said(error)}
    return {
        "verdict": decision.verdict,
        "streams": [
            {"type": one.type, "name": one.name, "obeys_lumi_block": one.obeys_lumi_block} for one in decision.streams
        ],
        "robs": list(decision.robs),
    }


def read_exactly(connection, size):
    """The bytes of one request; empty when the node is gone."""
    parts = b""
    while len(parts) < size:
        some = connection.recv(size - len(parts))
        if not some:
            return b""
        parts += some
    return parts


def serve(selection, connection, memory_fd):
    """Answers requests until the node is gone."""
    memory = memoryview(b"")
    while request := read_exactly(connection, REQUEST.size):
        size = REQUEST.unpack(request)[-1]
        if size != len(memory):
            # The old map lives as long as a view of it exists.
            memory = memoryview(mmap.mmap(memory_fd, size, prot=mmap.PROT_READ))
        connection.sendall(json.dumps(answer_to(selection, request, memory)).encode() + b"\n")


def main(arguments):
    """Returns the exit status."""
    path, socket_fd, memory_fd = arguments[0], int(arguments[1]), int(arguments[2])
    connection = socket.socket(fileno=socket_fd)
    try:
        selection = load(path)
    except BaseException as error:  # the file may call sys.exit()
        connection.sendall(json.dumps({"ready": False, "error": said(error)}).encode() + b"\n")
        return 1
    connection.sendall(json.dumps({"ready": True, "first_robs": list(selection.first)}).encode() + b"\n")
    serve(selection, connection, memory_fd)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
