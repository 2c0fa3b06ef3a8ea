"""The `rodeo` command of the wheel: becomes the program that lies beside."""

import os
import sys
from pathlib import Path


def main():
    program = Path(__file__).parent / "_bin" / "rodeo"
    os.execv(program, ["rodeo", *sys.argv[1:]])
