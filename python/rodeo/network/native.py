"""The C++ module rodeo._network. If it was not built, the error says what to do."""

import sys

try:
    from rodeo import _network as module
except ImportError as missing:
    raise ImportError(
        f"rodeo._network cannot be imported by {sys.executable} ({missing}). It is built with the command, by the interpreter of .venv: "
        "run tools/setup (it needs Debian's python3-dev and pip's nanobind) and use PYTHONPATH=build/python with .venv/bin/python3"
    ) from missing
