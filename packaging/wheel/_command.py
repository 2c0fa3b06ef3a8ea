"""The `rodeo` command of the wheel: runs the program beside it in its place."""

import os
import sys
from pathlib import Path


def main():
    os.environ.setdefault("RODEO_PYTHON", sys.executable)  # the interpreter for verbs that are written in Python
    program = Path(__file__).parent / "_bin" / "rodeo"
    os.execv(program, ["rodeo", *sys.argv[1:]])
