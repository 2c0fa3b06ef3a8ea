"""The `rodeo` command of the wheel: becomes the program that lies beside."""

import os
import sys
from pathlib import Path


def main():
    os.environ.setdefault("RODEO_PYTHON", sys.executable)  # for verbs whose work is Python's: where our packages are
    program = Path(__file__).parent / "_bin" / "rodeo"
    os.execv(program, ["rodeo", *sys.argv[1:]])
